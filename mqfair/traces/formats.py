# SPDX-License-Identifier: GPL-2.0
"""The table of formats. A new format is a module like spc.py and a line here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mqfair.traces import blkparse, iolog, msr, native, spc, systor
from mqfair.traces.request import Parse


@dataclass(frozen=True)
class Format:
    """@matches tells whether a line looks like this format. @parser makes a parser for one file.
    @from_start says that times count from the start of the load, and not from another time."""

    name: str
    summary: str
    matches: Callable[[str], bool]
    parser: Callable[[], Parse]
    from_start: bool


FORMATS: Mapping[str, Format] = {
    one.NAME: Format(one.NAME, one.SUMMARY, one.matches, one.parser, one in (iolog, native))
    for one in (spc, systor, msr, blkparse, iolog, native)
}


def guess(lines: Sequence[str]) -> list[Format]:
    """The formats that the first of @lines with a match belongs to: one, unless it is unclear."""
    for line in lines:
        found = [one for one in FORMATS.values() if one.matches(line)]
        if found:
            return found
    return []
