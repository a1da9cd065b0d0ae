# SPDX-License-Identifier: GPL-2.0
"""Measures by the clock how much throughput remains when the processor is the bottleneck.

null_blk completes at once. Each CPU has one hardware queue and one thread with 4 KiB requests at
random places. The workloads are:

  - qd1, reads at depth 1,
  - qd32, reads at depth 32, submitted singly,
  - batch8, reads at depth 32, submitted in batches of eight,
  - mixed, depth 32 with half writes.

The module instructions counts the instructions of the same paths; this experiment adds caches,
interrupts and task switches. Compare ratios only, and only within one run. Checked are:

  - mqfq, submitted singly: at least 0.65 of none's IOPS, twice Kyber's, three times BFQ's;
  - mqfq, in batches: at least 0.65 of none's IOPS and 0.97 of Kyber's;
  - kyber-fair, half writes: at least 1.5 times BFQ's IOPS.

The mean latency is shown.

    python3 -m experiments.cpu_bound --cpus 2
    python3 -m experiments.cpu_bound --cpus 2 --schedulers bfq,kyber-fair --workloads mixed
    python3 -m experiments.cpu_bound --on uml
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from experiments import harness, inside
from experiments.cpu_bound_guest import WORKLOADS
from experiments.harness import Candidate, Check
from lab.tree import DEFAULT_KERNEL, UML
from mqfair.bench import report
from mqfair.bench.variant import BFQ, KYBER, MQFQ, NONE

KYBER_FAIR = "kyber-fair"
SCHEDULERS = f"{KYBER},{BFQ},{MQFQ},{KYBER_FAIR}"
ONE_BY_ONE = ("qd1", "qd32")
# LEAST[scheduler][workload][base]: the least ratio of the scheduler's IOPS to the base's.
LEAST: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    MQFQ: {
        **{load: {NONE: 0.65, KYBER: 2.0, BFQ: 3.0} for load in ONE_BY_ONE},
        "batch8": {NONE: 0.65, KYBER: 0.97},
    },
    KYBER_FAIR: {"mixed": {BFQ: 1.5}},
}
BOOT_S, SWITCH_S = 240.0, 15.0

Runs = Sequence[Mapping[str, Any]]


def figures(runs: Runs, workload: str, scheduler: str, name: str = "iops") -> list[float]:
    """The figure @name of each repeat, in the order of the repeats."""
    return [
        one[name] for one in runs if one["workload"] == workload and one["scheduler"] == scheduler
    ]


def beside(runs: Runs, workload: str, scheduler: str, base: str) -> list[float]:
    pairs = zip(figures(runs, workload, scheduler), figures(runs, workload, base), strict=True)
    return [mine / its for mine, its in pairs]


def judge(runs: Runs) -> Iterator[Check]:
    for scheduler, workloads in LEAST.items():
        for workload, others in workloads.items():
            for base, least in others.items():
                if figures(runs, workload, base) and figures(runs, workload, scheduler):
                    values = beside(runs, workload, scheduler, base)
                    yield Candidate(workload, scheduler).at_least(f"IOPS / {base}", values, least)


def show(runs: Runs, where: str) -> Table:
    table = Table(title=where, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("workload")
    table.add_column("scheduler")
    for name in ("IOPS", "/ none", "mean µs"):
        table.add_column(name, justify="right")
    for workload in dict.fromkeys(one["workload"] for one in runs):
        for scheduler in dict.fromkeys(one["scheduler"] for one in runs):
            table.add_row(
                workload,
                scheduler,
                report.spread(figures(runs, workload, scheduler), "{:,.0f}"),
                report.spread(beside(runs, workload, scheduler, NONE), "{:.3f}"),
                f"{statistics.median(figures(runs, workload, scheduler, 'mean_ns')) / 1e3:,.1f}",
            )
    return table


def run(args: argparse.Namespace) -> int:
    schedulers = inside.schedulers(args.schedulers)
    named = harness.chosen("--workloads", args.workloads, WORKLOADS, "workload")
    workloads = list(dict.fromkeys(named))
    each = len(schedulers) * len(workloads) * args.repeat
    where, runs = inside.run(
        args,
        "cpu_bound_guest",
        (",".join(schedulers), ",".join(workloads), str(args.repeat), str(args.runtime)),
        harness.cpus(args),
        BOOT_S + each * (args.runtime + SWITCH_S),
        name=UML if args.on == UML else DEFAULT_KERNEL,
    )
    harness.console().print(show(runs, where))
    return harness.conclude(
        args, "cpu-bound", [], list(judge(runs)), {"where": where, "runs": runs}
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.cpu_bound", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--workloads",
        default=",".join(WORKLOADS),
        metavar="NAME,...",
        help="workloads to run (default %(default)s)",
    )
    parser.add_argument(
        "--on",
        choices=("vm", UML),
        default="vm",
        help="an emulated or virtual machine, or user-mode Linux (default %(default)s)",
    )
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=2.0, repeat=5)
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
