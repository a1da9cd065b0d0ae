# SPDX-License-Identifier: GPL-2.0
"""Why a cgroup is slow on a disk: its depth, its share, another cgroup, or the drive."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mqfair.machine.blockdev import Disk
from mqfair.machine.cgroup import STAT_PREFIX, Cgroup, root_cgroup
from mqfair.text.output import human_microseconds, percent, quoted

# A mean of requests, in hundredths, below which a cgroup does not keep a drive busy.
FEW_X100 = 400
# In percent of the least time known: a drive that is not slowed.
NOT_SLOWED = 150
# A cgroup gets its share if it gets this part of it, in percent.
SHARE_MET = 90


@dataclass(frozen=True)
class Usage:
    """The figures of one cgroup in io.stat; see doc/common.md."""

    name: str
    figures: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, group: Cgroup, disk: Disk) -> "Usage":
        stat = group.stat().get(disk.number or "", {})
        named = ((key.removeprefix(STAT_PREFIX), value) for key, value in stat.items())
        return cls(group.name, {key: int(value) for key, value in named if value.isdigit()})

    def __getitem__(self, name: str) -> int:
        return self.figures.get(name, 0)

    @property
    def known(self) -> bool:
        return "part_ppm" in self.figures

    @property
    def asked_x100(self) -> int:
        return self["inside_x100"] + self["waiting_x100"]

    @property
    def gets_its_share(self) -> bool:
        return 100 * self["part_ppm"] >= SHARE_MET * self["share_ppm"]

    @property
    def waits_outside(self) -> bool:
        return self["waiting_x100"] > self["inside_x100"]


@dataclass(frozen=True)
class Reason:
    """A sentence, and a remedy if there is one."""

    sentence: str
    hint: str | None = None


def _times(slowdown_percent: int) -> str:
    return f"{slowdown_percent / 100:.1f} times"


def _requests(x100: int) -> str:
    return f"{x100 / 100:.1f}"


def _by_share(own: Usage, disk: Disk) -> Reason:
    return Reason(
        f"{own.name} gets its share, {percent(own['part_ppm'])} of the work with"
        f" {percent(own['share_ppm'])} due, and its other requests wait for their turn",
        f"mqfair weight {quoted(own.name)} {disk.name} N, with a greater N",
    )


def _by_tenant(own: Usage, other: Usage, part: int, disk: Disk) -> Reason:
    return Reason(
        f"{other.name} has {part} % of the cost inside the drive, so a request of {own.name} takes"
        f" {_times(own['slowdown_percent'])} as long there as it must",
        f"mqfair latency {quoted(own.name)} {disk.name} TARGET, or a greater tunable isolation",
    )


def _by_drive(own: Usage) -> Reason:
    return Reason(
        f"the drive itself is slow: a request of {own.name} takes"
        f" {human_microseconds(own['service_us'])} in it, and no other cgroup has much inside"
    )


def _by_depth(own: Usage) -> Reason:
    return Reason(
        f"{own.name} has only {_requests(own.asked_x100)} requests outstanding, and each takes"
        f" {human_microseconds(own['service_us'])} in a drive that is not slowed",
        "let the application have more requests outstanding",
    )


def reason(own: Usage, others: list[Usage], disk: Disk) -> Reason | None:
    """None if @own does no requests now."""
    if not own.known or own.asked_x100 == 0:
        return None
    if own.waits_outside and own.gets_its_share:
        return _by_share(own, disk)
    total = own["cost_inside"] + sum(other["cost_inside"] for other in others)
    most = max(others, key=lambda other: other["cost_inside"], default=own)
    part = 100 * most["cost_inside"] // total if total and most is not own else 0
    slowed = own["slowdown_percent"] > NOT_SLOWED
    if part >= 50 and (slowed or own.waits_outside):
        return _by_tenant(own, most, part, disk)
    if not slowed and own.asked_x100 < FEW_X100:
        return _by_depth(own)
    return _by_drive(own)


def why_slow(group: Cgroup, disk: Disk) -> Reason | None:
    """The reason for @group on @disk, by the present figures of all cgroups."""
    others = [
        Usage.read(other, disk)
        for other in root_cgroup(group.fs).walk()
        if other.path and other.path != group.path
    ]
    return reason(Usage.read(group, disk), [other for other in others if other.known], disk)
