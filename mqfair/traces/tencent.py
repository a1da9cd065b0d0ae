# SPDX-License-Identifier: GPL-2.0
"""Tencent's cloud block storage (Zhang et al., USENIX ATC 2020; SNIA IOTTA).

    Timestamp,Offset,Size,IOType,VolumeID
    1538323200,12910952,128,0,1063

Timestamp is the Unix time in seconds. Offset and Size are sectors of 512 bytes. IOType is 0 for a
read and 1 for a write. The published files have no line of names.
"""

from mqfair.traces.request import (
    READ,
    SECTOR,
    WRITE,
    Parse,
    Request,
    fields,
    is_head,
    number,
    operation,
    parses,
    seconds_ns,
)

NAME = "tencent"
LAYOUT = "Timestamp,Offset,Size,IOType,VolumeID"
SUMMARY = f"Tencent's block storage: {LAYOUT}"
_OPS = {"0": READ, "1": WRITE}


def parser() -> Parse:
    return parse


def parse(line: str) -> Request | None:
    if is_head(line, LAYOUT):
        return None
    at, offset, size, op, volume = fields(line, 5, 5, LAYOUT)
    return Request(
        seconds_ns(at, "Timestamp"),
        operation(op, _OPS),
        number(offset, "Offset, in blocks of 512 bytes,") * SECTOR,
        number(size, "Size, in blocks of 512 bytes,") * SECTOR,
        f"volume{number(volume, 'VolumeID')}",
    )


def matches(line: str) -> bool:
    return is_head(line, LAYOUT) or parses(parse, line)
