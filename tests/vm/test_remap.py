# SPDX-License-Identifier: GPL-2.0
"""Bios with the cgroup data of another disk, in a build that makes them: MQFAIR_TEST_REMAP."""

from __future__ import annotations

from fairlib import flows, mqfq
from guestlib import Cgroup, Guest, NullBlk, fio

guest = Guest(
    cpus=4,
    memory_mb=1024,
    append="slub_debug=FZP",
    needs_module=True,
    defines=("MQFAIR_TEST_REMAP",),
)


def test_a_request_of_another_disk_is_charged_to_the_root() -> None:
    """The flows of the first disk have no counters for most queues of the second one."""
    with (
        NullBlk("nullb5", poll_queues=0) as one,
        NullBlk("nullb6", poll_queues=1) as other,
        Cgroup("tenant") as group,
        mqfq(one),
    ):
        # Before the second disk has a scheduler, the bios of the first one have no other disk.
        fio(one, group, number_ios=8)
        with mqfq(other):
            fio(other, group, number_ios=64, numjobs=4)
            assert flows(other)["/"]["ios"] >= 4 * 64, flows(other)
        assert flows(one)["/tenant"]["ios"] == 8, flows(one)
