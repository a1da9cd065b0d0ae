# SPDX-License-Identifier: GPL-2.0
"""Checks that a syncing tenant of weight 1 does not delay one of weight 1000 in the same journal.

The heavy tenant overwrites 4 KiB at random places of its file, with direct I/O and more requests
in flight than the drive has slots. The light tenant writes and syncs its own file repeatedly. A
throttled write of the light tenant may delay a transaction of the journal, and a task that updates
a timestamp waits for that transaction. The light tenant is stopped and continued by turns. Checked
is that under mqfq the heavy tenant keeps 0.95 of its writes. The drive is null_blk with memory and
64 slots of 8 ms.

    python3 -m experiments.journal --icount
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table

from experiments import harness, inside
from experiments.harness import Candidate, Check
from experiments.journal_guest import HEAVY, LIGHT, MKFS, SETTLE_S, TURN_S, TURNS_EACH
from mqfair.bench import report
from mqfair.bench.variant import BFQ, MQFQ

SCHEDULERS = f"{BFQ},{MQFQ}"
LEAST = 0.95
BOOT_S = 300.0
# With counted time, one guest second takes this many host seconds.
HOST_S_PER_S = 30.0
MKFS_S = 10.0

Runs = Sequence[Mapping[str, Any]]


def rate(one: Mapping[str, Any], tenant: str, fsyncs: bool) -> float:
    turns = [turn for turn in one["turns"] if turn["fsyncs"] == fsyncs]
    return float(
        sum(turn["writes"][tenant] for turn in turns) / sum(turn["seconds"] for turn in turns)
    )


def kept(one: Mapping[str, Any]) -> float:
    return rate(one, HEAVY, True) / rate(one, HEAVY, False)


def cells(runs: Runs) -> Mapping[tuple[str, str], Runs]:
    """The runs by (file system, scheduler)."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in runs:
        found.setdefault((one["file system"], one["scheduler"]), []).append(one)
    return found


def judge(runs: Runs) -> Iterator[Check]:
    for (kind, scheduler), found in sorted(cells(runs).items()):
        if scheduler == MQFQ:
            values = [kept(one) for one in found]
            yield Candidate(kind, scheduler).at_least("heavy beside fsyncs / alone", values, LEAST)


def show(runs: Runs, where: str) -> Table:
    table = Table(title=where, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("file system")
    table.add_column("scheduler")
    for name in ("heavy alone, writes/s", "beside fsyncs", "ratio", "light, writes/s"):
        table.add_column(name, justify="right")
    for (kind, scheduler), found in sorted(cells(runs).items()):
        table.add_row(
            kind,
            scheduler,
            report.spread([rate(one, HEAVY, False) for one in found], "{:,.0f}"),
            report.spread([rate(one, HEAVY, True) for one in found], "{:,.0f}"),
            report.spread([kept(one) for one in found], "{:.3f}"),
            report.spread([rate(one, LIGHT, True) for one in found], "{:,.0f}"),
        )
    return table


def run(args: argparse.Namespace) -> int:
    schedulers = inside.schedulers(args.schedulers)
    each = len(MKFS) * len(schedulers) * args.repeat
    turns_s = 2 * TURNS_EACH * (TURN_S + SETTLE_S) + MKFS_S
    where, runs = inside.run(
        args,
        "journal_guest",
        (",".join(schedulers), str(args.repeat)),
        harness.cpus(args),
        BOOT_S + each * turns_s * (HOST_S_PER_S if args.icount else 2),
    )
    harness.console().print(show(runs, where))
    return harness.conclude(args, "journal", [], list(judge(runs)), {"where": where, "runs": runs})


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.journal", description=__doc__.split("\n")[0])
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=TURN_S)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
