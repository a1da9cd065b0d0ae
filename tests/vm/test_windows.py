# SPDX-License-Identifier: GPL-2.0
"""Races in a build that holds their windows open: MQFAIR_TEST_WINDOWS."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from fairlib import Load, mqfq, tenants
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    Guest,
    NullBlk,
    read,
    skip_if_ended,
    slow,
    wait_until,
    write,
)

# The allocator checks freed memory, so a late write to it is a warning.
guest = Guest(
    cpus=2,
    memory_mb=1024,
    append="slub_debug=FZP",
    needs_module=True,
    defines=("MQFAIR_TEST_WINDOWS",),
)


_HELD_S = 20


def test_a_queue_that_was_stuck_a_moment_ago_is_not_forgotten() -> None:
    """In this build the queue that holds virtual time back always seems stuck, and never is. So the
    block layer has no reason to run it again."""
    pinned = {"cpus_allowed_policy": "shared"}
    with (
        NullBlk(irqmode=2, completion_nsec=1_000_000, submit_queues=2, hw_queue_depth=8) as disk,
        tenants(alone=100, many=100) as (alone, many),
        mqfq(disk, depth=2, threshold_kb=4),
        Load(disk, [many], iodepth=16, cpus_allowed=1, **pinned),
        Load(disk, [alone], ioengine="psync", cpus_allowed=0, **pinned) as load,
    ):
        load.goes_on(500)


def check_freed_memory() -> None:
    """Has the allocator compare all freed objects with the pattern that it left in them."""
    for path in Path("/sys/kernel/slab").glob("*kmalloc*/validate"):
        write(path, 1)


@slow
def test_a_removed_cgroup_does_not_touch_its_freed_parent() -> None:
    """The cgroup is active and removed when the scheduler leaves. A bio that io.max holds back
    keeps it. Its parent has been freed by then."""
    slow = {"irqmode": 2, "completion_nsec": 15_000_000_000}
    with NullBlk(**slow) as disk, Cgroup("parent/child") as child:
        disk.scheduler = "mqfq"
        once = ["dd", f"if={disk.path}", "of=/dev/null", "count=1", "iflag=direct"]
        reader = subprocess.Popen(child.command([*once, "bs=4k"]))
        wait_until(lambda: disk.in_flight() == 1, "a read is in the device")
        write(child.path / "io.max", f"{disk.number} rbps={(512 << 10) // _HELD_S}")
        began = time.monotonic()
        held = subprocess.Popen(child.command([*once, "bs=512k"]))
        wait_until(lambda: "blkdev_direct" in read(f"/proc/{held.pid}/stack"), "one is held back")
        for task in (reader, held):
            write(CGROUP_ROOT / "cgroup.procs", task.pid)
        child.path.rmdir()
        skip_if_ended(held, began, _HELD_S)
        assert disk.in_flight() == 1, "the read ended too early"
        # The switch waits for the read. The parent goes with it, the child later.
        disk.scheduler = "none"
        assert held.poll() is None, "the bio was not held back for so long"
        check_freed_memory()
        assert (reader.wait(), held.wait()) == (0, 0)
