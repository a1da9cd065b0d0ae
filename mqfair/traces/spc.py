# SPDX-License-Identifier: GPL-2.0
"""SPC: the traces of the UMass repository (Financial, WebSearch).

    ASU,LBA,SIZE,OPCODE,TIMESTAMP[,MORE...]
    0,20941264,8192,W,0.551706

ASU is an application storage unit, a disk of its own. LBA is in blocks of 512 bytes, SIZE in bytes.
OPCODE is R or W in either case. TIMESTAMP is in seconds from the start of the trace. Source: SPC
Trace File Format Specification, revision 1.0.1, Storage Performance Council, 2002.
"""

from mqfair.traces.request import (
    LETTERS,
    SECTOR,
    Parse,
    Request,
    fields,
    number,
    operation,
    parses,
    seconds_ns,
)

NAME = "spc"
LAYOUT = "ASU,LBA,SIZE,OPCODE,SECONDS"
SUMMARY = f"SPC of the UMass repository: {LAYOUT}"
_MOST_FIELDS = 64


def parser() -> Parse:
    return parse


def parse(line: str) -> Request | None:
    unit, block, size, op, at, *_ = fields(line, 5, _MOST_FIELDS, LAYOUT)
    return Request(
        seconds_ns(at, "TIMESTAMP"),
        operation(op, LETTERS),
        number(block, "LBA, in blocks of 512 bytes,", SECTOR),
        number(size, "SIZE in bytes"),
        f"asu{number(unit, 'ASU')}",
    )


def matches(line: str) -> bool:
    return parses(parse, line)
