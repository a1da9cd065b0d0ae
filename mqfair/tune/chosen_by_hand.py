# SPDX-License-Identifier: GPL-2.0
"""Remembers the scheduler that a user chose for a disk, so that a rule does not take it back.

`enable` and `disable` write the choice to a file in /run, which ends with the machine's uptime.
"""

import contextlib

from mqfair.machine.blockdev import Disk
from mqfair.machine.lock import FOLDER


def _file(disk: Disk) -> str:
    """A choice counts for all paths of an NVMe disk, also for those that come later."""
    return f"{FOLDER}/{(disk.head or disk).name}.by-hand"


def _sequence(disk: Disk) -> str:
    """A number that no later disk with this name has; empty on kernels without it."""
    return (disk.fs.read_if_any(f"{(disk.head or disk).path}/diskseq") or "").strip()


def remember(disk: Disk, scheduler: str) -> None:
    if disk.fs.dry_run:
        return
    file = disk.fs.host_path(_file(disk))
    with contextlib.suppress(OSError):
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(f"{scheduler} {_sequence(disk)}\n")


def chosen(disk: Disk) -> str | None:
    """The scheduler that was chosen last; None if none was, or for another disk of this name."""
    words = (disk.fs.read_if_any(_file(disk)) or "").split(" ")
    if len(words) != 2 or words[1].strip() != _sequence(disk):
        return None
    return words[0]
