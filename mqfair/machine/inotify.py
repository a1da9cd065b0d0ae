# SPDX-License-Identifier: GPL-2.0
"""inotify(7), which Python's standard library does not have."""

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

CLOSE_WRITE = 0x8
MOVED_TO = 0x80
CREATE = 0x100
DELETE = 0x200
OVERFLOW = 0x4000
IGNORED = 0x8000
ISDIR = 0x40000000
_ONLYDIR = 0x01000000
_CLOEXEC = os.O_CLOEXEC
_NONBLOCK = os.O_NONBLOCK

_LIBC = ctypes.CDLL(None, use_errno=True)
_EVENT = struct.Struct("iIII")
# One event with the longest name needs 272 bytes. A large buffer saves system calls in a burst.
_BUFFER = 1 << 18


class Event(NamedTuple):
    """@watch is the number that add() gave; @name is a file in the watched directory."""

    watch: int
    mask: int
    name: str


class Inotify:
    """An inotify instance. Watches are for directories, and report events of their files."""

    def __init__(self) -> None:
        self.fd: int = _LIBC.inotify_init1(_CLOEXEC | _NONBLOCK)
        if self.fd < 0:
            raise _error("inotify_init1")

    def add(self, path: str, mask: int) -> int:
        """Watches the directory @path; raises OSError. A watched directory keeps its number."""
        watch: int = _LIBC.inotify_add_watch(self.fd, os.fsencode(path), mask | _ONLYDIR)
        if watch < 0:
            raise _error(path)
        return watch

    def remove(self, watch: int) -> None:
        """Ends a watch. A watch that the kernel has ended is no error."""
        _LIBC.inotify_rm_watch(self.fd, watch)

    def read(self) -> Iterator[Event]:
        """The events so far, without waiting for one."""
        try:
            data = os.read(self.fd, _BUFFER)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            yield Event(watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0")))
            at += length

    def close(self) -> None:
        os.close(self.fd)


def _error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), what)
