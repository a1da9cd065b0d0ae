# SPDX-License-Identifier: GPL-2.0
"""MSR Cambridge: a week of 36 volumes of 13 servers (Narayanan et al., FAST 2008; SNIA IOTTA).

    Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime
    128166372003061629,hm,0,Read,383496192,32768,413

Timestamp and ResponseTime are in Windows ticks of 100 ns. Offset and Size are bytes. Type is Read
or Write. The source is HOST-DISK. The published files have no line of names.
"""

from mqfair.traces.request import READ, WRITE, Request, number, operation

NAME = "msr"
LAYOUT = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime"
SUMMARY = "MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,..."
TICK_NS = 100
_OPS = {"read": READ, "write": WRITE}


def request(words: list[str]) -> Request:
    at, host, disk, op, offset, size, response = words
    number(response, "ResponseTime, in ticks of 100 ns,")
    return Request(
        number(at, "Timestamp, in ticks of 100 ns,", TICK_NS),
        operation(op, _OPS),
        number(offset, "Offset in bytes"),
        number(size, "Size in bytes"),
        f"{host}-{number(disk, 'DiskNumber')}",
    )
