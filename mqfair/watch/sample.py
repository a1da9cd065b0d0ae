# SPDX-License-Identifier: GPL-2.0
"""Samples of drives and of their cgroups, and the rates between two samples.

A sample holds the counters of the kernel, from io.stat of each cgroup, from sched/state in debugfs,
and from sysfs. io.stat omits the paths of NVMe multipath: their figures are in sched/flows.
Two samples give rates, mean times, and the two shares of a cgroup:

    achieved   the part of the work done between the two samples
    due        the part that it is due of it (dues())

A Sampler keeps the tree of cgroups and the parsed text of each io.stat. A sample of many idle
cgroups then costs one read for each, and no parsing. Nothing is written, and a user other than root
lacks only the figures of debugfs.
"""

import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from mqfair.due import Node, due
from mqfair.machine.blockdev import Disk, active_word
from mqfair.machine.cgroup import WEIGHT_DEFAULT, WEIGHT_FILE, Cgroup, Weights, root_cgroup
from mqfair.machine.fs import Fs, KernelFile
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import Failure
from mqfair.watch import pressure
from mqfair.watch.pressure import Part, Pressure

SECTOR = 512
DEBUGFS = "/sys/kernel/debug/block"
# A cgroup with fewer requests waiting, in hundredths, gets what it asks for. A cgroup with a single
# request, which waits for nine tenths of the time, does not.
BACKLOG_X100 = 90
PPM = 1_000_000
# A cgroup that gets this part of its due has it.
DUE_MET = 0.9

_PAIR = re.compile(rb"mqfair\.(\w+)=(\d+)")
# A line of sched/flows begins with the path of the cgroup, which may have blanks.
_FLOW = re.compile(rb"/(.*) (weight=\d+ share_ppm=.*)")
_FLOW_PAIR = re.compile(rb"\b(\w+)=(\d+)")
# The words of /sys/block/DISK/stat: completed requests, and their sectors.
_STAT_IOS = (0, 4, 11)
_STAT_SECTORS = (2, 6, 13)


class Figures(NamedTuple):
    """The figures of one cgroup on one drive, as io.stat names them; None if it lacks one.
    doc/common.md has their meaning. A cgroup's figures do not include those of its children."""

    weight: int | None = None
    share_ppm: int | None = None
    part_ppm: int | None = None
    bytes: int | None = None
    ios: int | None = None
    wait_us: int | None = None
    done: int | None = None
    drive_us: int | None = None
    cost: int | None = None
    p50_us: int | None = None
    p99_us: int | None = None
    service_us: int | None = None
    slowdown_percent: int | None = None
    short_ms: int | None = None
    inside_x100: int | None = None
    waiting_x100: int | None = None
    cost_inside: int | None = None
    goal_us: int | None = None

    @property
    def known(self) -> bool:
        """True once the cgroup has done I/O through the scheduler."""
        return self.ios is not None

    @property
    def backlogged(self) -> bool:
        return (self.waiting_x100 or 0) >= BACKLOG_X100


_KEYS = [name.encode() for name in Figures._fields]

# The figures of a cgroup that has not done any I/O.
NO_FIGURES = Figures()

ByNumber = dict[str, Figures]


def parse_figures(pairs: bytes, pair: re.Pattern[bytes] = _PAIR) -> Figures:
    found = dict(pair.findall(pairs))
    return Figures._make([int(found[key]) if key in found else None for key in _KEYS])


def parse_io_stat(text: bytes) -> ByNumber:
    """The figures by device number; a device without any is left out."""
    found = {}
    for line in text.splitlines():
        number, _, pairs = line.partition(b" ")
        if b"mqfair." in pairs:
            found[number.decode()] = parse_figures(pairs)
    return found


def parse_flows(text: bytes) -> dict[str, Figures]:
    """The figures by cgroup in sched/flows; a cgroup without a request that was dispatched is left
    out, as in io.stat."""
    lines = (_FLOW.fullmatch(line) for line in text.splitlines())
    found = {
        line[1].decode(errors="replace") or "/": parse_figures(line[2], _FLOW_PAIR)
        for line in lines
        if line is not None
    }
    return {name: figures for name, figures in found.items() if figures.ios}


def flows_of_path(disk: Disk) -> dict[str, Figures]:
    """parse_flows() of a path of NVMe multipath; empty for a user that may not read debugfs."""
    return parse_flows(disk.fs.file(flows_file(disk)).read() or b"")


def flows_file(disk: Disk) -> str:
    return f"{DEBUGFS}/{disk.name}/sched/flows"


@dataclass(frozen=True)
class DiskSample:
    """@state are the numbers of sched/state in debugfs, or None if they cannot be read. @ios and
    @bytes are the kernel's own counters of the drive. @flows are the cgroups that have done I/O."""

    name: str
    number: str | None
    scheduler: str | None
    tunables: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, int] | None = None
    ios: int | None = None
    bytes: int | None = None
    in_flight: int | None = None
    flows: Mapping[str, Figures] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        return self.scheduler in SCHEDULERS

    @property
    def due_now(self) -> dict[str, int]:
        """dues() of the last quarter of a second."""
        return dues(self.flows, {name: one.part_ppm or 0 for name, one in self.flows.items()})

    def of_state(self, name: str) -> int | None:
        return None if self.state is None else self.state.get(name)


@dataclass(frozen=True)
class Sample:
    """@at is in seconds of the monotonic clock, @wall in those since 1970. @pressure is that of the
    cgroups with I/O and of those above them, but for the root."""

    at: float
    wall: float
    disks: Mapping[str, DiskSample]
    pressure: Mapping[str, Pressure] = field(default_factory=dict)


# --- reading ---------------------------------------------------------------------------------


class _Node:
    """A cgroup in the tree of a Sampler. @mark changes when a child is made or removed: the number
    of links on cgroupfs, the time of change elsewhere."""

    __slots__ = (
        "children", "directory", "figures", "mark", "path", "pressure", "stat", "text", "used",
    )  # fmt: skip

    def __init__(self, directory: str, path: str) -> None:
        self.directory = directory
        self.path = path
        self.stat = KernelFile(f"{directory}/io.stat")
        self.pressure = KernelFile(f"{directory}/{pressure.FILE}")
        self.mark: tuple[int, int] | None = None
        self.children: dict[str, _Node] = {}
        self.text: bytes | None = None
        self.figures: ByNumber = {}
        # This cgroup or one below it has done I/O.
        self.used = False

    def rescan(self) -> None:
        """Takes over children that have come or gone."""
        try:
            status = os.stat(self.directory)  # noqa: PTH116 -- 500 of these in each sample
        except OSError:
            self.children = {}
            return
        mark = (status.st_nlink, status.st_mtime_ns)
        if mark == self.mark:
            return
        self.mark = mark
        try:
            with os.scandir(self.directory) as entries:
                names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except OSError:
            names = []
        prefix = f"{self.path}/" if self.path else ""
        known = self.children
        self.children = {
            name: known.get(name) or _Node(f"{self.directory}/{name}", prefix + name)
            for name in names
        }

    def read(self) -> None:
        text = self.stat.read()
        if text != self.text:
            self.text = text
            self.figures = parse_io_stat(text) if text else {}

    def walk(self) -> list["_Node"]:
        """Rescans and reads this cgroup and all below it, parents first."""
        found = [self]
        for node in found:
            node.rescan()
            node.read()
            found += node.children.values()
        for node in reversed(found):
            node.used = bool(node.figures) or any(one.used for one in node.children.values())
        return found


class _DiskFiles:
    """The files of one drive. The names of the tunables are found again when the scheduler has
    changed."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.number = disk.number
        self.is_path = disk.head is not None
        self._selector = disk.fs.file(disk.scheduler_file)
        self._stat = disk.fs.file(f"{disk.path}/stat")
        self._state = disk.fs.file(f"{DEBUGFS}/{disk.name}/sched/state")
        self._tunables: dict[str, KernelFile] = {}
        self._scheduler: str | None = None

    def sample(self, flows: Mapping[str, Figures]) -> DiskSample:
        scheduler = self._active()
        ours = scheduler in SCHEDULERS
        if scheduler != self._scheduler:
            self._scheduler = scheduler
            names = self.disk.fs.names(self.disk.queue("iosched")) if ours else []
            self._tunables = {name: self.disk.fs.file(self.disk.tunable(name)) for name in names}
        texts = {name: file.read() for name, file in self._tunables.items()}
        ios, count, in_flight = _counters(self._stat.read())
        return DiskSample(
            self.disk.name,
            self.number,
            scheduler,
            {name: text.decode().strip() for name, text in texts.items() if text is not None},
            _state(self._state.read()) if ours else None,
            ios,
            count,
            in_flight,
            flows if ours else {},
        )

    def _active(self) -> str | None:
        text = self._selector.read()
        return None if text is None or b"[" not in text else active_word(text.decode())


def _counters(text: bytes | None) -> tuple[int | None, int | None, int | None]:
    words = [int(word) for word in (text or b"").split()]
    if len(words) <= max(_STAT_SECTORS):
        return None, None, None
    done = sum(words[index] for index in _STAT_IOS)
    return done, SECTOR * sum(words[index] for index in _STAT_SECTORS), words[8]


def _state(text: bytes | None) -> dict[str, int] | None:
    """The lines `name number`. Lines with several parts are left out."""
    if text is None:
        return None
    pairs = (line.split() for line in text.decode().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and _is_number(pair[1])}


def _is_number(word: str) -> bool:
    return word.lstrip("-").isdecimal()


def levels(path: str) -> list[str]:
    """The names of the cgroup @path and of those above it, from the top on."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


class Sampler:
    """Takes samples of @disks. A machine without cgroup v2 has drives and no cgroups."""

    def __init__(self, fs: Fs, disks: Sequence[Disk]) -> None:
        self._fs = fs
        self._disks = [_DiskFiles(disk) for disk in disks]
        try:
            root = root_cgroup(fs)
        except Failure:
            self._root: Cgroup | None = None
            return
        self._root = root
        self._tree = _Node(str(fs.host_path(root.mount)), "")
        self._weights: dict[str, Weights] = {}

    def sample(self) -> Sample:
        flows: dict[str, dict[str, Figures]] = {}
        # The time is that of the first read, as for every sample.
        at, wall = time.monotonic(), time.time()
        pressed: dict[str, Pressure] = {}
        by_path = {one.disk.name: flows_of_path(one.disk) for one in self._disks if one.is_path}
        used = {name for one in by_path.values() for path in one for name in levels(path)}
        if self._root is not None:
            for node in self._tree.walk():
                for number, figures in node.figures.items():
                    flows.setdefault(number, {})[node.path or "/"] = figures
                reads = node.path and (node.used or node.path in used)
                own = pressure.parse(node.pressure.read()) if reads else None
                if own is not None:
                    pressed[node.path] = own
        disks = {
            files.disk.name: files.sample(
                by_path[files.disk.name] if files.is_path else flows.get(files.number or "", {})
            )
            for files in self._disks
        }
        return Sample(at, wall, disks, pressed)

    def forget_weights(self) -> None:
        """The next weight() reads the file again."""
        self._weights = {}

    def weight(self, path: str, number: str | None) -> int:
        """The weight of a cgroup that has not done any I/O of its own, so that io.stat lacks it."""
        if self._root is None:
            return WEIGHT_DEFAULT
        if path not in self._weights:
            text = self._fs.file(f"{self._root.mount}/{path}/{WEIGHT_FILE}").read() or b""
            self._weights[path] = Weights.parse(text.decode())
        return self._weights[path].on(number)


# --- two samples -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a drive by a cgroup, between two samples. None stands for a time without a
    request, and for a figure that the module does not tell.

    wait_us and service_us are means of the requests of that time, outside the drive and in it. The
    percentiles are of the last seconds. short_ms is the part of the time for which the cgroup was
    short. The pressure is a part of the time, and that of all drives together.
    """

    cgroup: str
    weight: int
    due_ppm: int
    achieved_ppm: int
    iops: float
    bytes_per_s: float
    waiting_x100: int
    inside_x100: int
    wait_us: float | None = None
    service_us: float | None = None
    p50_us: int | None = None
    p99_us: int | None = None
    slowdown_percent: int | None = None
    short_ms: int = 0
    goal_us: int | None = None
    pressure_some_ppm: int | None = None
    pressure_full_ppm: int | None = None

    @property
    def idle(self) -> bool:
        return self.iops == 0 and self.waiting_x100 == 0 and self.inside_x100 == 0

    @property
    def lacks(self) -> bool:
        return self.achieved_ppm < DUE_MET * self.due_ppm


def grown(before: int | None, after: int | None) -> int:
    """The growth of a counter. One that fell began again from 0, with another scheduler or with
    another cgroup of the same name."""
    now = after or 0
    was = before or 0
    return now - was if now >= was else now


def _mean(total: int, count: int) -> float | None:
    return total / count if count else None


def _work(before: Figures, after: Figures) -> int:
    """The cost of the requests that were done. A module that does not tell it counts bytes."""
    if after.cost is None:
        return grown(before.bytes, after.bytes)
    return grown(before.cost, after.cost)


def _use(
    name: str,
    before: Figures,
    after: Figures,
    seconds: float,
    *,
    due: int,
    achieved: int,
    part: Part | None,
) -> Use:
    ios = grown(before.ios, after.ios)
    done = grown(before.done, after.done)
    service = _mean(grown(before.drive_us, after.drive_us), done)
    active = ios or done or after.waiting_x100 or after.inside_x100
    return Use(
        name,
        WEIGHT_DEFAULT if after.weight is None else after.weight,
        due,
        achieved,
        ios / seconds,
        grown(before.bytes, after.bytes) / seconds,
        after.waiting_x100 or 0,
        after.inside_x100 or 0,
        _mean(grown(before.wait_us, after.wait_us), ios),
        after.service_us if after.drive_us is None and ios else service,
        (after.p50_us or None) if active else None,
        (after.p99_us or None) if active else None,
        after.slowdown_percent if ios else None,
        grown(before.short_ms, after.short_ms),
        after.goal_us or None,
        part.some_ppm if part else None,
        part.full_ppm if part else None,
    )


NO_PARTS: Mapping[str, Part] = {}


def uses(
    before: DiskSample, after: DiskSample, seconds: float, parts: Mapping[str, Part] = NO_PARTS
) -> dict[str, Use]:
    """The use of each cgroup with I/O of its own, in @seconds between the samples. @parts is the
    pressure of the cgroups in that time."""
    pairs = {name: (before.flows.get(name, NO_FIGURES), now) for name, now in after.flows.items()}
    done = {name: _work(*pair) for name, pair in pairs.items()}
    work = sum(done.values())
    achieved = {name: round(PPM * one / work) if work else 0 for name, one in done.items()}
    deserved = dues(after.flows, achieved)
    return {
        name: _use(
            name,
            *pair,
            seconds,
            due=deserved[name],
            achieved=achieved[name],
            part=parts.get(name),
        )
        for name, pair in pairs.items()
    }


def shares_below(flows: Mapping[str, Figures]) -> dict[str, int]:
    """The sum of the shares of each cgroup and all below it, for those in @flows and above them."""
    found: dict[str, int] = {}
    for name, one in flows.items():
        path = name
        while path:
            found[path] = found.get(path, 0) + (one.share_ppm or 0)
            path = path.rpartition("/")[0]
    return found


def dues(flows: Mapping[str, Figures], got: Mapping[str, int]) -> dict[str, int]:
    """The part of the work that each cgroup is due, in millionths, where it got @got. A cgroup with
    a backlog asks for all, and each other one for what it got.

    Siblings divide by their weights, that is, by the sums of the shares below them. A cgroup's own
    processes are a child of it, named with a slash at the end. An idle cgroup has no share: it is
    due what it got.
    """
    active = {name: one for name, one in flows.items() if one.share_ppm}
    shares = shares_below(active)
    nodes = [Node(path, share, path.rpartition("/")[0]) for path, share in shares.items()]
    for name, one in active.items():
        demand = math.inf if one.backlogged else got[name]
        nodes.append(Node(f"{name}/", one.share_ppm or 0, name, demand))
    found = due(nodes, sum(got[name] for name in active))
    return {name: round(found.get(f"{name}/", got[name])) for name in flows}


@dataclass(frozen=True, slots=True)
class Total:
    """The use of a whole drive, by the kernel's own counters of completed requests."""

    iops: float
    bytes_per_s: float
    in_flight: int


def total(before: DiskSample, after: DiskSample, seconds: float) -> Total | None:
    if after.ios is None or after.bytes is None:
        return None
    return Total(
        grown(before.ios, after.ios) / seconds,
        grown(before.bytes, after.bytes) / seconds,
        after.in_flight or 0,
    )


# --- the tree of cgroups ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the tree. A cgroup with children has the sums of its subtree in @use. The I/O of
    its own processes has a line with @own."""

    depth: int
    label: str
    use: Use
    own: bool = False


OWN = "(own)"


def _joined(cgroup: str, weight: int, parts: Sequence[Use], pressed: Part | None) -> Use:
    """The sums of @parts. Percentiles and slowdowns have no sum, and stay those of a lone part. The
    kernel counts the pressure of a subtree by itself: @pressed."""
    ios = sum(part.iops for part in parts)
    alone = parts[0] if len(parts) == 1 else None

    def mean(of: Callable[[Use], float | None]) -> float | None:
        return sum((of(part) or 0) * part.iops for part in parts) / ios if ios else None

    return Use(
        cgroup,
        weight,
        sum(part.due_ppm for part in parts),
        sum(part.achieved_ppm for part in parts),
        ios,
        sum(part.bytes_per_s for part in parts),
        sum(part.waiting_x100 for part in parts),
        sum(part.inside_x100 for part in parts),
        mean(lambda part: part.wait_us),
        mean(lambda part: part.service_us),
        alone.p50_us if alone else None,
        alone.p99_us if alone else None,
        alone.slowdown_percent if alone else None,
        max(part.short_ms for part in parts),
        alone.goal_us if alone else None,
        pressed.some_ppm if pressed else None,
        pressed.full_ppm if pressed else None,
    )


def tree(
    found: Mapping[str, Use],
    weight: Callable[[str], int],
    key: Callable[[Use], Any],
    keep: Callable[[Use], bool] = lambda _: True,
    pressed: Mapping[str, Part] = NO_PARTS,
) -> list[Line]:
    """The lines of the cgroups in @found that @keep keeps, and of their ancestors, siblings in the
    order of @key. @weight tells the weight of a cgroup without I/O of its own, and @pressed the
    pressure of a cgroup with all below it."""
    children: dict[str, dict[str, None]] = {}
    for name, use in found.items():
        path = name if name != "/" and keep(use) else ""
        while path:
            parent = path.rpartition("/")[0]
            children.setdefault(parent, {})[path] = None
            path = parent
    joined: dict[str, Use] = {}

    def join(path: str) -> Use:
        parts = [join(child) for child in children.get(path, ())]
        own = found.get(path)
        if own is not None and not parts:
            joined[path] = own
            return own
        if own is not None and keep(own):
            parts.append(own)
        weighs = weight(path) if own is None else own.weight
        joined[path] = _joined(path, weighs, parts, pressed.get(path))
        return joined[path]

    lines: list[Line] = []

    def add(path: str, depth: int) -> None:
        below = children.get(path, {})
        lines.append(Line(depth, path.rpartition("/")[2], joined[path]))
        own = found.get(path)
        if own is not None and below and keep(own):
            alone = replace(own, pressure_some_ppm=None, pressure_full_ppm=None)
            lines.append(Line(depth + 1, OWN, alone, own=True))
        for child in sorted(below, key=lambda child: (key(joined[child]), child)):
            add(child, depth + 1)

    top = list(children.get("", ()))
    for path in top:
        join(path)
    for path in sorted(top, key=lambda path: (key(joined[path]), path)):
        add(path, 0)
    root = found.get("/")
    if root is not None and keep(root):
        lines.append(Line(0, "/", root, own=True))
    return lines
