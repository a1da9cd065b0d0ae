# SPDX-License-Identifier: GPL-2.0
"""File systems: their journals, and the cgroup that writeback is charged to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, Load, done, mounted, mqfq, sent_bytes, served_bytes, tenants
from guestlib import (
    MIB,
    Cgroup,
    Disk,
    cases,
    fio,
    nvme_disks,
    run,
    slow_for,
    wait_until,
)

guest = SMALL_GUEST

CHECK = {"ext4": ("e2fsck", "-fn"), "xfs": ("xfs_repair", "-n")}


@contextlib.contextmanager
def checked(drive: Disk, kind: str) -> Iterator[Path]:
    """Mounts a new file system on @drive for the time of a block, and checks it afterwards."""
    with mounted(drive, kind) as mount:
        yield mount
    run(*CHECK[kind], drive.path)


@cases(*CHECK)
@slow_for("xfs")
def test_fsyncs_beside_heavy_direct_writes(kind: str) -> None:
    """Both tenants make progress, and the file system is consistent."""
    drive = nvme_disks()[0]
    with (
        tenants(light=1, heavy=1000) as (light, heavy),
        mqfq(drive, depth=4),
        checked(drive, kind) as mount,
        Load(mount / "heavy", [heavy], device=drive, bs="16k", **BIG) as load,
    ):
        check_no_error(fio(mount / "light", light, number_ios=10, **FSYNCS))
        load.goes_on()


BIG = {"size": "64m", "rw": "randwrite", "fallocate": "none"}
FSYNCS = {"size": "4m", "ioengine": "psync", "direct": 0, "rw": "randwrite", "fsync": 1}


def check_no_error(result: dict[str, object]) -> None:
    for job in result["jobs"]:  # type: ignore[attr-defined]
        assert not job["error"], f"{job['jobname']}: error {job['error']}"


@cases(*CHECK)
def test_writeback_is_charged_to_the_writer(kind: str) -> None:
    """Pages that kernel threads write back are charged to the cgroup that made them dirty."""
    drive = nvme_disks()[0]
    sizes = {"little": 6 * MIB, "much": 24 * MIB}
    with (
        tenants(little=100, much=100) as groups,
        mqfq(drive),
        checked(drive, kind) as mount,
    ):
        before = {group.name: sent_bytes(group, drive) for group in groups}
        for group in groups:
            write_buffered(group, mount / group.name, sizes[group.name])
        run("sync")
        wait_until(lambda: drive.in_flight() == 0, "all is written")
        for group in groups:
            sent = sent_bytes(group, drive) - before[group.name]
            print(f"{group.name}: {sizes[group.name]} bytes, {sent} sent")
            print(f"{done(group, drive)} requests, {served_bytes(group, drive)} bytes served")
            assert 0.98 < sent / sizes[group.name] < 1.05, f"{group.name}: {sent} bytes"
            assert served_bytes(group, drive) >= sent, f"{group.name}: not all was charged"


def write_buffered(group: Cgroup, path: Path, size: int) -> None:
    """Writes a file through the page cache and leaves the pages dirty."""
    run(*group.command(["dd", "if=/dev/zero", f"of={path}", "bs=64k", f"count={size >> 16}"]))
