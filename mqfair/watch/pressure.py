# SPDX-License-Identifier: GPL-2.0
"""The pressure of a cgroup: the kernel's account of the time for which its tasks waited for I/O.

io.pressure of a cgroup counts for all drives, with or without a scheduler of mqfair, and for the
tasks of the cgroup and of all below it. A kernel that was booted without PSI has no such file.

    some avg10=46.80 avg60=31.29 avg300=9.52 total=32201422
    full avg10=43.51 avg60=28.72 avg300=8.72 total=29547030
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

FILE = "io.pressure"
PPM = 1_000_000

_LINES = re.compile(
    rb"some avg10=(\d+\.\d+) .*total=(\d+)(?:\nfull avg10=(\d+\.\d+) .*total=(\d+))?$", re.MULTILINE
)


class Pressure(NamedTuple):
    """Microseconds for which some task waited for I/O, and those for which all tasks did."""

    some_us: int
    full_us: int


class Part(NamedTuple):
    """The same as parts of the time between two samples, in millionths."""

    some_ppm: int
    full_ppm: int


NONE = Part(0, 0)


def parse(text: bytes | None) -> Pressure | None:
    found = _LINES.match(text or b"")
    return Pressure(int(found[2]), int(found[4] or 0)) if found else None


def last_10_s(text: bytes | None) -> tuple[float, float] | None:
    """The kernel's means of the last 10 s in percent, some and full."""
    found = _LINES.match(text or b"")
    return (float(found[1]), float(found[3] or 0)) if found else None


def parts(
    before: Mapping[str, Pressure], after: Mapping[str, Pressure], seconds: float
) -> dict[str, Part]:
    """The pressure in the @seconds between two samples. A cgroup that was made meanwhile has
    none: its counter may be that of an older cgroup of its name."""
    found = {}
    for name, now in after.items():
        was = before.get(name)
        if was == now:
            found[name] = NONE
        elif was is not None and now.some_us >= was.some_us:
            found[name] = Part(
                _part(now.some_us - was.some_us, seconds), _part(now.full_us - was.full_us, seconds)
            )
    return found


def _part(us: int, seconds: float) -> int:
    return max(min(round(us / seconds), PPM), 0)
