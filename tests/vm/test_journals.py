# SPDX-License-Identifier: GPL-2.0
"""Buffered writers with fsync, and the journals that all tenants of a file system share.

The time is counted, as in test_tags.py.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from fairlib import (
    COUNTED_GUEST,
    EIGHT_SLOTS,
    SLOTS,
    TAGS,
    Load,
    check_ratio,
    mounted,
    scheduled,
    tenants,
)
from guestlib import Cgroup, NullBlk, cases, fio, of_each_scheduler, run, slow

guest = COUNTED_GUEST

DEVICE = {**EIGHT_SLOTS, "memory_backed": 1, "size": 512}
KINDS = ("ext4", "xfs")
TASKS = 24
FILE_BYTES = 64 << 10
# Each task has a file of its own, so that no task waits for the lock of another one's file.
WRITERS = {
    "filename": None,
    "filename_format": "$jobname.$jobnum",
    "rw": "randwrite",
    "bs": "4k",
    "size": FILE_BYTES,
    "overwrite": 1,
    "norandommap": 1,
    "ioengine": "psync",
    "direct": 0,
    "numjobs": TASKS,
}


def make_files(group: Cgroup, mount: Path) -> None:
    """The files of its tasks. Otherwise a tenant's weight would decide when its tasks begin."""
    for number in range(TASKS):
        (mount / f"{group.name}.{number}").write_bytes(bytes(FILE_BYTES))
    run("sync")


@cases(*KINDS)
@slow
def test_weights_of_buffered_writers(kind: str) -> None:
    """Each task writes pages through the cache, and waits for each with fdatasync."""
    with (
        NullBlk(**DEVICE) as disk,
        tenants(heavy=800, light=100) as (heavy, light),
        scheduled(disk, "mqfq"),
        mounted(disk, kind) as mount,
        contextlib.ExitStack() as loads,
    ):
        disk.set_queue("nr_requests", TAGS)
        for group in heavy, light:
            make_files(group, mount)
            options = {**WRITERS, "fdatasync": 1, "directory": mount, "name": group.name}
            loads.enter_context(Load(mount, [group], device=disk, **options))
        check_ratio(disk, heavy, light, 8)


# Measured: at most 60 ms on ext4, and 109 ms on xfs under mqfq. 128 and 279 ms under none.
LONGEST_FSYNC_S = 0.2
# Each fsync needs a commit of the journal, because the file grows.
APPENDS = {**WRITERS, "rw": "write", "overwrite": 0, "size": "1m", "fsync": 1}


def storms(mount: Path) -> dict[str, dict[str, object]]:
    """What a light tenant does beside the heavy one. It has more tasks than the drive has slots."""
    reads = {"rw": "randread", "bs": "4k", "norandommap": 1, "iodepth": 4 * SLOTS}
    writes = {**WRITERS, "size": "1m", "fdatasync": 16}
    return {
        "direct reads": reads,
        "buffered writes": {**writes, "directory": mount, "name": "writes"},
        "fsyncs": {**APPENDS, "directory": mount, "name": "fsyncs"},
    }


@of_each_scheduler
@slow
def test_no_commit_of_a_heavy_tenant_waits_for_a_light_one(scheduler: str) -> None:
    for kind in KINDS:
        with (
            NullBlk(**DEVICE) as disk,
            tenants(light=10, heavy=1000) as (light, heavy),
            scheduled(disk, scheduler),
            mounted(disk, kind) as mount,
        ):
            disk.set_queue("nr_requests", TAGS)
            for storm, options in storms(mount).items():
                appends = {**APPENDS, "numjobs": 4, "directory": mount, "name": f"beside-{storm}"}
                with Load(disk, [light], **options):
                    result = fio(disk, heavy, thread=1, runtime=3, **appends)
                (job,) = result["jobs"]
                longest_s = job["sync"]["lat_ns"]["max"] / 1e9
                print(f"{kind}, {storm}: {job['sync']['total_ios']} commits, {longest_s:.3f} s")
                assert longest_s < LONGEST_FSYNC_S, f"{kind}, {storm}: {longest_s:.3f} s"
