# SPDX-License-Identifier: GPL-2.0
"""Four tenants that ask as real ones do: are bytes shared by weight whoever has the weight?

examples/traces.fio has the mean sizes and read shares of four block traces (LUN0 to LUN3 of the
SYSTOR '17 set, as table 4 of the Kyber-fairness paper has them), four threads each at depth 32.
The weights 100:250:500:1000 are rotated over the four, a run for each rotation.  Judged are Jain's
index of bytes and, where BFQ runs, the total of bytes beside BFQ's (figure 5 of that paper).

    python3 -m experiments.traces --icount
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping

from experiments import harness
from experiments.harness import Candidate, Check, runs_of, total_bytes
from mqfair.benchlib import jobfile, report
from mqfair.benchlib.device import default_device
from mqfair.benchlib.jobfile import JobFile
from mqfair.benchlib.result import CaseResult

JOB = "traces"
# The greatest request arrives in one piece.
MAX_SECTORS = 512
SCHEDULERS = "bfq,mqfq,kyber-fair,wdt"
LEAST_JAIN: Mapping[str, float] = {"mqfq": 0.98, "kyber-fair": 0.98, "wdt": 0.95}
ABOVE_BFQ = ("kyber-fair",)


def rotations(job: JobFile) -> list[JobFile]:
    """As many as there are tenants: each has each of the weights once."""
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
        job, path=f"{JOB}-{heaviest}-heaviest.fio", groups=groups, weights=weights
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
    parser.add_argument("--device", help="default: that of mqfair bench, max_sectors=512")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=4.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
