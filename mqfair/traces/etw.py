# SPDX-License-Identifier: GPL-2.0
"""Disk events of Windows as text: Microsoft's production servers and Exchange (SNIA IOTTA).

    DiskRead, 2841, System (4), 72, 0xfffffa80, 0x002f1a2000, 0x00001000, 412, 0, 0x060043, ...

The columns after the event are the time in µs, process, thread, a pointer, offset, size, and the
time that the request took in µs. The line is written at completion. Numbers of offset and size are
hexadecimal bytes. The column after the duration is the disk. Other events are skipped.
"""

import re

from mqfair.traces.request import (
    READ,
    WRITE,
    MalformedError,
    Parse,
    Request,
    in_range,
    number,
    operation,
)

NAME = "etw"
LAYOUT = "DiskRead, TimeStamp, Process, Thread, IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum"
SUMMARY = "disk events of Windows: DiskRead, TimeStamp, ..., ByteOffset, IOSize, ..."
_OPS = {"diskread": READ, "diskwrite": WRITE}
_US_NS = 1000
_EVENT = re.compile(r"\s*Disk(?:Read|Write)\s*,\s*\d", re.IGNORECASE)
_HEXADECIMAL = re.compile(r"(?:0x)?[0-9a-f]+", re.IGNORECASE)
_FIELDS = 9


def parser() -> Parse:
    return _parse


def _parse(line: str) -> Request | None:
    if not _EVENT.match(line):
        return None
    words = [word.strip() for word in line.split(",")]
    if len(words) < _FIELDS:
        raise MalformedError(line.strip(), f"{len(words)} fields: write {LAYOUT}")
    op, at, _, _, _, offset, size, took, disk = words[:_FIELDS]
    arrival_ns = number(at, "TimeStamp in µs", _US_NS) - number(took, "ElapsedTime in µs", _US_NS)
    return Request(
        arrival_ns,
        operation(op, _OPS),
        _hexadecimal(offset, "ByteOffset"),
        _hexadecimal(size, "IOSize"),
        f"disk{number(disk, 'DiskNum')}",
    )


def _hexadecimal(text: str, name: str) -> int:
    if not _HEXADECIMAL.fullmatch(text):
        raise MalformedError(text, f"{name} is a hexadecimal number of bytes")
    return in_range(int(text, 16), text, name)


def matches(line: str) -> bool:
    return _EVENT.match(line) is not None
