# SPDX-License-Identifier: GPL-2.0
"""IODeviceWeight= of systemd, from the files of units.

systemd writes it to io.weight as `MAJ:MIN N`, and the kernel refuses that line while iocost is off
on the device. So it arrives nowhere, and the files of units are the only place that has it. They
are read as systemd.unit(5) says. The unit's file is that of the first folder that has one. All
drop-ins follow in the order of their names, also those of a template, a prefix and a kind of units.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mqfair.machine.blockdev import Disk, disks_below, find_device, is_indirect, lowest
from mqfair.machine.cgroup import WEIGHT_MAX, WEIGHT_MIN
from mqfair.machine.fs import Fs
from mqfair.machine.group_name import UNITS
from mqfair.text.errors import UsageError

KEY = "IODeviceWeight"
SOURCE = f"{KEY}="
FOLDERS = (
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
_LINE = re.compile(rf"\s*{KEY}\s*=\s*(.*)")
_VALUE = re.compile(r"(?:\"([^\"]+)\"|(\S+))\s+(\d+)")


@dataclass
class UnitFiles:
    """The weights for devices that units ask for. @_texts has the files with the key, by path, and
    @_files the names in all folders."""

    fs: Fs
    _texts: dict[str, str] = field(default_factory=dict)
    _files: dict[str, set[str]] = field(default_factory=dict)
    _seen: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        return bool(self._texts)

    def read(self) -> None:
        """Looks at all files anew."""
        self._texts.clear()
        self._seen.clear()
        self._files = {folder: set(self.fs.names(folder)) for folder in FOLDERS}
        for folder, names in self._files.items():
            for name in names:
                if name.endswith(UNITS):
                    self._keep(f"{folder}/{name}")
                elif name.endswith(".d"):
                    for conf in self.fs.names(f"{folder}/{name}"):
                        self._keep(f"{folder}/{name}/{conf}")

    def _keep(self, file: str) -> None:
        text = self.fs.glance(file) or ""
        if KEY in text:
            self._texts[file] = text

    def refresh(self, path: str) -> None:
        """Reads all files if those of the unit with the cgroup @path may have changed."""
        unit = path.rpartition("/")[2]
        if not unit.endswith(UNITS):
            return
        times = tuple(
            self._changed_ns(place)
            for folder in FOLDERS
            for place in (folder, f"{folder}/{unit}.d")
        )
        if self._seen.get(unit) != times:
            self.read()
            self._seen[unit] = times

    def _changed_ns(self, path: str) -> int:
        try:
            return self.fs.host_path(path).stat().st_mtime_ns
        except OSError:
            return 0

    def weights(self, path: str) -> Mapping[str, int]:
        """The weights of the cgroup @path by the numbers of devices."""
        unit = path.rpartition("/")[2]
        if not self._texts or not unit.endswith(UNITS):
            return {}
        found: dict[str, int] = {}
        for place, weight in self._asked(unit):
            for number in _numbers(self.fs, place):
                found[number] = weight
        return found

    def _asked(self, unit: str) -> Iterator[tuple[str, int]]:
        """Path and weight of each device; a line without a value drops those before it."""
        asked: list[tuple[str, int]] = []
        for text in self._of_unit(unit):
            for line in text.splitlines():
                match = _LINE.match(line)
                if match is None:
                    continue
                value = _VALUE.fullmatch(match[1].strip())
                if not match[1].strip():
                    asked.clear()
                elif value and WEIGHT_MIN <= int(value[3]) <= WEIGHT_MAX:
                    asked.append((value[1] or value[2], int(value[3])))
        yield from asked

    def _of_unit(self, unit: str) -> Iterator[str]:
        """The texts of @unit, with the key, in the order of systemd."""
        for name in (unit, _template(unit)):
            folder = next((one for one in FOLDERS if name in self._files.get(one, ())), None)
            if folder is not None:
                yield self._texts.get(f"{folder}/{name}", "")
                break
        confs: dict[str, str] = {}
        # A name of an earlier folder hides those of later ones, and a nearer name those of others.
        for place in _drop_ins(unit):
            for folder in FOLDERS:
                if place in self._files.get(folder, ()):
                    for conf in self.fs.names(f"{folder}/{place}"):
                        confs.setdefault(conf, f"{folder}/{place}/{conf}")
        yield from (self._texts.get(confs[conf], "") for conf in sorted(confs))


def _template(unit: str) -> str:
    """The template of an instance; @unit itself if it is none."""
    stem, at, rest = unit.partition("@")
    return f"{stem}@.{rest.rpartition('.')[2]}" if at else unit


def _drop_ins(unit: str) -> list[str]:
    """The folders of drop-ins of @unit: its own, those of its template and of its prefixes, and
    that of all units of the kind."""
    kind = unit.rpartition(".")[2]
    names = [unit, _template(unit)]
    stem = _template(unit).removesuffix(f".{kind}")
    parts = stem.split("-")
    names += [f"{'-'.join(parts[:end])}-.{kind}" for end in range(len(parts) - 1, 0, -1)]
    return [f"{name}.d" for name in dict.fromkeys(names)] + [f"{kind}.d"]


def _lowest(fs: Fs, place: str) -> list[Disk]:
    return lowest(find_device(fs, place))


def _numbers(fs: Fs, place: str) -> list[str]:
    """The numbers of the disks that @place, a device or a file, stands for."""
    find = disks_below if is_indirect(fs, place) else _lowest
    try:
        disks = find(fs, place)
    except UsageError:
        return []
    return list(dict.fromkeys(disk.number for disk in disks if disk.number))
