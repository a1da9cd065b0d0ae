# SPDX-License-Identifier: GPL-2.0
"""Disks of device-mapper, md, loop and nvmet above other disks."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlib import mounted
from guestlib import Disk, run, write
from nvmet import connected

_KEY = "00" * 64
# The target of dm-crypt over the disk {under}.
CRYPT = f"crypt aes-xts-plain64 {_KEY} 0 {{under}} 0"
# The same without the thread that issues writes.
CRYPT_DIRECT = f"{CRYPT} 1 no_write_workqueue"
WITH_PARITY = ("raid4", "raid5", "raid6")
# Two copies beside each other in raid10, and the parity of raid5 moves to the left.
_LAYOUTS = {"raid1": 0, "raid10": 258, "raid4": 0, "raid5": 2, "raid6": 2}


@contextlib.contextmanager
def mapped(target: str, sectors: int) -> Iterator[Disk]:
    """A device-mapper disk of @sectors with this @target, the only one of the guest. A disk of
    dm-crypt has a UUID as by cryptsetup."""
    uuid = ("--uuid", "CRYPT-PLAIN-stacked") if target.startswith("crypt") else ()
    table = f"0 {sectors} {target}"
    run("dmsetup", "create", "--noudevsync", *uuid, "stacked", "--table", table)
    try:
        yield Disk("dm-0")
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "stacked")


@contextlib.contextmanager
def array(level: str, disks: Sequence[Disk], sectors: int) -> Iterator[Disk]:
    """An array of md over the first @sectors of @disks, which its files in sysfs assemble. Copies
    and parity are not synchronised first."""
    run("modprobe", "raid456" if level in WITH_PARITY else level)
    # Linux 7.2 keeps the name of an array that has ended.
    names = (f"md_{number}" for number in itertools.count())
    name = next(one for one in names if not Path("/sys/block", one).exists())
    write("/sys/module/md_mod/parameters/new_array", name)
    md = Path("/sys/block", name, "md")
    settings = {
        "metadata_version": "none",
        "level": level,
        "raid_disks": len(disks),
        "chunk_size": 65536,
    }
    if level in _LAYOUTS:
        settings |= {"layout": _LAYOUTS[level], "component_size": sectors, "resync_start": "none"}
    try:
        for file, value in settings.items():
            write(md / file, value)
        for slot, disk in enumerate(disks):
            write(md / "new_dev", disk.number)
            write(md / f"dev-{disk.name}/size", sectors)
            write(md / f"dev-{disk.name}/slot", slot)
        write(md / "array_state", "active")
        yield Disk(name)
    finally:
        write(md / "array_state", "clear")


@contextlib.contextmanager
def loop(disk: Disk, *, direct: bool) -> Iterator[Disk]:
    """A loop device over a file on ext4 on @disk. The root wrote the file, and so owns it."""
    run("modprobe", "loop")
    with mounted(disk, "ext4") as mount:
        file = mount / "image"
        file.write_bytes(bytes(16 << 20))
        run("sync")
        words = ("--direct-io=on",) if direct else ()
        name = run("losetup", "--find", "--show", *words, file).stdout.strip()
        try:
            yield Disk(name)
        finally:
            run("losetup", "--detach", name)


def multipath(paths: Sequence[Disk], sectors: int) -> contextlib.AbstractContextManager[Disk]:
    """A disk of request-based dm-multipath that uses @paths in turn."""
    for name in ("dm-multipath", "dm-round-robin"):
        run("modprobe", name)
    each = " ".join(f"{path.path} 1" for path in paths)
    return mapped(f"multipath 0 0 1 1 round-robin 0 {len(paths)} 1 {each}", sectors)


@contextlib.contextmanager
def nvme_target(disk: Disk) -> Iterator[Disk]:
    """The disk of an initiator of NVMe-TCP, with a target in the same guest that exports @disk."""
    with connected(disk, 1) as (controller,):
        yield controller.head
