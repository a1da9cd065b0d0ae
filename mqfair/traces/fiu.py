# SPDX-License-Identifier: GPL-2.0
"""FIU: traces of servers of a university (Koller and Rangaswami, FAST 2010; SNIA IOTTA).

    NS PID PROCESS LBA BLOCKS OPERATION MAJOR MINOR [MD5]
    0 4892 syslogd 904265560 8 W 6 0 531e779fb8ea8b3b3f0e4c9ef3e6d2f1

The time is in ns. LBA and size are in blocks of 512 bytes. The operation is R or W. The source is
the device, MAJOR:MINOR.
"""

import re

from mqfair.traces.request import (
    LETTERS,
    SECTOR,
    MalformedError,
    Parse,
    Request,
    number,
    operation,
)

NAME = "fiu"
LAYOUT = "NS PID PROCESS LBA BLOCKS OPERATION MAJOR MINOR [MD5]"
SUMMARY = f"FIU's servers: {LAYOUT}"
_LINE = re.compile(r"(\S+)\s+\d+\s+.*?\s?(\S+)\s+(\S+)\s+(\w)\s+(\d+)\s+(\d+)(?:\s+[0-9a-fA-F]+)*")


def parser() -> Parse:
    return parse


def parse(line: str) -> Request:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise MalformedError(line.strip(), f"write {LAYOUT}")
    at, place, size, op, major, minor = match.groups()
    return Request(
        number(at, "the time in ns"),
        operation(op, LETTERS),
        number(place, "LBA, in blocks of 512 bytes,", SECTOR),
        number(size, "the size, in blocks of 512 bytes,", SECTOR),
        f"{major}:{minor}",
    )


def matches(line: str) -> bool:
    return _LINE.fullmatch(line.strip()) is not None
