# SPDX-License-Identifier: GPL-2.0
"""Races in a build that holds their windows open: MQFAIR_TEST_WINDOWS."""

from __future__ import annotations

from fairlib import Load, mqfq, tenants
from guestlib import Guest, NullBlk

# The allocator checks freed memory, so a late write to it is a warning.
guest = Guest(
    cpus=2,
    memory_mb=1024,
    append="slub_debug=FZP",
    needs_module=True,
    defines=("MQFAIR_TEST_WINDOWS",),
)


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
