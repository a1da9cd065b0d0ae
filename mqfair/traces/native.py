# SPDX-License-Identifier: GPL-2.0
"""The format of mqfair itself, which `mqfair trace --out` writes and sim-run replays.

    mqfair trace 1
    0 read 4096 16384 prod/db
    1250000 write 1048576 4096 prod/batch

A line has the time in ns from the start, the operation (read, write or trim), offset and size in
bytes, and the source, such as a cgroup. A blank or a percent sign in a name
is written as in a URL. An empty line and a line that begins with # are skipped.
"""

from urllib.parse import quote, unquote

from mqfair.traces.request import OPS, MalformedError, Parse, Request, number, operation

NAME = "mqfair"
SUMMARY = "mqfair's own: NS OPERATION OFFSET BYTES SOURCE"
HEAD = "mqfair trace 1"
# The mend for a trace that no reader knows.
ADVICE = (
    f"write it as a line `{HEAD}` and one such as `1250000 read 4096 16384 disk` for each"
    " request: ns, operation, offset, bytes, source"
)
_OPS = {op: op for op in OPS}
# All that a name of a cgroup may have, but blanks and the percent sign.
_PLAIN = "/:@,+=!~*'()[]{}<>|&;^$?\"\\`#-._"


def parser() -> Parse:
    """A parser for one file: the first line is the head."""
    begun = False

    def parse(line: str) -> Request | None:
        nonlocal begun
        if not begun:
            begun = line.strip() == HEAD
            if not begun:
                raise MalformedError(line.strip(), f"the first line is {HEAD}")
            return None
        if line.startswith("#"):
            return None
        words = line.split()
        if len(words) != 5:
            raise MalformedError(line.strip(), "write NS OPERATION OFFSET BYTES SOURCE")
        at, op, offset, size, source = words
        return Request(
            number(at, "the time in ns"),
            operation(op, _OPS),
            number(offset, "the offset in bytes"),
            number(size, "the size in bytes"),
            unquote(source),
        )

    return parse


def line_of(request: Request) -> str:
    """@request as a line, without its end."""
    source = quote(request.source or "/", safe=_PLAIN)
    return f"{request.at_ns} {request.op} {request.offset} {request.bytes} {source}"


def matches(line: str) -> bool:
    return line.strip() == HEAD
