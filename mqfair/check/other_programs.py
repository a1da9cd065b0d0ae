# SPDX-License-Identifier: GPL-2.0
"""Other programs that set the scheduler of a disk: udev rules, and profiles of TuneD."""

import configparser
import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mqfair.check.finding import Finding, warn
from mqfair.machine.blockdev import Disk, active_word
from mqfair.machine.fs import Fs
from mqfair.text.output import quoted

# A file of an earlier folder replaces the file of the same name in a later one.
UDEV_FOLDERS = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
TUNED_FOLDERS = (
    "/etc/tuned/profiles",
    "/etc/tuned",
    "/usr/lib/tuned/profiles",
    "/usr/lib/tuned",
)
TUNED_ACTIVE = "/etc/tuned/active_profile"

_PAIR = re.compile(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|:=|\+=|-=|=)\s*e?i?"((?:\\.|[^"\\])*)"')
_NESTING_MOST = 8


@dataclass(frozen=True)
class Rival:
    """A line that sets the scheduler of a disk to @scheduler."""

    file: str
    line: int
    scheduler: str
    program: str


def _udev_files(fs: Fs) -> Iterator[str]:
    found: dict[str, str] = {}
    for folder in UDEV_FOLDERS:
        for name in fs.names(folder):
            if name.endswith(".rules"):
                found.setdefault(name, f"{folder}/{name}")
    yield from (found[name] for name in sorted(found))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The rules with the number of their first line; a backslash continues a line."""
    first, whole = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        first = first if whole else number
        if line.endswith("\\"):
            whole += line[:-1]
            continue
        whole += line
        if not whole.lstrip().startswith("#"):
            yield first, whole
        whole = ""


def _matches(pattern: str, value: str) -> bool:
    return any(fnmatch.fnmatchcase(value, one) for one in pattern.split("|"))


def _may_match(disk: Disk, key: str, attribute: str, operator: str, pattern: str) -> bool:
    """False if a condition of a rule surely fails for @disk. A condition that cannot be judged from
    here counts as true."""
    if key == "KERNEL":
        value: str | None = disk.name
    elif key == "SUBSYSTEM":
        value = "block"
    elif key == "ENV" and attribute == "DEVTYPE":
        value = "disk"
    elif key == "ATTR" and ".." not in attribute:
        text = disk.fs.read_if_any(f"{disk.path}/{attribute}")
        value = None if text is None else text.strip()
        if attribute == "queue/scheduler":
            # The rule asks what the scheduler is before it sets it.
            return True
    else:
        return True
    if value is None:
        return operator == "!="
    return _matches(pattern, value) == (operator == "==")


def udev_rivals(disk: Disk) -> Iterator[Rival]:
    for file in _udev_files(disk.fs):
        for number, rule in _lines(disk.fs.read_if_any(file) or ""):
            pairs = _PAIR.findall(rule)
            sets = [
                value
                for key, attribute, operator, value in pairs
                if key == "ATTR" and attribute == "queue/scheduler" and operator in ("=", ":=")
            ]
            asks = [pair for pair in pairs if pair[2] in ("==", "!=")]
            if sets and all(_may_match(disk, *pair) for pair in asks):
                yield Rival(file, number, sets[-1], "udev")


def _profile_file(fs: Fs, profile: str) -> str | None:
    files = (f"{folder}/{profile}/tuned.conf" for folder in TUNED_FOLDERS)
    return next((file for file in files if fs.exists(file)), None)


def _tuned_names(disk: Disk, devices: str) -> bool:
    """Whether the option `devices` of a profile names @disk; `!` excludes."""
    words = [word.strip() for word in re.split(r"[,\s]+", devices) if word.strip()]
    if any(word[0] == "!" and fnmatch.fnmatchcase(disk.name, word[1:]) for word in words):
        return False
    wanted = [word for word in words if word[0] != "!"]
    return not wanted or any(fnmatch.fnmatchcase(disk.name, word) for word in wanted)


def _of_profile(disk: Disk, profile: str, nesting: int) -> Iterator[Rival]:
    """The elevators of a profile and of the profiles that it includes."""
    fs = disk.fs
    file = _profile_file(fs, profile) if "/" not in profile else None
    if file is None or nesting > _NESTING_MOST:
        return
    text = fs.read_if_any(file) or ""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    own = []
    for name in parser.sections():
        section = parser[name]
        kind = section.get("type") or name
        elevator = section.get("elevator")
        if kind == "disk" and elevator and _tuned_names(disk, section.get("devices") or "*"):
            own.append(Rival(file, _line_of(text, name), elevator.strip("\"' "), "TuneD"))
    yield from own
    if not own and parser.has_section("main"):
        included = parser["main"].get("include") or ""
        for other in re.split(r"[,\s]+", included.strip()):
            if other:
                yield from _of_profile(disk, other.lstrip("-?"), nesting + 1)


def _line_of(text: str, section: str) -> int:
    """The line of `elevator` in a section."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            inside = line.strip() == f"[{section}]"
        elif inside and re.match(r"elevator\s*[=:]", line):
            return number
    return 1


def tuned_rivals(disk: Disk) -> Iterator[Rival]:
    for profile in (disk.fs.read_if_any(TUNED_ACTIVE) or "").split():
        yield from _of_profile(disk, profile, 0)


def rival_findings(disk: Disk) -> Iterator[Finding]:
    """Programs that set another scheduler than the one that is active, if that is one of ours, or
    that have taken the disk from us."""
    selector = disk.selector()
    if selector is None:
        return
    for rival in (*udev_rivals(disk), *tuned_rivals(disk)):
        if active_word(rival.scheduler) == selector.active and selector.ours:
            continue
        yield _finding(disk, rival)


def _finding(disk: Disk, rival: Rival) -> Finding:
    where = f"{rival.file}:{rival.line}"
    if rival.program == "udev":
        name = rival.file.rpartition("/")[2]
        override = f"/etc/udev/rules.d/{name}"
        hint = (
            f"ln -s /dev/null {quoted(override)}"
            if rival.file != override
            else f"remove that line, or exclude {disk.name} from it"
        )
        return warn(
            "udev",
            f"a udev rule sets {rival.scheduler} on {disk.name} at each event of the disk",
            where,
            f"{hint}; then udevadm control --reload",
        )
    return warn(
        "tuned",
        f"TuneD's active profile sets {rival.scheduler} on {disk.name} when it is applied",
        where,
        "set elevator=mqfq in a profile of your own that includes it, or `tuned-adm off`",
    )
