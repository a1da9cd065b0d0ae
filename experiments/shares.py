# SPDX-License-Identifier: GPL-2.0
"""Does a weight give its share, and at what cost?  The examples, judged.

Runs each job file of examples/ under none and mqfq, interleaved, in one guest, and judges the
medians: every share within 5 % of its entitlement, Jain's index at least 0.99, the total at least
0.95 of none's of the same repeats; for light-tenant.fio the lone reader's IOPS at least 0.85 of
what it gets alone.  The drive is one that its slots limit and not the guest's processor.

    python3 -m experiments.shares --repeat 5 --json build/shares.json
    python3 -m experiments.shares --icount        # exact on a busy host: one CPU, counted time
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqfair.bench import show_progress
from mqfair.benchlib import jobfile, report, session
from mqfair.benchlib.device import DEFAULT_DEVICE, parse_device
from mqfair.benchlib.plan import NONE
from mqfair.benchlib.result import CaseResult, RunResult, document
from mqfair.errors import Failure, UsageError

SCHEMA = "mqfair.experiment-shares/1"
MQFQ = "mqfq"
LIGHT = "light-tenant"
CASES = (
    "four-cgroups",
    "four-cgroups-write",
    "four-cgroups-mixed",
    "four-cgroups-seq1m",
    "sizes-4k-64k",
    "threads-1-4",
    "depth-4-64",
    "nested",
)
MOST_DEVIATION = 0.05
LEAST_JAIN = 0.99
LEAST_TOTAL = 0.95
LEAST_LIGHT = 0.85


@dataclass(frozen=True)
class Verdict:
    """@spread is of the figure over the repeats."""

    case: str
    what: str
    must: str
    seen: float
    spread: tuple[float, float]
    holds: bool


def _runs(result: CaseResult, scheduler: str) -> list[RunResult]:
    return [run for run in result.runs if run.scheduler == scheduler]


def _median(case: str, what: str, values: Sequence[float], least: float) -> Verdict:
    seen = statistics.median(values)
    return Verdict(case, what, f">= {least}", seen, (min(values), max(values)), seen >= least)


def _ratios(result: CaseResult) -> list[float]:
    """Totals to none's of the same repeat; of IOPS, which is what the slots limit: with bytes
    shared equally between 4 KiB and 64 KiB fewer of the large are served in the same slots."""
    none = {run.repeat: run.total_iops for run in _runs(result, NONE)}
    return [run.total_iops / none[run.repeat] for run in _runs(result, MQFQ)]


def _deviation(result: CaseResult) -> Verdict:
    """Of the cgroup whose median share is furthest from its entitlement, relative to it."""
    by_cgroup: dict[str, list[float]] = {}
    for run in _runs(result, MQFQ):
        for one in run.cgroups:
            by_cgroup.setdefault(one.name, []).append(one.share / one.entitled - 1)
    worst, values = max(by_cgroup.items(), key=lambda item: abs(statistics.median(item[1])))
    seen = statistics.median(values)
    return Verdict(
        result.case.name,
        f"share of {worst}, off by",
        f"within {MOST_DEVIATION}",
        seen,
        (min(values), max(values)),
        abs(seen) <= MOST_DEVIATION,
    )


def judge(result: CaseResult) -> list[Verdict]:
    name = result.case.name
    total = _median(name, "total / none", _ratios(result), LEAST_TOTAL)
    if name == LIGHT:
        alone = [
            1 / one.slowdown
            for one in result.solo
            if one.scheduler == MQFQ and one.cgroup == "light" and one.slowdown
        ]
        return [_median(name, "light tenant / alone", alone, LEAST_LIGHT), total]
    fairness = [run.jain for run in _runs(result, MQFQ)]
    return [_deviation(result), _median(name, "Jain", fairness, LEAST_JAIN), total]


def _request(names: Sequence[str], args: argparse.Namespace, solo: bool) -> session.Request:
    examples = session.ROOT / "examples"
    jobs = tuple(jobfile.load(str(examples / f"{name}.fio"), args.runtime) for name in names)
    return session.with_built_module(
        session.Request(
            jobs=jobs,
            schedulers=(NONE, MQFQ),
            repeat=args.repeat,
            device=parse_device(args.device),
            cpus=args.cpus,
            icount=args.icount,
            nr_requests=args.nr_requests,
            solo=solo,
        )
    )


def _run(asked: session.Request) -> session.Outcome:
    with (
        tempfile.TemporaryDirectory(prefix="mqfair-shares-") as name,
        show_progress(asked) as progress,
    ):
        return session.run(asked, Path(name), progress)


def run(args: argparse.Namespace) -> int:
    args.cpus = 1 if args.icount else args.cpus
    if not args.device:
        queues = f"submit_queues={args.cpus}"
        args.device = DEFAULT_DEVICE.replace("submit_queues=2", queues)
    chosen = args.cases.split(",") if args.cases else [*CASES, LIGHT]
    unknown = sorted(set(chosen) - {*CASES, LIGHT})
    if unknown:
        raise UsageError(f"--cases {unknown[0]}: no such case: use {', '.join((*CASES, LIGHT))}")
    plain = [name for name in chosen if name != LIGHT]
    outcomes = [_run(_request(plain, args, solo=False))] if plain else []
    if LIGHT in chosen:
        outcomes.append(_run(_request([LIGHT], args, solo=True)))

    console = report.console_for()
    verdicts: list[Verdict] = []
    documents = []
    for outcome in outcomes:
        for result in outcome.results:
            console.print(report.render(result, ()))
            verdicts += judge(result)
            documents.append(document(result, outcome.where, outcome.notes))
        for note in outcome.notes:
            console.print(f"note: {note}", style="dim", highlight=False)
    for one in verdicts:
        console.print(
            f"{'holds' if one.holds else 'FAILS':6} {one.case:20} {one.what:28} must be "
            f"{one.must:12} is {one.seen:7.4f}  ({one.spread[0]:.4f} .. {one.spread[1]:.4f})",
            highlight=False,
        )
    if args.json:
        whole = {
            "schema": SCHEMA,
            "verdicts": [vars(one) for one in verdicts],
            "results": documents,
        }
        Path(args.json).write_text(json.dumps(whole, indent=1) + "\n")
    return 0 if all(one.holds for one in verdicts) else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.shares", description=__doc__.split("\n")[0])
    parser.add_argument("--cases", help=f"of {', '.join((*CASES, LIGHT))} (default: all)")
    parser.add_argument("--repeat", type=int, default=5, help="interleaved (default 5)")
    parser.add_argument("--runtime", type=float, default=4.0, help="seconds each (default 4)")
    parser.add_argument("--device", help=f"default {DEFAULT_DEVICE}, with a queue for each CPU")
    parser.add_argument("--cpus", type=int, default=2, help="of the guest (default 2)")
    parser.add_argument("--nr-requests", type=int, help="scheduler tags for each queue")
    parser.add_argument("--icount", action="store_true", help="counted time, one CPU")
    parser.add_argument("--json", metavar="FILE", help="write verdicts and results there")
    try:
        return run(parser.parse_args())
    except (UsageError, Failure) as error:
        print(f"experiments.shares: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
