# SPDX-License-Identifier: GPL-2.0
"""Measures a light tenant beside three heavy ones: work conservation, and its delay.

examples/light-tenant.fio has one reader with one request at a time beside three readers with 64
queued requests each, at equal weights. The light reader uses less than its quarter. Checked are:

  - work conservation: the total, relative to none's,
  - under mqfq, the light reader's IOPS relative to its IOPS alone under the same scheduler.

The latencies of all readers are shown.

    python3 -m experiments.light --icount
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.table import Table

from experiments import harness
from experiments.harness import Candidate, Check, ratios, runs_of, total_iops
from mqfair.bench import jobfile, report
from mqfair.bench.jobfile import JobFile
from mqfair.bench.result import CaseResult, CgroupResult, RunResult
from mqfair.bench.variant import NONE

JOB = "light-tenant"
LIGHT = "light"
ALONE = "light-alone"
SCHEDULERS = "bfq,mqfq,kyber-fair,kyber-fair:work_conserving=0,wdt,wdt:work_conserving=0"
LEAST_TOTAL: Mapping[str, float] = {"mqfq": 0.95, "kyber-fair": 0.95, "wdt": 0.90}
LEAST_BESIDE_ALONE: Mapping[str, float] = {"mqfq": 0.85}


def alone(job: JobFile) -> JobFile:
    """The job with the light tenant alone."""
    groups = tuple(group for group in job.groups if group.name == LIGHT)
    return dataclasses.replace(
        job, path=f"{ALONE}.fio", groups=groups, weights={LIGHT: job.weights[LIGHT]}
    )


def light_of(run: RunResult) -> CgroupResult:
    return next(one for one in run.cgroups if one.name == LIGHT)


def beside_alone(shared: CaseResult, lone: CaseResult, label: str) -> list[float]:
    whole = {run.repeat: run.total_iops for run in runs_of(lone, label)}
    return [light_of(run).iops / whole[run.repeat] for run in runs_of(shared, label)]


def judge(shared: CaseResult, lone: CaseResult) -> Iterator[Check]:
    for label in harness.judged(shared):
        candidate = Candidate(JOB, label)
        if label in LEAST_TOTAL:
            totals = ratios(shared, label, NONE, total_iops)
            yield candidate.at_least("total / none", totals, LEAST_TOTAL[label])
        if label in LEAST_BESIDE_ALONE:
            parts = beside_alone(shared, lone, label)
            yield candidate.at_least("light tenant / alone", parts, LEAST_BESIDE_ALONE[label])


def show(shared: CaseResult, lone: CaseResult) -> Table:
    table = Table(title=JOB, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("scheduler")
    for name in (
        "total / none",
        "light / alone",
        "light p50",
        "p99",
        "heavy p50",
        "p99",
        "p99.9 ms",
    ):
        table.add_column(name, justify="right")
    for label in report.schedulers_of(shared):
        runs = runs_of(shared, label)
        light = [light_of(run) for run in runs]
        heavy = [one for run in runs for one in run.cgroups if one.name != LIGHT]
        table.add_row(
            label,
            report.spread(ratios(shared, label, NONE, total_iops), "{:.3f}"),
            report.spread(beside_alone(shared, lone, label), "{:.3f}"),
            *(_latency(light, name) for name in ("p50", "p99")),
            *(_latency(heavy, name) for name in ("p50", "p99", "p999")),
        )
    return table


def _latency(groups: Sequence[CgroupResult], name: str) -> str:
    return f"{report.median(groups, lambda group: group.lat_ns[name]) / 1e6:,.1f}"


def run(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{JOB}.fio"), args.runtime)
    outcome = harness.run_bench(harness.request(args, [job, alone(job)], args.device))
    shared, lone = outcome.results
    harness.console().print(show(shared, lone))
    return harness.conclude(args, "light", [outcome], list(judge(shared, lone)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.light", description=__doc__.split("\n")[0])
    parser.add_argument("--device", metavar="SPEC", help="default: the device of mqfair bench")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=4.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
