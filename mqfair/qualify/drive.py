# SPDX-License-Identifier: GPL-2.0
"""What sysfs and /proc say of a drive and of the machine. Serial numbers are left out."""

import os
import re
from typing import Any

from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs

SECTOR = 512


def described(disk: Disk) -> dict[str, Any]:
    """The drive; a value is null where its driver does not tell it."""

    def text(*paths: str) -> str | None:
        found = (disk.fs.read_if_any(f"{disk.path}/{path}") for path in paths)
        return next((one.strip() for one in found if one and one.strip()), None)

    return {
        "model": text("device/model"),
        # NVMe has the first, SCSI the second.
        "firmware": text("device/firmware_rev", "device/rev"),
        "transport": text("device/transport"),
        "bytes": size_of(disk),
        "rotational": text("queue/rotational") == "1",
        "logical_block_bytes": int(text("queue/logical_block_size") or SECTOR),
        "write_cache": text("queue/write_cache"),
        "hardware_queues": disk.queue_count(),
        "hardware_depth": disk.hardware_depth(),
    }


def size_of(disk: Disk) -> int:
    return int(disk.fs.read(f"{disk.path}/size")) * SECTOR


def processor(fs: Fs) -> str:
    """The name of the processor; that of its kind where the kernel does not tell the name."""
    found = re.search(r"^model name\s*: (.*)$", fs.read_if_any("/proc/cpuinfo") or "", re.MULTILINE)
    return found[1].strip() if found else os.uname().machine
