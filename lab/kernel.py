# SPDX-License-Identifier: GPL-2.0
"""Guest kernels: Debian's own packages, unpacked and not installed.

``ensure("6.12")`` fetches the dependencies of ``linux-image-amd64`` of the suite that has Linux
6.12, and the matching headers. It unpacks them below the cache folder:

    <cache>/kernels/6.12                 release that the name was resolved to
    <cache>/kernels/<release>/
        vmlinux                          ELF taken out of vmlinuz; holds section .BTF
        root/boot/vmlinuz-<release>      vmlinuz; in 7.2 it is in modules_dir
        root/lib/modules/<release>/      modules_dir, with depmod's indices
        root/usr/src/linux-headers-<release>/          headers_build_dir
        root/usr/src/linux-headers-<abi>-common/
        root/usr/lib/linux-kbuild-<version>/

``make -C <headers_build_dir> M=<module source> modules`` works as with installed headers, where the
machine has the compiler and the C library for it. lab/module.py knows the kernels that need a
chroot. The resolved release stays the same until ``ensure(refresh=True)``. So an update of the
distribution does not change the kernel in the middle of a series of measurements.

On the command line, ``python -m lab kernel`` prints the tree as JSON.
"""

from __future__ import annotations

import bz2
import dataclasses
import lzma
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from lab import compiled, tools
from lab.cache import cache_dir, locked, write_atomically
from lab.errors import GoneError, LabError, SpecError
from lab.packages import Suite
from lab.tree import COMPILED, DEFAULT_KERNEL, KernelTree


@dataclasses.dataclass(frozen=True)
class KernelSource:
    """The suite of a kernel, and whether its headers need a chroot of that suite."""

    suite: Suite
    needs_chroot: bool = False


KERNELS: dict[str, KernelSource] = {
    DEFAULT_KERNEL: KernelSource(Suite()),
    "6.12": KernelSource(Suite("bookworm-backports")),
    "7.2": KernelSource(Suite("sid"), needs_chroot=True),
}

_METAPACKAGE = "linux-image-amd64"
_IMAGE_PACKAGE = re.compile(r"linux-image-(\d[\w.+-]*)$")
# The dependencies to fetch. The compiler, the installer's tools and a second image are left out.
_KERNEL_PACKAGE = re.compile(
    r"linux-(?:headers|kbuild|binary|modules|base|image)-\d[\w.+-]*(?<!-unsigned)$"
)


def source_of(name: str) -> KernelSource:
    """The source of kernel @name. Raises SpecError for an unknown name."""
    if name not in KERNELS:
        raise SpecError(f"kernel '{name}': unknown: choose one of {', '.join(KERNELS)}")
    return KERNELS[name]


def ensure(name: str | None = None, *, refresh: bool = False) -> KernelTree:
    """Returns kernel @name (default: the distribution's own); fetches it if it is not cached.

    @refresh resolves the release again from the package lists. Raises SpecError or LabError.
    """
    chosen = name or DEFAULT_KERNEL
    if chosen in COMPILED:
        return compiled.ensure(chosen)
    source = source_of(chosen)
    kernels = cache_dir() / "kernels"
    with locked(kernels / ".lock"):
        release = None if refresh else _pinned(kernels / chosen)
        if release is None or not (kernels / release).is_dir():
            source.suite.update()
            release = _resolve(chosen, source)
            if not (kernels / release).is_dir():
                _fetch(source, release, kernels)
            write_atomically(kernels / chosen, f"{release}\n".encode())
    return _tree(kernels / release, release, source)


def _pinned(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None


def _tree(base: Path, release: str, source: KernelSource) -> KernelTree:
    root = base / "root"
    modules = _first_existing(root / f"{lib}/modules/{release}" for lib in ("lib", "usr/lib"))
    return KernelTree(
        release=release,
        vmlinuz=_first_existing([root / f"boot/vmlinuz-{release}", modules / "vmlinuz"]),
        vmlinux=_first_existing([base / "vmlinux"]),
        modules_dir=modules,
        headers_build_dir=_first_existing([root / f"usr/src/linux-headers-{release}"]),
        root=root,
        chroot_suite=source.suite.name if source.needs_chroot else "",
    )


def _first_existing(paths: Iterable[Path]) -> Path:
    tried = list(paths)
    for path in tried:
        if path.exists():
            return path
    raise LabError(
        f"{tried[0]}: missing from the unpacked kernel: remove {cache_dir()}/kernels and run again"
    )


def _resolve(name: str, source: KernelSource) -> str:
    """The release that the suite of kernel @name has at present."""
    for dependency in source.suite.dependencies(_METAPACKAGE):
        match = _IMAGE_PACKAGE.match(dependency)
        if match is None:
            continue
        release = match.group(1)
        if not release.startswith(f"{name}."):
            raise GoneError(
                f"kernel {name}: {source.suite} has {release} instead: use another of"
                f" {', '.join(KERNELS)}"
            )
        return release
    raise LabError(f"{_METAPACKAGE}: the package lists do not have it: run apt-get update")


def _fetch(source: KernelSource, release: str, kernels: Path) -> None:
    """Unpacks @release beside its final place, and moves it there when it is complete."""
    names = [f"linux-image-{release}", f"linux-headers-{release}"]
    packages = source.suite.closure(names, _KERNEL_PACKAGE.match)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=kernels))
    try:
        root = partial / "root"
        source.suite.unpack(packages, root, f"kernel {release}")
        if not (root / "lib").exists():
            # depmod looks for the modules here.
            (root / "lib").symlink_to("usr/lib")
        relocate_headers(root / f"usr/src/linux-headers-{release}")
        tools.run(["depmod", "-b", str(root), release])
        vmlinuz = _first_existing(
            [root / f"boot/vmlinuz-{release}", root / f"usr/lib/modules/{release}/vmlinuz"]
        )
        (partial / "vmlinux").write_bytes(extract_vmlinux(vmlinuz.read_bytes()))
        partial.chmod(0o755)
        partial.rename(kernels / release)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def relocate_headers(headers: Path) -> None:
    """Makes the paths below /usr/src in the packaged Makefile relative to the Makefile."""
    makefile = headers / "Makefile"
    here = "$(dir $(realpath $(lastword $(MAKEFILE_LIST))))"
    # The list of makefiles grows, so the folder must be found at once.
    output = rf"KBUILD_OUTPUT := $(patsubst %/,%,{here})"
    text = re.sub(r"^KBUILD_OUTPUT=/usr/src/\S+$", output, makefile.read_text(), flags=re.MULTILINE)
    relocated, count = re.subn(
        r"^include /usr/src/(\S+)$", rf"include {here}../\1", text, flags=re.MULTILINE
    )
    if count != 1:
        raise LabError(
            f"{makefile}: {count} lines 'include /usr/src/…', not one: the packages have a new"
            " layout, use an older kernel"
        )
    makefile.write_text(relocated)


def _unzstd(data: bytes) -> bytes:
    """The first frame of @data. Other bytes follow it, about which the program complains."""
    try:
        done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise LabError("zstd: not found: run lab/bootstrap kernels") from error
    if not done.stdout:
        raise LabError(f"vmlinuz: zstd cannot read it: {done.stderr.decode().strip()}")
    return done.stdout


_DECOMPRESSORS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data),
    b"\xfd7zXZ\x00": lambda data: lzma.LZMADecompressor().decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
    b"\x28\xb5\x2f\xfd": _unzstd,
}


def extract_vmlinux(image: bytes) -> bytes:
    """The ELF kernel inside a bzImage, by the fields of the x86 boot protocol.

    A guest enters it directly (PVH), because unpacking it under emulation would take longer than
    the rest of the boot. Raises LabError for an unknown format.
    """
    if image[0x202:0x206] != b"HdrS" or struct.unpack_from("<H", image, 0x206)[0] < 0x208:
        raise LabError("vmlinuz: no x86 boot image of protocol 2.08 or newer")
    setup_bytes = ((image[0x1F1] or 4) + 1) * 512
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[setup_bytes + offset : setup_bytes + offset + length]
    for magic, decompress in _DECOMPRESSORS.items():
        if payload.startswith(magic):
            # The payload ends with the kernel's length, which the decompressors ignore.
            return decompress(payload)
    raise LabError(f"vmlinuz: compression with magic {payload[:6].hex()} is not supported")


def module_aliases(module: Path) -> list[str]:
    """The aliases of a built @module, by which the kernel requests it."""
    return tools.run(["modinfo", "-F", "alias", str(module)]).split()


def module_depends(module: Path) -> list[str]:
    """The modules that a built @module depends on."""
    return [
        name
        for name in tools.run(["modinfo", "-F", "depends", str(module)]).strip().split(",")
        if name
    ]
