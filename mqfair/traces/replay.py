# SPDX-License-Identifier: GPL-2.0
"""The files that fio and sim-run replay, written from a trace.

    mqfair     the format of native.py, which sim-run reads
    iolog      fio's version 3, which fio 3.31 and later read; times are µs
    iolog2     fio's version 2, for an older fio; times are ms from the start of fio

A section with numjobs=N replays a trace with N processes. Process i has the requests i, i + N,
i + 2N and so on, and one of them outstanding at a time. So up to N are outstanding. fio cannot
measure a replay with an asynchronous engine: it takes completions only when iodepth of them are
outstanding, so latencies contain the gaps of the trace, and the last requests are not counted.
"""

import contextlib
import functools
import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from mqfair.text.errors import UsageError
from mqfair.text.output import quoted
from mqfair.traces import native
from mqfair.traces.reader import Trace
from mqfair.traces.request import REPLAYED_MOST, SECTOR, TRIM, Request

# fio's option replay_redirect names the real drive.
_FIO_FILE = "/dev/replayed"
_US_NS = 1000
_MS_NS = 1000 * _US_NS
_SCALE_PLAIN = 100
# The most files that are open at the same time.
_SOURCES_MOST = 256
_UNSAFE = re.compile(r"[^\w.-]+")
# fio shares the options of a section with a name that begins with global, and the kernel has
# files cgroup.* of its own.
_RESERVED = re.compile(r"global|cgroup\.", re.IGNORECASE)
# In bytes: a name of a file has 255, with a number and .trace.
_NAME_MOST = 240


@dataclass(frozen=True)
class _Layout:
    """A format in which a line depends on one request alone: @head, a @line for each request, and
    the @tail after the last one, given its time in ns."""

    head: str
    line: Callable[[Request], str]
    tail: Callable[[int], str]


def _iolog_line(request: Request) -> str:
    """fio takes the times as differences, and no difference from a time 0. So times begin at 1."""
    at_ns, op, offset, size, _ = request
    return f"{at_ns // _US_NS + 1} {_FIO_FILE} {op} {offset} {size}\n"


_LAYOUTS = {
    native.NAME: _Layout(
        f"{native.HEAD}\n", lambda one: f"{native.line_of(one)}\n", lambda _last_ns: ""
    ),
    "iolog": _Layout(
        f"fio version 3 iolog\n0 {_FIO_FILE} add\n1 {_FIO_FILE} open\n",
        _iolog_line,
        lambda last_ns: f"{last_ns // _US_NS + 1} {_FIO_FILE} close\n",
    ),
}


def _write_plain(layout: _Layout, file: TextIO, requests: Iterable[Request]) -> None:
    file.write(layout.head)
    last_ns = 0
    for request in requests:
        file.write(layout.line(request))
        last_ns = request.at_ns
    file.write(layout.tail(last_ns))


def _write_iolog2(file: TextIO, requests: Iterable[Request]) -> None:
    print(f"fio version 2 iolog\n{_FIO_FILE} add\n{_FIO_FILE} open", file=file)
    last_ms = 0
    for at_ns, op, offset, size, _ in requests:
        at_ms = at_ns // _MS_NS
        if at_ms > last_ms:
            print(f"{_FIO_FILE} wait {at_ms} 0", file=file)
            last_ms = at_ms
        print(f"{_FIO_FILE} {op} {offset} {size}", file=file)
    print(f"{_FIO_FILE} close", file=file)


Writer = Callable[[TextIO, Iterable[Request]], None]
WRITERS: dict[str, Writer] = {
    **{name: functools.partial(_write_plain, layout) for name, layout in _LAYOUTS.items()},
    "iolog2": _write_iolog2,
}


@dataclass(frozen=True)
class Change:
    """Changes to each request of a trace. The places are those of a drive of @size bytes, and are
    taken modulo this size. Begin and end are rounded outwards to multiples of @align bytes. Only
    the requests of @sources are kept, and none with an operation of @without."""

    size: int | None = None
    align: int = 1
    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    most: int | None = None

    def made(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Times begin at 0 with the first request that is kept."""
        kept = 0
        first_ns = 0
        for request in requests:
            if self.sources and request.source not in self.sources:
                continue
            if request.op in self.without:
                continue
            if self.most is not None and kept == self.most:
                return
            first_ns = first_ns if kept else request.at_ns
            kept += 1
            yield self._moved(request)._replace(at_ns=request.at_ns - first_ns)

    def _moved(self, request: Request) -> Request:
        begin = request.offset // self.align * self.align
        end = -(-(request.offset + request.bytes) // self.align) * self.align
        size = end - begin
        if self.size is not None and end > self.size:
            if size > self.size:
                raise UsageError(
                    f"--size {self.size}: a request has {size} bytes: use a larger size"
                )
            # Whole places, so that the request still ends inside, and a sector stays one.
            place = max(self.align, math.gcd(begin, size, SECTOR))
            places = (self.size - size) // place + 1
            begin = begin // place % places * place
        return request._replace(offset=begin, bytes=size)


@dataclass(frozen=True)
class Replay:
    """A section's replay of the file @path by @processes processes. @scale is fio's
    replay_time_scale: 200 halves all times. With @no_stall no request waits for its time."""

    path: str
    processes: int = 1
    scale: int = _SCALE_PLAIN
    no_stall: bool = False

    def requests(self) -> Iterator[Request]:
        for request in Trace(self.path).requests():
            at_ns = 0 if self.no_stall else request.at_ns * _SCALE_PLAIN // self.scale
            yield request._replace(at_ns=at_ns)


@dataclass(frozen=True)
class Extent:
    """@last_ns is the time of the last request of a replay, and @largest its largest size. No
    request ends beyond the byte @end."""

    requests: int
    largest: int
    last_ns: int
    end: int


@functools.cache
def measured(replay: Replay) -> Extent:
    """Reads the whole trace, once in a process. So a trace that is gone when the runs end loses no
    result. Raises UsageError with file and line for a request that no drive replays."""
    count = largest = last_ns = end = 0
    for line, request in Trace(replay.path).numbered():
        _check(f"{replay.path}:{line}", request, replay.path)
        count += 1
        largest = max(largest, request.bytes)
        last_ns = request.at_ns
        end = max(end, request.offset + request.bytes)
    if not count:
        raise UsageError(f"{replay.path}: it has no request: name a trace with reads or writes")
    scaled = 0 if replay.no_stall else last_ns * _SCALE_PLAIN // replay.scale
    return Extent(count, largest, scaled, end)


def require_inside(replay: Replay, drive_bytes: int) -> None:
    """Raises UsageError with the line of the first request that ends beyond @drive_bytes."""
    if measured(replay).end <= drive_bytes:
        return
    for line, request in Trace(replay.path).numbered():
        end = request.offset + request.bytes
        if end > drive_bytes:
            raise UsageError(
                f"{replay.path}:{line}: it ends at byte {end}, and the drive at {drive_bytes}:"
                f" use a larger drive, or {_convert(replay.path)} --size {drive_bytes}`"
            )


def _convert(path: str) -> str:
    return f"`mqfair trace {quoted(path)} --out NEW"


def _check(place: str, request: Request, path: str) -> None:
    convert = _convert(path)
    if request.op == TRIM:
        raise UsageError(
            f"{place}: a trim is not replayed: leave it out by {convert} --without trim`"
        )
    if request.offset % SECTOR or request.bytes % SECTOR:
        raise UsageError(
            f"{place}: {request.bytes} bytes at {request.offset}: a drive has sectors of {SECTOR}"
            f" bytes: round by {convert} --align {SECTOR}`"
        )
    if request.bytes > REPLAYED_MOST:
        raise UsageError(
            f"{place}: {request.bytes} bytes: a replayed request has at most {REPLAYED_MOST}:"
            " remove the line, or write it as several"
        )


def deal(replay: Replay, name: str, folder: Path) -> list[str]:
    """Writes a file for each process of @replay to @folder, in the format @name, mqfair or iolog.
    Returns the names of the files. A name depends on the content alone."""
    layout = _LAYOUTS[name]
    pieces = [folder / f".trace-{number}" for number in range(replay.processes)]
    last_ns = [0] * len(pieces)
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(piece.open("w", encoding="utf-8")) for piece in pieces]
        for file in files:
            file.write(layout.head)
        for number, request in enumerate(replay.requests()):
            files[number % len(files)].write(layout.line(request))
            last_ns[number % len(files)] = request.at_ns
        for file, last in zip(files, last_ns, strict=True):
            file.write(layout.tail(last))
    return [_named(piece) for piece in pieces]


def name_of(path: Path) -> str:
    """A name for a copy of the trace in @path, by its content."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"trace-{digest[:16]}"


def _named(piece: Path) -> str:
    name = name_of(piece)
    piece.rename(piece.with_name(name))
    return name


def split(requests: Iterable[Request], folder: Path) -> dict[str, int]:
    """Writes the requests of each source to the file part_of() its cgroup in @folder, in the format
    of mqfair, with the times of the whole trace. Returns the number of requests of each cgroup."""
    parts: dict[str, int] = {}
    cgroups: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        files: dict[str, TextIO] = {}
        for request in requests:
            cgroup = cgroups.get(request.source)
            if cgroup is None:
                if len(files) == _SOURCES_MOST:
                    raise UsageError(
                        f"--split: more than {_SOURCES_MOST} sources: choose some by --source"
                    )
                cgroup = cgroups[request.source] = _cgroup_of(request.source, parts)
                parts[cgroup] = 0
                path = folder / part_of(cgroup)
                files[cgroup] = stack.enter_context(path.open("w", encoding="utf-8"))
                print(native.HEAD, file=files[cgroup])
            parts[cgroup] += 1
            print(native.line_of(request), file=files[cgroup])
    return parts


def part_of(cgroup: str) -> str:
    """The name of a file that split() writes."""
    return f"{cgroup}.trace"


def _cgroup_of(source: str, taken: Iterable[str]) -> str:
    """A name for the cgroup of @source that a job file accepts and that is not in @taken."""
    plain = _UNSAFE.sub("-", source.strip("/")).lstrip(".") or "root"
    if _RESERVED.match(plain):
        plain = f"source-{plain}"
    plain = plain.encode()[:_NAME_MOST].decode(errors="ignore")
    tries = itertools.chain((plain,), (f"{plain}-{n}" for n in itertools.count(2)))
    return next(name for name in tries if name not in taken)
