# SPDX-License-Identifier: GPL-2.0
"""Changes that are repeated, so that kmemleak finds an object that one of them loses.

The kernel keeps arrays of free objects, and does not clear an entry when it takes its object. So
kmemleak takes the last objects for used ones: it did not find two lost weights. It finds some of
many. The guest scans after its last test, and an object that the module lost fails `leaks.leaks`.

A reference that the module does not drop keeps a cgroup after its removal, on any kernel. The
kernel counts these cgroups.
"""

from __future__ import annotations

import subprocess
import sys

from fairlib import SMALL_GUEST, TIMED, scheduled
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    Fio,
    NullBlk,
    cases,
    only_on,
    read,
    run,
    wait_until,
    write,
)

guest = SMALL_GUEST

DEBUG = only_on("uml-debug")
WRITES = 300
CGROUPS = 40
SWITCHES = 20
DISKS = 10
SWAPPERS = 4
MEMORY_MAX, ARRAY = 24 << 20, 40 << 20
# It writes to all pages of an array that does not fit into its memory, until it is killed.
SWAPPER = f"""
import mmap
array = mmap.mmap(-1, {ARRAY})
while True:
    for offset in range(0, {ARRAY}, 4096):
        array[offset] ^= 1
"""
# The buffers of the reads are swapped out, too. A submission faults them in, and so writes others
# to the swap with the requests that the kernel took for the batch.
BATCHES = {
    "ioengine": "io_uring",
    "rw": "randread",
    "bs": "64k",
    "iodepth": 128,
    "iodepth_batch_submit": 32,
    "iodepth_batch_complete_min": 32,
    "number_ios": 1500,
}


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


def removed_cgroups() -> int:
    """Those that something still refers to, other than pages of files."""
    write("/proc/sys/vm/drop_caches", 3)
    (count,) = (
        int(line.split()[1])
        for line in read(CGROUP_ROOT / "cgroup.stat").splitlines()
        if line.startswith("nr_dying_descendants ")
    )
    return count


def test_no_reference_to_a_cgroup_that_swapped_is_left() -> None:
    before = removed_cgroups()
    with NullBlk(size=256, memory_backed=1, **TIMED) as disk, scheduled(disk, "mqfq"):
        run("mkswap", disk.path)
        run("swapon", disk.path)
        try:
            for _ in range(SWAPPERS):
                with Cgroup("brief") as group:
                    write(group.path / "memory.max", MEMORY_MAX)
                    swapper = group.command([sys.executable, "-c", SWAPPER])
                    with subprocess.Popen(swapper) as process:
                        Fio(disk, group, **BATCHES).result()
                        process.kill()
                    print(f"figure: {group.io_stat(disk)}")
        finally:
            run("swapoff", disk.path)
        wait_until(lambda: removed_cgroups() <= before, "the kernel has freed the cgroups")
