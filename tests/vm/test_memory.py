# SPDX-License-Identifier: GPL-2.0
"""Memory of idle cgroups on a wide machine: 10,000 of them on 64 queues take 64 MiB at most."""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path

from guestlib import CGROUP_ROOT, Guest, NullBlk, of_each_scheduler, only_on, write

_CPUS = 64
guest = Guest(cpus=1, memory_mb=512, append=f"possible_cpus={_CPUS}", needs_module=True)

CGROUPS = 200
MOST = 64 * 1024 / 10_000  # KiB


def slab_kib() -> int:
    """The memory of the kernel's objects that the kernel cannot take back."""
    found = re.search(r"SUnreclaim:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    assert found
    return int(found[1])


def read_in_each(disk: NullBlk, groups: list[Path]) -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    drive = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
    for group in groups:
        write(group / "cgroup.procs", os.getpid())
        assert os.preadv(drive, [page], 0) == mmap.PAGESIZE
    write(CGROUP_ROOT / "cgroup.procs", os.getpid())
    os.close(drive)


def grows_by_kib(disk: NullBlk, scheduler: str, groups: list[Path]) -> int:
    """What @scheduler takes for the disk, and for @groups, which have used the disk."""
    read_in_each(disk, groups)
    before = slab_kib()
    disk.scheduler = scheduler
    read_in_each(disk, groups)
    after = slab_kib()
    disk.scheduler = "none"
    return after - before


# From 6.9 on Linux counts the CPUs that the firmware names, and possible_cpus adds none.
@only_on("6.1")
@of_each_scheduler
def test_an_idle_cgroup_takes_a_page(scheduler: str) -> None:
    with NullBlk(submit_queues=1) as disk:
        write(CGROUP_ROOT / "cgroup.subtree_control", "+io")
        grows_by_kib(disk, scheduler, [])
        alone = grows_by_kib(disk, scheduler, [])
        groups = [CGROUP_ROOT / f"idle{i}" for i in range(CGROUPS)]
        for group in groups:
            group.mkdir()
        try:
            each = (grows_by_kib(disk, scheduler, groups) - alone) / CGROUPS
        finally:
            for group in groups:
                group.rmdir()
        print(f"figure: an idle cgroup takes {each:.2f} KiB, the disk {alone} KiB")
        # A test that measures nothing would pass.
        assert 1 < each <= MOST, f"a cgroup takes {each:.2f} KiB, at most {MOST:.2f} allowed"
