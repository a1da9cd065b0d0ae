# SPDX-License-Identifier: GPL-2.0
"""Who gets what of a drive with insides: shares of bytes, and of the time that the drive works.

examples/flash-*.fio on a virtual SSD that is 85 % full and collects garbage, under none and the
schedulers.  For whom its planes are busy the drive itself knows; Jain's index is told of bytes and
of that time, each relative to what the weights entitle to, and how much slower each tenant is than
without the others (under none). Judged is Jain's index of what a scheduler charges, and, where all
ask for the same, the total beside none's. What cost=learned learns takes 200 000 requests, but on a
drive whose map the host keeps (--device ssd:...,ftl=host) a second:

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
from mqfair.benchlib import jobfile, report, session
from mqfair.benchlib.fairness import jain
from mqfair.benchlib.jobfile import JobFile
from mqfair.benchlib.result import CaseResult, Document, RunResult
from mqfair.benchlib.variant import NONE, tunables_of

CASES = (
    "flash-randread",
    "flash-randwrite",
    "flash-mixed",
    "flash-seq1m",
    "flash-sizes",
    "flash-reader-writer",
)
# Those whose tenants ask for the same, so that equal bytes are equal time.
ALIKE = CASES[:4]
SCHEDULERS = "bfq,kyber,mq-deadline,mqfq,ifq,kyber-fair,wdt,hwabc"
MODELS = ("p4500", "980pro", "p3700")
# Of what is charged. ifq and hwabc have an idea of their own of what is fair between a reader and a
# writer; they and those without weights are shown.
LEAST_JAIN: Mapping[str, float] = {
    "mqfq": 0.99,
    "kyber-fair": 0.97,
    "wdt": 0.97,
    "mqfq:cost=learned": 0.95,
    "wdt:cost=learned": 0.95,
}
LEAST_TOTAL = 0.9

# By case, scheduler and repeat: microseconds of each cgroup.
Busy = Mapping[tuple[str, str, int], Mapping[str, int]]


@dataclass(frozen=True)
class Measured:
    """@alone: bytes a second of a cgroup of a case without the others, under none."""

    results: tuple[CaseResult, ...]
    busy: Busy
    alone: Mapping[tuple[str, str], float]


def device(model: str, scale: int) -> str:
    return f"ssd:model={model},size_mb=1024,fill=85,time_scale={scale}"


def read_busy(folder: Path) -> Busy:
    """Of all runs of the bench with all tenants."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("[0-9]*/run.json"))]
    return {
        (one["case"], one["scheduler"], one["repeat"]): one["busy_us"]
        for one in records
        if one["only"] is None and "busy_us" in one
    }


def time_shares(run: RunResult, busy: Mapping[str, int]) -> dict[str, float]:
    """Parts of the drive's time, of what all tenants had."""
    whole = sum(busy.values())
    return {group.name: busy[group.name] / whole if whole else 0.0 for group in run.cgroups}


def time_jain(run: RunResult, busy: Mapping[str, int]) -> float:
    parts = time_shares(run, busy)
    return jain([parts[group.name] / group.entitled for group in run.cgroups])


def time_jains(case: CaseResult, busy: Busy, label: str) -> list[float]:
    return [time_jain(run, busy[case.case.name, label, run.repeat]) for run in runs_of(case, label)]


def kinds(job: JobFile) -> dict[str, str]:
    """For each cgroup the first that asks for the same."""
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
    """A job of each kind of tenant, without the others."""
    return [lone(job, name) for name in dict.fromkeys(kinds(job).values())]


def alone_rates(
    jobs: list[JobFile], results: tuple[CaseResult, ...]
) -> dict[tuple[str, str], float]:
    """@results of lone_jobs(), in any order: the median of the repeats."""
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
    """Alone / shared, of medians."""
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
    """What the scheduler divides is an estimate of time, and not bytes."""
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
    """What the bench's own results lack."""
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
    parser.add_argument("--device", help="instead of a drive of --model, which is 85 %% full")
    parser.add_argument("--model", default=MODELS[0], choices=MODELS, help="default %(default)s")
    parser.add_argument(
        "--scale", type=int, default=100, help="how much slower it is (default %(default)s)"
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
    parser.add_argument("--cases", default=",".join(CASES), help="default %(default)s")
    parser.add_argument(
        "--ramp", type=float, help="seconds before the runtime, instead of those of the cases"
    )
    parser.add_argument("--no-solo", action="store_true", help="leave out alone / shared")
    add_drive_arguments(parser)
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=6.0, repeat=1)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
