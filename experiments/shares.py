# SPDX-License-Identifier: GPL-2.0
"""Checks that each cgroup gets the share of its weight, and measures the cost in throughput.

Runs each job file of examples/ under none and the schedulers, interleaved, in one guest. The
medians are checked against the limits of each scheduler:

  - the relative error of each share,
  - Jain's index,
  - the total over that of none, and over that of BFQ, in the same repeat.

The slots of the drive limit the throughput, not the guest's processor.

    python3 -m experiments.shares --repeat 5 --json build/shares.json
    python3 -m experiments.shares --icount        # one CPU, counted time: exact on a busy host
    python3 -m experiments.shares --icount --schedulers bfq,kyber-fair,wdt --cases sixteen-randread
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from experiments import harness
from experiments.harness import Candidate, Check, ratios, runs_of, total_iops
from mqfair.bench import jobfile, report
from mqfair.bench.result import CaseResult
from mqfair.bench.variant import NONE

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
    """@deviation is the greatest relative error of a share (None: not judged), @total the least
    throughput relative to none."""

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
    # The total is one of IOPS, because the slots limit IOPS. When requests of 4 KiB and 64 KiB
    # share bytes equally, the total of bytes depends on the mix that is served.
    yield candidate.at_least("total / none", ratios(result, label, NONE, total_iops), limits.total)
    if limits.above_bfq:
        yield from harness.above_bfq(result, label, total_iops)


def _worst(result: CaseResult, label: str) -> tuple[str, list[float]]:
    """The cgroup with the greatest relative error of its median share, and the error of each
    repeat."""
    by_cgroup: dict[str, list[float]] = {}
    for run in runs_of(result, label):
        for one in run.cgroups:
            by_cgroup.setdefault(one.name, []).append(one.met - 1)
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
    parser.add_argument("--device", metavar="SPEC", help="default: the device of mqfair bench")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=4.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
