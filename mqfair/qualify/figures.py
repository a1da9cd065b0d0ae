# SPDX-License-Identifier: GPL-2.0
"""The tables and the sentences of a qualification, from its JSON alone.

A cell has the median over the repeats, and the least and the greatest in brackets. The last column
relates the first figure to that of none in the same repeat.
"""

import functools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqfair.bench.variant import NONE, is_ours
from mqfair.qualify.loads import OFF, READER, without_isolation
from mqfair.report.compare import per_io, worst_met

Document = dict[str, Any]
Value = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class Metric:
    """A column: its title, and the figure of a run, None where the run has none."""

    title: str
    value: Value


@dataclass(frozen=True)
class Section:
    """A table of the loads that are named @load, or @load and a depth."""

    title: str
    how_to_read: str
    load: str
    metrics: tuple[Metric, ...]

    def loads(self, document: Document) -> list[Document]:
        return [one for one in document["benches"] if one["job"].rpartition("-")[0] == self.load
                or one["job"] == self.load]  # fmt: skip


def _of(group: str, value: Value) -> Value:
    def find(run: Mapping[str, Any]) -> float | None:
        return next((value(one) for one in run["cgroups"] if one["name"] == group), None)

    return find


def _figure(title: str, run: Mapping[str, Any]) -> float | None:
    return dict(per_io(run)).get(title)


def _latency(name: str) -> Value:
    return lambda one: one["lat_ns"][name] / 1000


def _iops(run: Mapping[str, Any]) -> float | None:
    return float(run["total_iops"])


def _mib_per_s(run: Mapping[str, Any]) -> float | None:
    return float(run["total_bytes_per_s"]) / (1 << 20)


WORK = tuple(
    Metric(title, functools.partial(_figure, title))
    for title in ("CPU µs per I/O", "instructions per I/O", "cycles per I/O", "switches per I/O")
)
SHARES = (
    Metric("worst got / due", worst_met),
    Metric("IOPS", _iops),
    WORK[0],
)
SECTIONS = (
    Section(
        "One request at a time",
        "A reader alone on the drive. The work of all processors is counted, fio's own included.",
        "one",
        (
            Metric("p50 µs", _of(READER, _latency("p50"))),
            Metric("p99 µs", _of(READER, _latency("p99"))),
            *WORK,
        ),
    ),
    Section(
        "Peak",
        "One cgroup with a job on each CPU, up to eight, and 64 requests outstanding in each.",
        "peak",
        (Metric("IOPS", _iops), *WORK),
    ),
    Section(
        "Shares of two cgroups",
        "Weights 100 and 300. The number of the load is that of each cgroup's requests. A worst"
        " cgroup of 1 means that both have their due.",
        "two",
        SHARES,
    ),
    Section("Shares of four cgroups", "Weights 100, 250, 500 and 1000.", "four", SHARES),
    Section(
        "A lone reader",
        "A reader of weight 1000 with one request at a time, beside a cgroup of weight 100 with as"
        " many reads of 64 KiB as the number of the load. Without isolation (isolation=0) the"
        " scheduler gives up no work for the reader.",
        READER,
        (
            Metric("total MiB/s", _mib_per_s),
            Metric("reader's IOPS", _of(READER, lambda one: one["iops"])),
            Metric("reader's p99 µs", _of(READER, _latency("p99"))),
        ),
    ),
    Section(
        "A mixture",
        "Small reads, a scan of 128 KiB reads and a lone reader; in a destructive qualification a"
        " writer, too.",
        "mixed",
        (
            Metric("total MiB/s", _mib_per_s),
            Metric("worst got / due", worst_met),
            Metric("reader's p99 µs", _of(READER, _latency("p99"))),
        ),
    ),
    Section("Writes", "Two cgroups of weights 100 and 300 that write 4 KiB.", "writes", SHARES),
)


def by_scheduler(bench: Document) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for run in bench["runs"]:
        found.setdefault(run["scheduler"], []).append(run)
    return found


def values(runs: Sequence[Mapping[str, Any]], value: Value) -> list[float]:
    return [one for one in map(value, runs) if one is not None]


def ratios(bench: Document, scheduler: str, other: str, value: Value) -> list[float]:
    """The figure under @scheduler over that under @other, in each repeat that has both."""
    runs = by_scheduler(bench)
    below = {run["repeat"]: value(run) for run in runs.get(other, [])}
    pairs = [(value(run), below.get(run["repeat"])) for run in runs.get(scheduler, [])]
    return [a / b for a, b in pairs if a is not None and b]


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def spread(found: Sequence[float], form: Callable[[float], str] = number) -> str:
    """The median, and both ends; - for nothing."""
    if not found:
        return "-"
    return f"{form(statistics.median(found))} ({form(min(found))} .. {form(max(found))})"


def _ratio(value: float) -> str:
    return f"{value:.2f}"


def rows(section: Section, document: Document) -> list[list[str]]:
    """The table of @section, its first line the titles; empty if no load of it was run. A figure
    that no run has gets no column."""
    loads = section.loads(document)
    runs = [run for bench in loads for run in bench["runs"]]
    if not runs:
        return []
    metrics = [one for one in section.metrics if values(runs, one.value)]
    titles = [one.title for one in metrics]
    found = [["load", "scheduler", *titles, f"{titles[0]}, of none's"]]
    for bench in loads:
        for scheduler, members in by_scheduler(bench).items():
            cells = [spread(values(members, one.value)) for one in metrics]
            beside = ratios(bench, scheduler, NONE, metrics[0].value)
            found.append([bench["job"], scheduler, *cells, spread(beside, _ratio)])
    return found


def _ours(document: Document) -> list[str]:
    names = (run["scheduler"] for bench in document["benches"] for run in bench["runs"])
    return [name for name in dict.fromkeys(names) if is_ours(name) and not name.endswith(OFF)]


def _section(load: str) -> Section:
    return next(one for one in SECTIONS if one.load == load)


def _least_met(loads: Sequence[Document], scheduler: str) -> list[float]:
    """What the worst cgroup got of its due, in the load with the least median."""
    found = [values(by_scheduler(bench).get(scheduler, []), worst_met) for bench in loads]
    return min((one for one in found if one), key=statistics.median, default=[])


def _of_peak(document: Document, ours: str) -> Iterator[str]:
    for bench in _section("peak").loads(document):
        found = ratios(bench, ours, NONE, _iops)
        if found:
            yield f"{ours} reaches {spread(found, _ratio)} of none's peak."


def _of_shares(document: Document, ours: str) -> Iterator[str]:
    for load in ("two", "four"):
        loads = _section(load).loads(document)
        met, plain = _least_met(loads, ours), _least_met(loads, NONE)
        if met and plain:
            yield (
                f"Of {load} cgroups the worst gets at least {spread(met, _ratio)} of its due under"
                f" {ours}, and {spread(plain, _ratio)} under none."
            )


def _of_reader(document: Document, ours: str) -> Iterator[str]:
    loads = _section(READER).loads(document)
    if not loads:
        return
    deepest = loads[-1]
    p99 = _of(READER, _latency("p99"))
    times, plain = (values(by_scheduler(deepest).get(one, []), p99) for one in (ours, NONE))
    if times and plain:
        yield (
            f"In {deepest['job']} the reader's p99 is {spread(times)} µs under {ours}, and"
            f" {spread(plain)} µs under none."
        )
    kept = ratios(deepest, ours, without_isolation(ours), _mib_per_s)
    if kept:
        yield (
            f"In {deepest['job']} {ours} moves {spread(kept, _ratio)} of the bytes that it moves"
            " with isolation=0: the price of isolation."
        )


def sentences(document: Document) -> list[str]:
    """What the figures say, for each scheduler of ours."""
    return [
        sentence
        for ours in _ours(document)
        for part in (_of_peak, _of_shares, _of_reader)
        for sentence in part(document, ours)
    ]
