# SPDX-License-Identifier: GPL-2.0
"""Computes a document of schema mqfair.bench/2 from the files of the runner.

    where    {kernel, accel, cpus, device, versions}
    runs     [{scheduler, repeat, total_iops, total_bytes_per_s, jain,
               cgroups: [{name, weight, due, share, iops, bytes_per_s,
                          lat_ns: {mean, p50, p99, p999}, backlogged,
                          lat_histogram: {end_ns: [], requests: []}}],
               seed, tunables, depth: {interval_ms, inside: [], window: []},
               pressure: {...}, limit, cpu: {...}}]
    summary  [{scheduler, worst, met, total_iops, ratio_to_none, jain, min: {...}, max: {...}}]

A scheduler is identified by its label, such as mqfq or mqfq:depth=64. Shares and dues are of bytes,
because weights divide bytes. A ratio is relative to none's run in the same repeat. The summary has
medians, and in min and max the extremes of the same figures. `worst` is the cgroup with the least
share / due, which is `met`. The simulator alone knows the fields from seed to limit. `cpu` is the
counted work of the processors in a condensed bench. With --solo there is also

    solo     [{scheduler, repeat, cgroup, alone_bytes_per_s, shared_bytes_per_s, slowdown}]

If schedulers could not run there is also

    left_out {scheduler: reason}
"""

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mqfair.bench.fairness import jain
from mqfair.bench.plan import FIGURES, RECORD, SCHEMA, TIMELINE_SCHEMA, Case
from mqfair.bench.variant import NONE
from mqfair.bench.window import (
    Completions,
    Histogram,
    Usage,
    common_window,
    merge,
    read_log,
    timeline,
    usage,
)
from mqfair.due import due_of_cgroups
from mqfair.manual.json_check import load
from mqfair.manual.json_forms import node_of
from mqfair.text.errors import Failure

TIMELINE_STEP_MS = 100
DIRECTIONS = ("read", "write", "trim")

# Without a solo run, a cgroup with fewer than 4 requests outstanding gets what it asks for. The
# mean of a load that keeps 4 is a little lower.
BACKLOG_LEAST = 3.5

Document = dict[str, Any]

# The use of a drive by the cgroups of a run, and of each cgroup alone in bytes per second, by
# scheduler, repeat and name.
Used = Mapping[str, Usage]
Alone = dict[tuple[str, int, str], float]


@dataclass(frozen=True)
class CgroupResult:
    """@due and @share are parts of the bytes of all. The cgroup is @backlogged if it asks for more
    than its due."""

    name: str
    weight: int
    due: float
    share: float
    iops: float
    bytes_per_s: float
    lat_ns: Mapping[str, float]
    backlogged: bool = True
    lat_histogram: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def met(self) -> float:
        """The part of its due that the cgroup got."""
        return self.share / self.due if self.due else 1.0


@dataclass(frozen=True)
class RunResult:
    """@details are further fields of the run in the document."""

    scheduler: str
    repeat: int
    total_iops: float
    total_bytes_per_s: float
    jain: float
    cgroups: tuple[CgroupResult, ...]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_backlogged(self) -> bool:
        """Only then Jain's index tells of the scheduler alone."""
        return all(one.backlogged for one in self.cgroups)


@dataclass(frozen=True)
class SoloResult:
    scheduler: str
    repeat: int
    cgroup: str
    alone_bytes_per_s: float
    shared_bytes_per_s: float
    slowdown: float | None


@dataclass(frozen=True)
class Recorded:
    """One run's folder: the time when all jobs had started, and the completions of their threads
    by cgroup. A condensed run has the use of the drive by cgroup instead, and @cpu, the work of the
    processors."""

    scheduler: str
    repeat: int
    only: str | None
    started_ms: float
    threads: Mapping[str, tuple[Completions, ...]]
    used: Used | None = None
    cpu: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CaseResult:
    """@left_out are the schedulers that could not run, with the reasons."""

    case: Case
    runs: tuple[RunResult, ...]
    solo: tuple[SoloResult, ...]
    timeline: Document
    left_out: Mapping[str, str] = field(default_factory=dict)


_RECORD = node_of("""
case text
scheduler text
repeat count
only text|null
groups list
groups[] text
started_ms number
cpu object?
cpu.* integer
sched_tags count?
""")
_FIGURES = node_of("""
* object
*.iops number
*.bytes_per_s number
*.latency_ns object
*.latency_ns.* number
*.histogram list
*.histogram[] list
*.histogram[][] count
""")
# Of fio's own result.
_COUNTED = node_of(
    "jobs list\njobs[] object\n"
    + "".join(
        f"jobs[].{one} object\njobs[].{one}.lat_ns object\njobs[].{one}.lat_ns.N count\n"
        for one in DIRECTIONS
    )
)

# A log of more than LOG_ENTRIES lines loses a few of a million lines while fio extends it. A
# greater loss means that fio had no memory and that the shares are not reliable.
MOST_LOST = 0.001


def read_runs(folder: Path, case: Case) -> Iterator[Recorded]:
    """The runs of @case in @folder; raises Failure if their logs are incomplete."""
    for path, record in read_records(folder):
        if record["case"] != case.name:
            continue
        figures = path.parent / FIGURES
        condensed = figures.exists()
        yield Recorded(
            record["scheduler"],
            record["repeat"],
            record["only"],
            record["started_ms"],
            {} if condensed else _read_threads(path.parent, record["groups"]),
            _read_figures(figures) if condensed else None,
            record.get("cpu", {}),
        )


def read_records(folder: Path) -> Iterator[tuple[Path, Document]]:
    """The records of the finished runs in @folder. Raises Failure for a damaged one."""
    for path in sorted(folder.glob(f"[0-9]*/{RECORD}")):
        yield path, load(path, _RECORD, made_again(path))


def made_again(path: Path) -> str:
    """The mend for the damaged file @path of a run."""
    return f"remove the folder {path.parent}, and add --resume"


def condense(folder: Path, case: Case, scheduler: str, groups: Sequence[str]) -> str:
    """The figures of the run in @folder as JSON, which take the place of its logs. Raises Failure
    for incomplete logs."""
    used = _usages(Recorded(scheduler, 0, None, 0.0, _read_threads(folder, groups)), case)
    return json.dumps({name: asdict(one) for name, one in used.items()})


def _read_figures(path: Path) -> Used:
    return {
        name: Usage(one["iops"], one["bytes_per_s"], one["latency_ns"], one["histogram"])
        for name, one in load(path, _FIGURES, made_again(path)).items()
    }


def _read_threads(folder: Path, groups: Sequence[str]) -> dict[str, tuple[Completions, ...]]:
    """The completions by cgroup; raises Failure if fio logged fewer I/Os than it counted."""
    threads = {
        name: tuple(
            read_log(path, made_again(path)) for path in sorted(folder.glob(f"{index}_lat.*.log"))
        )
        for index, name in enumerate(groups)
    }
    idle = [name for name, members in threads.items() if not members or not all(members)]
    if idle:
        raise Failure(f"a job of cgroup {idle[0]} did no I/O: correct its options in the job file")
    path = folder / "fio.json"
    jobs = load(path, _COUNTED, made_again(path))["jobs"]
    counted = sum(job[direction]["lat_ns"]["N"] for job in jobs for direction in DIRECTIONS)
    logged = sum(len(thread) for members in threads.values() for thread in members)
    if counted - logged > counted * MOST_LOST:
        raise Failure(
            f"fio counted {counted} I/Os and logged {logged}, for lack of memory: use a shorter"
            " runtime or more memory"
        )
    return threads


def analyse(folder: Path, case: Case) -> CaseResult:
    """The results of @case from the runner's files in @folder; raises Failure."""
    shared: list[tuple[str, int, Used]] = []
    alone: Alone = {}
    steps: list[Document] = []
    counted: dict[tuple[str, int], Document] = {}
    for recorded in read_runs(folder, case):
        used = _usages(recorded, case)
        require_requests(case.name, recorded.scheduler, used)
        if recorded.only is not None:
            key = (recorded.scheduler, recorded.repeat, recorded.only)
            alone[key] = used[recorded.only].bytes_per_s
        else:
            shared.append((recorded.scheduler, recorded.repeat, used))
            if recorded.cpu:
                counted[recorded.scheduler, recorded.repeat] = {"cpu": dict(recorded.cpu)}
            if recorded.threads:
                steps.append(_timeline(recorded))
    whole = {"schema": TIMELINE_SCHEMA, "interval_ms": TIMELINE_STEP_MS, "runs": steps}
    found = case_result(case, shared, alone, whole)
    runs = tuple(
        replace(run, details=counted.get((run.scheduler, run.repeat), {})) for run in found.runs
    )
    return replace(found, runs=runs)


def case_result(
    case: Case, shared: Sequence[tuple[str, int, Used]], alone: Alone, timeline: Document
) -> CaseResult:
    """The result of the runs of all cgroups together, by scheduler and repeat, and of each one
    alone."""
    runs = tuple(run_result(label, repeat, case, used, alone) for label, repeat, used in shared)
    return CaseResult(case, runs, tuple(solo_results(runs, alone)), timeline)


def _usages(recorded: Recorded, case: Case) -> Used:
    if recorded.used is not None:
        return recorded.used
    every = [thread for threads in recorded.threads.values() for thread in threads]
    try:
        window = common_window(every, case.ramp_s, case.window_s)
    except Failure as error:
        raise Failure(f"{case.name}, {recorded.scheduler}: {error}") from error
    return {name: usage(merge(threads), window) for name, threads in recorded.threads.items()}


def require_requests(case: str, scheduler: str, used: Used) -> None:
    """Raises Failure if no request of any cgroup was counted, so that there is no result."""
    if not any(one.iops for one in used.values()):
        raise Failure(
            f"{case}, {scheduler}: no request was completed in the time that is counted: raise"
            " runtime, or lower ramp_time and the size of the requests"
        )


def run_result(
    scheduler: str, repeat: int, case: Case, used: Used, alone: Alone | None = None
) -> RunResult:
    total = sum(one.bytes_per_s for one in used.values())
    known = alone or {}
    demands = {
        name: _demand(one, [known.get((label, repeat, name)) for label in (NONE, scheduler)])
        for name, one in used.items()
    }
    due = due_of_cgroups(case.weights, demands, total)
    groups = tuple(
        CgroupResult(
            name,
            case.weights[name],
            due[name] / total if total else 0.0,
            one.bytes_per_s / total if total else 0.0,
            one.iops,
            one.bytes_per_s,
            one.latency_ns,
            due[name] < demands[name],
            _parallel(one.histogram),
        )
        for name, one in used.items()
    )
    iops = sum(one.iops for one in used.values())
    return RunResult(scheduler, repeat, iops, total, jain([one.met for one in groups]), groups)


def _parallel(histogram: Histogram) -> dict[str, list[int]]:
    return {
        "end_ns": [end for end, _ in histogram],
        "requests": [requests for _, requests in histogram],
    }


def _demand(one: Usage, alone: Sequence[float | None]) -> float:
    """What a cgroup asks for, in bytes per second: the first of @alone that is known. Without one,
    a cgroup that keeps few requests outstanding, by Little's law, asks for what it gets, and any
    other one for all."""
    known = next((rate for rate in alone if rate is not None), None)
    if known is not None:
        return known
    outstanding = one.iops * one.latency_ns["mean"] / 1e9
    return one.bytes_per_s if one.iops and outstanding < BACKLOG_LEAST else math.inf


def solo_results(runs: Sequence[RunResult], alone: Alone) -> Iterator[SoloResult]:
    for run in runs:
        for group in run.cgroups:
            undisturbed = alone.get((run.scheduler, run.repeat, group.name))
            if undisturbed is None:
                continue
            slowdown = undisturbed / group.bytes_per_s if group.bytes_per_s else None
            yield SoloResult(
                run.scheduler, run.repeat, group.name, undisturbed, group.bytes_per_s, slowdown
            )


def _timeline(recorded: Recorded) -> Document:
    merged = {name: merge(threads) for name, threads in recorded.threads.items()}
    end_ms = max(completions.end_ms for completions in merged.values())
    return {
        "scheduler": recorded.scheduler,
        "repeat": recorded.repeat,
        "cgroups": [
            {
                "name": name,
                "bytes": timeline(
                    completions, recorded.started_ms, end_ms, TIMELINE_STEP_MS
                ).tolist(),
            }
            for name, completions in merged.items()
        ],
    }


def ratios_to_none(runs: Sequence[RunResult], scheduler: str) -> list[float]:
    """The total IOPS of each repeat relative to none's; empty if none did not run."""
    reference = {run.repeat: run.total_iops for run in runs if run.scheduler == NONE}
    return [
        run.total_iops / reference[run.repeat]
        for run in runs
        if run.scheduler == scheduler and reference.get(run.repeat)
    ]


def summarise(runs: Sequence[RunResult]) -> list[Document]:
    return [_summary(runs, name) for name in dict.fromkeys(run.scheduler for run in runs)]


def _summary(runs: Sequence[RunResult], scheduler: str) -> Document:
    own = [run for run in runs if run.scheduler == scheduler]
    worst = _worst(own)
    figures: dict[str, list[float]] = {
        "met": [one.met for run in own for one in run.cgroups if one.name == worst],
        "total_iops": [run.total_iops for run in own],
        "ratio_to_none": ratios_to_none(runs, scheduler),
        "jain": [run.jain for run in own] if all(run.all_backlogged for run in own) else [],
    }
    return {
        "scheduler": scheduler,
        "worst": worst,
        **{name: statistics.median(values) if values else None for name, values in figures.items()},
        "min": {name: min(values, default=None) for name, values in figures.items()},
        "max": {name: max(values, default=None) for name, values in figures.items()},
    }


def _worst(runs: Sequence[RunResult]) -> str | None:
    """The cgroup with the least median part of its due."""
    met: dict[str, list[float]] = {}
    for run in runs:
        for one in run.cgroups:
            met.setdefault(one.name, []).append(one.met)
    return min(met, key=lambda name: statistics.median(met[name]), default=None)


def _written(run: RunResult) -> Document:
    details = dict(run.details)
    return {name: value for name, value in asdict(run).items() if name != "details"} | details


def document(result: CaseResult, where: Document, notes: Sequence[str]) -> Document:
    built: Document = {
        "schema": SCHEMA,
        "job": result.case.name,
        "where": where,
        "notes": list(notes),
        "runs": [_written(run) for run in result.runs],
        "summary": summarise(result.runs),
    }
    if result.solo:
        built["solo"] = [asdict(one) for one in result.solo]
    if result.left_out:
        built["left_out"] = dict(result.left_out)
    return built
