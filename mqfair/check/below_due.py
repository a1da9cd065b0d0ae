# SPDX-License-Identifier: GPL-2.0
"""What keeps a cgroup from more of a disk, by the figures of the last quarter of a second.

A cgroup lacks a part of its due, or waits although it gets its due, or gets what it asks for.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from mqfair.machine.blockdev import Disk
from mqfair.machine.cgroup import Cgroup
from mqfair.text.output import human_microseconds, percent, quoted
from mqfair.watch.sample import DUE_MET, DiskSample, Figures, Sampler, levels, shares_below

# A mean of requests, in hundredths, below which a cgroup does not keep a drive busy.
FEW_X100 = 400
# In percent of the least time known: a drive that is not slowed.
NOT_SLOWED = 150
# A cgroup with this part of the cost in the drive, in percent, is in the way of the others.
MOST_INSIDE = 50
# A cgroup with this part of its siblings' shares has no active sibling, but for rounding.
WHOLE = 0.99
WINDOW_LEAST = 1


@dataclass(frozen=True)
class Reason:
    """A sentence, and a remedy if there is one. @lacks is true for a cgroup below its due."""

    sentence: str
    hint: str | None
    lacks: bool


@dataclass(frozen=True)
class _Look:
    """A cgroup on a disk, beside all others. @limit is an io.max in words, or empty."""

    name: str
    own: Figures
    disk: Disk
    sample: DiskSample
    limit: str

    @property
    def got(self) -> int:
        return self.own.part_ppm or 0

    @property
    def met(self) -> float:
        due = self.sample.due_now[self.name]
        return self.got / due if due else 1.0

    @property
    def asked_x100(self) -> int:
        return (self.own.inside_x100 or 0) + (self.own.waiting_x100 or 0)

    @property
    def slowed(self) -> bool:
        return (self.own.slowdown_percent or 0) > NOT_SLOWED

    def reason(self) -> Reason:
        hint: str | None
        work = f"({percent(self.got)} of the work)"
        if self.met < DUE_MET:
            cause, hint = self._in_the_way() or self._ahead()
            head = f"{self.name} gets {self.met:.2f} of its due {work}"
            return Reason(f"{head}: {cause}", hint, lacks=True)
        if self.own.backlogged:
            cause, hint = self._weight()
            head = f"{self.name} gets its due {work}, and its other requests wait for their turn"
            return Reason(f"{head}: {cause}", hint, lacks=False)
        cause, hint = (
            self._limit()
            or self._tags()
            or (self._in_the_way() if self.slowed else None)
            or (self._tasks() if not self.slowed and self.asked_x100 < FEW_X100 else self._drive())
        )
        head = f"{self.name} gets what it asks for {work}, and nothing of it waits for a turn"
        return Reason(f"{head}: {cause}", hint, lacks=False)

    def _in_the_way(self) -> tuple[str, str] | None:
        """The cgroup with most of the cost in the drive."""
        flows = self.sample.flows
        total = sum(one.cost_inside or 0 for one in flows.values())
        most = max(flows, key=lambda name: flows[name].cost_inside or 0)
        part = 100 * (flows[most].cost_inside or 0) // total if total else 0
        if most == self.name or part < MOST_INSIDE:
            return None
        window = self.sample.of_state("window")
        inside = sum(one.inside_x100 or 0 for one in flows.values())
        own = _requests(flows[most].inside_x100)
        cause = (
            f"{own} of the {_requests(inside)} requests in the drive are those of {_named(most)},"
            f" with {part} % of the cost"
        )
        if self.slowed:
            cause += f", and a request takes {self._times()} as long there as it must"
        if window == WINDOW_LEAST:
            cause += f", although the window is at its least, {window}"
            move = "move its tasks into a cgroup, and " if most == "/" else ""
            return cause, f"{move}limit it by io.max"
        if self.sample.tunables.get("isolation", "").split()[:1] == ["0"]:
            return cause, f"echo auto > {self.disk.tunable('isolation')}"
        target = f"mqfair latency {quoted(self.name)} {self.disk.name} TARGET"
        return cause, f"{target}, or a greater tunable isolation"

    def _ahead(self) -> tuple[str, str]:
        """The cgroup that gets most beyond its due."""
        due, flows = self.sample.due_now, self.sample.flows
        over = {name: (one.part_ppm or 0) - due[name] for name, one in flows.items()}
        most = max(over, key=lambda name: over[name])
        return (
            f"{_named(most)} gets {percent(flows[most].part_ppm or 0)} of the work, with"
            f" {percent(due[most])} due",
            "look again: urgent requests go first for moments. If it stays so, report it with"
            " sched/state and sched/flows of debugfs",
        )

    def _weight(self) -> tuple[str, str | None]:
        """The level with the least part of its siblings' share: the cgroup itself or above it."""
        shares = shares_below(self.sample.flows)
        parts = {}
        for path in levels(self.name):
            above = path.rpartition("/")[0]
            whole = shares[above] if above else sum(self._top(shares))
            parts[path] = shares.get(path, 0) / whole if whole else 1.0
        least = min(parts, key=lambda path: (parts[path], -len(path)))
        if parts[least] >= WHOLE:
            return "it has the disk for itself, and the drive does no more", None
        own = "its weight" if least == self.name else f"the weight of {least}"
        return (
            f"{own} is {percent(round(1e6 * parts[least]))} of those that are active on its level",
            f"mqfair weight {quoted(least)} {self.disk.name} N, with a greater N",
        )

    @staticmethod
    def _top(shares: dict[str, int]) -> Iterator[int]:
        return (share for path, share in shares.items() if path == "/" or "/" not in path)

    def _limit(self) -> tuple[str, str] | None:
        if not self.limit:
            return None
        return f"{self.limit} may hold it back", "raise that limit"

    def _tags(self) -> tuple[str, str] | None:
        waiters = self.sample.of_state("tag_waiters")
        if not waiters:
            return None
        cause = f"tasks that may be its own wait for a scheduler tag, {waiters} of all"
        return cause, f"mqfair enable {self.disk.name}, which raises nr_requests"

    def _tasks(self) -> tuple[str, str]:
        return (
            f"its own tasks limit it, with {_requests(self.asked_x100)} requests at a time",
            "let the application have more requests outstanding, if it wants more",
        )

    def _drive(self) -> tuple[str, None]:
        slow = f", {self._times()} as long as it must" if self.slowed else ""
        took = human_microseconds(self.own.service_us or 0)
        return f"the drive itself limits it, where a request takes {took}{slow}", None

    def _times(self) -> str:
        return f"{(self.own.slowdown_percent or 0) / 100:.1f} times"


def _requests(x100: int | None) -> str:
    return f"{(x100 or 0) / 100:.1f}"


def _named(cgroup: str) -> str:
    return "the root" if cgroup == "/" else cgroup


def below_due(group: Cgroup, disk: Disk, limit: str) -> Reason | None:
    """What keeps @group from more of @disk; None if it has no request now."""
    sample = Sampler(group.fs, [disk]).sample().disks[disk.name]
    own = sample.flows.get(group.name)
    if own is None or own.part_ppm is None:
        return None
    look = _Look(group.name, own, disk, sample, limit)
    return look.reason() if look.asked_x100 else None
