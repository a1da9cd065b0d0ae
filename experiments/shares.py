# SPDX-License-Identifier: GPL-2.0
"""Does a weight give its share, and at what cost?  The examples, judged.

Runs each job file of examples/ under none and the schedulers, interleaved, in one guest, and
judges the medians by the limits of each scheduler: how far a share may be off its entitlement,
Jain's index, and the total beside none's and BFQ's of the same repeats.  The drive is one that its
slots limit and not the guest's processor.

    python3 -m experiments.shares --repeat 5 --json build/shares.json
    python3 -m experiments.shares --icount        # exact on a busy host: one CPU, counted time
    python3 -m experiments.shares --icount --schedulers bfq,kyber-fair,wdt --cases sixteen-randread
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments import harness
from experiments.harness import Candidate, Check, ratios, runs_of, total_iops
from mqfair.benchlib import jobfile, report
from mqfair.benchlib.result import CaseResult
from mqfair.benchlib.variant import NONE

CASES = (
    "four-cgroups",
    "four-cgroups-write",
    "four-cgroups-mixed",
    "four-cgroups-seq1m",
    "sixteen-randread",
    "sixteen-randwrite",
    "sixteen-read-1m",
    "sixteen-write-1m",
    "sizes-4k-64k",
    "threads-1-4",
    "depth-4-64",
    "nested",
)
SCHEDULERS = "bfq,mqfq,kyber-fair,wdt"


@dataclass(frozen=True)
class Limits:
    """@deviation: of each share, relative; @total beside none's; None: not judged."""

    jain: float
    total: float
    deviation: float | None = None
    above_bfq: bool = False


LIMITS: Mapping[str, Limits] = {
    "mqfq": Limits(jain=0.99, total=0.95, deviation=0.05),
    "kyber-fair": Limits(jain=0.99, total=0.95, above_bfq=True),
    "wdt": Limits(jain=0.97, total=0.90),
}


def judge(result: CaseResult) -> Iterator[Check]:
    for label in harness.judged(result):
        limits = LIMITS.get(label)
        if limits is not None:
            yield from _judge(result, label, limits)


def _judge(result: CaseResult, label: str, limits: Limits) -> Iterator[Check]:
    candidate = Candidate(result.case.name, label)
    if limits.deviation is not None:
        name, values = _worst(result, label)
        yield candidate.within(f"share of {name}, off by", values, limits.deviation)
    yield candidate.at_least("Jain", [run.jain for run in runs_of(result, label)], limits.jain)
    # Of IOPS, which is what the slots limit: with bytes shared equally between 4 KiB and 64 KiB
    # fewer of the large are served in the same slots.
    yield candidate.at_least("total / none", ratios(result, label, NONE, total_iops), limits.total)
    if limits.above_bfq:
        yield from harness.above_bfq(result, label, total_iops)


def _worst(result: CaseResult, label: str) -> tuple[str, list[float]]:
    """The cgroup whose median share is furthest from its entitlement, and by how much it is."""
    by_cgroup: dict[str, list[float]] = {}
    for run in runs_of(result, label):
        for one in run.cgroups:
            by_cgroup.setdefault(one.name, []).append(one.share / one.entitled - 1)
    return max(by_cgroup.items(), key=lambda item: abs(statistics.median(item[1])))


def run(args: argparse.Namespace) -> int:
    names = harness.cases(args, CASES)
    jobs = [jobfile.load(str(harness.EXAMPLES / f"{name}.fio"), args.runtime) for name in names]
    outcome = harness.run_bench(harness.request(args, jobs, args.device))
    for result in outcome.results:
        harness.console().print(report.render(result, ()))
    checks = [one for result in outcome.results for one in judge(result)]
    return harness.conclude(args, "shares", [outcome], checks)


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.shares", description=__doc__.split("\n")[0])
    harness.add_cases(parser, CASES)
    parser.add_argument("--device", help="default: that of mqfair bench")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=4.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
