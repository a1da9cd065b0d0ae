# SPDX-License-Identifier: GPL-2.0
"""The text of blkparse(1), in its default layout.

      8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]

The columns are device, CPU, number of the event, seconds, process, action, operation, first sector,
"+", sectors, and the program. Sectors have 512 bytes. An action has one letter or two (UT). A bio
arrives with the action Q, and a request is issued to the drive with D. One of the two counts; the
other actions tell of the same requests. A flush and a command of SCSI have no sector. A device is a
source, since a bio of a partition or of a device mapper comes once more for the disk below it. All
lines of events begin with a device. The other lines are notes and totals, and are skipped.
"""

import re

from mqfair.traces.request import (
    READ,
    SECTOR,
    TRIM,
    WRITE,
    MalformedError,
    Parse,
    Request,
    number,
    seconds_ns,
)

NAME = "blkparse"
ISSUES = "blkparse-issue"
SUMMARY = "text of blkparse in its default layout; the action Q counts"
SUMMARY_OF_ISSUES = "the same; the action D counts, the issue to the drive"
_EVENT = re.compile(
    r"\s*(\d+,\d+)\s+(\d+)\s+(\d+)\s+(\d+\.\d+)\s+(\d+)\s+([A-Z]{1,2}|m)\s+(\S+)(?:\s+(.*))?"
)
_DEVICE = re.compile(r"\s*\d+,\d+\s")
# With -t the time since the event before stands in front of the program.
_PLACE = re.compile(r"(\S+) \+ (\S+)(?: \( *\d+\))?(?: \[.*\])?\s*")
# The bytes of a command of SCSI stand in place of sectors, and its packet after them.
_COMMAND = re.compile(r"(?:\d+ )?(?:\(.*\) )?\[.*\]\s*")
_OPS = {"R": READ, "W": WRITE, "D": TRIM}


def operation_of(kind: str) -> str | None:
    """The operation of the kernel's letters, such as WFS; None for a request without data."""
    return next((_OPS[letter] for letter in kind if letter in _OPS), None)


def parser() -> Parse:
    return lambda line: _parse(line, "Q")


def parser_of_issues() -> Parse:
    return lambda line: _parse(line, "D")


def _parse(line: str, counts: str) -> Request | None:
    match = _EVENT.fullmatch(line.rstrip("\r\n"))
    if match is None:
        if not _DEVICE.match(line):
            return None
        raise MalformedError(
            line.strip(), "write DEVICE CPU NUMBER SECONDS PID ACTION RWBS SECTOR + SECTORS"
        )
    device, _, _, at, _, action, kind, rest = match.groups()
    if action != counts:
        return None
    op = operation_of(kind)
    if op is None or not rest or _COMMAND.fullmatch(rest):
        return None
    place = _PLACE.fullmatch(rest)
    if place is None:
        raise MalformedError(rest.strip(), "write SECTOR + SECTORS after the operation")
    return Request(
        seconds_ns(at, "the time"),
        op,
        number(place[1], "the first sector", SECTOR),
        number(place[2], "the number of sectors", SECTOR),
        device.replace(",", ":"),
    )


def matches(line: str) -> bool:
    return _EVENT.fullmatch(line.rstrip("\r\n")) is not None
