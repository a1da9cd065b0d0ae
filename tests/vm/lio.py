# SPDX-License-Identifier: GPL-2.0
"""A target of LIO in the guest, which exports a store to the same guest as a SCSI disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from guestlib import Disk, modprobe, wait_until, write

_CONFIG = Path("/sys/kernel/config/target")
_TARGET, _INITIATOR = "naa.6001405000000001", "naa.6001405000000002"
_FABRIC = _CONFIG / "loopback"
_GROUP = _FABRIC / _TARGET / "tpgt_1"
_UNIT = _GROUP / "lun" / "lun_0"


def _scsi_disks() -> set[str]:
    return {path.name for path in Path("/sys/block").glob("sd*")}


def _store(kind: str) -> Path:
    return _CONFIG / "core" / f"{kind}_0" / "backing"


def make_scsi_disk(kind: str, control: str) -> Disk:
    """The SCSI disk of a new target. @control are the settings of its store. @kind is iblock for a
    store on a block device, and rd_mcp for one in memory."""
    for name in ("sd_mod", "target_core_mod", "tcm_loop"):
        modprobe(name)
    before = _scsi_disks()
    store = _store(kind)
    for folder in (store.parent, store):
        folder.mkdir()
    write(store / "control", control)
    write(store / "enable", 1)
    if not _FABRIC.exists():
        _FABRIC.mkdir()
    for folder in (_GROUP.parent, _GROUP):
        folder.mkdir()
    write(_GROUP / "nexus", _INITIATOR)
    _UNIT.mkdir()
    (_UNIT / "backing").symlink_to(store)
    wait_until(lambda: _scsi_disks() - before, "a disk of the target appears")
    (name,) = _scsi_disks() - before
    disk = Disk(name)
    wait_until(disk.path.exists, f"{disk.path} appears")
    return disk


def remove_scsi_disk(kind: str) -> None:
    """Removes the target of make_scsi_disk(), or the part of it that was made."""
    (_UNIT / "backing").unlink(missing_ok=True)
    _remove(_UNIT)
    if _GROUP.exists():
        write(_GROUP / "nexus", "NULL")
    store = _store(kind)
    for folder in (_GROUP, _GROUP.parent, _FABRIC, store, store.parent):
        _remove(folder)


def _remove(folder: Path) -> None:
    if folder.exists():
        folder.rmdir()


@contextlib.contextmanager
def loopback(backing: Disk) -> Iterator[Disk]:
    """The SCSI disk of a target that exports @backing."""
    modprobe("target_core_iblock")
    try:
        yield make_scsi_disk("iblock", f"udev_path={backing.path}")
    finally:
        remove_scsi_disk("iblock")
