# SPDX-License-Identifier: GPL-2.0
"""Metadata and swap of a light tenant: it gets no more than its bound, and does not starve.

The time is counted. Requests are as large as a page, and the device serves so many a second that
the emulated processor is not the limit.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fairlib import COUNTED_GUEST, Load, done, scheduled, tenants
from guestlib import Cgroup, NullBlk, of_each_scheduler, read, run, slow_for, write

guest = COUNTED_GUEST

SLOTS = 16
DEVICE = {
    "irqmode": 2,
    "completion_nsec": 8_000_000,
    "submit_queues": 1,
    "hw_queue_depth": SLOTS,
    "memory_backed": 1,
    "size": 192,
}
IOPS = SLOTS * 1_000_000_000 // DEVICE["completion_nsec"]
LIGHT, HEAVY, ROOT = 10, 1000, 100
READS = {"rw": "randread", "bs": "4k", "norandommap": 1, "iodepth": 4 * SLOTS}
# The heavy tenant has requests waiting all the time.
TAGS = 8 * SLOTS

MIB = 1 << 20
MEMORY_MAX = 24 * MIB
ARRAY = 40 * MIB
FAULTS = 100
# A page is due every 50 ms. One access may need dozens of pages, or wait for the write of its page,
# which the root has adopted. Measured: up to 3.75 s under mqfq, 3.08 s under drr, 1.28 s under ifq,
# 0.10 s under none.
LONGEST_FAULT_S = 8.0

DIRECTORIES = 5000
READERS = 2 * SLOTS
MEASURED_S = 5.0
# The shares of the tenant and of the root are 10 %. Measured: 2.4 to 9.9 %.
METADATA_MOST = 0.15

SWAPPER = f"""
import mmap, random, sys, time
array = mmap.mmap(-1, {ARRAY})
pages = {ARRAY} // 4096
for page in range(pages):
    array[4096 * page] = 1
print("ready", flush=True)
sys.stdin.readline()
longest = 0.0
chance = random.Random(1)
for number in range({FAULTS}):
    before = time.monotonic()
    array[4096 * chance.randrange(pages)] = 2
    longest = max(longest, time.monotonic() - before)
print(longest, flush=True)
"""

READER = """
import os, sys, threading
names = sorted(os.listdir(sys.argv[1]))
readers = int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
def read(first):
    for name in names[first::readers]:
        os.listdir(os.path.join(sys.argv[1], name))
threads = [threading.Thread(target=read, args=(first,)) for first in range(readers)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@contextlib.contextmanager
def program(group: Cgroup, text: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Runs Python @text in @group. It has printed "ready", and waits for a line."""
    argv = [sys.executable, "-c", text, *map(str, arguments)]
    with subprocess.Popen(
        group.command(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@contextlib.contextmanager
def swap_on(disk: NullBlk, group: Cgroup) -> Iterator[None]:
    """@disk is the swap of the guest, and @group has little memory."""
    write("/proc/sys/vm/page-cluster", 0)
    run("mkswap", disk.path)
    run("swapon", disk.path)
    try:
        write(group.path / "memory.max", MEMORY_MAX)
        yield
    finally:
        run("swapoff", disk.path)


@of_each_scheduler
@slow_for("ifq", "kyber-fair", "wdt", "hwabc", "drr")
def test_pages_come_in_while_others_go_out(scheduler: str) -> None:
    """The pages that a tenant swaps out do not keep those from it that it waits for."""
    with (
        NullBlk(**DEVICE) as disk,
        tenants(light=LIGHT, heavy=HEAVY) as (light, heavy),
        scheduled(disk, scheduler),
        swap_on(disk, light),
    ):
        disk.set_queue("nr_requests", TAGS)
        with program(light, SWAPPER) as process, Load(disk, [heavy], **READS) as load:
            load.goes_on(10 * TAGS)
            before = light.io_stat(disk)
            go_on(process)
            assert process.stdout
            longest = float(process.stdout.readline())
            after = light.io_stat(disk)
    pages = {key: after[key] - before[key] for key in ("rios", "wios")}
    print(f"longest fault {longest:.3f} s, {pages}")
    assert pages["rios"] > FAULTS / 5, "few pages came in"
    assert longest < LONGEST_FAULT_S


@contextlib.contextmanager
def directories(disk: NullBlk) -> Iterator[Path]:
    """A file system with many directories that are not in the cache."""
    mount = Path("/run/urgent")
    mount.mkdir(exist_ok=True)
    run("mkfs.ext4", "-q", "-F", "-b", 4096, "-O", "^has_journal", "-N", 2 * DIRECTORIES, disk.path)
    run("mount", disk.path, mount)
    try:
        for number in range(DIRECTORIES):
            (mount / str(number)).mkdir()
        run("umount", mount)
        run("mount", disk.path, mount)
        yield mount
    finally:
        run("umount", mount)


def read_requests(disk: NullBlk) -> int:
    """The read requests that @disk has completed.

    io.stat counts bios, and read-ahead of metadata has several bios in a request.
    """
    return int(read(f"/sys/block/{disk.name}/stat").split()[0])


@of_each_scheduler
@slow_for("ifq", "kyber-fair", "wdt", "hwabc", "drr")
def test_metadata_gets_no_more_than_the_root(scheduler: str) -> None:
    """A tenant that reads cold metadata with many threads leaves the device to a heavy tenant."""
    with (
        NullBlk(**DEVICE) as disk,
        tenants(light=LIGHT, heavy=HEAVY) as (light, heavy),
        directories(disk) as mount,
        scheduled(disk, scheduler),
    ):
        disk.set_queue("nr_requests", TAGS)
        with program(light, READER, mount, READERS) as process, Load(disk, [heavy], **READS):
            go_on(process)
            time.sleep(1)
            before = read_requests(disk), done(heavy, disk)
            time.sleep(MEASURED_S)
            total = read_requests(disk) - before[0]
            metadata = total - (done(heavy, disk) - before[1])
            assert process.poll() is None, "all metadata was read before the end"
    print(f"{metadata} of {total} requests, {total / MEASURED_S:.0f} of {IOPS} a second")
    assert metadata > READERS, "little metadata was read"
    assert metadata < METADATA_MOST * total
