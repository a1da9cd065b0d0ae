# SPDX-License-Identifier: GPL-2.0
"""mqfair status: schedulers and tunables of the devices, and shares of the cgroups."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqfair import kmod
from mqfair.blockdev import Disk, Selector, all_disks, find_disk
from mqfair.cgroup import STAT_PREFIX, WEIGHT_DEFAULT, Cgroup, root_cgroup
from mqfair.errors import Failure
from mqfair.fs import Fs
from mqfair.output import (
    add_json_argument,
    human_bytes,
    human_microseconds,
    paint,
    percent,
    print_json,
    table,
)
from mqfair.schedulers import SCHEDULERS

EPILOG = """\
Lists the cgroups that have done I/O through the scheduler or have a weight of their own.
Without DEVICE, all devices are listed.

examples:
  mqfair status
  mqfair status nvme0n1
"""

FIGURES = (
    "weight",
    "share_ppm",
    "bytes",
    "ios",
    "wait_us",
    "p50_us",
    "p99_us",
    "short_ms",
    "slowdown_percent",
    "cost_inside",
)


@dataclass(frozen=True)
class Row:
    """One cgroup on one device. A figure that io.stat does not have is None."""

    cgroup: str
    weight: int | None
    share_ppm: int | None
    bytes: int | None
    ios: int | None
    wait_us: int | None
    p50_us: int | None
    p99_us: int | None
    short_ms: int | None
    slowdown_percent: int | None
    cost_inside: int | None

    @classmethod
    def read(cls, group: Cgroup, number: str) -> "Row | None":
        """None for a cgroup without figures and without a weight of its own."""
        stat = group.stat().get(number, {})
        figures = {name: _int(stat.get(STAT_PREFIX + name)) for name in FIGURES}
        weights = group.weights()
        own = weights.on(number) if weights else None
        if all(value is None for value in figures.values()) and own in (None, WEIGHT_DEFAULT):
            return None
        if figures["weight"] is None:
            figures["weight"] = own
        return cls(group.name, **figures)

    def cells(self) -> list[str]:
        return [
            self.cgroup,
            _shown(self.weight, str),
            _shown(self.share_ppm, percent),
            _shown(self.bytes, human_bytes),
            _shown(self.ios, str),
            _shown(self.wait_us, human_microseconds),
            _shown(self.p50_us or None, human_microseconds),
            _shown(self.p99_us or None, human_microseconds),
        ]

    def as_dict(self) -> dict[str, object]:
        return {"cgroup": self.cgroup, **{name: getattr(self, name) for name in FIGURES}}


def _int(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _shown(value: int | None, render: Callable[[int], str]) -> str:
    return "-" if value is None else render(value)


@dataclass(frozen=True)
class DeviceStatus:
    disk: Disk
    selector: Selector | None
    tunables: dict[str, str]
    rows: Sequence[Row]

    @classmethod
    def read(cls, disk: Disk, groups: Sequence[Cgroup]) -> "DeviceStatus":
        selector = disk.selector()
        ours = selector is not None and selector.ours
        number = disk.number
        found = [Row.read(group, number) for group in groups] if ours and number else []
        rows = [row for row in found if row is not None]
        return cls(disk, selector, disk.tunables() if ours else {}, rows)

    @property
    def ours(self) -> bool:
        return self.selector is not None and self.selector.ours

    def cells(self) -> list[str]:
        return [
            self.disk.name,
            self.disk.number or "-",
            self.selector.active if self.selector else "-",
            str(self.disk.queue_count() or "-"),
            str(self.disk.nr_requests() or "-"),
        ]

    def as_dict(self) -> dict[str, object]:
        return {
            "device": self.disk.name,
            "number": self.disk.number,
            "scheduler": self.selector.active if self.selector else None,
            "available": list(self.selector.available) if self.selector else [],
            "ours": self.ours,
            "queues": self.disk.queue_count(),
            "nr_requests": self.disk.nr_requests(),
            "tunables": self.tunables,
            "cgroups": [row.as_dict() for row in self.rows],
        }


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "devices", nargs="*", metavar="DEVICE", help="nvme0n1, /dev/nvme0n1 or MAJ:MIN"
    )
    add_json_argument(parser)


def _disks(fs: Fs, names: Sequence[str]) -> list[Disk]:
    asked = [find_disk(fs, name) for name in names] if names else list(all_disks(fs))
    return list({disk.name: disk for disk in asked}.values())


def _groups(fs: Fs) -> list[Cgroup]:
    """Every cgroup. The list is empty on a machine without cgroup v2, so that its devices can still
    be shown."""
    try:
        return list(root_cgroup(fs).walk())
    except Failure:
        return []


def _print_device(status: DeviceStatus) -> None:
    settings = "  ".join(f"{name} {value}" for name, value in status.tunables.items())
    print(f"\n{paint(status.disk.name, 'bold')}  {settings}".rstrip())
    if not status.rows:
        print("  no cgroup has done I/O through the scheduler yet")
        return
    header = ("CGROUP", "WEIGHT", "SHARE", "DONE", "REQUESTS", "WAITED", "P50", "P99")
    for line in table(header, [row.cells() for row in status.rows]):
        print(f"  {line}")


def _print_text(fs: Fs, statuses: Sequence[DeviceStatus]) -> None:
    if not statuses:
        print("no block devices")
        return
    header = ("DEVICE", "NUMBER", "SCHEDULER", "QUEUES", "NR_REQUESTS")
    for line in table(header, [status.cells() for status in statuses], left=3):
        print(line)
    ours = [status for status in statuses if status.ours]
    for status in ours:
        _print_device(status)
    if not ours:
        usable = kmod.loaded(fs) or kmod.autoloads(fs, SCHEDULERS[0])
        hint = "mqfair enable DEVICE" if usable else kmod.missing(fs)
        print(f"\nno device runs an mqfair scheduler: {hint}")


def main(args: argparse.Namespace) -> int:
    fs = Fs()
    groups = _groups(fs)
    statuses = [DeviceStatus.read(disk, groups) for disk in _disks(fs, args.devices)]
    if args.json:
        devices = [status.as_dict() for status in statuses]
        print_json({"schema": "mqfair.status/1", "devices": devices})
    else:
        _print_text(fs, statuses)
    return 0
