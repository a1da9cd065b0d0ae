# SPDX-License-Identifier: GPL-2.0
"""Requests per second on simulated machines of up to 64 CPUs, and the paper's comparisons.

Each CPU has a queue and a flow and keeps 128 requests of 1 KiB; the drive serves four million a
second (tests/smp/machine_run.c). Each access to shared memory costs what the machine charges
(tests/smp/machine.h). mqfq is compared with no scheduler, with itself behind one lock, and with one
structure replaced. These are figures 8 to 11 of Hedayati et al., ATC 2019.

    python3 -m experiments.machine --json machine.json --picture machine.png
    python3 -m experiments.machine --document doc/measurements/machine.md

With --document the tables in that file are written anew. Same sources, same figures. A bound that
does not hold is a result, and the status is 0; --strict makes it 1.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import harness
from experiments.markdown import check_places, lines, put
from experiments.pictures import draw_machines
from mqfair.text.errors import Failure

# The places of the document.
PLACES = ("claims", "rates", "thresholds", "hot")
SCHEMA = "mqfair.machine/1"
MACHINES = ("two-sockets", "four-sockets", "epyc")
CPUS = (1, 4, 8, 12, 16, 24, 32, 48, 64)
# A threshold beyond which throughput grows no more. Without one, T is automatic.
WIDE_KIB = 1024


@dataclass(frozen=True)
class Variant:
    """A program and its arguments."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()


WIDE = (f"threshold_kib={WIDE_KIB}",)
VARIANTS = (
    Variant("none", "mqfq", ("policy=none",)),
    Variant("mqfq", "mqfq", WIDE),
    Variant("mqfq, clusters", "mqfq", (*WIDE, "clusters=1")),
    Variant("one lock", "mqfq", (*WIDE, "serial=1")),
    Variant("counter", "counter", WIDE),
    Variant("bitmap", "bitmap", WIDE),
    Variant("scan", "scan", WIDE),
    Variant("mqfq, T auto", "mqfq"),
    Variant("scan, T auto", "scan"),
    Variant("polling 1 us", "poll", ("poll_ns=1000",)),
    Variant("polling 5 us", "poll", ("poll_ns=5000",)),
    *(Variant(name, "mqfq", (f"policy={name}",)) for name in ("ifq", "wdt", "kyber-fair", "hwabc")),
)
# The variants of mqfq by T, and the numbers of CPUs at which T matters.
BETWEEN = {
    kib: Variant(f"mqfq, T {kib} KiB", "mqfq", (f"threshold_kib={kib}",))
    for kib in (64, 128, 256, 512)
}
BY_THRESHOLD: dict[int | str, str] = {
    "auto": "mqfq, T auto",
    **{kib: one.name for kib, one in BETWEEN.items()},
    WIDE_KIB: "mqfq",
}
MANY_CPUS = (32, 48, 64)


@dataclass(frozen=True)
class Run:
    """One line of output of the program. Counts and times are for each request."""

    machine: str
    variant: str
    cpus: int
    requests_per_s: float
    jain: float
    accesses: float
    locked: float
    misses: list[float]
    line_wait_ns: float
    lock_wait_ns: float
    wakes: float
    looks: float
    hot: dict[str, float]


@dataclass(frozen=True)
class Claim:
    """A ratio of the paper. @cpus None: of the two peaks."""

    what: str
    ours: str
    other: str
    cpus: int | None
    least: float


CLAIMS = (
    Claim("peak / none", "mqfq", "none", None, 0.71),
    Claim("peak / one lock", "mqfq", "one lock", None, 2.6),
    Claim("32 CPUs: token tree / counter", "mqfq", "counter", 32, 2.0),
    Claim("32 CPUs: token tree / bitmap", "mqfq", "bitmap", 32, 1.36),
    Claim("32 CPUs: mindicator / scan", "mqfq, T auto", "scan, T auto", 32, 1.4),
    Claim("32 CPUs: wheel / polling 1 us", "mqfq, T auto", "polling 1 us", 32, 1.0),
)


@dataclass(frozen=True)
class Results:
    runs: list[Run]

    def rate(self, machine: str, variant: str, cpus: int | None) -> float:
        """Requests per second; @cpus None: the most of all numbers of CPUs."""
        return max(
            run.requests_per_s
            for run in self.runs
            if (run.machine, run.variant) == (machine, variant) and cpus in (None, run.cpus)
        )

    def ratio(self, claim: Claim, machine: str) -> float:
        ours = self.rate(machine, claim.ours, claim.cpus)
        return ours / self.rate(machine, claim.other, claim.cpus)

    def machines(self) -> list[str]:
        return list(dict.fromkeys(run.machine for run in self.runs))

    def cpus(self) -> list[int]:
        return sorted({run.cpus for run in self.runs})


def build() -> Path:
    """The folder of the programs, from the current sources. Raises Failure."""
    return harness.build("machine-run") / "tests" / "smp"


def run_once(folder: Path, machine: str, variant: Variant, cpus: int) -> Run:
    argv = [str(folder / f"machine-{variant.program}"), f"machine={machine}", f"cpus={cpus}"]
    argv += [*variant.arguments, f"variant={variant.name}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(argv)}: status {done.returncode}: {done.stderr.strip()}")
    return Run(**json.loads(done.stdout))


def measure(
    folder: Path,
    machines: Sequence[str],
    cpus: Sequence[int],
    variants: Sequence[Variant] = VARIANTS,
    at_once: int | None = None,
) -> Results:
    """Runs each variant on each machine with each number of CPUs, @at_once at the same time: None
    stands for the number of cores."""
    plan = [(m, v, n) for m in machines for n in cpus for v in variants]
    with concurrent.futures.ThreadPoolExecutor(at_once or os.cpu_count()) as pool:
        return Results(list(pool.map(lambda one: run_once(folder, *one), plan)))


def measure_all(folder: Path, machines: Sequence[str]) -> Results:
    """The runs of all tables."""
    found = measure(folder, machines, CPUS).runs
    found += measure(folder, machines, MANY_CPUS, tuple(BETWEEN.values())).runs
    return Results(found)


# --- tables ----------------------------------------------------------------------------------


def claims_table(results: Results) -> str:
    machines = results.machines()
    rows = []
    for claim in CLAIMS:
        ratios = [results.ratio(claim, machine) for machine in machines]
        cells = [f"{r:.2f}" if r >= claim.least else f"**{r:.2f}**" for r in ratios]
        rows.append([claim.what, f"≥ {claim.least:g}", *cells])
    return lines(["", "paper", *machines], rows)


def rates_table(results: Results, machine: str) -> str:
    rows = [
        [v.name, *(f"{results.rate(machine, v.name, n) / 1e6:.2f}" for n in results.cpus())]
        for v in VARIANTS
    ]
    return lines([machine, *map(str, results.cpus())], rows)


def thresholds_table(results: Results) -> str:
    """Of mqfq by T, in million requests per second."""
    rows = [
        [f"{machine}, {cpus} CPUs"]
        + [f"{results.rate(machine, name, cpus) / 1e6:.2f}" for name in BY_THRESHOLD.values()]
        for machine in results.machines()
        for cpus in MANY_CPUS
    ]
    return lines(["T, KiB", *map(str, BY_THRESHOLD)], rows)


def hot_table(results: Results) -> str:
    """The data that cost mqfq the most time at the greatest number of CPUs."""
    most = results.cpus()[-1]
    rows = []
    for run in results.runs:
        if run.variant == "mqfq" and run.cpus == most:
            parts = list(run.hot.items())[:4]
            rows.append([run.machine, *(f"{name} {ns:.0f}" for name, ns in parts)])
    return lines(["ns for each request", "first", "second", "third", "fourth"], rows)


def tables(results: Results) -> dict[str, str]:
    rates = "\n".join(rates_table(results, machine) for machine in results.machines())
    return {
        "claims": claims_table(results),
        "rates": rates,
        "thresholds": thresholds_table(results),
        "hot": hot_table(results),
    }


def draw(results: Results, path: Path) -> None:
    shown = [v.name for v in VARIANTS if "," not in v.name and "polling" not in v.name]
    curves = {
        machine: {
            name: {n: results.rate(machine, name, n) / 1e6 for n in results.cpus()}
            for name in shown
        }
        for machine in results.machines()
    }
    draw_machines(curves, path)


def document(results: Results) -> dict[str, Any]:
    checks = [
        {
            "machine": machine,
            "what": claim.what,
            "least": claim.least,
            "seen": results.ratio(claim, machine),
            "holds": results.ratio(claim, machine) >= claim.least,
        }
        for machine in results.machines()
        for claim in CLAIMS
    ]
    return {
        "schema": SCHEMA,
        "checks": checks,
        "runs": [dataclasses.asdict(run) for run in results.runs],
    }


def run(args: argparse.Namespace) -> int:
    if args.document:
        check_places(args.document, PLACES)
    machines = harness.chosen("--machines", args.machines, MACHINES, "machine")
    results = measure_all(build(), machines)
    print("\n".join(tables(results).values()), end="")
    if args.json:
        args.json.write_text(json.dumps(document(results), indent=1) + "\n")
    if args.document:
        put(args.document, tables(results))
    if args.picture:
        draw(results, args.picture)
    holds = all(check["holds"] for check in document(results)["checks"])
    return 0 if holds or not args.strict else 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.machine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--machines",
        default=",".join(MACHINES),
        metavar="NAME,...",
        help="some of %(default)s (default: all)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write checks and runs to FILE")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves into FILE")
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help="write the tables into the document FILE"
    )
    parser.add_argument(
        "--strict", action="store_true", help="status 1 if a ratio is below that of the paper"
    )
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
