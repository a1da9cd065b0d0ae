# SPDX-License-Identifier: GPL-2.0
"""Block events of the kernel, as tracefs, `trace-cmd report` and `perf script` print them.

      fio-1072    [001] .....  1532.128360: block_bio_queue: 259,0 R 10973568 + 8 [fio]
      fio-1071    [003] d..1.  1532.128031: block_rq_issue: 259,0 WS 4096 () 20973568 + 8 [fio]

A bio arrives with block_bio_queue, and a request is issued to the drive with block_rq_issue. One of
the two counts. A number of bytes and a command stand before the place of a request, and newer
kernels print a priority after it. Sectors have 512 bytes. Lines without a block event are skipped.
"""

import re

from mqfair.traces.blkparse import operation_of
from mqfair.traces.request import SECTOR, MalformedError, Parse, Request, number, seconds_ns

NAME = "ftrace"
ISSUES = "ftrace-issue"
SUMMARY = "text of tracefs, trace-cmd or perf; block_bio_queue counts"
SUMMARY_OF_ISSUES = "the same; block_rq_issue counts, the issue to the drive"
_EVENT = re.compile(r"\s(\d+\.\d+): +(?:block:)?(block_[a-z_]+): +(\d+,\d+) (.*)")
_BIO = re.compile(r"(\S+) (\d+) \+ (\d+)(?: .*)?")
_RQ = re.compile(r"(\S+) \d+ \(.*?\) (\d+) \+ (\d+)(?: .*)?")


def parser() -> Parse:
    return lambda line: _parse(line, "block_bio_queue", _BIO)


def parser_of_issues() -> Parse:
    return lambda line: _parse(line, "block_rq_issue", _RQ)


def _parse(line: str, counts: str, layout: re.Pattern[str]) -> Request | None:
    match = _EVENT.search(line)
    if match is None or match[2] != counts:
        return None
    event = layout.fullmatch(match[4].rstrip())
    if event is None:
        raise MalformedError(match[4].strip(), f"write the fields of {counts}, as the kernel does")
    op = operation_of(event[1])
    if op is None:
        return None
    return Request(
        seconds_ns(match[1], "the time"),
        op,
        number(event[2], "the first sector", SECTOR),
        number(event[3], "the number of sectors", SECTOR),
        match[3].replace(",", ":"),
    )


def matches(line: str) -> bool:
    return _EVENT.search(line) is not None
