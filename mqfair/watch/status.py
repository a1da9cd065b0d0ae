# SPDX-License-Identifier: GPL-2.0
"""mqfair status: schedulers and tunables of the devices, and shares of the cgroups."""

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk, Selector, all_disks, find_disks
from mqfair.machine.cgroup import WEIGHT_DEFAULT, Cgroup, root_cgroup
from mqfair.machine.fs import Fs
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import Failure
from mqfair.text.output import (
    COLUMN_GAP,
    add_json_argument,
    human_bytes,
    human_microseconds,
    paint,
    percent,
    print_json,
    table,
    visible,
)
from mqfair.watch.sample import NO_FIGURES, DiskSample, Figures, Sampler

EPILOG = """\
Lists the cgroups that have done I/O through the scheduler or have a weight of their own.
Without DEVICE, all devices are listed.

GOT is the part of the work that the cgroup got done in the last quarter of a second, and DUE the
part that it is due of it. A cgroup without waiting requests is due what it gets. The others divide
the rest by weight. DONE, REQUESTS and WAITED count since `mqfair enable`.

examples:
  mqfair status
  mqfair status nvme0n1
"""

FIGURES = (
    "weight",
    "share_ppm",
    "part_ppm",
    "bytes",
    "ios",
    "wait_us",
    "p50_us",
    "p99_us",
    "short_ms",
    "slowdown_percent",
    "cost_inside",
)


# The lines of cgroups begin with two spaces.
INDENT = 2
# The fewest characters of a name that is cut.
NAME_LEAST = 20


@dataclass(frozen=True)
class Row:
    """One cgroup on one device. @own is its own weight there, if the module is loaded."""

    cgroup: str
    own: int | None
    figures: Figures
    due_ppm: int | None

    @property
    def worth_a_line(self) -> bool:
        """False for a cgroup without figures and without a weight of its own."""
        return self.figures.known or self.own not in (None, WEIGHT_DEFAULT)

    @property
    def weight(self) -> int | None:
        return self.own if self.figures.weight is None else self.figures.weight

    def cells(self) -> list[str]:
        own = self.figures
        return [
            visible(self.cgroup),
            _shown(self.weight, str),
            _shown(self.due_ppm, percent),
            _shown(own.part_ppm, percent),
            _shown(own.bytes, human_bytes),
            _shown(own.ios, str),
            _shown(own.wait_us, human_microseconds),
            _shown(own.p50_us or None, human_microseconds),
            _shown(own.p99_us or None, human_microseconds),
        ]

    def as_dict(self) -> dict[str, object]:
        figures = {name: getattr(self.figures, name) for name in FIGURES}
        return {"cgroup": self.cgroup, **figures, "weight": self.weight, "due_ppm": self.due_ppm}


def _shown(value: int | None, render: Callable[[int], str]) -> str:
    return "-" if value is None else render(value)


@dataclass(frozen=True)
class DeviceStatus:
    disk: Disk
    sample: DiskSample
    selector: Selector | None
    rows: Sequence[Row]

    @classmethod
    def read(cls, disk: Disk, sample: DiskSample, groups: Sequence[Cgroup]) -> "DeviceStatus":
        due = sample.due_now
        known = groups if sample.ours and sample.number else []
        found = [_row(group, sample, due) for group in known]
        return cls(disk, sample, disk.selector(), [row for row in found if row.worth_a_line])

    @property
    def ours(self) -> bool:
        return self.sample.ours

    def cells(self) -> list[str]:
        return [
            self.disk.name,
            self.sample.number or "-",
            self.selector.active if self.selector else "-",
            str(self.disk.queue_count() or "-"),
            str(self.disk.nr_requests() or "-"),
        ]

    def as_dict(self) -> dict[str, object]:
        return {
            "device": self.disk.name,
            "number": self.sample.number,
            "scheduler": self.selector.active if self.selector else None,
            "available": list(self.selector.available) if self.selector else [],
            "ours": self.ours,
            "queues": self.disk.queue_count(),
            "nr_requests": self.disk.nr_requests(),
            "tunables": dict(self.sample.tunables),
            "cgroups": [row.as_dict() for row in self.rows],
        }


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "devices", nargs="*", metavar="DEVICE", help="nvme0n1, /dev/nvme0n1 or MAJ:MIN"
    )
    add_json_argument(parser)


def _disks(fs: Fs, names: Sequence[str]) -> list[Disk]:
    return find_disks(fs, names) if names else list(all_disks(fs))


def _groups(fs: Fs) -> list[Cgroup]:
    """Every cgroup. The list is empty on a machine without cgroup v2, so that its devices can still
    be shown."""
    try:
        return list(root_cgroup(fs).walk())
    except Failure:
        return []


def _row(group: Cgroup, sample: DiskSample, due: Mapping[str, int]) -> Row:
    weights = group.weights()
    own = weights.on(sample.number) if weights else None
    figures = sample.flows.get(group.name, NO_FIGURES)
    return Row(group.name, own, figures, due.get(group.name))


def _print_device(status: DeviceStatus) -> None:
    settings = "  ".join(f"{name} {value}" for name, value in status.sample.tunables.items())
    print(f"\n{paint(status.disk.name, 'bold')}  {settings}".rstrip())
    if not status.rows:
        print("  no cgroup has done I/O through the scheduler yet")
        return
    header = (
        "CGROUP",
        "WEIGHT",
        "DUE",
        "GOT",
        "DONE",
        "REQUESTS",
        "WAITED",
        "P50",
        "P99",
    )
    rows = [row.cells() for row in status.rows]
    for line in table(header, _narrowed(header, rows)):
        print(f"{' ' * INDENT}{line}")


def _narrowed(header: Sequence[str], rows: Sequence[list[str]]) -> list[list[str]]:
    """On a terminal, names of cgroups lose their begin where the line would not fit: those of
    Kubernetes have up to 200 characters. Elsewhere the rows are as they were."""
    if sys.stdout is None or not sys.stdout.isatty():
        return list(rows)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    others = sum(len(COLUMN_GAP) + width for width in widths[1:])
    most = max(shutil.get_terminal_size().columns - INDENT - others, NAME_LEAST)
    return [[_end_of(name, most), *figures] for name, *figures in rows]


def _end_of(name: str, most: int) -> str:
    return name if len(name) <= most else f"…{name[len(name) - most + 1 :]}"


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
    disks = _disks(fs, args.devices)
    found = Sampler(fs, disks).sample().disks
    statuses = [DeviceStatus.read(disk, found[disk.name], groups) for disk in disks]
    if args.json:
        devices = [status.as_dict() for status in statuses]
        print_json({"schema": "mqfair.status/1", "devices": devices})
    else:
        _print_text(fs, statuses)
    return 0
