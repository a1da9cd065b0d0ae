# SPDX-License-Identifier: GPL-2.0
"""The memory of a flow for each queue, in a build that makes it queue by queue.

A flow has the memory of the first CPUs at once, so a machine needs some twenty to make more. In
this build, MQFAIR_TEST_PIECES, a flow begins without any.
"""

from __future__ import annotations

from fairlib import Load, flows, scheduled, tenants
from guestlib import Guest, NullBlk, fio, of_each_scheduler

# The allocator checks freed memory, so a late write to it is a warning.
guest = Guest(
    cpus=4,
    memory_mb=1024,
    append="slub_debug=FZP",
    needs_module=True,
    defines=("MQFAIR_TEST_PIECES",),
)

TIMED = {"irqmode": 2, "completion_nsec": 1_000_000}
IOS = 500


@of_each_scheduler
def test_each_request_counts_in_the_queue_of_its_cpu(scheduler: str) -> None:
    """The drive takes two requests, so CPUs send and complete those of others."""
    with (
        NullBlk(**TIMED, submit_queues=2, hw_queue_depth=16) as disk,
        tenants(a=100, b=300) as groups,
        scheduled(disk, scheduler, depth=2),
    ):
        disk.set_queue("rq_affinity", 0)
        with Load(disk, [groups[1]], rw="randrw", numjobs=4, iodepth=4) as load:
            fio(disk, groups[0], rw="randrw", number_ios=IOS, numjobs=4, iodepth=4)
            load.goes_on()
        assert flows(disk)["/a"]["ios"] == 4 * IOS, flows(disk)


@of_each_scheduler
def test_cgroups_come_and_go(scheduler: str) -> None:
    with NullBlk(**TIMED, submit_queues=4) as disk, scheduled(disk, scheduler):
        for _ in range(5):
            with tenants(a=100, b=300) as groups, Load(disk, groups, numjobs=4) as load:
                load.goes_on()
