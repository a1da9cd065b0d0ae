# SPDX-License-Identifier: GPL-2.0
"""The work of all processors: busy time, context switches, and cycles and instructions if allowed.

The kernel's interface to its counters is perf_event_open(2), which Python does not have. A virtual
machine often has no counters of its processor. A counter that cannot be opened is left out, and
`missing` says why.
"""

import contextlib
import ctypes
import os
import re
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqfair.machine.blockdev import Disk

# The number of the system call, by the processor's name.
_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
# perf_event_attr: type, size, config, period, sample_type, read_format and flags.
_ATTRIBUTES = "IIQQQQQ"
_SIZE = 64
_HARDWARE, _SOFTWARE = 0, 1
_EVENTS = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "context_switches": (_SOFTWARE, 3),
}
# A counter reads as three numbers: its value, and the ns for which it was enabled and counting.
_WITH_TIMES = 3
_READING = "QQQ"
_CLOSE_ON_EXEC = 8

_LIBC = ctypes.CDLL(None, use_errno=True)

_IDLE, _IOWAIT, _STEAL = 3, 4, 7
_STATES = 8
_READS_DONE, _WRITES_DONE = 0, 4


def _open(event: tuple[int, int], cpu: int) -> int:
    """A descriptor of the counter of @event on @cpu, for all programs; raises OSError."""
    kind, config = event
    fields = struct.pack(_ATTRIBUTES, kind, _SIZE, config, 0, 0, _WITH_TIMES, 0)
    attributes = ctypes.create_string_buffer(fields, _SIZE)
    number = _SYSCALL.get(os.uname().machine)
    if number is None:
        raise OSError(0, f"unknown on {os.uname().machine}")
    fd = int(_LIBC.syscall(number, attributes, -1, cpu, -1, _CLOSE_ON_EXEC))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


@dataclass
class Counters:
    """The counters of all CPUs, and those of @disk. @missing has the reason for each that the
    machine does not give."""

    disk: Disk
    missing: dict[str, str] = field(default_factory=dict)
    _open: dict[str, list[int]] = field(default_factory=dict)

    def look(self) -> dict[str, int]:
        """The counts since some time in the past; the difference of two looks is of use."""
        stat = [int(word) for word in self.disk.fs.read(f"{self.disk.path}/stat").split()]
        counts = {name: sum(map(_count, fds)) for name, fds in self._open.items()}
        done = stat[_READS_DONE] + stat[_WRITES_DONE]
        now_us = time.monotonic_ns() // 1000
        return {"ios": done, "elapsed_us": now_us, "busy_us": _busy_us(self.disk), **counts}


def _count(fd: int) -> int:
    """The value of a counter; for one that had to share a register, that of the whole time."""
    value, enabled, counting = struct.unpack(_READING, os.read(fd, struct.calcsize(_READING)))
    return value * enabled // counting if counting else 0


def _busy_us(disk: Disk) -> int:
    """The time that all CPUs worked for tasks and interrupts."""
    ticks = [int(word) for word in disk.fs.read("/proc/stat").splitlines()[0].split()[1:]]
    idle = {_IDLE, _IOWAIT, _STEAL}
    busy = sum(count for state, count in enumerate(ticks[:_STATES]) if state not in idle)
    return busy * 1_000_000 // os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def counting(disk: Disk) -> Iterator[Counters]:
    """Opens the counters for the time of a block."""
    found = Counters(disk)
    try:
        for name, event in _EVENTS.items():
            fds = found._open[name] = []
            try:
                for cpu in re.findall(r"^cpu(\d+)", disk.fs.read("/proc/stat"), re.MULTILINE):
                    fds.append(_open(event, int(cpu)))
            except OSError as error:
                found.missing[name] = error.strerror or str(error)
        for name in found.missing:
            for fd in found._open.pop(name):
                os.close(fd)
        yield found
    finally:
        for fds in found._open.values():
            for fd in fds:
                os.close(fd)
