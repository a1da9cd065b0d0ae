# SPDX-License-Identifier: GPL-2.0
"""The table of formats. A new format is a module like spc.py and a line here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from mqfair.traces import (
    alibaba,
    biosnoop,
    blkparse,
    disksim,
    etw,
    fiu,
    ftrace,
    iolog,
    msr,
    native,
    spc,
    systor,
    tencent,
)
from mqfair.traces.request import Parse, by_fields, is_head, parses


@dataclass(frozen=True)
class Format:
    """@matches tells whether a line looks like this format. @parser makes a parser for one file.
    @from_start says that times count from the start of the load, and not from another time.
    @issues is the format that reads the same text by its issues to the drive, and not by its
    arrivals; it is never guessed."""

    name: str
    summary: str
    matches: Callable[[str], bool]
    parser: Callable[[], Parse]
    from_start: bool = False
    issues: str | None = None


def _by_fields(one: ModuleType) -> Format:
    """The format of a module with LAYOUT, the names of the fields, and request()."""
    parse = by_fields(one.LAYOUT, one.request)
    return Format(
        one.NAME,
        one.SUMMARY,
        lambda line: is_head(line, one.LAYOUT) or parses(parse, line),
        lambda: parse,
    )


def _never(_line: str) -> bool:
    return False


FORMATS: Mapping[str, Format] = {
    one.name: one
    for one in (
        Format(spc.NAME, spc.SUMMARY, spc.matches, spc.parser),
        *(_by_fields(one) for one in (systor, msr, alibaba, tencent)),
        *(
            Format(one.NAME, one.SUMMARY, one.matches, one.parser)
            for one in (fiu, disksim, etw, biosnoop)
        ),
        *(
            Format(one.NAME, one.SUMMARY, one.matches, one.parser, issues=one.ISSUES)
            for one in (blkparse, ftrace)
        ),
        *(
            Format(one.ISSUES, one.SUMMARY_OF_ISSUES, _never, one.parser_of_issues)
            for one in (blkparse, ftrace)
        ),
        *(
            Format(one.NAME, one.SUMMARY, one.matches, one.parser, from_start=True)
            for one in (iolog, native)
        ),
    )
}


def guess(lines: Sequence[str]) -> list[Format]:
    """The formats that the first of @lines with a match belongs to: one, unless it is unclear."""
    for line in lines:
        found = [one for one in FORMATS.values() if one.matches(line)]
        if found:
            return found
    return []
