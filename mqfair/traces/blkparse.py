# SPDX-License-Identifier: GPL-2.0
"""The text of blkparse(1), in its default layout.

      8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]

The columns are device, CPU, number of the event, seconds, process, action, operation, first sector,
"+", sectors, and the program. Sectors have 512 bytes. A bio arrives with the action Q, so Q is the
only action that counts; the others tell what happens to the same request later. A flush has no
sector. A device is a source, since a bio of a partition or of a device mapper comes once more for
the disk below it. The summary at the end of the output is skipped.
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
SUMMARY = "text of blkparse in its default layout; the action Q counts"
_ARRIVAL = "Q"
_EVENT = re.compile(
    r"\s*(\d+,\d+)\s+(\d+)\s+(\d+)\s+(\d+\.\d+)\s+(\d+)\s+([A-Zm])\s+(\S+)(?:\s+(.*))?"
)
_PLACE = re.compile(r"(\S+) \+ (\S+)(?: \[.*\])?\s*")
# The totals at the end: for each CPU and device, then for all.
_SUMMARY = re.compile(r"(CPU\d+ \(|Total \(|Throughput|Events \()")
_OPS = {"R": READ, "W": WRITE, "D": TRIM}


def parser() -> Parse:
    """A parser for one file: it remembers that the summary has begun."""
    ended = False

    def parse(line: str) -> Request | None:
        nonlocal ended
        ended = ended or _SUMMARY.match(line) is not None
        return None if ended else _parse(line)

    return parse


def _parse(line: str) -> Request | None:
    match = _EVENT.fullmatch(line.rstrip("\r\n"))
    if match is None:
        raise MalformedError(
            line.strip(), "write DEVICE CPU NUMBER SECONDS PID ACTION RWBS SECTOR + SECTORS"
        )
    device, _, _, at, _, action, kind, rest = match.groups()
    if action != _ARRIVAL:
        return None
    op = next((_OPS[letter] for letter in kind if letter in _OPS), None)
    # N has no data, and a flush (FWS) no place.
    if op is None or not rest or rest.startswith("["):
        return None
    place = _PLACE.fullmatch(rest or "")
    if place is None:
        raise MalformedError((rest or "").strip(), "write SECTOR + SECTORS after the operation")
    return Request(
        seconds_ns(at, "the time"),
        op,
        number(place[1], "the first sector") * SECTOR,
        number(place[2], "the number of sectors") * SECTOR,
        device.replace(",", ":"),
    )


def matches(line: str) -> bool:
    return _EVENT.fullmatch(line.rstrip("\r\n")) is not None
