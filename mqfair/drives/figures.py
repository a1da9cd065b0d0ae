# SPDX-License-Identifier: GPL-2.0
"""Measured or published figures of a drive, which a model should have."""

import re
from dataclasses import dataclass

from mqfair.text.output import human_bytes

# The kinds of load, as fio names them: whether it writes, and whether places are random.
LOADS = {
    "randread": (False, True),
    "read": (False, False),
    "randwrite": (True, True),
    "write": (True, False),
}
LATENCY, P99, IOPS, RATE = "latency_us", "p99_us", "iops", "mb_per_s"
# The kinds of figure, with a unit.
WHATS = {LATENCY: "us", P99: "us", IOPS: "IOPS", RATE: "MB/s"}
BYTES_MOST = 1 << 20
DEPTH_MOST = 65536
JOBS_MOST = 256
VALUE_MOST = 1e9
SECTOR = 512
# A request of this size or more is judged by its rate in bytes.
LARGE_BYTES = 32768
_SIZE = re.compile(r"(\d{1,9})(k|m)?(i?b)?", re.IGNORECASE)


@dataclass(frozen=True)
class Load:
    """@jobs processes, each with @depth requests of @bytes outstanding. With @host the figures
    contain the CPU time of a host, and each process has a CPU."""

    rw: str
    bytes: int
    depth: int
    jobs: int
    host: bool

    @property
    def writes(self) -> bool:
        return LOADS[self.rw][0]

    @property
    def random(self) -> bool:
        return LOADS[self.rw][1]

    @property
    def outstanding(self) -> int:
        return self.depth * self.jobs

    def __str__(self) -> str:
        size = human_bytes(self.bytes).replace(".0 ", " ")
        times = f" x {self.jobs}" if self.jobs > 1 else ""
        return f"{self.rw} {size}, depth {self.depth}{times}"


@dataclass(frozen=True)
class Figure:
    """A figure of one of the kinds in WHATS, in its unit. @place is that of the input."""

    load: Load
    what: str
    value: float
    place: str

    @property
    def iops(self) -> float:
        """The requests per second that the figure stands for."""
        if self.what == IOPS:
            return self.value
        if self.what == RATE:
            return self.value * 1e6 / self.load.bytes
        return self.load.outstanding * 1e6 / self.value


def size_of(text: str) -> int | None:
    """The bytes of a size such as 4k; None if @text is none, or no size of a request."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        return None
    size = int(found[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[(found[2] or "").lower()]
    return size if size % SECTOR == 0 and SECTOR <= size <= BYTES_MOST else None
