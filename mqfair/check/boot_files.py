# SPDX-License-Identifier: GPL-2.0
"""Files by which other programs set the scheduler of a disk at boot: tmpfiles.d, sysfs.conf, TLP,
sapconf and saptune, units of systemd, and scripts."""

import re
from collections.abc import Iterator

from mqfair.check.rival import (
    Rival,
    first_of_each_name,
    names_file,
    starts,
    written,
    written_lines,
)
from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs

TMPFILES = "tmpfiles.d"
SYSFS = "sysfs.conf"
TLP = "TLP"
SAP = "sapconf"
UNIT = "unit"
SCRIPT = "script"
CRON = "cron"

_TMPFILES_FOLDERS = (
    "/etc/tmpfiles.d",
    "/run/tmpfiles.d",
    "/usr/local/lib/tmpfiles.d",
    "/usr/lib/tmpfiles.d",
)
# The types of lines that write a text, with the signs that may follow.
_TMPFILES_WRITE = re.compile(r"[wfF][+!\-=~^$]*")
_TLP_FILES = "/etc/tlp.d"
_TLP_DEFAULTS = "/usr/share/tlp/defaults.conf"
_TLP_DEVICES = "nvme0n1 sda"
_SETTING = re.compile(r"""\s*([A-Z_]+)\s*=\s*["']?([^"'#]*)["']?""")
_SCRIPTS = ("/etc/rc.local", "/etc/rc.d/rc.local", "/etc/init.d/boot.local", "/etc/rc.d/boot.local")
_SCRIPT_FOLDERS = ("/etc/local.d", "/etc/init.d", "/var/lib/cloud/scripts/per-boot")
_CRON_FILES = ("/etc/crontab", "/etc/anacrontab")
_CRON_FOLDERS = ("/etc/cron.d", "/var/spool/cron", "/var/spool/cron/crontabs")
_UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_EXEC = re.compile(r"Exec\w+\s*=\s*[-@:+!|]*(.*)")
_SAP_FILES = ("/etc/sysconfig/sapconf", "/etc/sysconfig/sap-tune")
_SAPTUNE_NOTES = ("/etc/saptune/override", "/etc/saptune/extra", "/var/lib/saptune/working/notes")


def _numbered(fs: Fs, file: str) -> Iterator[tuple[int, str]]:
    """The lines of @file without remarks."""
    for number, line in enumerate((fs.glance(file) or "").splitlines(), 1):
        if not line.lstrip().startswith(("#", ";")):
            yield number, line


def tmpfiles(disk: Disk) -> Iterator[Rival]:
    for file in first_of_each_name(disk.fs, _TMPFILES_FOLDERS, ".conf"):
        for number, line in _numbered(disk.fs, file):
            words = line.split(None, 6)
            if len(words) < 7 or not _TMPFILES_WRITE.fullmatch(words[0]):
                continue
            judged = names_file(disk, words[1].strip("\"'"))
            if judged is not False:
                doubt = "" if judged else f"it depends on {words[1]}"
                yield Rival(
                    TMPFILES, file, number, words[6].strip().removesuffix("\\n").strip("\"'"), doubt
                )


def sysfs_conf(disk: Disk) -> Iterator[Rival]:
    """sysfsutils: `block/sda/queue/scheduler = none`, below /sys."""
    files = ["/etc/sysfs.conf", *first_of_each_name(disk.fs, ("/etc/sysfs.d",), ".conf")]
    for file in files:
        for number, line in _numbered(disk.fs, file):
            path, equals, value = (part.strip() for part in line.partition("="))
            if equals and names_file(disk, f"/sys/{path.lstrip('/')}"):
                yield Rival(SYSFS, file, number, value)


def tlp(disk: Disk) -> Iterator[Rival]:
    """DISK_IOSCHED has a word for each word of DISK_DEVICES, and the last word for those after."""
    fs = disk.fs
    files = [_TLP_DEFAULTS, *first_of_each_name(fs, (_TLP_FILES,), ".conf"), "/etc/tlp.conf"]
    values: dict[str, tuple[str, str, int]] = {"DISK_DEVICES": (_TLP_DEVICES, "", 0)}
    for file in files:
        for number, line in _numbered(fs, file):
            match = _SETTING.match(line)
            if match:
                values[match[1]] = (match[2].strip(), file, number)
    if "DISK_IOSCHED" not in values or values.get("TLP_ENABLE", ("1",))[0] == "0":
        return
    if starts(fs, "tlp.service") is False:
        return
    chosen, file, number = values["DISK_IOSCHED"]
    devices, words = values["DISK_DEVICES"][0].split(), chosen.split()
    for position, device in enumerate(devices):
        scheduler = (words[position : position + 1] or words[-1:] or ["keep"])[0]
        if scheduler != "keep" and _is(disk, device):
            yield Rival(TLP, file, number, scheduler)


def _is(disk: Disk, name: str) -> bool:
    """Whether @name is the kernel's name of @disk, or one of /dev/disk/by-id."""
    if name == disk.name:
        return True
    link = f"/dev/disk/by-id/{name}"
    return disk.fs.exists(link) and disk.fs.resolve(link) == f"/dev/{disk.name}"


def sap(disk: Disk) -> Iterator[Rival]:
    """sapconf has IO_SCHEDULER in a file of settings, and saptune in the section [block] of a note.
    The first scheduler that a disk has is set, on all disks."""
    fs = disk.fs
    selector = disk.selector()
    known = selector.available if selector else ()
    notes = [f"{folder}/{name}" for folder in _SAPTUNE_NOTES for name in fs.names(folder)]
    for unit, files in (("sapconf.service", list(_SAP_FILES)), ("saptune.service", notes)):
        for file in files:
            for number, line in _numbered(fs, file):
                match = _SETTING.match(line)
                if match is None or match[1] != "IO_SCHEDULER":
                    continue
                words = re.split(r"[,\s]+", match[2].strip())
                scheduler = next((word for word in words if word in known), "")
                if scheduler and starts(fs, unit) is not False:
                    yield Rival(SAP, file, number, scheduler, "it depends on the settings in force")


def units(disk: Disk) -> Iterator[Rival]:
    """Commands of services, and the scripts of those that the administrator has written."""
    fs = disk.fs
    for file in first_of_each_name(fs, _UNIT_FOLDERS, ".service"):
        text = fs.glance(file) or ""
        if "Exec" not in text:
            continue
        own = file.startswith(_UNIT_FOLDERS[0])
        for number, line in _numbered(fs, file):
            match = _EXEC.match(line.strip())
            if match is None:
                continue
            found = written(disk, match[1])
            if found is None and own:
                found = _of_script(disk, match[1])
            if found is not None:
                sure = starts(fs, file.rpartition("/")[2])
                doubt = found[1] or ("" if sure else "no other unit wants it at boot")
                yield Rival(UNIT, file, number, found[0], doubt)


def _of_script(disk: Disk, command: str) -> tuple[str, str] | None:
    words = [word.strip("'\"") for word in command.split()]
    script = next((word for word in words if word.startswith("/") and "/bin/sh" not in word), "")
    text = (disk.fs.glance(script) or "") if script else ""
    for _, scheduler, doubt in written_lines(disk, text if text.startswith("#!") else ""):
        return scheduler, doubt or f"it depends on {script}"
    return None


def scripts(disk: Disk) -> Iterator[Rival]:
    fs = disk.fs
    below = [f"{folder}/{name}" for folder in _SCRIPT_FOLDERS for name in fs.names(folder)]
    for file in (*_SCRIPTS, *below):
        text = fs.glance(file)
        if not text:
            continue
        runs = bool(fs.host_path(file).stat().st_mode & 0o111)
        for number, scheduler, doubt in written_lines(disk, text):
            yield Rival(
                SCRIPT, file, number, scheduler, doubt or ("" if runs else "it needs mode x")
            )


def cron(disk: Disk) -> Iterator[Rival]:
    fs = disk.fs
    below = [f"{folder}/{name}" for folder in _CRON_FOLDERS for name in fs.names(folder)]
    for file in (*_CRON_FILES, *below):
        for number, scheduler, doubt in written_lines(disk, fs.glance(file) or ""):
            yield Rival(CRON, file, number, scheduler, doubt)


def rivals(disk: Disk) -> Iterator[Rival]:
    for found in (tmpfiles, sysfs_conf, tlp, sap, units, scripts, cron):
        yield from found(disk)
