# SPDX-License-Identifier: GPL-2.0
"""Drivers of every kind below the scheduler: every request completes, and data stay intact."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from itertools import cycle, islice
from pathlib import Path

from fairlib import (
    SMALL_GUEST,
    Load,
    all_slots_are_free,
    done,
    flows,
    mqfq,
    ours,
    queues,
    scheduled,
    state,
    tenants,
)
from guestlib import (
    SCSI_DEBUG,
    Disk,
    Fio,
    NullBlk,
    Skip,
    cases,
    fio,
    nvme_disks,
    of_each_scheduler,
    run,
    scsi_disk,
    slow_for,
    wait_until,
    write,
)
from iouring import PolledReads

guest = SMALL_GUEST

VERIFIED = {
    "rw": "randwrite",
    "bsrange": "4k-64k",
    "iodepth": 16,
    "verify": "crc32c",
    "verify_fatal": 1,
    "size": "16m",
    "thread": 1,
}


def check_errors(result: dict[str, object]) -> None:
    for job in result["jobs"]:  # type: ignore[attr-defined]
        assert not job["error"], f"{job['jobname']}: error {job['error']}"


def test_drives_keep_their_data() -> None:
    """Two drives with two cgroups each, while schedulers switch; then under each scheduler."""
    drives = nvme_disks()
    with tenants(a=100, b=1000) as groups:
        jobs = [
            Fio(drive, group, offset=f"{64 * n}m", **VERIFIED)
            for drive in drives
            for n, group in enumerate(groups)
        ]
        for name in cycle([*ours(drives[0]), "none"]):
            for drive in drives:
                drive.scheduler = name
            time.sleep(0.05)
            if all(job.process.poll() is not None for job in jobs):
                break
        for job in jobs:
            check_errors(job.result())
        for name in ours(drives[0]):
            with contextlib.ExitStack() as stack:
                for drive in drives:
                    stack.enter_context(scheduled(drive, name))
                options = {**VERIFIED, "size": "4m"}
                for job in [Fio(drive, groups[0], **options) for drive in drives]:
                    check_errors(job.result())


MEMORY = {
    "blocking": {"blocking": 1},
    "shared tags": {"shared_tag_bitmap": 1, "hw_queue_depth": 8},
    "write cache": {"cache_size": 4, "discard": 1},
}


@cases(*MEMORY)
@slow_for("shared tags", "write cache")
def test_memory_devices_keep_their_data(name: str) -> None:
    options = {"memory_backed": 1, "size": 64, "submit_queues": 2, **MEMORY[name]}
    with NullBlk(**options) as disk, tenants(a=100, b=1000) as groups, mqfq(disk):
        jobs = [
            Fio(disk, group, offset=f"{32 * n}m", fsync=8, **VERIFIED)
            for n, group in enumerate(groups)
        ]
        for job in jobs:
            check_errors(job.result())


def test_flushes_and_discards_among_reads_and_writes() -> None:
    """On a drive with a write cache. Discards have no data but are charged, and they complete."""
    drive = nvme_disks()[0]
    with tenants(flushes=100, discards=500, reads=1000) as groups, mqfq(drive, depth=8):
        flushes, discards, reads = groups
        with (
            Load(drive, [flushes], rw="randwrite", fsync=4, iodepth=4),
            Load(drive, [discards], rw="trimwrite", bs="64k", iodepth=4),
            Load(drive, [reads], rw="randread") as load,
        ):
            for _ in range(3):
                run("blkdiscard", "--offset", "256M", "--length", "64M", drive.path)
                load.goes_on()
            write(drive.sysfs / "queue/nr_requests", 16)
            load.goes_on()


def test_a_driver_that_is_busy_at_times() -> None:
    """Requests that the driver refuses wait in the block layer's dispatch list."""
    with (
        scsi_disk(ndelay=100_000, submit_queues=2, max_queue=8, every_nth=20) as disk,
        tenants(a=100, b=1000) as groups,
    ):
        write(SCSI_DEBUG / "opts", 0x8000)
        with mqfq(disk), Load(disk, groups, rw="randrw") as load:
            load.goes_on(500)


def shares_tags(disk: Disk) -> bool:
    """Whether @disk shares its driver tags 5 s later, by the block layer."""
    with contextlib.suppress(AssertionError):
        wait_until(lambda: "SHARED" not in disk.debugfs("hctx0/flags"), "not shared", 5.0)
        return False
    return True


def test_the_depth_of_a_drive_that_no_longer_shares_its_tags() -> None:
    """A second disk of the same host takes tags that in_flight does not count: 0 stands for it."""
    with scsi_disk(max_luns=2, submit_queues=2, max_queue=8) as disk, mqfq(disk):
        wait_until(lambda: "hw_depth=0" in disk.debugfs("sched/queues"), "tags are shared")
        (second,) = (path for path in Path("/sys/block").glob("sd*") if path.name != disk.name)
        write(second / "device/delete", 1)
        if shares_tags(disk):
            raise Skip("this kernel's SCSI host has a queue of its own, which shares the tags")
        wait_until(lambda: "hw_depth=8" in disk.debugfs("sched/queues"), "tags are its own")
        check_errors(fio(disk, number_ios=100))


@of_each_scheduler
@slow_for("ifq", "kyber-fair", "wdt", "hwabc", "drr", "sfq")
def test_requests_that_time_out_are_requeued(scheduler: str) -> None:
    with (
        scsi_disk(ndelay=100_000, submit_queues=2, every_nth=-150) as disk,
        tenants(a=100, b=1000) as groups,
    ):
        write(disk.sysfs / "device/timeout", 1)
        with scheduled(disk, scheduler):
            jobs = [Fio(disk, group, number_ios=400, rw="randrw") for group in groups]
            wait_until(lambda: done(groups[0], disk) > 20, "there is load")
            write(SCSI_DEBUG / "every_nth", 150)
            write(SCSI_DEBUG / "opts", 4)
            for job in jobs:
                check_errors(job.result())


def test_polled_requests_that_are_not_reaped_keep_no_slots() -> None:
    """Their leases end, so all of them enter the drive, and others have its slots."""
    with (
        NullBlk(poll_queues=1, irqmode=2, completion_nsec=1_000_000, hw_queue_depth=64) as disk,
        tenants(sleeper=1000, reader=100) as (sleeper, reader),
        mqfq(disk, depth=4),
    ):
        child = os.fork()
        if not child:
            write(sleeper.path / "cgroup.procs", 0)
            taken = PolledReads(disk.path, 32).submit()
            os.kill(os.getpid(), signal.SIGSTOP if taken == 32 else signal.SIGABRT)
        _, status = os.waitpid(child, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"submitting ended with {status}"
        wait_until(lambda: disk.in_flight() == 32, "the polled reads are in the device")
        wait_until(lambda: all_slots_are_free(state(disk)), "their slots are free")
        check_errors(fio(disk, reader, iodepth=16, number_ios=500))
        assert all_slots_are_free(found := state(disk)), found
        left = disk.in_flight()
        print(flows(disk), *queues(disk), sep="\n")
        assert left == 32, f"{left} polled reads are left of 32"
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_polled_reads_that_are_reaped() -> None:
    with (
        NullBlk(poll_queues=1, hw_queue_depth=64) as disk,
        tenants(a=100, b=1000) as groups,
        mqfq(disk, depth=4),
        Load(disk, groups, ioengine="io_uring", hipri=1, iodepth=8) as load,
    ):
        for name in islice(cycle(["none", "mqfq"]), 10):
            disk.scheduler = name
        load.goes_on()


def test_a_drive_is_removed_under_load_and_comes_back() -> None:
    drive = nvme_disks()[1]
    with tenants(a=100, b=1000) as groups:
        drive.scheduler = "mqfq"
        drive.set_tunable("depth", 4)
        with Load(drive, groups, disk_leaves=True, rw="randrw"):
            write(drive.sysfs / "device/device/remove", 1)
            wait_until(lambda: not drive.sysfs.exists(), "the drive is gone")
        write("/sys/bus/pci/rescan", 1)
        wait_until((drive.sysfs / "queue/scheduler").exists, "the drive is back")
        with mqfq(drive):
            check_errors(fio(drive, groups[0], number_ios=100))
