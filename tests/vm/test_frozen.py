# SPDX-License-Identifier: GPL-2.0
"""Cgroups come and go, and their files answer, while a disk is frozen.

A task that waits while it holds a file of a cgroup makes the removal of the cgroup wait. That makes
every other cgroup wait. The time is counted, so a busy machine does not lengthen an operation.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial

from fairlib import COUNTED_GUEST, flows, mqfq, tenants
from guestlib import (
    Cgroup,
    Disk,
    Fio,
    NullBlk,
    every_kernel,
    fio,
    kill_all,
    read,
    slow,
    wait_until,
    write,
)

guest = COUNTED_GUEST

FROZEN_S = 20
LONGEST_S = 0.1
ROUNDS = 10


@contextlib.contextmanager
def frozen_disk(user: Cgroup) -> Iterator[tuple[Disk, subprocess.Popen[bytes]]]:
    """A disk that is frozen for 20 s after @user has read, and the task that waits for it."""
    slow = {"irqmode": 2, "completion_nsec": 1_000_000_000}
    with NullBlk("nullb5", **slow, submit_queues=1, hw_queue_depth=1) as disk:
        disk.scheduler = "mqfq"
        disk.set_queue("nr_requests", 32)
        fio(disk, user, number_ios=1, iodepth=1)
        reader = Fio(disk, iodepth=FROZEN_S + 2, number_ios=FROZEN_S + 2)
        wait_until(lambda: flows(disk).get("/", {}).get("queued", 0) > FROZEN_S - 2, "reads wait")
        switch = subprocess.Popen(["sh", "-c", f"echo none > {disk.sysfs}/queue/scheduler"])
        wait_until(lambda: "freeze" in read(f"/proc/{switch.pid}/stack"), "the disk is frozen")
        yield disk, switch
        assert switch.wait() == 0
        reader.result()


class Stopwatch:
    """The longest time of each named operation."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {}

    def __call__(self, name: str, operation: Callable[[], object]) -> None:
        before = time.monotonic()
        operation()
        took = time.monotonic() - before
        self.longest[name] = max(took, self.longest.get(name, 0.0))


@every_kernel
@slow
def test_cgroups_come_and_go_while_a_disk_is_frozen() -> None:
    timed = Stopwatch()
    with (
        NullBlk("nullb6") as other,
        tenants(writer=100, old=100) as (writer, old),
        mqfq(other),
        frozen_disk(old) as (disk, switch),
    ):
        weight, goal = writer.path / "io.mqfair.weight", writer.path / "io.mqfair.latency"
        for number in range(ROUNDS):
            brief = Cgroup(f"brief{number}")
            timed("write a weight", partial(write, weight, f"{disk.number} {200 + number}"))
            timed("read weights", partial(read, weight))
            timed("write a goal", partial(write, goal, f"{disk.number} target=5ms"))
            timed("read goals", partial(read, goal))
            timed("create a cgroup", brief.path.mkdir)
            timed("weigh it", partial(write, brief.path / "io.mqfair.weight", 500))
            fio(other, brief, number_ios=8, iodepth=1)
            kill_all(brief.path)
            timed("remove it", brief.path.rmdir)
            time.sleep(0.2)
        timed("remove a cgroup that used the disk", old.path.rmdir)
        assert switch.poll() is None, "the disk was not frozen any more"
        assert f"{disk.number} {200 + ROUNDS - 1}" in writer.weight
        assert f"{disk.number} target=5ms" in read(goal)
    for name, took in timed.longest.items():
        print(f"{name}: {1000 * took:.1f} ms")
    late = {name: took for name, took in timed.longest.items() if took >= LONGEST_S}
    assert not late, f"longer than {1000 * LONGEST_S:.0f} ms: {late}"
