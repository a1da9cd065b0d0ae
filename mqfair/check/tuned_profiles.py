# SPDX-License-Identifier: GPL-2.0
"""The active profile of TuneD, with the profiles that it includes.

Sections of the same name are merged, and the including profile has the last word. A section with
`type=disk`, or named so, sets `elevator` on the disks of `devices` and `devices_udev_regex`. The
plugin `sysfs` writes files by their paths.
"""

import configparser
import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqfair.check.rival import Judgement, Rival, both, names_file, properties, starts
from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs

PROGRAM = "tuned"
FOLDERS = (
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
)
ACTIVE = "/etc/tuned/active_profile"
RUNS = "/run/tuned/tuned.pid"
_NESTING_MOST = 8
_OFF = ("0", "false", "no", "off")


@dataclass
class _Unit:
    """A merged section: the value of each option, with the file and the line that have it."""

    options: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def value(self, name: str) -> str | None:
        return self.options[name][0] if name in self.options else None


def _parsed(text: str) -> configparser.ConfigParser | None:
    parser = configparser.ConfigParser(
        interpolation=None, strict=False, allow_no_value=True, delimiters=("=",)
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return parser


def _file(fs: Fs, profile: str) -> str | None:
    files = (f"{folder}/{profile}/tuned.conf" for folder in FOLDERS)
    return next((file for file in files if fs.exists(file)), None)


def _line_of(text: str, section: str, option: str) -> int:
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            inside = line.strip() == f"[{section}]"
        elif inside and re.match(rf"{re.escape(option)}\s*=", line):
            return number
    return 1


def _merge(fs: Fs, profile: str, units: dict[str, _Unit], nesting: int = 0) -> None:
    """Adds @profile to @units, after those that it includes."""
    file = _file(fs, profile) if "/" not in profile else None
    text = fs.glance(file) if file else None
    parser = _parsed(text) if text else None
    if file is None or text is None or parser is None or nesting > _NESTING_MOST:
        return
    if parser.has_section("main"):
        for other in re.split(r"[,\s]+", (parser["main"].get("include") or "").strip()):
            if other:
                _merge(fs, other.lstrip("-?"), units, nesting + 1)
    for name in parser.sections():
        section = parser[name]
        if (section.get("replace") or "0").lower() not in _OFF:
            units.pop(name, None)
        unit = units.setdefault(name, _Unit())
        for option, value in section.items():
            plain = (value or "").strip()
            unit.options[option] = (plain, file, _line_of(text, name, option))


def _names(disk: Disk, devices: str) -> bool:
    """Whether the option `devices` names @disk; `!` excludes."""
    words = [word.strip() for word in re.split(r"[,\s]+", devices) if word.strip()]
    if any(word[0] == "!" and fnmatch.fnmatchcase(disk.name, word[1:]) for word in words):
        return False
    wanted = [word for word in words if word[0] != "!"]
    return not wanted or any(fnmatch.fnmatchcase(disk.name, word) for word in wanted)


def _has_properties(disk: Disk, regex: str | None) -> Judgement:
    """Whether the regular expression is found among the properties of @disk in udev, KEY=VALUE."""
    if not regex:
        return True
    known = properties(disk, disk.own_number)
    if known is None:
        return None
    known = {"DEVNAME": f"/dev/{disk.name}", "SUBSYSTEM": "block", "DEVTYPE": "disk", **known}
    text = "".join(f"{key}={value}\n" for key, value in sorted(known.items()))
    try:
        return re.search(regex, text, re.MULTILINE) is not None
    except re.error:
        return False


def _of_unit(disk: Disk, name: str, unit: _Unit) -> Iterator[Rival]:
    kind = unit.value("type") or name
    if (unit.value("enabled") or "1").lower() in _OFF:
        return
    if kind == "sysfs":
        for path, (value, file, line) in unit.options.items():
            judged = names_file(disk, path) if path.startswith("/") else False
            if judged is not False:
                yield _rival(file, line, value, "" if judged else f"it depends on {path}")
        return
    if kind != "disk" or not unit.value("elevator"):
        return
    regex = unit.value("devices_udev_regex")
    judged = both((_names(disk, unit.value("devices") or "*"), _has_properties(disk, regex)))
    if judged is False:
        return
    value, file, line = unit.options["elevator"]
    yield _rival(file, line, value, "" if judged else "it depends on devices_udev_regex")


def _rival(file: str, line: int, value: str, doubt: str) -> Rival:
    plain = value.strip("\"' ")
    if "$" in plain:
        return Rival(PROGRAM, file, line, "", doubt or f"it depends on {plain}")
    return Rival(PROGRAM, file, line, plain, doubt)


def rivals(disk: Disk) -> Iterator[Rival]:
    fs = disk.fs
    profiles = (fs.glance(ACTIVE) or "").split()
    if not profiles or (not fs.exists(RUNS) and starts(fs, "tuned.service") is False):
        return
    units: dict[str, _Unit] = {}
    for profile in profiles:
        _merge(fs, profile, units)
    for name, unit in units.items():
        yield from _of_unit(disk, name, unit)
