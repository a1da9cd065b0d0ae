# SPDX-License-Identifier: GPL-2.0
"""Checks that four tenants with realistic loads share bytes by weight in every rotation.

examples/traces.fio has the mean sizes and read shares of four block traces, LUN0 to LUN3 of the
SYSTOR '17 set. They are those of table 4 of the Kyber-fairness paper. Each tenant has four threads
at depth 32. The weights 100:250:500:1000 are rotated over the tenants, one run for each rotation.
Checked are Jain's index of bytes and, if BFQ runs, the total of bytes relative to BFQ's (figure 5
of that paper).

    python3 -m experiments.traces --icount
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping

from experiments import harness
from experiments.harness import Candidate, Check, runs_of, total_bytes
from mqfair.bench import jobfile, report
from mqfair.bench.device import default_device
from mqfair.bench.jobfile import JobFile
from mqfair.bench.result import CaseResult

JOB = "traces"
# The largest I/O of the job, 256 KiB, is not split.
MAX_SECTORS = 512
SCHEDULERS = "bfq,mqfq,kyber-fair,wdt"
LEAST_JAIN: Mapping[str, float] = {"mqfq": 0.98, "kyber-fair": 0.98, "wdt": 0.95}
ABOVE_BFQ = ("kyber-fair",)


def rotations(job: JobFile) -> list[JobFile]:
    """One job for each tenant; over all of them, each tenant has each weight once."""
    names = [group.name for group in job.groups]
    weights = [group.weight for group in job.groups]
    return [
        _with_weights(job, dict(zip(names, weights[-by:] + weights[:-by], strict=True)))
        for by in range(len(names))
    ]


def _with_weights(job: JobFile, weights: Mapping[str, int]) -> JobFile:
    heaviest = max(weights, key=lambda name: weights[name])
    groups = tuple(dataclasses.replace(one, weight=weights[one.name]) for one in job.groups)
    return dataclasses.replace(
        job, path=f"{job.name}-{heaviest}-heaviest.fio", groups=groups, weights=weights
    )


def judge(result: CaseResult) -> Iterator[Check]:
    for label in harness.judged(result):
        if label not in LEAST_JAIN:
            continue
        jain = [run.jain for run in runs_of(result, label)]
        yield Candidate(result.case.name, label).at_least("Jain", jain, LEAST_JAIN[label])
        if label in ABOVE_BFQ:
            yield from harness.above_bfq(result, label, total_bytes)


def run(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{JOB}.fio"), args.runtime)
    device = f"{default_device(harness.cpus(args))},max_sectors={MAX_SECTORS}"
    outcome = harness.run_bench(harness.request(args, rotations(job), args.device or device))
    for result in outcome.results:
        harness.console().print(report.render(result, ()))
    checks = [one for result in outcome.results for one in judge(result)]
    return harness.conclude(args, "traces", [outcome], checks)


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.traces", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--device", metavar="SPEC", help="default: the device of mqfair bench with max_sectors=512"
    )
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=4.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
