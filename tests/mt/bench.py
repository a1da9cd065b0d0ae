#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the native benchmark of sched/ and prints the cost of a request.

Each variant is the scheduler with one structure replaced, as in the evaluation of
Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, section 4.3.  The repeats are
interleaved (A B C A B C), so that a slow minute of the machine hits all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

WORKLOADS = ("alone", "shared", "scarce")


@dataclass(frozen=True)
class Variant:
    """A program and its arguments."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()


VARIANTS = (
    Variant("mqfq", "mqfq"),
    Variant("one lock", "mqfq", ("serial",)),
    Variant("array scan", "scan"),
    Variant("atomic counter", "counter"),
    Variant("bitmap", "bitmap"),
    Variant("polling 1 us", "poll", ("poll=1000",)),
    Variant("polling 5 us", "poll", ("poll=5000",)),
)


@dataclass(frozen=True)
class Run:
    """One line of output of the program."""

    variant: str
    workload: str
    threads: int
    ops_per_s: float
    cpu_ns_per_op: float
    kicks_per_op: float
    looks_per_op: float
    turns_per_op: float
    spread: float


def thread_counts(most: int) -> list[int]:
    """1, 2, 4 .. and `most`."""
    counts = [1 << i for i in range(most.bit_length()) if 1 << i < most]
    return [*counts, most]


def run_once(
    programs: dict[str, Path], variant: Variant, workload: str, threads: int, ms: int
) -> Run:
    command = [
        str(programs[variant.program]),
        workload,
        str(threads),
        str(ms),
        variant.name,
        *variant.arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60 + ms)
    return Run(**json.loads(done.stdout))


def measure(options: argparse.Namespace) -> list[Run]:
    programs = {path.name.removeprefix("bench-sched-"): path for path in options.programs}
    runs = []
    for _ in range(options.repeat):
        for threads in thread_counts(options.threads):
            for workload in WORKLOADS:
                for variant in VARIANTS:
                    runs.append(
                        run_once(programs, variant, workload, threads, options.milliseconds)
                    )
    return runs


def row(runs: list[Run], ours: float) -> str:
    rates = sorted(run.ops_per_s for run in runs)
    rate = statistics.median(rates)
    cost = statistics.median(run.cpu_ns_per_op for run in runs)
    kicks = statistics.median(run.kicks_per_op for run in runs)
    looks = statistics.median(run.looks_per_op for run in runs)
    return (
        f"{runs[0].variant:<16}{rate / 1e6:>9.2f}{rates[0] / 1e6:>9.2f}{rates[-1] / 1e6:>7.2f}"
        f"{cost:>9.0f}{rate / ours:>9.2f}{kicks:>9.3f}{looks:>9.3f}"
    )


def print_tables(runs: list[Run]) -> None:
    for threads in sorted({run.threads for run in runs}):
        for workload in WORKLOADS:
            print(f"\n{workload}, {threads} threads")
            print(
                f"{'':<16}{'Mops/s':>9}{'least':>9}{'most':>7}{'cpu ns':>9}{'to mqfq':>9}"
                f"{'kicks':>9}{'looks':>9}"
            )
            here = [run for run in runs if run.threads == threads and run.workload == workload]
            ours = statistics.median(run.ops_per_s for run in here if run.variant == "mqfq")
            for variant in VARIANTS:
                print(row([run for run in here if run.variant == variant.name], ours))


def warn_of_load() -> None:
    """Warn of a high load: then only the processor time of a request is valid."""
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    if load > cpus / 2:
        print(
            f"load {load:.1f} on {cpus} processors: believe cpu ns, not Mops/s",
            file=sys.stderr,
        )


def write_json(path: Path, runs: list[Run]) -> None:
    where = {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
    }
    document = {
        "schema": "mqfair.bench-sched/1",
        "where": where,
        "runs": [asdict(run) for run in runs],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", type=Path, help="the bench-sched-* programs")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--milliseconds", type=int, default=200, help="of one run")
    parser.add_argument("--json", type=Path, help="write all runs there")
    options = parser.parse_args()
    warn_of_load()
    runs = measure(options)
    print_tables(runs)
    if options.json:
        write_json(options.json, runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
