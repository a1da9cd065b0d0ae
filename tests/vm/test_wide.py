# SPDX-License-Identifier: GPL-2.0
"""Four processors on one, two and four hardware queues: more contention and more migration."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

from fairlib import EIGHT_SLOTS, WIDE_GUEST, Load, flows, mqfq, queues, tenants
from guestlib import (
    Disk,
    Fio,
    NullBlk,
    Skip,
    cases,
    is_user_mode,
    read,
    slow_for,
    time_limit,
    wait_until,
    write,
)

guest = WIDE_GUEST

LOAD = {"rw": "randrw", "bsrange": "512-16k", "numjobs": 4, "iodepth": 16}
TIMED = {"irqmode": 2, "completion_nsec": 2_000_000}


@slow_for((1, 16), (4, 4))
@cases((1, 16), (2, 8), (4, 4))
def test_all_changes_under_load(hardware_queues: int, slots: int) -> None:
    options = {**TIMED, "submit_queues": hardware_queues, "hw_queue_depth": slots}
    with (
        NullBlk(**options) as disk,
        tenants(a=100, b=300, c=1000) as groups,
        mqfq(disk, depth=6, threshold_kb=8),
        Load(disk, groups, **LOAD) as load,
    ):
        for name in islice(cycle(["none", "mqfq"]), 20):
            disk.scheduler = name
        for size in (4, 64, 7):
            disk.set_queue("nr_requests", size)
            load.goes_on()
        # The processors of user-mode Linux cannot go offline.
        for cpu in () if is_user_mode() else (3, 1, 2):
            online = Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
            write(online, 0)
            load.goes_on()
            write(online, 1)
        load.goes_on()


@time_limit(60)
def test_a_waiter_behind_a_migrated_one_is_not_forgotten() -> None:
    """A migrated task is woken for a free tag, and then takes one of another CPU's queue. The
    waiters behind it must be woken nevertheless."""
    with (
        NullBlk(irqmode=2, completion_nsec=400_000_000, submit_queues=4, hw_queue_depth=4) as disk,
        tenants(migrated=100, **{f"other{number}": 100 for number in range(5)}) as (
            migrated,
            *others,
        ),
        mqfq(disk, depth=16),
    ):
        # With so few tags each tenant's share of them is more than there are.
        disk.set_queue("nr_requests", 4)
        pinned = {"ioengine": "psync", "cpus_allowed": 3}
        with Load(disk, others, **pinned), Load(disk, [migrated], **pinned, numjobs=8) as load:
            tasks = list(Path(f"/proc/{load.jobs[0].process.pid}/task").iterdir())

            def sleeping_in(function: str) -> int:
                return sum(function in read(task / "stack") for task in tasks)

            wait_until(lambda: sleeping_in("limit_admit_slow") > 4, "many tasks wait for a tag")
            for task in tasks:
                os.sched_setaffinity(int(task.name), [0])
            load.goes_on(4)
            # The switch waits for all tasks that wait for a tag.
            disk.scheduler = "none"
            disk.scheduler = "mqfq"


@time_limit(120)
def test_a_cpu_goes_offline_while_its_requests_are_delayed() -> None:
    """It waits for the requests of its hardware queue. By the weights they would wait for hours."""
    slow = {"irqmode": 2, "completion_nsec": 20_000_000, "submit_queues": 4, "hw_queue_depth": 16}
    online = Path("/sys/devices/system/cpu/cpu3/online")
    with (
        NullBlk(**slow) as disk,
        tenants(heavy=10000, light=1) as (heavy, light),
        mqfq(disk, depth=4, threshold_kb=4),
    ):
        with Load(disk, [heavy], cpus_allowed=0) as load:
            job = Fio(disk, light, cpus_allowed=3, iodepth=32, number_ios=32, thread=1)

            def delayed() -> int:
                return flows(disk).get("/light", {}).get("queued", 0)

            # The first half of a map's 32 tags is free for every tenant.
            wait_until(lambda: delayed() >= 15, "they wait")
            load.goes_on(20)
            left = delayed()
            assert left >= 15, f"{left} requests are delayed"
            write(online, 0)
            load.goes_on()
            write(online, 1)
        job.result()


def test_the_queue_of_each_processor_is_served() -> None:
    with (
        NullBlk(**EIGHT_SLOTS) as disk,
        tenants(a=100, b=100) as groups,
        mqfq(disk, depth=4),
    ):
        pinned = {"numjobs": 4, "cpus_allowed": "0-3", "cpus_allowed_policy": "split"}
        with Load(disk, groups, iodepth=4, **pinned):
            wait_until(lambda: min(dispatched(disk)) >= 50, "each processor has 50 requests")
        print(dispatched(disk))


def dispatched(disk: Disk) -> list[int]:
    """The requests that the queues of each processor have dispatched."""
    found: dict[str, int] = {}
    for line in queues(disk):
        count = dict(pair.split("=") for pair in line.split() if "=" in pair)
        found[count["cpu"]] = found.get(count["cpu"], 0) + int(count["dispatched"])
    return list(found.values())


KPROBES = Path("/sys/kernel/tracing")


@contextlib.contextmanager
def calls_of(function: str) -> Iterator[Callable[[], int]]:
    """Counts the calls of a function of the module during a block. Skips a test on a kernel that
    has no kprobes."""
    events, enable = KPROBES / "kprobe_events", KPROBES / "events/kprobes/counted/enable"
    if not events.exists():
        raise Skip("this kernel has no kprobes")
    write(events, f"p:counted mqfair:{function}")
    try:
        write(enable, 1)
        yield lambda: int(read(KPROBES / "kprobe_profile").split()[1])
        write(enable, 0)
    finally:
        write(events, "-:counted")


def test_a_full_hardware_queue_blocks_no_queue_twice() -> None:
    """Each block takes a queue's lock. A queue that was not asked since its last one needs none."""
    with (
        NullBlk(irqmode=2, completion_nsec=2_000_000, submit_queues=1, hw_queue_depth=2) as disk,
        tenants(a=100, b=300) as groups,
        mqfq(disk, depth=4),
        Load(
            disk, groups, numjobs=4, iodepth=8, cpus_allowed="0-3", cpus_allowed_policy="split"
        ) as load,
        calls_of("mqfq_block") as blocks,
    ):
        before = load.done()
        load.goes_on(400)
        served, blocked = load.done() - before, blocks()
        print(f"{blocked} blocks for {served} requests")
        assert blocked, "the hardware queue was never full"
        assert blocked < 2 * served, f"{blocked} blocks for {served} requests"
