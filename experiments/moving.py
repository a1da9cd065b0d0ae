# SPDX-License-Identifier: GPL-2.0
"""Measures how soon the shares are right again after a change of demand.

In examples/moving-demand.fio the heaviest of four tenants reads for 2 s and is idle for 2 s, by
turns. Each start and each stop is a change. A tenant is active from its first submission to its
last completion. Two figures of the worst change are checked:

    settled after   the time after which Jain's index of the active tenants' shares is at least
                    RIGHT in every window of two periods until the next change
    total / none    the IOPS between the change and the next one, relative to none's whole run

Static caps (wdt:caps_mbps=N with the drive's throughput for N) are shown for comparison: bandwidth
that a capped tenant leaves unused stays unused.

    python3 -m experiments.moving --icount --picture build/moving-demand.png
"""

import argparse
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table

from experiments import harness, pictures
from experiments.harness import Candidate, Check
from mqfair.bench import jobfile, report, session
from mqfair.bench.fairness import jain
from mqfair.bench.plan import Case
from mqfair.bench.result import Document, Recorded, read_runs
from mqfair.bench.variant import NONE
from mqfair.bench.window import Completions, merge
from mqfair.due import due_of_cgroups

JOB = "moving-demand"
# The IOPS are those of the bench's default drive; the completion time is shorter than a step of
# the timeline.
DEVICE = (
    "null:irqmode=2,completion_nsec=10000000,submit_queues={queues},hw_queue_depth=40,"
    "shared_tag_bitmap=1,gb=4,poll_queues=0"
)
MOVING = "w1000"
# The default period_ms of kyber-fair and wdt.
PERIOD_MS = 100
STEP_MS = PERIOD_MS // 2
# At 4000 IOPS a window of two periods holds 43 I/Os of the lightest tenant. One I/O more or less
# for each of the drive's completion batches lowers Jain's index and is not unfairness.
RIGHT = 0.98
SETTLED_PERIODS = 2
# A tenant that submits nothing for this time is idle.
SILENCE_MS = 500
SCHEDULERS = "bfq,mqfq,kyber-fair,kyber-fair:work_conserving=0,wdt,wdt:caps_mbps=16"
LEAST_TOTAL: Mapping[str, float] = {"mqfq": 0.95, "kyber-fair": 0.95, "wdt": 0.90}


@dataclass(frozen=True)
class Phase:
    """The time between two changes, in which the same cgroups are active."""

    start_ms: float
    end_ms: float
    active: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """The figures of one phase. @settled_ms is infinite if the shares were not right at its end;
    @least_iops is the least of all windows."""

    scheduler: str
    repeat: int
    active: tuple[str, ...]
    settled_ms: float
    iops: float
    least_iops: float
    jain: float


@dataclass(frozen=True)
class Run:
    """One run of the bench, with the completions of each cgroup."""

    scheduler: str
    repeat: int
    started_ms: float
    done: Mapping[str, Completions]


def load_runs(folder: Path, case: Case) -> list[Run]:
    return [_run(recorded) for recorded in read_runs(folder, case)]


def _run(recorded: Recorded) -> Run:
    done = {name: merge(threads) for name, threads in recorded.threads.items()}
    return Run(recorded.scheduler, recorded.repeat, recorded.started_ms, done)


def busy_times(done: Completions) -> list[tuple[float, float]]:
    """The active times of a cgroup: (first submission, last completion), in ms."""
    order = np.argsort(done.time_ms - done.latency_ns / 1e6, kind="stable")
    submitted = (done.time_ms - done.latency_ns / 1e6)[order]
    completed = done.time_ms[order]
    starts = [0, *(np.flatnonzero(np.diff(submitted) > SILENCE_MS) + 1), len(submitted)]
    return [
        (float(submitted[first]), float(completed[first:last].max()))
        for first, last in pairwise(starts)
    ]


def phases(run: Run) -> list[Phase]:
    """The phases of a run that begin with a change. The first phase does not; the last one ends
    with the run."""
    others = tuple(name for name in run.done if name != MOVING)
    busy = busy_times(run.done[MOVING])
    end_ms = min(run.done[name].end_ms for name in others)
    found = []
    for number, (start, stop) in enumerate(busy):
        if number:
            found.append(Phase(start, min(stop, end_ms), tuple(run.done)))
        following = busy[number + 1][0] if number + 1 < len(busy) else end_ms
        if stop < following:
            found.append(Phase(stop, following, others))
    # A phase too short for four windows, at the end of the run, is dropped.
    return [one for one in found if one.end_ms - one.start_ms >= 4 * SETTLED_PERIODS * PERIOD_MS]


def change(run: Run, phase: Phase, weights: Mapping[str, int]) -> Change:
    due = due_of_cgroups(weights, dict.fromkeys(phase.active, 1.0))
    starts = np.arange(phase.start_ms, phase.end_ms - SETTLED_PERIODS * PERIOD_MS, STEP_MS)
    right, rates = [], []
    for start in starts:
        bytes_of, ios = _served(run, start, start + SETTLED_PERIODS * PERIOD_MS)
        right.append(jain([bytes_of[name] / due[name] for name in phase.active]) >= RIGHT)
        rates.append(ios * 1000 / (SETTLED_PERIODS * PERIOD_MS))
    whole, ios = _served(run, phase.start_ms, phase.end_ms)
    return Change(
        run.scheduler,
        run.repeat,
        phase.active,
        _settled(right) * STEP_MS,
        ios * 1000 / (phase.end_ms - phase.start_ms),
        min(rates),
        jain([whole[name] / due[name] for name in phase.active]),
    )


def _settled(right: Sequence[bool]) -> float:
    """The number of the first step after which every window is right."""
    for step in range(len(right), 0, -1):
        if not right[step - 1]:
            return step if step < len(right) else math.inf
    return 0


def _served(run: Run, start_ms: float, end_ms: float) -> tuple[dict[str, int], int]:
    """The bytes of each cgroup and the number of all I/Os within the interval."""
    inside = {
        name: (done.time_ms > start_ms) & (done.time_ms <= end_ms)
        for name, done in run.done.items()
    }
    bytes_of = {name: int(run.done[name].size_bytes[mask].sum()) for name, mask in inside.items()}
    return bytes_of, sum(int(np.count_nonzero(mask)) for mask in inside.values())


def changes_of(runs: Sequence[Run], weights: Mapping[str, int]) -> dict[str, list[Change]]:
    found: dict[str, list[Change]] = {}
    for run in runs:
        found.setdefault(run.scheduler, []).extend(
            change(run, phase, weights) for phase in phases(run)
        )
    return found


def worst(changes: Sequence[Change], figure: str) -> list[float]:
    """For each repeat, the worst value of @figure: the greatest settled_ms, else the least."""
    by_repeat: dict[int, list[float]] = {}
    for one in changes:
        by_repeat.setdefault(one.repeat, []).append(getattr(one, figure))
    pick = max if figure == "settled_ms" else min
    return [pick(values) for values in by_repeat.values()]


def judge(found: Mapping[str, Sequence[Change]], capacity: float) -> Iterator[Check]:
    most = SETTLED_PERIODS * PERIOD_MS
    for label, changes in found.items():
        if label not in LEAST_TOTAL:
            continue
        candidate = Candidate(JOB, label)
        yield candidate.at_most("settled after, ms", worst(changes, "settled_ms"), most)
        totals = [value / capacity for value in worst(changes, "iops")]
        yield candidate.at_least("total / none", totals, LEAST_TOTAL[label])


def show(found: Mapping[str, Sequence[Change]], capacity: float) -> Table:
    table = Table(
        title=f"{JOB}: the worst change of each repeat, median (least .. most)",
        title_style="bold", title_justify="left", box=box.SIMPLE_HEAD,
    )  # fmt: skip
    table.add_column("scheduler")
    names = ("settled, ms", "Jain", "total / none", f"least in {2 * PERIOD_MS} ms")
    for name in names:
        table.add_column(name, justify="right")
    for label, changes in found.items():
        table.add_row(
            label,
            report.spread(worst(changes, "settled_ms"), "{:.0f}"),
            report.spread(worst(changes, "jain"), "{:.3f}"),
            report.spread([one / capacity for one in worst(changes, "iops")], "{:.3f}"),
            report.spread([one / capacity for one in worst(changes, "least_iops")], "{:.3f}"),
        )
    return table


def none_iops(outcome: session.Outcome) -> float:
    runs = harness.runs_of(outcome.results[0], NONE)
    return statistics.median(run.total_iops for run in runs)


def run(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{JOB}.fio"), args.runtime)
    device = args.device or DEVICE.format(queues=harness.cpus(args))
    asked = harness.request(args, [job], device)
    case = session.plan_for(asked).cases[0]
    runs: list[Run] = []
    outcome = harness.run_bench(asked, lambda folder: runs.extend(load_runs(folder, case)))
    found = changes_of(runs, case.weights)
    capacity = none_iops(outcome)
    harness.console().print(show(found, capacity))
    if args.picture:
        pictures.draw_shares_over_time(outcome.results[0], outcome.where, args.picture)
    figures: Document = {
        "changes": [asdict(one) for changes in found.values() for one in changes],
        "timeline": outcome.results[0].timeline,
    }
    checks = list(judge(found, capacity))
    return harness.conclude(args, "moving", [outcome], checks, figures)


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.moving", description=__doc__.split("\n")[0])
    parser.add_argument("--device", metavar="SPEC", help=f"default: {DEVICE}")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the shares over time")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=10.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
