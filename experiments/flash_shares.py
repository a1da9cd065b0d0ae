# SPDX-License-Identifier: GPL-2.0
"""Measures the shares of bytes and of device time that each scheduler gives on a virtual SSD.

Runs examples/flash-*.fio under none and the schedulers on a virtual SSD that is 85 % full and
collects garbage. The drive reports the time its planes were busy for each tenant. Shown are:

  - Jain's index of bytes and of device time, each relative to the dues,
  - the slowdown of each tenant relative to running alone under none.

Checked are Jain's index of the quantity that the scheduler charges and, if all tenants have the
same load, the total relative to none's. With cost=learned, the estimator needs 200 000 requests to
settle; on a drive with its map on the host (--device ssd:...,ftl=host) it needs one second:

    python3 -m experiments.flash_shares --icount --cases flash-reader-writer --no-solo \\
        --schedulers mqfq,mqfq:cost=learned,wdt:cost=learned --ramp 180 --runtime 20

    python3 -m experiments.flash_shares --icount --json build/flash-shares.json
    python3 -m experiments.flash_shares --icount --model 980pro --cases flash-mixed
"""

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from experiments import harness
from experiments.harness import Candidate, Check, ratios, runs_of, total_bytes
from mqfair.bench import jobfile, report, session
from mqfair.bench.fairness import jain
from mqfair.bench.jobfile import JobFile
from mqfair.bench.result import CaseResult, Document, RunResult
from mqfair.bench.variant import NONE, tunables_of

CASES = (
    "flash-randread",
    "flash-randwrite",
    "flash-mixed",
    "flash-seq1m",
    "flash-sizes",
    "flash-reader-writer",
)
# The cases with the same load for all tenants, so that equal bytes are equal device time.
ALIKE = CASES[:4]
SCHEDULERS = "bfq,kyber,mq-deadline,mqfq,ifq,kyber-fair,wdt,hwabc"
MODELS = ("p4500", "980pro", "p3700")
# The least Jain's index of the charged quantity. ifq and hwabc are not judged, because they define
# fairness between a reader and a writer differently. Schedulers without weights are not, either.
LEAST_JAIN: Mapping[str, float] = {
    "mqfq": 0.99,
    "kyber-fair": 0.97,
    "wdt": 0.97,
    "mqfq:cost=learned": 0.95,
    "wdt:cost=learned": 0.95,
}
LEAST_TOTAL = 0.9

# Busy[case, scheduler, repeat][cgroup]: microseconds in which planes were busy for the cgroup.
Busy = Mapping[tuple[str, str, int], Mapping[str, int]]


@dataclass(frozen=True)
class Measured:
    """@alone[case, cgroup] is the rate of a cgroup running alone under none, in bytes per s."""

    results: tuple[CaseResult, ...]
    busy: Busy
    alone: Mapping[tuple[str, str], float]


def device(model: str, scale: int) -> str:
    return f"ssd:model={model},size_mb=1024,fill=85,time_scale={scale}"


def read_busy(folder: Path) -> Busy:
    """The busy times of all runs that had all tenants, from the raw files in @folder."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("[0-9]*/run.json"))]
    return {
        (one["case"], one["scheduler"], one["repeat"]): one["busy_us"]
        for one in records
        if one["only"] is None and "busy_us" in one
    }


def time_shares(run: RunResult, busy: Mapping[str, int]) -> dict[str, float]:
    """Each tenant's part of the device time that all tenants used."""
    whole = sum(busy.values())
    return {group.name: busy[group.name] / whole if whole else 0.0 for group in run.cgroups}


def time_jain(run: RunResult, busy: Mapping[str, int]) -> float:
    parts = time_shares(run, busy)
    return jain([parts[group.name] / group.due for group in run.cgroups])


def time_jains(case: CaseResult, busy: Busy, label: str) -> list[float]:
    return [time_jain(run, busy[case.case.name, label, run.repeat]) for run in runs_of(case, label)]


def kinds(job: JobFile) -> dict[str, str]:
    """Maps each cgroup to the first cgroup of @job with the same load."""
    first: dict[tuple[tuple[str, ...], ...], str] = {}
    return {
        group.name: first.setdefault(tuple(one.options for one in group.jobs), group.name)
        for group in job.groups
    }


def lone(job: JobFile, name: str) -> JobFile:
    groups = tuple(group for group in job.groups if group.name == name)
    return dataclasses.replace(
        job, path=f"{job.name}.{name}.fio", groups=groups, weights={name: job.weights[name]}
    )


def lone_jobs(job: JobFile) -> list[JobFile]:
    """One job for each kind of load, with one tenant of that kind alone."""
    return [lone(job, name) for name in dict.fromkeys(kinds(job).values())]


def alone_rates(
    jobs: list[JobFile], results: tuple[CaseResult, ...]
) -> dict[tuple[str, str], float]:
    """Measured.alone, from the @results of lone_jobs() in any order: medians of the repeats."""
    rates = {
        one.case.name: statistics.median(total_bytes(run) for run in runs_of(one, NONE))
        for one in results
    }
    return {
        (job.name, name): rates[f"{job.name}.{kind}"]
        for job in jobs
        for name, kind in kinds(job).items()
        if f"{job.name}.{kind}" in rates
    }


def slowdowns(case: CaseResult, measured: Measured, label: str) -> dict[str, float]:
    """Each tenant's rate alone over its rate in @case under @label, from medians."""
    shared: dict[str, list[float]] = {}
    for run in runs_of(case, label):
        for group in run.cgroups:
            shared.setdefault(group.name, []).append(group.bytes_per_s)
    return {
        name: measured.alone[case.case.name, name] / max(statistics.median(values), 1.0)
        for name, values in shared.items()
        if (case.case.name, name) in measured.alone
    }


def charges_time(label: str) -> bool:
    """True if the scheduler charges estimated device time instead of bytes."""
    return tunables_of(label).get("cost") == "learned"


def judge(measured: Measured) -> Iterator[Check]:
    for case in measured.results:
        for label in report.schedulers_of(case):
            if label in LEAST_JAIN:
                yield from _judge(case, measured, label)


def _judge(case: CaseResult, measured: Measured, label: str) -> Iterator[Check]:
    candidate = Candidate(case.case.name, label)
    if charges_time(label):
        values = time_jains(case, measured.busy, label)
        yield candidate.at_least("Jain of time", values, LEAST_JAIN[label])
    else:
        values = [run.jain for run in runs_of(case, label)]
        yield candidate.at_least("Jain of bytes", values, LEAST_JAIN[label])
    if case.case.name in ALIKE:
        totals = ratios(case, label, NONE, total_bytes)
        yield candidate.at_least("total / none", totals, LEAST_TOTAL)


def show(case: CaseResult, measured: Measured) -> Table:
    names = [group.name for group in case.case.groups]
    table = Table(
        title=case.case.name, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD
    )
    table.add_column("scheduler")
    for name in ("total / none", "Jain of bytes", "of time"):
        table.add_column(name, justify="right")
    table.add_column(f"% of time: {' '.join(names)}", justify="right")
    table.add_column("alone / shared", justify="right")
    for label in report.schedulers_of(case):
        runs = runs_of(case, label)
        parts = [time_shares(run, measured.busy[case.case.name, label, run.repeat]) for run in runs]
        slower = slowdowns(case, measured, label)
        table.add_row(
            label,
            report.spread(ratios(case, label, NONE, total_bytes), "{:.3f}"),
            report.spread([run.jain for run in runs], "{:.4f}"),
            report.spread(time_jains(case, measured.busy, label), "{:.4f}"),
            " ".join(
                f"{100 * statistics.median(part[name] for part in parts):.1f}" for name in names
            ),
            " ".join(f"{slower[name]:.2f}" for name in names if name in slower),
        )
    return table


def figures(measured: Measured) -> Document:
    """The figures that the bench's own results do not contain."""
    return {
        "busy_us": [
            {"case": case, "scheduler": label, "repeat": repeat, "cgroups": dict(groups)}
            for (case, label, repeat), groups in measured.busy.items()
        ],
        "alone": [
            {"case": case, "cgroup": name, "bytes_per_s": rate}
            for (case, name), rate in measured.alone.items()
        ],
    }


def measure(
    args: argparse.Namespace, jobs: list[JobFile], *, solo: bool
) -> tuple[list[session.Outcome], Measured]:
    where = args.device or device(args.model, args.scale)
    found: dict[tuple[str, str, int], Mapping[str, int]] = {}
    asked = harness.request(args, jobs, where)
    outcomes = [harness.run_bench(asked, lambda folder: found.update(read_busy(folder)))]
    alone: dict[tuple[str, str], float] = {}
    if solo:
        single = [one for job in jobs for one in lone_jobs(job)]
        request = dataclasses.replace(asked, jobs=tuple(single), schedulers=(NONE,))
        outcomes.append(harness.run_bench(request))
        alone = alone_rates(jobs, outcomes[1].results)
    return outcomes, Measured(outcomes[0].results, found, alone)


def load(args: argparse.Namespace, known: tuple[str, ...]) -> list[JobFile]:
    names = harness.cases(args, known)
    jobs = [jobfile.load(str(harness.EXAMPLES / f"{name}.fio"), args.runtime) for name in names]
    if args.ramp is None:
        return jobs
    return [dataclasses.replace(job, ramp_s=args.ramp) for job in jobs]


def add_drive_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device", metavar="SPEC", help="instead of a drive of --model that is 85 %% full"
    )
    parser.add_argument(
        "--model",
        default=MODELS[0],
        choices=MODELS,
        help="model of the virtual SSD (default %(default)s)",
    )
    parser.add_argument(
        "--scale",
        type=int,
        default=100,
        metavar="N",
        help="time_scale: how many times slower than the model the drive is (default %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    outcomes, measured = measure(args, load(args, CASES), solo=not args.no_solo)
    for case in measured.results:
        harness.console().print(show(case, measured))
    return harness.conclude(
        args, "flash-shares", outcomes, list(judge(measured)), figures(measured)
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.flash_shares", description=(__doc__ or "").split("\n")[0]
    )
    harness.add_cases(parser, CASES)
    parser.add_argument(
        "--ramp",
        type=float,
        metavar="S",
        help="seconds before the runtime (default: those of the job file)",
    )
    parser.add_argument(
        "--no-solo", action="store_true", help="do not run tenants alone; no alone / shared"
    )
    add_drive_arguments(parser)
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=6.0, repeat=1)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
