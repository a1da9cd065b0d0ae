# SPDX-License-Identifier: GPL-2.0
"""The kernel module: whether it is loaded, installed and signed, and hints if it is not."""

import gzip
import lzma
import zlib

from mqfair.machine import dkms
from mqfair.machine.blockdev import Disk, Selector, active_word
from mqfair.machine.fs import Fs
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import Failure

MODULE = "mqfair"
RELEASE_FILE = "/proc/sys/kernel/osrelease"
# The kernels on which the tests run; kernel/btf/tested.py has the same list for the module.
TESTED = ("6.1", "6.12", "7.2")
# Y if the kernel sends writes with FUA or PREFLUSH through the scheduler, or else N.
FLUSH_DATA = f"/sys/module/{MODULE}/parameters/schedules_flush_data"

# The folders to which `make install`, DKMS and packages install modules.
PLACES = ("updates", "updates/dkms", "extra", "extra/mqfair", "weak-updates", "kernel/block")

MODPROBE_FOLDERS = tuple(
    f"{place}/modprobe.d" for place in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)
COMMAND_LINE = "/proc/cmdline"
MODULES_DISABLED = "/proc/sys/kernel/modules_disabled"
# A blacklist of modprobe concerns what is loaded by another name, as that of a scheduler.
_BY_NAME = f"only `modprobe {MODULE}` loads {MODULE} then"
SIG_ENFORCE = "/sys/module/module/parameters/sig_enforce"
LOCKDOWN = "/sys/kernel/security/lockdown"
# The last bytes of a signed module.
_SIGNED = b"~Module signature appended~\n"


def loaded(fs: Fs) -> bool:
    return fs.is_dir(f"/sys/module/{MODULE}")


def version(fs: Fs) -> str | None:
    """The version of the loaded module; None if none is loaded or it has no version."""
    text = fs.read_if_any(f"/sys/module/{MODULE}/version")
    return text.strip() if text else None


def release(fs: Fs) -> str:
    return fs.read(RELEASE_FILE).strip()


def is_tested(kernel: str) -> bool:
    """Whether the release @kernel belongs to a series on which the tests run."""
    return kernel.startswith(tuple(f"{series}{end}" for series in TESTED for end in ".-+"))


def research_hint(fs: Fs) -> str:
    """Words for a message about a missing tunable, if the module hides those for research."""
    if (fs.read_if_any(f"/sys/module/{MODULE}/parameters/research") or "").strip() != "N":
        return ""
    return (
        f", or load the tunables for research: modprobe -r {MODULE}; modprobe {MODULE} research=1"
    )


def _modules_dir(fs: Fs) -> str:
    return f"/lib/modules/{release(fs)}"


def autoloads(fs: Fs, scheduler: str) -> bool:
    """True if the kernel loads the module when @scheduler is written to queue/scheduler."""
    aliases = fs.read_if_any(f"{_modules_dir(fs)}/modules.alias") or ""
    return f"alias {scheduler}-iosched {MODULE}" in aliases.splitlines()


def available(fs: Fs) -> bool:
    """Whether the module is loaded, or the kernel loads it when a scheduler of it is written."""
    return loaded(fs) or (autoloads(fs, SCHEDULERS[0]) and barred(fs) is None)


def require_available(disk: Disk, selector: Selector, scheduler: str) -> None:
    """Raises Failure, with a hint, if the kernel would refuse @scheduler for @disk."""
    fs = disk.fs
    if scheduler in selector.available:
        return
    if not loaded(fs):
        if not autoloads(fs, scheduler):
            raise Failure(f"cannot enable {scheduler} on {disk.name}: {missing(fs)}")
        refused = barred(fs)
        if refused:
            raise Failure(f"cannot enable {scheduler} on {disk.name}: {refused}")
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
    kernel = release(fs)
    why = dkms.too_old(kernel) or dkms.not_built(fs, kernel)
    if why is not None:
        return f"module {MODULE} is neither loaded nor installed: {why}"
    return (
        f"module {MODULE} is neither loaded nor installed in {_modules_dir(fs)}: install the"
        " package mqfair-dkms, or run `make install` in the source tree, then `depmod -a`"
    )


def file(fs: Fs) -> str | None:
    """The file that modprobe loads; None if depmod knows none."""
    folder = _modules_dir(fs)
    for line in (fs.read_if_any(f"{folder}/modules.dep") or "").splitlines():
        name = line.partition(":")[0]
        if name.rpartition("/")[2].partition(".")[0] == MODULE:
            return name if name.startswith("/") else f"{folder}/{name}"
    return None


def copies(fs: Fs) -> list[str]:
    """All files of the module for this kernel; modprobe loads one of them."""
    folder = _modules_dir(fs)
    return [
        f"{folder}/{place}/{name}"
        for place in PLACES
        for name in fs.names(f"{folder}/{place}")
        if name.partition(".")[0] == MODULE
    ]


def _signatures_required(fs: Fs) -> str | None:
    """The setting by which the kernel loads only signed modules; None if it loads all."""
    if (fs.read_if_any(SIG_ENFORCE) or "").strip() == "Y":
        return "module.sig_enforce=1"
    lockdown = active_word(fs.read_if_any(LOCKDOWN) or "none")
    return None if lockdown == "none" else f"lockdown={lockdown}, as under Secure Boot"


def _signed(fs: Fs, path: str) -> bool | None:
    """Whether the module at @path has a signature; None if that is unknown."""
    data = fs.bytes_if_any(path)
    try:
        if data is not None and path.endswith(".xz"):
            data = lzma.decompress(data)
        elif data is not None and path.endswith(".gz"):
            data = gzip.decompress(data)
    except (lzma.LZMAError, OSError, EOFError, zlib.error):
        return None
    return None if data is None or path.endswith(".zst") else data.endswith(_SIGNED)


def barred(fs: Fs) -> str | None:
    """Words about a module that is installed and cannot be loaded; None if nothing bars it."""
    if loaded(fs):
        return None
    if (fs.read_if_any(MODULES_DISABLED) or "").strip() == "1":
        return (
            "this kernel loads no more modules (kernel.modules_disabled=1): load it before that is"
            f" set, with the line {MODULE} in /etc/modules-load.d/mqfair.conf, and restart"
        )
    return _blacklisted(fs) or _unsigned(fs)


def _blacklisted(fs: Fs) -> str | None:
    """Words about a setting that keeps the module from being loaded; None if there is none."""
    for line in (fs.read_if_any(COMMAND_LINE) or "").split():
        name, _, names = line.partition("=")
        if MODULE not in names.split(","):
            continue
        remove = f"remove {line} from the configuration of the boot loader and restart"
        if name == "module_blacklist":
            return f"{COMMAND_LINE} has {line}, so the kernel refuses {MODULE}: {remove}"
        if name == "modprobe.blacklist":
            return f"{COMMAND_LINE} has {line}: {_BY_NAME}, or {remove}"
    for folder in MODPROBE_FOLDERS:
        for name in fs.names(folder):
            path = f"{folder}/{name}"
            for line in (fs.read_if_any(path) or "").splitlines() if name.endswith(".conf") else ():
                words = line.split()
                if words[:2] == ["blacklist", MODULE]:
                    return f"{path} has '{' '.join(words)}': {_BY_NAME}, or remove that line"
                if words[:2] == ["install", MODULE] and "modprobe" not in line:
                    return f"{path} has '{' '.join(words)}', not a load: remove that line"
    return None


def _unsigned(fs: Fs) -> str | None:
    """Words about a module that this kernel refuses for lack of a signature; None if there is no
    such refusal."""
    cause = _signatures_required(fs)
    path = file(fs)
    if cause is None or path is None or loaded(fs) or _signed(fs, path) is not False:
        return None
    return (
        f"this kernel loads only signed modules ({cause}), and {path} has no signature: install it"
        " with dkms, which signs it, then `mokutil --import /var/lib/dkms/mok.pub` and restart"
    )


def not_loaded(fs: Fs) -> str:
    """The advice after the kernel has refused to load the module or to switch to a scheduler."""
    cause = _signatures_required(fs)
    if cause is None or loaded(fs):
        return "see the reason in the kernel log (dmesg)"
    return (
        f"this kernel loads only modules with a key that it knows ({cause}):"
        f" `modinfo -F signer {MODULE}` names the key, `mokutil --import` enrols it"
    )


def hint(fs: Fs) -> str:
    """The hint for a machine on which the module is not loaded."""
    if autoloads(fs, SCHEDULERS[0]):
        return (
            barred(fs)
            or f"module {MODULE} is not loaded: `modprobe {MODULE}` or `mqfair enable DEVICE`"
        )
    return missing(fs)
