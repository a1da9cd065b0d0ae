# SPDX-License-Identifier: GPL-2.0
"""One request of a trace, and the numbers of a trace's line.

Times are whole nanoseconds, offsets and sizes bytes. Decimal seconds are read digit by digit, since
a float of the present Unix time has no nanoseconds.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from mqfair.text.output import shortened

READ = "read"
WRITE = "write"
TRIM = "trim"
OPS = (READ, WRITE, TRIM)
# By the letters that many formats write for them.
LETTERS = {"r": READ, "w": WRITE}
SECTOR = 512
NS = 10**9
# The most ns of a time, and the most bytes of an offset or a size.
MOST = 2**64 - 1
# The most bytes of a request that is replayed or simulated. sim/describe.c: BYTES_MOST.
REPLAYED_MOST = 1 << 30

_SECONDS = re.compile(r"(\d+)(?:\.(\d*))?", re.ASCII)
# One digit more than MOST. int() refuses some thousands.
_DIGITS = 21


class Request(NamedTuple):
    """@at_ns is the arrival. Only differences of times have a meaning until reader.py has set the
    first one to 0. @source is the disk, the cgroup or the file that the trace names."""

    at_ns: int
    op: str
    offset: int
    bytes: int
    source: str


class MalformedError(ValueError):
    """A @value of a line that the format does not have, and the @remedy."""

    def __init__(self, value: str, remedy: str) -> None:
        super().__init__(f"'{shortened(value)}': {remedy}")


# From a line to its request; None for a line without data, such as a flush.
Parse = Callable[[str], Request | None]


def fields(line: str, least: int, most: int, layout: str) -> list[str]:
    """The fields between the commas of @line, at least @least and at most @most of them."""
    found = [word.strip() for word in line.split(",")]
    if not least <= len(found) <= most:
        raise MalformedError(line.strip(), f"{len(found)} fields: write {layout}")
    return found


def is_head(line: str, layout: str) -> bool:
    """Whether @line has the names of @layout, in any case, and so is the head of a file."""
    return line.replace(" ", "").strip().lower() == layout.lower()


def by_fields(layout: str, request: Callable[[list[str]], Request | None]) -> Parse:
    """A parser of lines with the fields of @layout, which @request turns into a request. The head
    of a file is none."""
    count = layout.count(",") + 1

    def parse(line: str) -> Request | None:
        if is_head(line, layout):
            return None
        return request(fields(line, count, count, layout))

    return parse


def parses(parse: Parse, line: str) -> bool:
    """Whether @line is a request by @parse."""
    try:
        return parse(line) is not None
    except MalformedError:
        return False


def seconds_ns(text: str, name: str) -> int:
    """Decimal seconds in ns. Digits beyond the ninth are dropped."""
    match = _SECONDS.fullmatch(text)
    if match is None:
        raise MalformedError(text, f"{name} is a number of seconds, such as 0.026214")
    fraction = (match[2] or "")[:9]
    return number(match[1], f"the whole part of {name}", NS) + int(fraction.ljust(9, "0"))


def number(text: str, name: str, unit: int = 1) -> int:
    """A whole number from 0 on, times the ns or the bytes of its @unit; @name is for the message,
    with the unit."""
    if not (text.isascii() and text.isdecimal()):
        raise MalformedError(text, f"{name} is a whole number from 0 on")
    return in_range(int(text.lstrip("0")[:_DIGITS] or "0"), text, name, unit)


def in_range(value: int, text: str, name: str, unit: int = 1) -> int:
    """@value times @unit; raises MalformedError about @text, the same number, above MOST."""
    if value * unit > MOST:
        raise MalformedError(text, f"{name} is at most {MOST // unit}")
    return value * unit


def operation(text: str, names: dict[str, str]) -> str:
    """The operation with this name, in lower case, among @names."""
    found = names.get(text.lower())
    if found is None:
        raise MalformedError(text, f"an operation is {', '.join(names)}")
    return found
