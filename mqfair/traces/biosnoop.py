# SPDX-License-Identifier: GPL-2.0
"""The table of biosnoop (bcc, libbpf-tools) and of iosnoop (perf-tools).

    TIME(s)     COMM           PID     DISK    T  SECTOR     BYTES   LAT(ms)
    0.004511    postgres       14501   nvme0n1 R  41238712   8192       0.42

The head names the columns, which depend on version and options. A line is written at completion, so
the arrival is that time less all waits: LAT(ms), and QUE(ms) with the option -Q. iosnoop has a
column STARTs with its option -s. The name of a program may have blanks, so the columns are counted
from both ends. SECTOR has 512 bytes.
"""

import re
from collections.abc import Sequence

from mqfair.traces.blkparse import operation_of
from mqfair.traces.request import SECTOR, MalformedError, Parse, Request, number, seconds_ns

NAME = "biosnoop"
SUMMARY = "the table of biosnoop, or of iosnoop -s"
_KINDS, _PLACES, _DISKS = ("T", "TYPE"), ("SECTOR", "BLOCK"), ("DISK", "DEV")
_TIMES = ("TIME(s)", "STARTs")
_WAITS = ("LAT(ms)", "QUE(ms)")
_NAME_OF_PROGRAM = "COMM"
_MS_PER_S = 1000


def parser() -> Parse:
    """A parser for one file: the head comes first, and may come again."""
    head: list[str] = []

    def parse(line: str) -> Request | None:
        nonlocal head
        words = line.split()
        if matches(line):
            head = words
            return None
        if not head:
            if words and re.match(r"\d", words[0]):
                raise MalformedError(line.strip(), "the head is missing: write its line above")
            return None
        return _request(_columns(head, words, line))

    return parse


def _columns(head: Sequence[str], words: list[str], line: str) -> dict[str, str]:
    surplus = len(words) - len(head)
    at = head.index(_NAME_OF_PROGRAM) if _NAME_OF_PROGRAM in head else len(head)
    if surplus < 0 or (surplus and at == len(head)):
        raise MalformedError(line.strip(), f"write {' '.join(head)}")
    whole = [*words[:at], " ".join(words[at : at + surplus + 1]), *words[at + surplus + 1 :]]
    return dict(zip(head, whole, strict=False))


def _request(columns: dict[str, str]) -> Request | None:
    time, kind, place, disk = (_one(columns, names) for names in (_TIMES, _KINDS, _PLACES, _DISKS))
    op = operation_of(columns[kind])
    if op is None:
        return None
    at_ns = seconds_ns(columns[time], time)
    if time == _TIMES[0]:
        waits = (columns[name] for name in _WAITS if name in columns)
        at_ns -= sum(seconds_ns(wait, "a wait in ms") // _MS_PER_S for wait in waits)
    return Request(
        at_ns,
        op,
        number(columns[place], f"{place}, in blocks of 512 bytes,", SECTOR),
        number(columns["BYTES"], "BYTES"),
        columns[disk],
    )


def _one(names: Sequence[str] | dict[str, str], wanted: Sequence[str]) -> str:
    """The one of @wanted that is among @names; empty if none is."""
    return next((name for name in wanted if name in names), "")


def matches(line: str) -> bool:
    words = line.split()
    wanted = (_TIMES, _KINDS, _PLACES, _DISKS, ("BYTES",))
    return all(_one(words, names) for names in wanted)
