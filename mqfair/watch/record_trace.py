# SPDX-License-Identifier: GPL-2.0
"""mqfair record --trace: the requests of a drive in a trace, by the kernel's tracepoints.

The event block_bio_queue comes when a request arrives at the block layer: before it waits for a
tag, and before any scheduler. Every kernel has it, and no module of ours is needed. Its line:

    fio-1234 [001] ..... 12.345678: block_bio_queue: 259,0 R 2048 + 8 [fio]

The sector is that of the whole disk, and the device may be a partition. A request for the head of
NVMe multipath has one event, with the number of the head. The kernel compares device numbers, so
requests of other drives cost this program nothing. The source of a request is the cgroup of its
task, which /proc tells a moment later.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from mqfair.machine.blockdev import Disk, find_disk
from mqfair.machine.fs import Fs
from mqfair.machine.signals import ending_at_ease, interrupted_once
from mqfair.machine.tracefs import Instance
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import human_bytes, open_output, overwrite, print_json, require_writable
from mqfair.traces import native
from mqfair.traces.figures import Figures
from mqfair.traces.request import READ, SECTOR, TRIM, WRITE, Request, seconds_ns
from mqfair.watch.drives import seconds_of

SCHEMA = "mqfair.record-trace/1"
EVENT = "block/block_bio_queue"
SECONDS_LEAST = 0.1
# The source of a request of a task that had ended, and that was never seen before.
UNKNOWN = "unknown"
# A batch of lines: short against a task's life, and a wake-up of this program costs little.
_POLL_S = 0.02
_SHOW_S = 1.0
# The last match counts, since the name of a task may look like the beginning of a line. A name has
# at most 15 bytes, so it cannot look like the event.
_LINE = re.compile(
    r".*-(?P<task>\d+)\s+\[\d+\]\s.*?(?P<at>\d+\.\d+): block_bio_queue: "
    r"\d+,\d+ (?P<kind>\w+) (?P<sector>\d+) \+ (?P<sectors>\d+)(?: |$)"
)
# The kernel's own text instead of an event. tracefs.py has the number of lost events.
_REMARK = re.compile(r"#|CPU:\s*\d+ \[LOST|$")
# The operation after a flush (F). Others, such as a zone's reset (ZR), move no data.
_OPS = {"R": READ, "W": WRITE, "D": TRIM}
_ZEROES = "WZ"
_CGROUP = re.compile(r"^(?:0:|\d+:[^:\n]*\bblkio\b[^:\n]*):(.*)$", re.MULTILINE)
_MINOR_BITS = 20


def main(args: argparse.Namespace, seconds_most: float) -> int:
    seconds = seconds_of("--seconds", args.seconds, SECONDS_LEAST, seconds_most)
    if len(args.devices) != 1:
        raise UsageError("--trace: name one device: a trace is of one drive")
    fs = Fs()
    disk = find_disk(fs, args.devices[0])
    head = disk.head
    if head is not None:
        raise UsageError(
            f"--trace {disk.name}: the kernel names a request of this path by its head: record all"
            f" paths with mqfair record {head.name} --trace"
        )
    chosen = chosen_by_kernel(fs, disk)
    require_writable("--out", args.out)
    with interrupted_once(), Instance(fs, EVENT, chosen) as instance:
        recorder = _Recorder(fs, instance)
        _record(args.out, recorder, disk.partition or disk.name, seconds)
        lost = instance.lost()
    if args.out != "-":
        _summarise(args, recorder, lost)
    if lost:
        raise Failure(f"{args.out}: {_loss(lost)}: record a partition, or a smaller load")
    return 0


def chosen_by_kernel(fs: Fs, disk: Disk) -> str:
    """The filter of the event: the number of the partition that the user named, or those of the
    disk and of all its partitions. The own requests of this program do not count."""
    paths = [f"{disk.path}/{name}" for name in fs.subdirs(disk.path)]
    parts = [path for path in paths if fs.exists(f"{path}/partition")]
    if disk.partition:
        numbers = [fs.read(f"{disk.path}/{disk.partition}/dev")]
    else:
        numbers = [fs.read(f"{path}/dev") for path in (disk.path, *parts)]
    either = " || ".join(f"dev == {_in_kernel(number)}" for number in numbers)
    return f"({either}) && common_pid != {os.getpid()}"


def _in_kernel(number: str) -> int:
    """MAJ:MIN as the kernel keeps it."""
    major, minor = number.strip().split(":")
    return int(major) << _MINOR_BITS | int(minor)


@dataclass
class _Recorder:
    """Requests, from the lines of @instance. The first one is at 0."""

    fs: Fs
    instance: Instance
    whole: Figures = field(default_factory=Figures)
    sources: set[str] = field(default_factory=set)
    without_data: int = 0
    _first_ns: int | None = None
    _last_ns: int = 0
    # The cgroup of each task when it was looked up last.
    _known: dict[str, str] = field(default_factory=dict)

    def write(self, file: TextIO) -> None:
        """Writes those that have come since the last call, or the first of them."""
        fresh: dict[str, str] = {}
        for line in self.instance.lines():
            request = self._parse(line, fresh)
            if request:
                print(native.line_of(request), file=file)
                self.whole.add(request, sequential=False)
                self.sources.add(request.source)
        file.flush()

    def _parse(self, line: str, fresh: dict[str, str]) -> Request | None:
        match = _LINE.match(line)
        if match is None:
            if _REMARK.match(line):
                return None
            raise Failure(f"trace_pipe: '{line.strip()}': not the text of {EVENT} that is known")
        kind = match["kind"].removeprefix("F")
        op = None if kind.startswith(_ZEROES) else _OPS.get(kind[:1])
        size = int(match["sectors"]) * SECTOR
        if op is None or not size:
            self.without_data += 1
            return None
        at_ns = seconds_ns(match["at"], "the time")
        if self._first_ns is None:
            self._first_ns = at_ns
        # Buffers of CPUs are merged in the order of time, but for events of the last moment.
        self._last_ns = max(self._last_ns, at_ns - self._first_ns)
        task = match["task"]
        if task not in fresh:
            fresh[task] = self._known[task] = self._cgroup(task)
        offset = int(match["sector"]) * SECTOR
        return Request(self._last_ns, op, offset, size, fresh[task])

    def _cgroup(self, task: str) -> str:
        text = self.fs.read_if_any(f"/proc/{task}/cgroup") or ""
        # A controller of version 1 is named before the line of version 2.
        found = _CGROUP.search(text)
        if found is None:
            return self._known.get(task, UNKNOWN)
        return str(found[1]).removesuffix(" (deleted)").strip("/")


def _record(out: str, recorder: _Recorder, name: str, seconds: float) -> None:
    """Writes the requests of @seconds to @out. An interruption or a full disk keeps those that are
    written."""
    try:
        with open_output(out) as file, ending_at_ease() as ended:
            print(native.HEAD, file=file)
            _follow(file, recorder, _Progress(name, seconds), ended)
    except KeyboardInterrupt as interrupt:
        raise _interrupted(out, recorder) from interrupt
    except OSError as error:
        if out == "-":
            raise
        count = recorder.whole.requests
        raise Failure(f"cannot write {out}: {error.strerror}: it has {count} requests") from error
    if ended():
        raise _interrupted(out, recorder)


def _follow(
    file: TextIO, recorder: _Recorder, shown: "_Progress", ended: Callable[[], bool]
) -> None:
    """An ending signal ends the recording between two batches, so it loses no request."""
    try:
        while not ended() and (left := shown.left()) > 0:
            if recorder.instance.drained:
                time.sleep(min(left, _POLL_S))
            recorder.write(file)
            shown(recorder.whole.requests)
    finally:
        shown.end()
    recorder.instance.stop()
    recorder.write(file)
    while not recorder.instance.drained:
        recorder.write(file)


def _interrupted(out: str, recorder: _Recorder) -> KeyboardInterrupt:
    words = f"{out} has {recorder.whole.requests} requests"
    lost = recorder.instance.lost()
    return KeyboardInterrupt(f"{words}; {_loss(lost)}" if lost else words)


def _loss(lost: int) -> str:
    return f"{lost} requests were lost, since they came faster than they were written"


class _Progress:
    """The time of a recording, and a line on standard error if that is a terminal."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._begun = self._next = time.monotonic()

    def left(self) -> float:
        """Seconds."""
        return self._begun + self._seconds - time.monotonic()

    def __call__(self, requests: int) -> None:
        now = time.monotonic()
        if now < self._next or not sys.stderr.isatty():
            return
        self._next = now + _SHOW_S
        passed = f"{now - self._begun:.0f} of {self._seconds:g} s"
        text = f"recording {self._name}: {passed}, {requests} requests"
        overwrite(text)

    def end(self) -> None:
        if sys.stderr.isatty():
            overwrite("")


def _summarise(args: argparse.Namespace, recorder: _Recorder, lost: int) -> None:
    whole = recorder.whole
    if args.json:
        print_json(
            {
                "schema": SCHEMA,
                "file": args.out,
                "requests": whole.requests,
                "bytes": whole.bytes,
                "seconds": whole.seconds,
                "cgroups": sorted(source or "/" for source in recorder.sources),
                "without_data": recorder.without_data,
                "lost": lost,
            }
        )
        return
    print(
        f"{args.out}: {whole.requests} requests of {human_bytes(whole.bytes)} in"
        f" {whole.seconds:.1f} s, from {len(recorder.sources)} cgroups"
    )
