# SPDX-License-Identifier: GPL-2.0
"""The table of devices: each kind of disk is shared by weight, or `mqfair check` says why not.

Two tenants with weights of 900 and 100 ask for more than the device has. The lighter one is due a
tenth of the bytes. The kernel's own count of the upper disk tells them, because a disk below may
charge the bytes to another cgroup. test_table.py and test_drives.py have the rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from fairlib import SLOTS, Load, check_settled, flows, mqfair, sent_bytes, tenants
from guestlib import Cgroup, Disk, modprobe, rmmod

WAYS = ("randread", "randwrite")
GREEDY = {"bs": "4k", "norandommap": 1, "iodepth": 60}
# More than the requests of both tenants.
TAGS = 256
# By default the clock ends a round of hwabc after 200 ms, which a slow drive needs for less.
_TUNABLES = {"hwabc": {"period_ms": 2000}}
HEAVY, LIGHT = 900, 100
DUE = LIGHT / (HEAVY + LIGHT)
POINTS = 0.02
PAGE = 4096
# The requests of each tenant before the measurement, and those of both in it, in slices.
SETTLED = 20
REQUESTS = 1000
_SLICE = 100
_SETTLE_S = 4.0
_LOOK_S = 0.05
_LONG_S = 180.0


@dataclasses.dataclass(frozen=True)
class Device:
    """Tenants use each of @tops, which has the disks with the scheduler. Each of @leave removes a
    part, and the last one ends all I/O."""

    tops: Mapping[Disk, Sequence[Disk]]
    leave: Sequence[Callable[[], object]]

    @property
    def lows(self) -> list[Disk]:
        return [low for lows in self.tops.values() for low in lows]


Maker = Callable[[], contextlib.AbstractContextManager[Device]]


@contextlib.contextmanager
def shared(make: Maker, scheduler: str, *options: str) -> Iterator[tuple[Device, list[Cgroup]]]:
    """The device that @make makes with @scheduler on its disks, its heavy and its light tenant."""
    with make() as device, tenants(heavy=HEAVY, light=LIGHT) as groups:
        words = ("--scheduler", scheduler, "--depth", str(SLOTS), *options)
        mqfair("enable", *(low.name for low in device.lows), *words)
        for low in device.lows:
            for name, value in _TUNABLES.get(scheduler, {}).items():
                low.set_tunable(name, value)
        yield device, groups


@contextlib.contextmanager
def load(device: Device, groups: Sequence[Cgroup], **options: object) -> Iterator[list[Load]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Load(top, groups, **{**GREEDY, **options})) for top in device.tops
        ]


def parts(
    device: Device, groups: Sequence[Cgroup], way: str, *, waiting: bool = True
) -> list[float]:
    """The part of the last of @groups in the bytes of each upper disk, in REQUESTS of all groups.

    With @waiting, a slice counts if each group had requests in the scheduler at every look. A group
    without them asks for less than its share.
    """
    with load(device, groups, rw=way) as loads:
        _go_on(loads)
        time.sleep(_SETTLE_S)
        return [_part(top, lows, groups, waiting) for top, lows in device.tops.items()]


def _go_on(loads: Sequence[Load]) -> None:
    for one in loads:
        one.goes_on(SETTLED, _LONG_S)


def _part(top: Disk, lows: Sequence[Disk], groups: Sequence[Cgroup], waiting: bool) -> float:
    total = [0 for _ in groups]
    deadline = time.monotonic() + _LONG_S
    left_out = 0
    while sum(total) < REQUESTS * PAGE:
        assert time.monotonic() < deadline, f"{total} bytes, {left_out} slices left out"
        before = sent(top, groups)
        short = False
        while sum(grown := _difference(sent(top, groups), before)) < _SLICE * PAGE:
            short |= waiting and not all(_queued(lows, group) for group in groups)
            time.sleep(_LOOK_S)
        left_out += short
        if not short:
            total = [one + more for one, more in zip(total, grown, strict=True)]
    part = total[-1] / sum(total)
    print(f"{top.name}: {part:.1%} of {total}, {left_out} slices left out")
    return part


def sent(top: Disk, groups: Sequence[Cgroup]) -> list[int]:
    return [sent_bytes(group, top) for group in groups]


def _difference(now: Sequence[int], then: Sequence[int]) -> list[int]:
    return [one - other for one, other in zip(now, then, strict=True)]


def _queued(lows: Sequence[Disk], group: Cgroup) -> int:
    """The requests of @group that wait in the schedulers of @lows."""
    return sum(flows(low).get(f"/{group.name}", {}).get("queued", 0) for low in lows)


def end(device: Device) -> None:
    for low in device.lows:
        check_settled(low)
        low.scheduler = "none"


def check_share(make: Maker, way: str, scheduler: str) -> None:
    with shared(make, scheduler, "--nr-requests", str(TAGS)) as (device, groups):
        found = parts(device, groups, way)
        end(device)
    assert all(abs(part - DUE) <= POINTS for part in found), f"{found}, with {DUE:.0%} due"


def check_reason(make: Maker, way: str, line: str, *, below: bool, always: bool = True) -> None:
    """Checks that `mqfair check` says @line of the upper disk, or of the one @below, and that the
    weights do not hold with the tags of `mqfair enable`. A device that is shared after all needs no
    such line, unless it is not @always off."""
    with shared(make, "mqfq") as (device, groups):
        found = parts(device, groups, way, waiting=False)
        disk = device.lows[0] if below else next(iter(device.tops))
        said = mqfair("check", disk.name, check=False)
        end(device)
    assert line in said, said
    holds = all(abs(part - DUE) <= POINTS for part in found)
    assert not (always and holds), f"{found}: the weights hold"


def check_removal(make: Maker) -> None:
    """Removes first the scheduler under load, and then the device. Every request ends, and the
    module can go."""
    with shared(make, "mqfq") as (device, groups):
        with load(device, groups, rw="randrw", disk_leaves=True) as loads:
            for name in ("none", "mqfq"):
                for low in device.lows:
                    low.scheduler = name
                _go_on(loads)
            *others, last = device.leave
            for leave in others:
                leave()
                _go_on(loads)
            last()
        for low in device.lows:
            if low.sysfs.exists():
                check_settled(low)
                low.scheduler = "none"
    rmmod("mqfair")
    modprobe("mqfair")
