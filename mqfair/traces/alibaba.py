# SPDX-License-Identifier: GPL-2.0
"""Alibaba's block traces: a month of 1,000 virtual disks (Li et al., IISWC 2020).

    device_id,opcode,offset,length,timestamp
    419,W,8792731648,16384,1577808000000046

Opcode is R or W. Offset and length are bytes, timestamp is the Unix time in µs. The published file
has no line of names.
"""

from mqfair.traces.request import LETTERS, Request, number, operation

NAME = "alibaba"
LAYOUT = "device_id,opcode,offset,length,timestamp"
SUMMARY = f"Alibaba's block traces: {LAYOUT}"
_US_NS = 1000


def request(words: list[str]) -> Request:
    disk, op, offset, size, at = words
    return Request(
        number(at, "timestamp in µs", _US_NS),
        operation(op, LETTERS),
        number(offset, "offset in bytes"),
        number(size, "length in bytes"),
        f"disk{number(disk, 'device_id')}",
    )
