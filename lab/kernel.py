"""Guest kernels: the distribution's own packages, unpacked and not installed.

``ensure()`` fetches the dependencies of ``linux-image-amd64`` of this distribution and the matching
headers, and unpacks them below the cache folder:

    <cache>/kernels/distro               release that "distro" was resolved to
    <cache>/kernels/<release>/
        vmlinux                          ELF taken out of vmlinuz; holds section .BTF
        root/boot/vmlinuz-<release>      vmlinuz
        root/boot/config-<release>
        root/lib/modules/<release>/      modules_dir, with depmod's indices
        root/usr/src/linux-headers-<release>/          headers_build_dir
        root/usr/src/linux-headers-<abi>-common/
        root/usr/lib/linux-kbuild-<version>/

``make -C <headers_build_dir> M=<module source> modules`` works as with installed headers. The
resolved release stays the same until ``ensure(refresh=True)``. So an update of the distribution
does not change the kernel in the middle of a series of measurements.

On the command line, ``python -m lab kernel`` prints the tree as JSON.
"""

from __future__ import annotations

import bz2
import dataclasses
import lzma
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from lab.cache import cache_dir, locked, write_atomically
from lab.errors import LabError, SpecError


@dataclasses.dataclass(frozen=True)
class KernelTree:
    """One unpacked kernel. All paths are absolute."""

    release: str
    vmlinuz: Path
    vmlinux: Path
    modules_dir: Path
    headers_build_dir: Path
    root: Path


@dataclasses.dataclass(frozen=True)
class KernelSource:
    """The source of a kernel: a metapackage that depends on the package of the release."""

    metapackage: str


DEFAULT_KERNEL = "distro"
KERNELS: dict[str, KernelSource] = {
    DEFAULT_KERNEL: KernelSource(metapackage="linux-image-amd64"),
}

_IMAGE_PACKAGE = re.compile(r"linux-image-(\d[\w.+-]*)$")
# The dependencies to fetch. The compiler and the installer's tools are left out.
_KERNEL_PACKAGE = re.compile(r"linux-(?:headers|kbuild|binary|modules|base|image)-\d[\w.+-]*$")


def ensure(name: str | None = None, *, refresh: bool = False) -> KernelTree:
    """Returns kernel @name (default: the distribution's own); fetches it if it is not cached.

    @refresh resolves the release again from the package lists. Raises SpecError or LabError.
    """
    chosen = name or DEFAULT_KERNEL
    source = KERNELS.get(chosen)
    if source is None:
        raise SpecError(f"kernel '{chosen}': unknown: choose one of {', '.join(KERNELS)}")
    kernels = cache_dir() / "kernels"
    with locked(kernels / ".lock"):
        release = None if refresh else _pinned(kernels / chosen)
        if release is None or not (kernels / release).is_dir():
            release = _resolve(source)
            if not (kernels / release).is_dir():
                _fetch(release, kernels)
            write_atomically(kernels / chosen, f"{release}\n".encode())
    return _tree(kernels / release, release)


def _pinned(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except FileNotFoundError:
        return None


def _tree(base: Path, release: str) -> KernelTree:
    root = base / "root"
    modules = _first_existing(root / f"{lib}/modules/{release}" for lib in ("lib", "usr/lib"))
    return KernelTree(
        release=release,
        vmlinuz=_first_existing([root / f"boot/vmlinuz-{release}", modules / "vmlinuz"]),
        vmlinux=_first_existing([base / "vmlinux"]),
        modules_dir=modules,
        headers_build_dir=_first_existing([root / f"usr/src/linux-headers-{release}"]),
        root=root,
    )


def _first_existing(paths: Iterable[Path]) -> Path:
    tried = list(paths)
    for path in tried:
        if path.exists():
            return path
    raise LabError(
        f"{tried[0]}: missing from the unpacked kernel: remove {cache_dir()}/kernels and run again"
    )


def _resolve(source: KernelSource) -> str:
    for dependency in _dependencies(source.metapackage):
        match = _IMAGE_PACKAGE.match(dependency)
        if match:
            return match.group(1)
    raise LabError(
        f"{source.metapackage}: the package lists have no kernel for it: run apt-get update"
    )


def _dependencies(package: str) -> list[str]:
    output = _tool(["apt-cache", "depends", "--important", package])
    return re.findall(r"^\s*\|?Depends: ([^<\s]+)$", output, re.MULTILINE)


def _closure(packages: Sequence[str]) -> list[str]:
    """@packages and all kernel packages that they depend on."""
    found: list[str] = []
    pending = list(packages)
    while pending:
        package = pending.pop()
        if package in found:
            continue
        found.append(package)
        pending.extend(d for d in _dependencies(package) if _KERNEL_PACKAGE.match(d))
    return sorted(found)


def _fetch(release: str, kernels: Path) -> None:
    """Unpacks @release beside its final place, and moves it there when it is complete."""
    packages = _closure([f"linux-image-{release}", f"linux-headers-{release}"])
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=kernels))
    try:
        debs = partial / "debs"
        debs.mkdir()
        # By default apt downloads as a user that may not write to this folder.
        _tool(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *packages], cwd=debs)
        root = partial / "root"
        root.mkdir()
        for deb in sorted(debs.glob("*.deb")):
            _tool(["dpkg", "-x", str(deb), str(root)])
        shutil.rmtree(debs)
        _relocate_headers(root / f"usr/src/linux-headers-{release}")
        _tool(["depmod", "-b", str(root), release])
        vmlinuz = _first_existing(
            [root / f"boot/vmlinuz-{release}", root / f"usr/lib/modules/{release}/vmlinuz"]
        )
        (partial / "vmlinux").write_bytes(extract_vmlinux(vmlinuz.read_bytes()))
        partial.chmod(0o755)
        partial.rename(kernels / release)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _relocate_headers(headers: Path) -> None:
    """Makes the include of /usr/src/…-common in the packaged Makefile relative to the Makefile."""
    makefile = headers / "Makefile"
    text = makefile.read_text()
    relocated, count = re.subn(
        r"^include /usr/src/(\S+)$",
        r"include $(dir $(realpath $(lastword $(MAKEFILE_LIST))))../\1",
        text,
        flags=re.MULTILINE,
    )
    if count != 1:
        raise LabError(
            f"{makefile}: {count} lines 'include /usr/src/…', not one: the packages have a new"
            " layout, use an older kernel"
        )
    makefile.write_text(relocated)


_DECOMPRESSORS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda data: zlib.decompressobj(wbits=31).decompress(data),
    b"\xfd7zXZ\x00": lambda data: lzma.LZMADecompressor().decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
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
    return _tool(["modinfo", "-F", "alias", str(module)]).split()


def module_depends(module: Path) -> list[str]:
    """The modules that a built @module depends on."""
    return [
        name for name in _tool(["modinfo", "-F", "depends", str(module)]).strip().split(",") if name
    ]


def _tool(argv: Sequence[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            check=True,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "LC_ALL": "C.UTF-8",
                "PATH": f"{os.environ['PATH']}:/sbin:/usr/sbin",
            },
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]}: not found: run lab/bootstrap guest") from error
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise LabError(f"{' '.join(argv[:3])}: exit status {error.returncode}: {last}") from error
    return done.stdout
