# SPDX-License-Identifier: GPL-2.0
"""SYSTOR '17: the traces of a virtual desktop service (Lee et al., SYSTOR 2017; SNIA IOTTA).

    Timestamp,Response,IOType,LUN,Offset,Size
    1455592800.002183000,0.001230000,R,1,3398356992,65536

Timestamp is the Unix time in seconds, Response seconds or empty, IOType R or W. Offset and Size are
bytes. LUN is a disk of its own. A line without IOType is not a request of either kind, and is left
out. The first line has the names.
"""

from mqfair.traces.request import LETTERS, Request, number, operation, seconds_ns

NAME = "systor"
LAYOUT = "Timestamp,Response,IOType,LUN,Offset,Size"
SUMMARY = f"SYSTOR '17: {LAYOUT}"


def request(words: list[str]) -> Request | None:
    at, response, op, lun, offset, size = words
    if response:
        seconds_ns(response, "Response")
    at_ns = seconds_ns(at, "Timestamp")
    where, bytes_ = number(offset, "Offset in bytes"), number(size, "Size in bytes")
    if not op:
        return None
    return Request(at_ns, operation(op, LETTERS), where, bytes_, f"lun{number(lun, 'LUN')}")
