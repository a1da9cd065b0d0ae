# SPDX-License-Identifier: GPL-2.0
"""Tencent's cloud block storage (Zhang et al., USENIX ATC 2020; SNIA IOTTA).

    Timestamp,Offset,Size,IOType,VolumeID
    1538323200,12910952,128,0,1063

Timestamp is the Unix time in seconds. Offset and Size are sectors of 512 bytes. IOType is 0 for a
read and 1 for a write. The published files have no line of names.
"""

from mqfair.traces.request import READ, SECTOR, WRITE, Request, number, operation, seconds_ns

NAME = "tencent"
LAYOUT = "Timestamp,Offset,Size,IOType,VolumeID"
SUMMARY = f"Tencent's block storage: {LAYOUT}"
_OPS = {"0": READ, "1": WRITE}


def request(words: list[str]) -> Request:
    at, offset, size, op, volume = words
    return Request(
        seconds_ns(at, "Timestamp"),
        operation(op, _OPS),
        number(offset, "Offset, in blocks of 512 bytes,", SECTOR),
        number(size, "Size, in blocks of 512 bytes,", SECTOR),
        f"volume{number(volume, 'VolumeID')}",
    )
