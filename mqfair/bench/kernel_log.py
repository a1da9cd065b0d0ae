# SPDX-License-Identifier: GPL-2.0
"""The kernel log: its messages, and the warnings that invalidate a measurement."""

import os
import re
from collections.abc import Iterator

_SPLAT = re.compile(
    r"WARNING: CPU|WARNING: possible|BUG: |kernel BUG at|Oops: |general protection fault"
    r"|Kernel panic|INFO: task .* blocked for more than|detected stalls? on|self-detected stall"
    r"|possible recursive locking|circular locking|UBSAN: |KASAN: |KCSAN: |refcount_t: "
    r"|list_(?:add|del) corruption|unregister_netdevice: waiting|I/O error, dev|timing out command"
)
_STALL = re.compile(r"detected stalls? on|self-detected stall|blocked for more than")
_LINES_AFTER = 12


def splat(log: str) -> str | None:
    """The first warning or error of the kernel in @log with the lines after it, or None."""
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if _SPLAT.search(line):
            return "\n".join(lines[number : number + _LINES_AFTER])
    return None


def starved(log: str) -> str | None:
    """A message if the first warning in @log says that a guest's processors stood still. The usual
    cause is the host, and the dump of registers after the warning explains nothing."""
    found = splat(log)
    first = found.splitlines()[0] if found else ""
    if not _STALL.search(first):
        return None
    return (
        f"the guest's processors stood still ({first.strip()}): this host was too busy to run them,"
        " or the guest's kernel hangs: reduce the host's load or use --icount; --raw keeps the log"
    )


def open_log() -> int:
    """A descriptor for messages(), which then yields the messages from now on."""
    fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.lseek(fd, 0, os.SEEK_END)
    return fd


def messages(fd: int) -> Iterator[str]:
    """The messages available now, without waiting."""
    while True:
        try:
            record = os.read(fd, 8192).decode(errors="replace")
        except BlockingIOError:
            return
        except BrokenPipeError:
            yield "(messages were lost: the kernel's buffer is too small)\n"
            continue
        yield record.partition(";")[2].partition("\n")[0] + "\n"
