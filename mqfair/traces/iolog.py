# SPDX-License-Identifier: GPL-2.0
"""fio's iolog, versions 2 and 3: the format that fio writes and replays.

    fio version 3 iolog
    0 /dev/nvme0n1 add
    1 /dev/nvme0n1 open
    138 /dev/nvme0n1 read 61440 4096

The numbers are offset and size in bytes. In version 3 a line begins with its time, in µs from the
start. In version 2 the times are lines of their own: `FILE wait N`. N is in ms from the start of
fio, since fio's code does so (iolog.c, read_iolog_get()); its manual says µs from the wait before.
A log without waits has all its requests at once. Lines of files and syncs move no data.
"""

from mqfair.traces.request import READ, TRIM, WRITE, MalformedError, Parse, Request, number

NAME = "iolog"
SUMMARY = "iolog of fio, versions 2 and 3"
HEADS = {"fio version 2 iolog": 2, "fio version 3 iolog": 3}
_OPS = {"read": READ, "write": WRITE, "trim": TRIM}
_WITHOUT_DATA = ("add", "open", "close", "sync", "datasync", "sync_file_range")
_US_NS = 1000
_MS_NS = 1000 * _US_NS


def parser() -> Parse:
    """A parser for one file: it remembers the version, and the last wait of version 2."""
    version = 0
    wait_ns = 0

    def parse(line: str) -> Request | None:
        nonlocal version, wait_ns
        if not version:
            version = HEADS.get(line.strip(), 0)
            if not version:
                raise MalformedError(line.strip(), f"the first line is {' or '.join(HEADS)}")
            return None
        words = line.split()
        at_ns = wait_ns
        if version == 3 and words:
            at_ns = number(words.pop(0), "the time in µs", _US_NS)
        if len(words) < 2:
            raise MalformedError(line.strip(), "write FILE ACTION, or FILE ACTION OFFSET BYTES")
        action = words[1]
        if action in _WITHOUT_DATA:
            return None
        if action == "wait" and version == 2 and len(words) >= 3:
            wait_ns = max(wait_ns, number(words[2], "a wait in ms", _MS_NS))
            return None
        if action not in _OPS:
            raise MalformedError(action, f"an action is {', '.join((*_OPS, *_WITHOUT_DATA))}")
        if len(words) != 4:
            raise MalformedError(line.strip(), f"write FILE {action} OFFSET BYTES")
        return Request(
            at_ns,
            _OPS[action],
            number(words[2], "the offset in bytes"),
            number(words[3], "the size in bytes"),
            words[0],
        )

    return parse


def matches(line: str) -> bool:
    return line.strip() in HEADS
