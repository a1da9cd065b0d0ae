# SPDX-License-Identifier: GPL-2.0
"""Changes that are repeated, so that kmemleak finds an object that one of them loses.

The kernel keeps arrays of free objects, and does not clear an entry when it takes its object. So
kmemleak takes the last objects for used ones: it did not find two lost weights. It finds some of
many. The guest scans after its last test, and an object that the module lost fails `leaks.leaks`.
"""

from __future__ import annotations

from fairlib import SMALL_GUEST, TIMED, scheduled
from guestlib import Cgroup, NullBlk, cases, only_on, run, write

guest = SMALL_GUEST

DEBUG = only_on("uml-debug")
WRITES = 300
CGROUPS = 40
SWITCHES = 20
DISKS = 10


def read_once(disk: NullBlk, group: Cgroup) -> None:
    """One direct read of @disk by a task of @group, much quicker than fio."""
    dd = ["dd", f"if={disk.path}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"]
    run(*group.command(dd))


@DEBUG
@cases("io.mqfair.weight", "io.mqfair.latency")
def test_settings_of_a_disk(name: str) -> None:
    """Each write replaces the setting before it."""
    with NullBlk(**TIMED) as disk, Cgroup("a") as group, scheduled(disk, "mqfq"):
        for number in range(1, WRITES):
            value = f"target={number}us" if name.endswith("latency") else number
            write(group.path / name, f"{disk.number} {value}")


@DEBUG
def test_cgroups_that_read() -> None:
    with NullBlk(**TIMED) as disk, scheduled(disk, "mqfq"):
        for _ in range(CGROUPS):
            with Cgroup("brief") as group:
                read_once(disk, group)


@DEBUG
@cases("mqfq", "wdt")
def test_switches_and_changes_of_tags(scheduler: str) -> None:
    with NullBlk(**TIMED) as disk, Cgroup("a") as group:
        for number in range(SWITCHES):
            with scheduled(disk, scheduler):
                read_once(disk, group)
                disk.set_queue("nr_requests", 64 + number)


@DEBUG
def test_disks() -> None:
    with Cgroup("a") as group:
        for _ in range(DISKS):
            with NullBlk(**TIMED) as disk, scheduled(disk, "mqfq"):
                write(group.path / "io.mqfair.weight", f"{disk.number} 7")
                read_once(disk, group)
