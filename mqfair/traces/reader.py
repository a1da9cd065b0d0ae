# SPDX-License-Identifier: GPL-2.0
"""A trace file as a stream of requests, in the order of time.

Files may be compressed with gzip. Another kind of file raises UsageError with its name and the
command that makes a text of it. A line that the format does not have raises one with file, line,
value and remedy. Traces are not sorted to the last request: one may be logged when it is
done. So requests are sorted within a window of some thousands. A time that goes back further raises
UsageError, too.
"""

import gzip
import heapq
import io
import itertools
import math
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from mqfair.text.errors import UsageError
from mqfair.text.output import quoted, shortened
from mqfair.traces import foreign, native
from mqfair.traces.formats import FORMATS, Format, guess
from mqfair.traces.request import MalformedError, Request

# In requests.
WINDOW = 8192
_GZIP = b"\x1f\x8b"
# Some formats begin with some dozens of lines that describe them.
_LOOK_LINES = 128
_LINE_MOST = 1 << 16


class Trace:
    """A trace file. Its format is that of @format_name, or is guessed from its first lines.

    requests() may be called again and again; each call reads the file. @without_data counts the
    lines of the last complete call that move no data, such as a flush or a head."""

    def __init__(self, path: str, format_name: str | None = None) -> None:
        self.path = path
        self.without_data = 0
        self.format: Format = FORMATS[format_name] if format_name else self._guessed()

    def requests(self) -> Iterator[Request]:
        """The requests by time."""
        return (request for _, request in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Request]]:
        """The requests by time, each with the number of its line. The first one is at 0, unless
        the format counts from the start of the load."""
        first_ns = 0 if self.format.from_start else None
        for line, request in _sorted(self._in_file_order(), self.path):
            if first_ns is None:
                first_ns = request.at_ns
            yield line, request._replace(at_ns=request.at_ns - first_ns)

    def _in_file_order(self) -> Iterator[tuple[int, Request]]:
        parse = self.format.parser()
        skipped = found = 0
        for number, line in self._lines():
            if not line.strip():
                continue
            try:
                request = parse(line)
            except MalformedError as error:
                raise UsageError(f"{self.path}:{number}: {error}") from error
            if request is None or request.bytes == 0:
                skipped += 1
            else:
                found += 1
                yield number, request
        self.without_data = skipped
        if not found:
            self._require_arrivals()

    def _require_arrivals(self) -> None:
        """Raises UsageError if a file without arrivals has issues to the drive."""
        if self.format.issues is None:
            return
        if next(Trace(self.path, self.format.issues).requests(), None) is not None:
            raise UsageError(
                f"{self.path}: it has the issues of requests to the drive and no arrivals: read"
                f" these with mqfair trace --format {self.format.issues}, and for a job file add"
                " --out NEW.trace"
            )

    def _lines(self) -> Iterator[tuple[int, str]]:
        number = 0
        try:
            with _opened(self.path) as file:
                while line := file.readline(_LINE_MOST):
                    number += 1
                    yield number, line
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path}:{number + 1}: no text in UTF-8: name a trace file, or convert it:"
                f" iconv -f ISO-8859-1 -t UTF-8 {quoted(self.path)} > new.txt"
            ) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UsageError(
                f"{self.path}: damaged after line {number}: {error}: copy it again"
            ) from error
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise UsageError(f"{self.path}: {reason}: name a trace file") from error

    def _guessed(self) -> Format:
        head = [line for _, line in itertools.islice(self._lines(), _LOOK_LINES)]
        if not "".join(head).strip():
            raise UsageError(f"{self.path}: empty: name a trace file")
        found = guess(head)
        if len(found) == 1:
            return found[0]
        line = next(line for line in head if line.strip())
        place = f"{self.path}:{head.index(line) + 1}: '{shortened(line.strip())}'"
        if found:
            names = " or ".join(one.name for one in found)
            raise UsageError(f"{place}: may be {names}: name it with --format")
        raise UsageError(f"{place}: none of the formats {', '.join(FORMATS)}: {native.ADVICE}")


def _opened(path: str) -> IO[str]:
    """The file as text; raises UsageError if it is of a kind that has none."""
    with Path(path).open("rb") as file:
        head = file.read(foreign.HEAD_BYTES)
    packed = head.startswith(_GZIP)
    if packed:
        with gzip.open(path, "rb") as inner:
            head = inner.read(foreign.HEAD_BYTES)
    kind = foreign.described(path, head)
    if kind is not None:
        raise UsageError(f"{path}: {kind}")
    binary: IO[bytes] = gzip.open(path, "rb") if packed else Path(path).open("rb")  # type: ignore[assignment]  # noqa: SIM115
    return io.TextIOWrapper(binary, encoding="utf-8-sig")


def _sorted(requests: Iterator[tuple[int, Request]], path: str) -> Iterator[tuple[int, Request]]:
    """@requests by time. Requests of the same time stay in the order of the file."""
    heap: list[tuple[int, int, Request]] = []
    last_ns: float = -math.inf
    for number, request in requests:
        if request.at_ns < last_ns:
            raise UsageError(
                f"{path}:{number}: its time is {last_ns - request.at_ns:.0f} ns before that of a"
                f" request more than {WINDOW} lines above: sort the file by time"
            )
        heapq.heappush(heap, (request.at_ns, number, request))
        if len(heap) > WINDOW:
            last_ns, line, earliest = heapq.heappop(heap)
            yield line, earliest
    while heap:
        _, line, earliest = heapq.heappop(heap)
        yield line, earliest
