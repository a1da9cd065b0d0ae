# SPDX-License-Identifier: GPL-2.0
"""Scheduler tags are few: who has use of a share gets the tags for it.

In counted time: a submitter that is not run has nothing waiting, whatever its quota.
"""

from __future__ import annotations

from fairlib import Load, mqfq, scheduled, served_bytes, tenants
from guestlib import Cgroup, Disk, Guest, NullBlk, cases, slow, wait_until

guest = Guest(cpus=1, memory_mb=1024, icount=True, needs_module=True)

SLOTS = 8
# As `mqfair enable` sets them.
TAGS = 4 * SLOTS
DEVICE = {
    "irqmode": 2,
    "completion_nsec": 8_000_000,
    "submit_queues": 1,
    "hw_queue_depth": SLOTS,
}
PAGE = 4096
READS = {"rw": "randread", "bs": "4k", "norandommap": 1}
# Each thread waits for one request: as many ask for a tag as are not served.
GREEDY = {**READS, "ioengine": "psync", "numjobs": 24}
# It has nearly all of the shares and wants one request now and then.
IDLER = {**READS, "iodepth": 1, "thinktime": 20_000}
TOLERANCE = 0.1


@cases("mqfq", "ifq")
@slow
def test_who_comes_late_beside_one_that_leaves_its_share(scheduler: str) -> None:
    """Two share what is left by weight, though their parts of the whole are less than a tag."""
    # Weights of people, under both.
    tunables = {"depth": SLOTS} | ({"damping": 0} if scheduler == "ifq" else {})
    with (
        NullBlk(**DEVICE) as disk,
        tenants(idler=10000, first=100, late=200) as (idler, first, late),
        scheduled(disk, scheduler, **tunables),
    ):
        disk.set_queue("nr_requests", TAGS)
        with Load(disk, [idler], **IDLER), Load(disk, [first], **GREEDY) as load:
            load.goes_on(10 * TAGS)
            with Load(disk, [late], **GREEDY):
                check_ratio(disk, late, first, 2.0)


@slow
def test_one_heavy_among_eight_light() -> None:
    """It has the tags for its half: a ninth of them would not do."""
    light = {f"light{number}": 10 for number in range(8)}
    with (
        NullBlk(**DEVICE) as disk,
        tenants(heavy=80, **light) as (heavy, *others),
        mqfq(disk, depth=SLOTS, threshold_kb=4),
    ):
        disk.set_queue("nr_requests", TAGS)
        few = {**READS, "ioengine": "psync", "numjobs": 2}
        with Load(disk, others, **few), Load(disk, [heavy], **GREEDY):
            check_ratio(disk, heavy, others, 1.0)


def check_ratio(disk: Disk, one: Cgroup, other: Cgroup | list[Cgroup], due: float) -> None:
    """Of the bytes that they get of the next two thousand requests."""
    groups = other if isinstance(other, list) else [other]
    serve(disk, [one, *groups], 400)
    before = served_bytes(one, disk), sum(served_bytes(group, disk) for group in groups)
    serve(disk, [one, *groups], 2000)
    own = served_bytes(one, disk) - before[0]
    others = sum(served_bytes(group, disk) for group in groups) - before[1]
    print(f"{own / PAGE:.0f} : {others / PAGE:.0f} requests, due {due:g} : 1")
    assert abs(own / others / due - 1) <= TOLERANCE, f"{own / others:.2f} : 1, due {due:g} : 1"


def serve(disk: Disk, groups: list[Cgroup], requests: int) -> None:
    def served() -> int:
        return sum(served_bytes(group, disk) for group in groups) // PAGE

    goal = served() + requests
    wait_until(lambda: served() >= goal, f"{requests} more requests are served")
