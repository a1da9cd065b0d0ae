# SPDX-License-Identifier: GPL-2.0
"""The figures of each cgroup in the time in which all ran, from one log line per I/O.

fio logs three numbers for each completed I/O:

  - the time of completion, in ms of the monotonic clock,
  - the latency from submission to completion in ns, including the wait for a free request,
  - the size.

All jobs start at one moment, but on a busy or emulated machine their first I/Os may be half a
second apart. So fio's own totals are not used. A job runs from the submission of its first I/O to
the completion of its last. The completions in this window are counted:

    [latest start + ramp, the same + runtime], cut at the earliest end

fio runs the jobs longer than ramp and runtime, so that a late start does not shorten the window.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mqfair.text.errors import Failure

# The least part of the requested runtime in which all jobs must have run together.
LEAST_OVERLAP = 0.3

_COLUMN_TIME, _COLUMN_LATENCY, _COLUMN_BYTES = 0, 1, 3

_PER_MILLE = {"p50": 500, "p99": 990, "p999": 999}

Integers = npt.NDArray[np.int64]

# Latencies in buckets of 1/16 of an octave: the last ns of each bucket, and the I/Os in it.
Histogram = Sequence[tuple[int, int]]
HISTOGRAM_SHIFT = 4  # as in sim/stats.h


@dataclass(frozen=True)
class Completions:
    """The completed I/Os of one thread, in their order, or of all threads of a cgroup."""

    time_ms: Integers
    latency_ns: Integers
    size_bytes: Integers

    def __len__(self) -> int:
        return len(self.time_ms)

    @property
    def start_ms(self) -> float:
        return float(np.min(self.time_ms - self.latency_ns / 1e6))

    @property
    def end_ms(self) -> float:
        return float(np.max(self.time_ms))


@dataclass(frozen=True)
class Window:
    """Times in ms of the monotonic clock."""

    start_ms: float
    end_ms: float

    @property
    def seconds(self) -> float:
        return (self.end_ms - self.start_ms) / 1000


@dataclass(frozen=True)
class Usage:
    """The figures of one cgroup in a window."""

    iops: float
    bytes_per_s: float
    latency_ns: Mapping[str, float]
    histogram: Histogram = ()


def read_log(path: Path, mend: str) -> Completions:
    """The I/Os of one latency log of fio; raises Failure with @mend if it is not one, or if its
    last line is cut."""
    if path.stat().st_size == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return Completions(nothing, nothing, nothing)
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            raise Failure(f"{path}: its last line is cut: {mend}")
    try:
        rows = np.loadtxt(
            path,
            dtype=np.int64,
            delimiter=",",
            usecols=(_COLUMN_TIME, _COLUMN_LATENCY, _COLUMN_BYTES),
            ndmin=2,
        )
    except ValueError as error:
        raise Failure(f"{path}: not a latency log of fio: {error}: {mend}") from error
    return Completions(rows[:, 0], rows[:, 1], rows[:, 2])


def merge(threads: Iterable[Completions]) -> Completions:
    members = list(threads)
    return Completions(
        np.concatenate([member.time_ms for member in members]),
        np.concatenate([member.latency_ns for member in members]),
        np.concatenate([member.size_bytes for member in members]),
    )


def common_window(threads: Sequence[Completions], ramp_s: float, runtime_s: float) -> Window:
    """The time in which all @threads ran, after the ramp. Raises Failure if it is much shorter than
    @runtime_s."""
    start = max(thread.start_ms for thread in threads) + ramp_s * 1000
    end = min(start + runtime_s * 1000, *(thread.end_ms for thread in threads))
    window = Window(start, end)
    if window.seconds < LEAST_OVERLAP * runtime_s:
        raise Failure(
            f"the jobs ran together for {max(window.seconds, 0):.1f} s of {runtime_s:.1f} s:"
            " raise the runtime, or take load off the machine"
        )
    return window


def usage(completions: Completions, window: Window) -> Usage:
    inside = (completions.time_ms > window.start_ms) & (completions.time_ms <= window.end_ms)
    count = int(np.count_nonzero(inside))
    total = int(completions.size_bytes[inside].sum())
    return Usage(
        count / window.seconds,
        total / window.seconds,
        latency_statistics(completions.latency_ns[inside]),
        histogram(completions.latency_ns[inside]),
    )


def latency_statistics(latency_ns: Integers) -> dict[str, float]:
    """Mean and percentiles in ns. A percentile is the least latency in the data that the given part
    of the I/Os does not exceed."""
    count = len(latency_ns)
    if count == 0:
        return {"mean": 0.0, **dict.fromkeys(_PER_MILLE, 0.0)}
    ordered = np.sort(latency_ns)
    ranks = {name: -(-count * part // 1000) for name, part in _PER_MILLE.items()}
    return {
        "mean": float(np.mean(ordered)),
        **{name: float(ordered[rank - 1]) for name, rank in ranks.items()},
    }


def histogram(latency_ns: Integers) -> Histogram:
    """The buckets with an I/O, in their order."""
    # The exponent of frexp() is the number of bits.
    octaves = np.maximum(np.frexp(latency_ns)[1] - 1 - HISTOGRAM_SHIFT, 0).astype(np.int64)
    ends, counts = np.unique((((latency_ns >> octaves) + 1) << octaves) - 1, return_counts=True)
    return tuple(zip(ends.tolist(), counts.tolist(), strict=True))


def timeline(completions: Completions, origin_ms: float, end_ms: float, step_ms: int) -> Integers:
    """The bytes completed in each step of @step_ms from @origin_ms to @end_ms."""
    edges = np.arange(origin_ms, end_ms + step_ms, step_ms)
    sums, _ = np.histogram(completions.time_ms, bins=edges, weights=completions.size_bytes)
    return sums.astype(np.int64)
