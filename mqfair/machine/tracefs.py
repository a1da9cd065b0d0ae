# SPDX-License-Identifier: GPL-2.0
"""A private instance of tracefs: one event of the kernel, as lines of text.

An instance has buffers, events and a clock of its own, so the tracing of other programs is not
changed. Its name has the process id. It is removed at the end of a block, and by a guardian process
if this program is killed.
"""

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator

from mqfair.machine.fs import Fs, describe
from mqfair.machine.signals import guarded
from mqfair.text.errors import Failure

PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
# The text of a line depends on these options, and a new instance takes those of the machine.
_OPTIONS = ("context-info", "noraw", "nohex", "nobin")
# Buffers of all CPUs together, and of one.
_BUFFERS_KIB = 256 << 10
_BUFFER_MOST_KIB = 8 << 10
_BUFFER_LEAST_KIB = 64
_READ_BYTES = 1 << 16
# In one call of lines(). The kernel returns at most a page or two at a time.
_READS_MOST = 64
_BUSY_DELAYS_S = (0.01, 0.1, 0.5, 1.0, 3.0, 0.0)
_LOST = re.compile(r"^(?:commit overrun|overrun|dropped events): (\d+)$", re.MULTILINE)


def place(fs: Fs) -> str:
    """The folder of the instances. Raises Failure if this user cannot make one there."""
    for one in PLACES:
        path = f"{one}/instances"
        try:
            fs.host_path(path).stat()
        except PermissionError as error:
            raise Failure(f"cannot read {one}: {describe(error, {})}") from error
        except OSError:
            continue
        return path
    raise Failure(f"no tracefs at {PLACES[0]}: mount -t tracefs tracefs {PLACES[0]}")


class Instance:
    """An instance that records @event, such as block/block_bio_queue, of the requests that @chosen
    selects, which is a filter of the kernel. Use it in a `with` block."""

    def __init__(self, fs: Fs, event: str, chosen: str) -> None:
        self._fs = fs
        self._folder = f"{place(fs)}/mqfair-{os.getpid()}"
        self._event = event
        self._chosen = chosen
        self._stack = contextlib.ExitStack()
        self._pipe = -1
        self._rest = b""
        # The last call of lines() has returned all lines that had come.
        self.drained = False

    def __enter__(self) -> "Instance":
        path = self._fs.host_path(self._folder)
        with contextlib.ExitStack() as stack:
            stack.enter_context(guarded(self._remove))
            self._make()
            stack.callback(self._remove)
            self._prepare()
            self._pipe = os.open(path / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, self._pipe)
            self._write("tracing_on", "1")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def lines(self) -> Iterator[str]:
        """Lines that have come since the last call, each complete. If more come than are read, a
        call ends, and @drained is false."""
        self.drained = False
        for _ in range(_READS_MOST):
            chunk = self._chunk()
            if not chunk:
                self.drained = True
                return
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")

    def stop(self) -> None:
        """No event comes any more. lines() has those that came before."""
        self._write("tracing_on", "0")

    def lost(self) -> int:
        """The number of events that came while a buffer was full."""
        cpus = self._fs.subdirs(f"{self._folder}/per_cpu")
        texts = (self._fs.read(f"{self._folder}/per_cpu/{cpu}/stats") for cpu in cpus)
        return sum(int(number) for text in texts for number in _LOST.findall(text))

    def _make(self) -> None:
        path = self._fs.host_path(self._folder)
        try:
            # A process with this id may have been killed together with its guardian.
            with contextlib.suppress(FileNotFoundError):
                path.rmdir()
            path.mkdir()
        except OSError as error:
            raise Failure(f"cannot make {self._folder}: {describe(error, {})}") from error

    def _prepare(self) -> None:
        event = f"events/{self._event}"
        if not self._fs.exists(f"{self._folder}/{event}"):
            raise Failure(f"this kernel has no event {self._event}: it needs CONFIG_EVENT_TRACING")
        self._write("tracing_on", "0")
        for option in _OPTIONS:
            self._write("trace_options", option)
        self._write("trace_clock", "mono")
        each = _BUFFERS_KIB // max(1, len(self._fs.subdirs(f"{self._folder}/per_cpu")))
        size = max(_BUFFER_LEAST_KIB, min(_BUFFER_MOST_KIB, each))
        self._write("buffer_size_kb", str(size))
        self._write(f"{event}/filter", self._chosen)
        self._write(f"{event}/enable", "1")

    def _write(self, name: str, value: str) -> None:
        self._fs.write(f"{self._folder}/{name}", value)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            reason = describe(error, {})
            raise Failure(f"cannot read {self._folder}/trace_pipe: {reason}") from error

    def _remove(self) -> None:
        """The kernel refuses while a file is open. It closes the files of a killed program one by
        one, and the guardian may come in between."""
        for delay in _BUSY_DELAYS_S:
            try:
                self._fs.host_path(self._folder).rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return
            else:
                return
            time.sleep(delay)
