# SPDX-License-Identifier: GPL-2.0
"""The ASCII traces of DiskSim.

    MS DEVICE BLOCK BLOCKS FLAGS
    3.512000 0 72193008 8 0

The time of arrival is in ms. BLOCK and BLOCKS are in blocks of 512 bytes. Bit 0 of FLAGS, which are
hexadecimal, means a read.
"""

import re

from mqfair.traces.request import READ, SECTOR, WRITE, MalformedError, Parse, Request, number

NAME = "disksim"
LAYOUT = "MS DEVICE BLOCK BLOCKS FLAGS"
SUMMARY = f"DiskSim's ASCII traces: {LAYOUT}"
_READ = 1
_MS_DIGITS = 6
_LINE = re.compile(r"(\d+)(?:\.(\d*))?\s+(\d+)\s+(\d+)\s+(\d+)\s+([0-9a-fA-F]+)")


def parser() -> Parse:
    return parse


def parse(line: str) -> Request:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise MalformedError(line.strip(), f"write {LAYOUT}")
    whole, fraction, device, block, blocks, flags = match.groups()
    return Request(
        number(whole, "MS", 10**_MS_DIGITS)
        + int((fraction or "")[:_MS_DIGITS].ljust(_MS_DIGITS, "0")),
        READ if int(flags, 16) & _READ else WRITE,
        number(block, "BLOCK", SECTOR),
        number(blocks, "BLOCKS", SECTOR),
        f"disk{device}",
    )


def matches(line: str) -> bool:
    return _LINE.fullmatch(line.strip()) is not None
