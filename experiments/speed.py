# SPDX-License-Identifier: GPL-2.0
"""Measures how many requests a second of CPU time the simulator plays.

Two scenes, for each scheduler by turns:

    64 queues           a cgroup with 32 requests on each; a host without prices
    32 CPUs, priced     two cgroups on every second CPU each, with 32 requests; requests take the
                        CPU time of their scheduler

The machine model of doc/measurements/machine.md plays `mqfq` on 32 CPUs, with a load of its own. A
figure is the median of the repeats, with the least and the greatest.

    python3 -m experiments.speed --document doc/simulator.md
"""

import argparse
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments import harness, machine
from experiments.markdown import check_places, lines, put
from mqfair.bench import report
from mqfair.bench.simulated import program
from mqfair.bench.simulated.drive import FAST_REQUEST_NS
from mqfair.bench.simulated.prices import price
from mqfair.bench.variant import NONE
from mqfair.schedulers import SCHEDULERS as OURS

TABLE = "speed"
HEAD = ("scheduler", "64 queues", "32 CPUs, priced")
REPEATS = 5
_DEPTH = 32
_RUN_MS = 500
# Requests inside, and the time of each: four million a second.
_DRIVE = "device 256 64000 0"
_MODELLED_MS = 20
_MODELLED = machine.Variant("mqfq", "mqfq", (f"ms={_MODELLED_MS}",))


def queues(scheduler: str) -> str:
    """The scene of 64 queues, in the language of sim/describe.h."""
    return _scene(scheduler, 64, [f"f{queue}" for queue in range(64)], ())


def priced(scheduler: str) -> str:
    times = price(scheduler, True).statements(FAST_REQUEST_NS)
    return _scene(scheduler, 32, ["light", "heavy"], times)


def _scene(scheduler: str, nr: int, flows: Sequence[str], times: Sequence[str]) -> str:
    said = [
        f"scheduler {scheduler}",
        _DRIVE,
        f"queues {nr}",
        "tags 1023",
        f"tag_maps {nr}",
        *times,
        f"run_ms {_RUN_MS}",
        *(f"flow {flow} weight {100 * (number % 3 + 1)}" for number, flow in enumerate(flows)),
        *(
            f"load {flows[queue % len(flows)]} depth {_DEPTH} bytes 4096 queue {queue}"
            for queue in range(nr)
        ),
    ]
    return "\n".join(said) + "\n"


def _cpu_s() -> float:
    """The CPU time of all processes that have ended, in s."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def requests_per_s(simulator: Path, text: str) -> float:
    """The requests that @simulator plays in a second of CPU time. Raises Failure."""
    began = _cpu_s()
    figures = program.play(simulator, text)
    ios: int = sum(flow["ios"] for flow in figures["flows"].values())
    return ios / (_cpu_s() - began)


def machine_per_s(folder: Path) -> float:
    """The same of the machine model under mqfq. Raises Failure."""
    began = _cpu_s()
    run = machine.run_once(folder, "epyc", _MODELLED, cpus=32)
    return run.requests_per_s * _MODELLED_MS / 1000 / (_cpu_s() - began)


def measure(simulator: Path, repeats: int) -> Iterator[list[str]]:
    """The rows of the table."""
    schedulers = (NONE, *OURS)
    seen: dict[tuple[str, str], list[float]] = {}
    for repeat in range(repeats):
        for scheduler in schedulers:
            print(f"repeat {repeat + 1} of {repeats}: {scheduler}", file=sys.stderr)
            for name, scene in ((HEAD[1], queues), (HEAD[2], priced)):
                rate = requests_per_s(simulator, scene(scheduler))
                seen.setdefault((scheduler, name), []).append(rate / 1e6)
    for scheduler in schedulers:
        cells = [report.spread(seen[scheduler, name], "{:.2f}") for name in HEAD[1:]]
        yield [scheduler, *cells]


def run(args: argparse.Namespace) -> int:
    if args.document:
        check_places(args.document, [TABLE])
    simulator = program.ensure()
    folder = machine.build()
    rows = list(measure(simulator, args.repeat))
    modelled = [machine_per_s(folder) / 1e6 for _ in range(args.repeat)]
    rows.append(["`mqfq` in the machine model", "", report.spread(modelled, "{:.2f}")])
    print(lines(HEAD, rows), end="")
    if args.document:
        put(args.document, {TABLE: lines(HEAD, rows)})
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", type=int, default=REPEATS, help="default %(default)s")
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help=f"write the table into FILE, at {TABLE}"
    )
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
