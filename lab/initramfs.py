# SPDX-License-Identifier: GPL-2.0
"""The initramfs of a guest: busybox, the modules to mount the host's root, and the init scripts."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from lab.cache import locked, write_atomically
from lab.errors import LabError
from lab.tree import KernelTree

# virtio_console carries the output; 9p and overlay carry the root. configfs is mounted before a
# driver that uses it is loaded.
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "configfs")
# The applets of init-initramfs.sh; init-guest.sh calls busybox by name.
_APPLETS = ("cp", "insmod", "ln", "mkdir", "mount", "sh", "switch_root")
_FOLDERS = ("bin", "dev", "lower", "modules", "proc", "root", "sys", "upper")
_HERE = Path(__file__).resolve().parent

_FILE, _FOLDER, _LINK, _DEVICE, _TYPE_MASK = 0o100000, 0o040000, 0o120000, 0o020000, 0o170000
_CONSOLE_NUMBERS = (5, 1)
_KEEP_UNUSED_S = 7 * 86400


def ensure(tree: KernelTree) -> Path:
    """The initramfs for @tree; built if the cache has none with the same contents."""
    busybox = _static_busybox()
    # User-mode Linux mounts the host's root without a module.
    modules = [] if tree.is_uml else _load_order(tree, MODULES)
    init_scripts = [_HERE / "init-initramfs.sh", _HERE / "init-guest.sh", _HERE / "lab-job.service"]
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in [*init_scripts, busybox]:
        digest.update(path.read_bytes())
    image = tree.root.parent / f"initramfs-{digest.hexdigest()[:16]}.cpio"
    with locked(tree.root.parent / ".initramfs.lock"):
        if image.exists():
            os.utime(image)
        else:
            _remove_unused(image.parent)
            write_atomically(image, build_archive(busybox, modules, *init_scripts))
    return image


def _remove_unused(folder: Path) -> None:
    """Removes old images. Newer ones stay, because another checkout may be about to boot one."""
    for image in folder.glob("initramfs-*.cpio"):
        if image.stat().st_mtime < time.time() - _KEEP_UNUSED_S:
            image.unlink()


def _static_busybox() -> Path:
    found = shutil.which("busybox", path="/bin:/usr/bin")
    if found is None:
        raise LabError("busybox: not found: run lab/bootstrap guest (package busybox-static)")
    # A dynamically linked program contains the path of its loader.
    if b"/ld-linux" in Path(found).read_bytes():
        raise LabError(f"{found}: not statically linked: install the package busybox-static")
    return Path(found)


def _load_order(tree: KernelTree, names: Iterable[str]) -> list[Path]:
    """The files of modules @names and of all their dependencies, dependencies first."""
    dependencies: dict[str, list[str]] = {}
    for line in (tree.modules_dir / "modules.dep").read_text().splitlines():
        file, _, needs = line.partition(":")
        dependencies[file] = needs.split()
    by_name = {_module_name(file): file for file in dependencies}
    built_in = {
        _module_name(file)
        for file in (tree.modules_dir / "modules.builtin").read_text().splitlines()
    }
    order: list[str] = []
    for name in names:
        if name in built_in:
            continue
        if name not in by_name:
            raise LabError(
                f"{tree.modules_dir}: no module '{name}', and a guest needs it to boot:"
                " use a kernel that has it"
            )
        # modules.dep lists the nearest dependency first: the last one loads first.
        wanted = [*reversed(dependencies[by_name[name]]), by_name[name]]
        order.extend(file for file in wanted if file not in order)
    return [tree.modules_dir / file for file in order]


def _module_name(file: str) -> str:
    return Path(file).name.partition(".")[0].replace("-", "_")


def build_archive(
    busybox: Path, modules: list[Path], init: Path, init_guest: Path, job: Path
) -> bytes:
    """A cpio archive in the "newc" format."""
    entries = [(name, _FOLDER | 0o755, b"") for name in _FOLDERS]
    # Without this node process 1 has no console to write to.
    entries.append(("dev/console", _DEVICE | 0o600, b""))
    entries.append(("bin/busybox", _FILE | 0o755, busybox.read_bytes()))
    entries.extend((f"bin/{applet}", _LINK | 0o777, b"busybox") for applet in _APPLETS)
    entries.append(("init", _FILE | 0o755, init.read_bytes()))
    entries.append(("init-guest.sh", _FILE | 0o755, init_guest.read_bytes()))
    entries.append(("lab-job.service", _FILE | 0o644, job.read_bytes()))
    contents = {module.name.removesuffix(".xz"): _uncompressed(module) for module in modules}
    entries.extend((f"modules/{name}", _FILE | 0o644, data) for name, data in contents.items())
    listing = "".join(f"{name}\n" for name in contents)
    entries.append(("modules.order", _FILE | 0o644, listing.encode()))
    entries.append(("TRAILER!!!", 0, b""))
    return b"".join(
        _cpio_entry(number, name, mode, data) for number, (name, mode, data) in enumerate(entries)
    )


def _uncompressed(module: Path) -> bytes:
    """The contents of @module. The insmod of busybox takes no compressed one."""
    data = module.read_bytes()
    return lzma.decompress(data) if module.suffix == ".xz" else data


def _cpio_entry(number: int, name: str, mode: int, data: bytes) -> bytes:
    """One member of a "newc" archive; header and data are each padded to four bytes."""
    rdev_major, rdev_minor = _CONSOLE_NUMBERS if mode & _TYPE_MASK == _DEVICE else (0, 0)
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, rdev_major, rdev_minor, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
