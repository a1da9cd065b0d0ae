# SPDX-License-Identifier: GPL-2.0
"""One program at a time changes a disk.

`enable`, `disable` and `bench` hold the lock of a disk while they change it, and report its
settings before they release it. Without the lock two programs would each undo or report the work of
the other. The lock files are in a folder of root: another user cannot take one and make root wait.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from mqfair.machine.blockdev import Disk
from mqfair.text.errors import Failure

FOLDER = "/run/mqfair"
# A switch takes milliseconds, a calibration a minute. Only the first is worth a wait.
TRIES = 100
PAUSE_S = 0.1


class BusyError(Failure):
    """Another program keeps the lock."""


@contextlib.contextmanager
def locked(disk: Disk, *, patient: bool = True) -> Iterator[None]:
    """Holds the lock of @disk for the time of a block; raises BusyError if another program keeps
    it, at once if not @patient.

    There is no lock in a dry run, without the right to write below /run, and in a copy of a
    machine's tree without /run.
    """
    file = None if disk.fs.dry_run else _open(disk)
    if file is None:
        yield
        return
    with file:
        _take(file, disk, TRIES if patient else 1)
        yield


def _open(disk: Disk) -> IO[str] | None:
    folder = disk.fs.host_path(FOLDER)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return Path(folder / f"{disk.name}.lock").open("a+")
    except OSError:
        return None


def _take(file: IO[str], disk: Disk, tries: int) -> None:
    for left in reversed(range(tries)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left == 0:
                raise BusyError(_busy(file, disk, tries)) from None
            time.sleep(PAUSE_S)
        else:
            break
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()


def _busy(file: IO[str], disk: Disk, tries: int) -> str:
    file.seek(0)
    holder = file.read().strip()
    by = f"process {holder}" if holder else "another process"
    return (
        f"{by} is changing {disk.name} (lock {FOLDER}/{disk.name}.lock) and did not end within"
        f" {(tries - 1) * PAUSE_S:.0f} s: wait for its end, or end it; nothing was changed"
    )
