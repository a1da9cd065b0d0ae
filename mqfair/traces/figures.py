# SPDX-License-Identifier: GPL-2.0
"""Counts, sizes and rates of a trace, as a whole and by source. Memory grows with the number of
sources and of different sizes, and not with the number of requests."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mqfair.traces.request import NS, READ, REPLAYED_MOST, SECTOR, TRIM, Request


@dataclass
class Figures:
    """Times are ns, sizes bytes. @sequential counts the requests that begin where the one before of
    the same source ends. @unaligned counts those that a drive of 512-byte sectors refuses,
    and @large those, without trims, that are too large for a replay."""

    requests: int = 0
    reads: int = 0
    trims: int = 0
    bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    sequential: int = 0
    unaligned: int = 0
    large: int = 0
    end: int = 0
    peak: int = 0
    sizes: Counter[int] = field(default_factory=Counter)
    _second: int = -1
    _in_second: int = 0

    def add(self, request: Request, *, sequential: bool) -> None:
        if not self.requests:
            self.first_ns = request.at_ns
        self.requests += 1
        self.reads += request.op == READ
        self.trims += request.op == TRIM
        self.bytes += request.bytes
        self.last_ns = request.at_ns
        self.sequential += sequential
        self.unaligned += bool(request.offset % SECTOR or request.bytes % SECTOR)
        self.large += request.op != TRIM and request.bytes > REPLAYED_MOST
        self.end = max(self.end, request.offset + request.bytes)
        self.sizes[request.bytes] += 1
        second = request.at_ns // NS
        self._in_second = self._in_second + 1 if second == self._second else 1
        self._second = second
        self.peak = max(self.peak, self._in_second)

    @property
    def seconds(self) -> float:
        """From the first arrival to the last."""
        return (self.last_ns - self.first_ns) / NS

    @property
    def iops(self) -> float:
        """Arrivals per second; 0 for a trace of one moment."""
        return (self.requests - 1) / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_s(self) -> float:
        return self.iops * self.bytes / self.requests if self.requests else 0.0

    @property
    def median_bytes(self) -> int:
        left = (self.requests + 1) // 2
        for size in sorted(self.sizes):
            left -= self.sizes[size]
            if left <= 0:
                return size
        return 0

    def document(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "reads": self.reads,
            "trims": self.trims,
            "bytes": self.bytes,
            "mean_bytes": self.bytes / self.requests if self.requests else 0.0,
            "median_bytes": self.median_bytes,
            "largest_bytes": max(self.sizes, default=0),
            "seconds": self.seconds,
            "iops": self.iops,
            "peak_iops": self.peak,
            "bytes_per_s": self.bytes_per_s,
            "sequential": self.sequential,
            "unaligned": self.unaligned,
            "end": self.end,
        }


@dataclass
class Description:
    whole: Figures = field(default_factory=Figures)
    sources: dict[str, Figures] = field(default_factory=dict)


def describe(requests: Iterable[Request]) -> Description:
    found = Description()
    ends: dict[str, int] = {}
    for request in requests:
        sequential = ends.get(request.source) == request.offset
        ends[request.source] = request.offset + request.bytes
        found.whole.add(request, sequential=sequential)
        found.sources.setdefault(request.source, Figures()).add(request, sequential=sequential)
    return found
