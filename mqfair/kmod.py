# SPDX-License-Identifier: GPL-2.0
"""The kernel module: whether it is loaded or installed, its version, and hints if it is not."""

from mqfair.blockdev import Disk, Selector
from mqfair.errors import Failure
from mqfair.fs import Fs
from mqfair.schedulers import SCHEDULERS

MODULE = "mqfair"


def loaded(fs: Fs) -> bool:
    return fs.is_dir(f"/sys/module/{MODULE}")


def version(fs: Fs) -> str | None:
    """The version of the loaded module; None if none is loaded or it has no version."""
    text = fs.read_if_any(f"/sys/module/{MODULE}/version")
    return text.strip() if text else None


def research_hint(fs: Fs) -> str:
    """Words for a message about a missing tunable, if the module hides those for research."""
    if (fs.read_if_any(f"/sys/module/{MODULE}/parameters/research") or "").strip() != "N":
        return ""
    return (
        f", or load the tunables for research: modprobe -r {MODULE}; modprobe {MODULE} research=1"
    )


def _modules_dir(fs: Fs) -> str:
    return f"/lib/modules/{fs.read('/proc/sys/kernel/osrelease').strip()}"


def autoloads(fs: Fs, scheduler: str) -> bool:
    """True if the kernel loads the module when @scheduler is written to queue/scheduler."""
    aliases = fs.read_if_any(f"{_modules_dir(fs)}/modules.alias") or ""
    return f"alias {scheduler}-iosched {MODULE}" in aliases.splitlines()


def require_available(disk: Disk, selector: Selector, scheduler: str) -> None:
    """Raises Failure, with a hint, if the kernel would refuse @scheduler for @disk."""
    fs = disk.fs
    if scheduler in selector.available:
        return
    if not loaded(fs):
        if not autoloads(fs, scheduler):
            raise Failure(f"cannot enable {scheduler} on {disk.name}: {missing(fs)}")
        return
    zoned = fs.read_if_any(disk.queue("zoned"))
    if zoned and zoned.strip() != "none":
        raise Failure(
            f"{disk.scheduler_file} does not offer {scheduler}: {disk.name} is zoned, and this"
            " kernel allows only mq-deadline on zoned devices: use Linux 6.12 or later"
        )
    raise Failure(
        f"{disk.scheduler_file} does not offer {scheduler} (it has {' '.join(selector.available)}):"
        f" the loaded module {MODULE} does not have it, or {disk.name} takes no scheduler"
    )


def missing(fs: Fs) -> str:
    return (
        f"module {MODULE} is neither loaded nor installed in {_modules_dir(fs)}:"
        " run `make install` in its source tree, then `depmod -a`"
    )


def hint(fs: Fs) -> str:
    """The hint for a machine on which the module is not loaded."""
    if autoloads(fs, SCHEDULERS[0]):
        return f"module {MODULE} is not loaded: `modprobe {MODULE}` or `mqfair enable DEVICE`"
    return missing(fs)
