# SPDX-License-Identifier: GPL-2.0
"""/etc/mqfair.conf: the schedulers of devices and the weights of cgroups that `follow` keeps.

The file is TOML. tomllib gives values without their lines, so lines are found by a second look at
the text: the n-th head `[[weight]]`, and the key below it.
"""

import contextlib
import errno
import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqfair.follow.config_mend import is_mount, never_a_disk
from mqfair.machine.blockdev import (
    NR_REQUESTS_MAX,
    NR_REQUESTS_MIN,
    Disk,
    all_disks,
    disks_below,
    find_device,
    heads,
    is_head,
    lowest,
    multipath_paths,
)
from mqfair.machine.cgroup import WEIGHT_MAX, WEIGHT_MIN
from mqfair.machine.fs import Fs
from mqfair.machine.group_name import ROOT_SLICE, UNITS
from mqfair.schedulers import SCHEDULERS
from mqfair.text import toml_text
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import nearest
from mqfair.tune.enable import DEPTH_MOST, THRESHOLD_KB_MOST

PATH = "/etc/mqfair.conf"

_TOP = ("mirror", "device", "weight", "kubernetes")
_DEVICE = ("match", "scheduler", "tunables", "nr_requests")
_WEIGHT = ("cgroup", "unit", "weight", "device")
# The cgroups of the classes of pods: by systemd, also below another slice, and by cgroupfs.
_CLASSES: Mapping[str, str] = {
    "guaranteed": r"(?:.*/)?(?:(?:[^/]*-)?kubepods-pod[^/]*\.slice|kubepods/pod[^/]+)",
    "burstable": r"(?:.*/)?(?:(?:[^/]*-)?kubepods-burstable\.slice|kubepods/burstable)",
    "besteffort": r"(?:.*/)?(?:(?:[^/]*-)?kubepods-besteffort\.slice|kubepods/besteffort)",
}
_KUBERNETES = tuple(_CLASSES)
# Links to the contents of a device, which mean the disks below.
_CONTENTS = tuple(f"/dev/disk/by-{one}/" for one in ("label", "uuid", "partlabel", "partuuid"))
# The characters of systemd's names of units; all others are written as \\xNN.
_UNIT_NAME = re.compile(r"[\w:.\\@*?\[\]!^-]+", re.ASCII)
_TEMPLATE = re.compile(r"(.+@)(\.\w+)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TUNABLES = ("depth", "threshold_kb", "cost", "isolation")
_READ_MENDS = {errno.EACCES: "run as root", errno.EISDIR: "remove the folder, and write a file"}
# The range of a tunable with a number; all others are judged by the kernel.
_RANGES = {"depth": (1, DEPTH_MOST), "threshold_kb": (0, THRESHOLD_KB_MOST)}


@dataclass(frozen=True)
class DeviceRule:
    """The scheduler and the tunables of the disks that @match names."""

    match: str
    scheduler: str
    tunables: Mapping[str, str]
    nr_requests: int | None
    place: str

    def disks(self, fs: Fs) -> list[Disk]:
        return matching(fs, self.match)


@dataclass(frozen=True)
class WeightRule:
    """The weight of the cgroups that @pattern names, on all devices, or on those of @device. A
    @weak one counts where nothing else asks for a weight."""

    pattern: re.Pattern[str]
    weight: int
    device: str | None
    place: str
    weak: bool = False

    def disks(self, fs: Fs) -> list[Disk] | None:
        """The disks on which it counts; None for all."""
        return None if self.device is None else matching(fs, self.device)


@dataclass(frozen=True)
class Config:
    mirror: bool = True
    devices: tuple[DeviceRule, ...] = ()
    weights: tuple[WeightRule, ...] = ()

    def device_rule(self, fs: Fs, disk: Disk) -> DeviceRule | None:
        """The first rule for @disk."""
        return next((rule for rule in self.devices if disk.name in _names(fs, rule.match)), None)


@dataclass
class Rules:
    """The weights of the rules, by cgroup. For each device the first rule that matches counts. The
    numbers of devices are looked up once: renew the object when disks come or go."""

    fs: Fs
    config: Config
    _numbers: dict[str, list[str]] = field(default_factory=dict)

    def __call__(self, path: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for rule in self.config.weights:
            if not rule.weak and rule.pattern.fullmatch(path):
                for key in self._keys(rule):
                    found.setdefault(key, rule.weight)
        return found

    def weak(self, path: str) -> int | None:
        """The weight for a cgroup for which nothing else asks for one."""
        found = (rule for rule in self.config.weights if rule.weak)
        return next((rule.weight for rule in found if rule.pattern.fullmatch(path)), None)

    def _keys(self, rule: WeightRule) -> list[str]:
        if rule.device is None:
            return ["default"]
        if rule.device not in self._numbers:
            disks = heads(_matching(self.fs, rule.device))
            self._numbers[rule.device] = [disk.number for disk in disks if disk.number]
        return self._numbers[rule.device]


def matching(fs: Fs, match: str) -> list[Disk]:
    """The disks that @match names: a name or pattern of the kernel's names, a path in /dev, or a
    path of a file system, which means the disks below. The head of NVMe multipath stands for the
    paths that are here now."""
    found: dict[str, Disk] = {}
    for disk in _matching(fs, match):
        for path in multipath_paths(disk) if is_head(disk) else [disk]:
            found.setdefault(path.name, path)
    return list(found.values())


def _matching(fs: Fs, match: str) -> Iterator[Disk]:
    if "/" not in match:
        names = fnmatch.filter((disk.name for disk in all_disks(fs)), match)
        yield from (Disk(fs, name) for name in names)
        return
    if is_mount(match):
        with contextlib.suppress(UsageError):
            yield from (Disk(fs, disk.name) for disk in disks_below(fs, match))
        return
    prefix = fs.root.rstrip("/")
    for file in sorted(glob.glob(prefix + match)):  # noqa: PTH207 -- an absolute pattern
        try:
            disk = find_device(fs, file.removeprefix(prefix))
        except UsageError:
            continue
        if match.startswith(_CONTENTS):
            yield from (Disk(fs, low.name) for low in lowest(disk))
        elif disk.partition is None:
            yield disk


def has_heads(fs: Fs, config: Config) -> bool:
    """Whether a rule for schedulers names a head of NVMe multipath. Its paths come without an
    event."""
    return any(is_head(disk) for rule in config.devices for disk in _matching(fs, rule.match))


def _names(fs: Fs, match: str) -> list[str]:
    return [disk.name for disk in matching(fs, match)]


def folders(config: Config) -> set[str]:
    """The folders of links, such as /dev/disk/by-id, in which a new link may name a disk."""
    return {os.path.dirname(path) for path in _paths(config) if path.startswith("/dev/")}  # noqa: PTH120 -- no file


def has_mounts(config: Config) -> bool:
    """Whether a rule depends on the file systems that are mounted."""
    return any(map(is_mount, _paths(config)))


def _paths(config: Config) -> list[str]:
    return [rule.match for rule in config.devices] + [rule.device or "" for rule in config.weights]


def load(fs: Fs, path: str = PATH) -> Config | None:
    """The configuration in the file @path; None if there is no file. A relative path begins in
    the present folder. Raises UsageError."""
    file = fs.host_path(path) if path.startswith("/") else Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read {path}: no text in UTF-8: save it as UTF-8") from error
    except OSError as error:
        mend = _READ_MENDS.get(error.errno or 0, "put a text file there")
        raise UsageError(f"cannot read {path}: {error.strerror}: {mend}") from error
    return parse(text, path)


def parse(text: str, path: str = PATH) -> Config:
    table, lines = toml_text.parse(text, path, _check)
    return Reader(path, lines).config(table)


def _check(table: Mapping[str, Any]) -> None:
    """Raises UsageError for a wrong key or value in @table, in which other keys may be absent."""
    filled = dict(table)
    if isinstance(table.get("device"), list):
        filled["device"] = [{"match": "*", **one} for one in table["device"]]
    if isinstance(table.get("weight"), list):
        filled["weight"] = [
            {**({} if "unit" in one else {"cgroup": "*"}), "weight": WEIGHT_MIN, **one}
            for one in table["weight"]
        ]
    Reader("", []).config(filled)


@dataclass(frozen=True)
class Reader:
    """Turns the tables of a file into rules; each error names file, line, value and mend."""

    path: str
    lines: list[str]

    def config(self, table: Mapping[str, object]) -> Config:
        self._known("", 0, table, _TOP)
        mirror = table.get("mirror", True)
        if not isinstance(mirror, bool):
            raise self._bad("", 0, "mirror", mirror, "use true or false")
        devices = tuple(self._devices(table.get("device", [])))
        weights = tuple(self._weights(table.get("weight", [])))
        return Config(mirror, devices, (*weights, *self._kubernetes(table.get("kubernetes", {}))))

    # -- places and errors

    def _line(self, section: str, index: int, key: str) -> int:
        """The line of @key in the table number @index of [[section]]; that of its head if the key
        is not found; 1 for the top of the file."""
        here, seen, head = section == "", -1, 1
        for number, line in enumerate(self.lines, 1):
            found = re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line)
            if found:
                seen += found[1] == section and section != ""
                inside = found[1] == section or found[1].startswith(f"{section}.")
                here = inside and seen == index and section != ""
                if here and found[1] == section:
                    head = number
                if here and key and found[1].endswith(f".{key}"):
                    return number
            elif here and key and re.search(rf"(?:^|[{{,.])\s*\"?{re.escape(key)}\"?\s*[=.]", line):
                return number
            if not section and key and found and found[1].split(".")[0] == key:
                return number
        return head

    def _bad(self, section: str, index: int, key: str, value: object, mend: str) -> UsageError:
        line = self._line(section, index, key)
        return UsageError(f"{self.path}:{line}: {key} = {toml_text.shown(value)}: {mend}")

    def _known(
        self, section: str, index: int, table: Mapping[str, object], keys: tuple[str, ...]
    ) -> None:
        for key in table:
            if key not in keys:
                line = self._line(section, index, key)
                brackets = f"[{section}]" if section == "kubernetes" else f"[[{section}]]"
                where = brackets if section else "the top of the file"
                mend = _moved(section, key) or nearest(key, keys) or f"use {', '.join(keys)}"
                raise UsageError(f"{self.path}:{line}: '{key}' is no key of {where}: {mend}")

    def _tables(self, section: str, value: object) -> Iterator[tuple[int, Mapping[str, object]]]:
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            line = self._line("", 0, section)
            raise UsageError(
                f"{self.path}:{line}: '{section}' has no list of tables: write [[{section}]]"
            )
        yield from enumerate(value)

    def _text(self, section: str, index: int, table: Mapping[str, object], key: str) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            if key not in table:
                line = self._line(section, index, "")
                raise UsageError(f'{self.path}:{line}: [[{section}]] has no {key}: add {key} = "…"')
            if isinstance(value, list):
                mend = f"use one text in quotes, and a [[{section}]] for each other"
                raise self._bad(section, index, key, value, mend)
            raise self._bad(section, index, key, value, "use a text in quotes")
        return value

    def _number(
        self, section: str, index: int, key: str, value: object, limits: tuple[int, int]
    ) -> int:
        least, most = limits
        if type(value) is not int or not least <= value <= most:
            mend = f"use a whole number in {least}..{most}, without quotes"
            raise self._bad(section, index, key, value, mend)
        return value

    # -- [[device]]

    def _devices(self, value: object) -> Iterator[DeviceRule]:
        for index, table in self._tables("device", value):
            self._known("device", index, table, _DEVICE)
            match = self._match(
                index, "device", "match", self._text("device", index, table, "match")
            )
            scheduler = table.get("scheduler", SCHEDULERS[0])
            if scheduler not in SCHEDULERS:
                guess = nearest(str(scheduler), SCHEDULERS)
                mend = guess or f"use one of {', '.join(SCHEDULERS)}"
                raise self._bad("device", index, "scheduler", scheduler, mend)
            tags = table.get("nr_requests")
            if tags is not None:
                tags = self._number(
                    "device", index, "nr_requests", tags, (NR_REQUESTS_MIN, NR_REQUESTS_MAX)
                )
            tunables = self._tunables(index, table.get("tunables", {}))
            place = f"{self.path}:{self._line('device', index, '')}"
            yield DeviceRule(match, str(scheduler), tunables, tags, place)

    def _match(self, index: int, section: str, key: str, text: str) -> str:
        mend = never_a_disk(section, key, text)
        if mend:
            raise self._bad(section, index, key, text, mend)
        return text

    def _tunables(self, index: int, value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            mend = 'write tunables = { depth = 64, cost = "bytes" }'
            raise self._bad("device", index, "tunables", value, mend)
        return {name: self._tunable(index, name, one) for name, one in value.items()}

    def _tunable(self, index: int, name: str, value: object) -> str:
        if not _NAME.fullmatch(name):
            raise self._bad("device", index, name, value, "a tunable's name has letters and _")
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise self._bad("device", index, name, value, "use a number, or a text in quotes")
        text = " ".join(str(value).split())
        if name in _RANGES:
            least, most = _RANGES[name]
            words = text.split()
            number = words[0] if words else ""
            auto = words[1:] in ([], ["auto"]) if name == "depth" else words[1:] == []
            fits = is_number(number, least, most) and auto
            if text != "auto" and not fits:
                mend = f'use a number in {least}..{most}, or "auto"'
                raise self._bad("device", index, name, value, mend)
        return text

    # -- [[weight]]

    def _weights(self, value: object) -> Iterator[WeightRule]:
        for index, table in self._tables("weight", value):
            self._known("weight", index, table, _WEIGHT)
            if ("cgroup" in table) == ("unit" in table):
                line = self._line("weight", index, "")
                raise UsageError(
                    f"{self.path}:{line}: [[weight]] needs one of cgroup and unit: add"
                    ' cgroup = "prod/*" or unit = "nginx.service"'
                )
            key = "cgroup" if "cgroup" in table else "unit"
            text = self._text("weight", index, table, key)
            pattern = self._cgroup(index, text) if key == "cgroup" else self._unit(index, text)
            if "weight" not in table:
                line = self._line("weight", index, "")
                raise UsageError(f"{self.path}:{line}: [[weight]] has no weight: add weight = 900")
            weight = self._number(
                "weight", index, "weight", table["weight"], (WEIGHT_MIN, WEIGHT_MAX)
            )
            device = None
            if "device" in table:
                name = self._text("weight", index, table, "device")
                device = self._match(index, "weight", "device", name)
            place = f"{self.path}:{self._line('weight', index, '')}"
            yield WeightRule(pattern, weight, device, place)

    def _cgroup(self, index: int, text: str) -> re.Pattern[str]:
        """`*` and `?` stay within one name; `**` stands for any number of names."""
        parts = [part for part in text.removeprefix("/sys/fs/cgroup").split("/") if part]
        if not parts or any(part in (".", "..") for part in parts):
            mend = 'use a path below /sys/fs/cgroup, such as "prod/*"; the root has no weight'
            raise self._bad("weight", index, "cgroup", text, mend)
        found = ""
        for position, part in enumerate(parts):
            if part == "**":
                found += "(?:[^/]+/)*" if position < len(parts) - 1 else "[^/]+(?:/[^/]+)*"
            else:
                found += _name_pattern(part) + ("/" if position < len(parts) - 1 else "")
        return self._compiled(index, "cgroup", text, found)

    def _unit(self, index: int, text: str) -> re.Pattern[str]:
        if "/" in text or not text.endswith(UNITS):
            mend = f"use the name of a unit that ends in {', '.join(UNITS)}, or cgroup = …"
            raise self._bad("weight", index, "unit", text, mend)
        template = _TEMPLATE.fullmatch(text)
        if template is not None:
            mend = f'a template has no cgroup: use "{template[1]}*{template[2]}" for its instances'
            raise self._bad("weight", index, "unit", text, mend)
        if not _UNIT_NAME.fullmatch(text):
            mend = "systemd writes such a name in another way: see systemd-escape, or use * there"
            raise self._bad("weight", index, "unit", text, mend)
        if text == ROOT_SLICE:
            mend = "this unit is the root cgroup, which has no weight: use one below it"
            raise self._bad("weight", index, "unit", text, mend)
        return self._compiled(index, "unit", text, "(?:.*/)?" + _name_pattern(text))

    def _kubernetes(self, value: object) -> Iterator[WeightRule]:
        """[kubernetes]: weights of the classes of pods, for pods without annotations."""
        section = "kubernetes"
        if not isinstance(value, dict):
            line = self._line("", 0, section)
            raise UsageError(
                f"{self.path}:{line}: '{section}' is no table: write [{section}], once"
            )
        self._known(section, 0, value, _KUBERNETES)
        for name, one in value.items():
            weight = self._number(section, 0, name, one, (WEIGHT_MIN, WEIGHT_MAX))
            place = f"{self.path}:{self._line(section, 0, name)}"
            yield WeightRule(re.compile(_CLASSES[name]), weight, None, place, weak=True)

    def _compiled(self, index: int, key: str, text: str, found: str) -> re.Pattern[str]:
        try:
            return re.compile(found)
        except re.error as error:
            mend = f"{error.msg}: write [a-z] with the lesser character first"
            raise self._bad("weight", index, key, text, mend) from error


def _moved(section: str, key: str) -> str:
    """The mend for a @key that stands in the wrong place; empty for a key of no place."""
    if section == "device" and key in _TUNABLES:
        return f"it is a tunable: write tunables = {{ {key} = … }}"
    if section and key == "mirror":
        return f"move it above the first [[{section}]]"
    if key == "tunables" and not section:
        return "write tunables = { … } below [[device]]"
    if not section:
        owners = [name for name, keys in (("device", _DEVICE), ("weight", _WEIGHT)) if key in keys]
        return f"write it below a line [[{owners[0]}]]" if owners else ""
    return ""


def _name_pattern(text: str) -> str:
    """A shell pattern as a regular expression that does not pass a slash."""
    found = ""
    for piece in re.split(r"([*?]|\[[^\]/]+\])", text):
        if piece == "*":
            found += "[^/]*"
        elif piece == "?":
            found += "[^/]"
        elif piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
            inner = piece[1:-1].replace("\\", "\\\\")
            found += f"[^{inner[1:]}/]" if inner[0] == "!" else f"[{inner}]"
        else:
            found += re.escape(piece)
    return found
