# SPDX-License-Identifier: GPL-2.0
"""The figures that a model has: short runs of the simulator without a scheduler."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mqfair.bench.simulated import program
from mqfair.bench.simulated.prices import FREE
from mqfair.drives.figures import IOPS, LATENCY, P99, RATE, Figure, Load
from mqfair.drives.model_file import Model
from mqfair.text.errors import UsageError

_MIB = 1 << 20
# Requests of a run, and the bounds of its time.
_READS = 4000
_MS_LEAST, _MS_MOST = 4, 400
# Writes go on until the write buffer is full, and random ones until collection has its pace.
_WRITE_WARM_MS, _WRITE_MS = 100, 200
_STEADY_BYTES = 192 * _MIB
_STEADY_MS_MOST = 2000
# A drive that is read needs a block for each die, and one that is written spare blocks in each.
_READ_MIB = 256
_WRITE_MIB = 1024
_STEADY_MIB = 4096
# As in simulated/drive.py and simulated/session.py.
_REQUEST_BYTES = 512 << 10
_WAKE_NS = 2000

# The orders in which a drive that is read at random was written; reads in order need the first.
FILLS = ("sequential", "random")
# The way from a flow's figures in sim-run to those of this room.
_TAKEN: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    LATENCY: lambda flow: flow["mean_ns"] / 1000,
    P99: lambda flow: flow["p99_ns"] / 1000,
    IOPS: lambda flow: flow["iops"],
    RATE: lambda flow: flow["bytes_per_s"] / 1e6,
}


class Measurement:
    """Measures models by runs of @binary, the program sim-run, on all cores. A run that was played
    before is not played again. @fill is one of FILLS, and @request_ns the CPU time of a request in
    figures that contain the time of a host."""

    def __init__(self, binary: Path, fill: str, request_ns: int) -> None:
        self.binary = binary
        self.fill = fill
        self.request_ns = request_ns
        self.runs = 0
        self._known: dict[str, Mapping[str, Any]] = {}
        self._running = program.Processes()
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._running.end()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def values(self, model: Model, figures: Sequence[Figure]) -> list[float]:
        """The value of @model for each of @figures, in its unit. Raises Failure, or UsageError for
        a figure without a request in the time of a run."""
        rates = _rates(figures)
        texts = [self.description(model, one.load, rates[one.load]) for one in figures]
        self._play({text for text in texts if text not in self._known})
        found = []
        for one, text in zip(figures, texts, strict=True):
            if not self._known[text]["ios"]:
                raise UsageError(
                    f"{one.place}: {one.load}: {one.what} {one.value:g}: no request ends in"
                    f" {_MS_MOST} ms: check the figure, or leave it out"
                )
            found.append(_TAKEN[one.what](self._known[text]))
        return found

    def _play(self, texts: Iterable[str]) -> None:
        def one(text: str) -> Mapping[str, Any]:
            found: Mapping[str, Any] = program.play(self.binary, text, self._running)["flows"]["a"]
            return found

        wanted = sorted(texts)
        self._known.update(zip(wanted, self._pool.map(one, wanted), strict=True))
        self.runs += len(wanted)

    def description(self, model: Model, load: Load, iops: float) -> str:
        """The run of sim-run that measures @load on @model, at a rate near @iops."""
        warm_ms, run_ms = _times(load, iops)
        request_ns = self.request_ns if load.host else 0
        order = "random" if load.random else "sequential"
        write = 1000 if load.writes else 0
        words = f"depth {load.depth} bytes {load.bytes} order {order} write {write} reaped 1"
        lines = [
            "scheduler none",
            f"queues {load.jobs}",
            f"tag_maps {load.jobs}",
            f"most_bytes {_REQUEST_BYTES}",
            f"wake_ns {_WAKE_NS}",
            *FREE.statements(request_ns),
            f"model m {model.words}",
            f"drive m {self._filled(model, load)}",
            f"warm_ms {warm_ms}",
            f"run_ms {run_ms}",
            "audit end",
            "flow a weight 100",
            *(f"load a queue {queue} {words}" for queue in range(load.jobs)),
        ]
        return "\n".join(lines) + "\n"

    def _filled(self, model: Model, load: Load) -> str:
        """Size and filling of the drive. Random writes at a depth are those of a drive that has
        been written for long. A latency is that of writes which find room in the buffer."""
        block = model["program_pages"] * model["block_programs"] * model["page_bytes"]
        least = 2 * model["channels"] * model["dies"] * block // _MIB + 1
        if not load.writes:
            fill = self.fill if load.random else FILLS[0]
            return f"{max(_READ_MIB, least)} {fill}"
        if load.random and load.outstanding > 1 and not model["in_place"]:
            return f"{max(_STEADY_MIB, least)} steady"
        return f"{max(_WRITE_MIB, least)} sequential"


def _rates(figures: Sequence[Figure]) -> dict[Load, float]:
    """The requests per second of each load. All figures of a load come from one run, so a
    percentile counts only if there is no other."""
    ranked = sorted(figures, key=lambda one: one.what != P99)
    return {one.load: one.iops for one in ranked}


def _times(load: Load, iops: float) -> tuple[int, int]:
    """Warm-up and measured time in ms."""
    per_ms = iops / 1000
    if load.writes and load.outstanding > 1:
        written_ms = round(_STEADY_BYTES / (per_ms * load.bytes)) if load.random else 0
        return _WRITE_WARM_MS, min(max(_WRITE_MS, written_ms), _STEADY_MS_MOST)
    run_ms = min(max(_MS_LEAST, round(_READS / per_ms)), _MS_MOST)
    warm_ms = 2 + round(4 * load.outstanding / per_ms)
    return min(warm_ms, _MS_MOST), run_ms
