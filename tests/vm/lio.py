# SPDX-License-Identifier: GPL-2.0
"""A target of LIO in the guest, which exports a disk to the same guest as a SCSI disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from guestlib import Disk, modprobe, wait_until, write

_CONFIG = Path("/sys/kernel/config/target")
_TARGET, _INITIATOR = "naa.6001405000000001", "naa.6001405000000002"


def _scsi_disks() -> set[str]:
    return {path.name for path in Path("/sys/block").glob("sd*")}


@contextlib.contextmanager
def loopback(backing: Disk) -> Iterator[Disk]:
    """The SCSI disk of a target that exports @backing."""
    for name in ("sd_mod", "target_core_mod", "target_core_iblock", "tcm_loop"):
        modprobe(name)
    before = _scsi_disks()
    adapter = _CONFIG / "core" / "iblock_0"
    store = adapter / "backing"
    fabric = _CONFIG / "loopback"
    group = fabric / _TARGET / "tpgt_1"
    unit = group / "lun" / "lun_0"
    link = unit / "backing"
    for folder in (adapter, store):
        folder.mkdir()
    write(store / "control", f"udev_path={backing.path}")
    write(store / "enable", 1)
    if not fabric.exists():
        fabric.mkdir()
    for folder in (group.parent, group):
        folder.mkdir()
    write(group / "nexus", _INITIATOR)
    unit.mkdir()
    link.symlink_to(store)
    try:
        wait_until(lambda: _scsi_disks() - before, "a disk of the target appears")
        (name,) = _scsi_disks() - before
        disk = Disk(name)
        wait_until(disk.path.exists, f"{disk.path} appears")
        yield disk
    finally:
        link.unlink()
        unit.rmdir()
        write(group / "nexus", "NULL")
        for folder in (group, group.parent, fabric, store, adapter):
            folder.rmdir()
