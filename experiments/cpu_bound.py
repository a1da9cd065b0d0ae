# SPDX-License-Identifier: GPL-2.0
"""How much throughput is left when the processor is what is short?

null_blk answers at once; each CPU has a thread that asks for 4 KiB at random places, and a hardware
queue of its own. Reads one at a time; 32, each sent by itself; 32, sent eight at a time; and 32 of
which half are writes. This is wall clock: what instructions.py counts, with the caches, the
interrupts and the switches of tasks that go with it. Compare nothing but ratios, and only of one
run. Judged is mqfq: at least 0.65 of none's IOPS, twice Kyber's and three times BFQ's where
requests are sent one by one, 0.97 of Kyber's in batches; and kyber-fair: half as many IOPS again as
BFQ of the mix. The latency that a lone reader sees is shown.

    python3 -m experiments.cpu_bound --cpus 2
    python3 -m experiments.cpu_bound --cpus 2 --schedulers bfq,kyber-fair --workloads mixed
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
from mqfair.benchlib import report
from mqfair.benchlib.variant import BFQ, MQFQ, NONE

KYBER, KYBER_FAIR = "kyber", "kyber-fair"
SCHEDULERS = f"{KYBER},{BFQ},{MQFQ},{KYBER_FAIR}"
ONE_BY_ONE = ("qd1", "qd32")
# Whose IOPS, of what; to those of whom, at least how many times as many.
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
    """In the order of the repeats."""
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
    named = harness.chosen("--workloads", args.workloads, WORKLOADS, "one")
    workloads = list(dict.fromkeys(named))
    each = len(schedulers) * len(workloads) * args.repeat
    where, runs = inside.run(
        args,
        "cpu_bound_guest",
        (",".join(schedulers), ",".join(workloads), str(args.repeat), str(args.runtime)),
        harness.cpus(args),
        BOOT_S + each * (args.runtime + SWITCH_S),
    )
    harness.console().print(show(runs, where))
    return harness.conclude(
        args, "cpu-bound", [], list(judge(runs)), {"where": where, "runs": runs}
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.cpu_bound", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="default %(default)s")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=2.0, repeat=5)
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
