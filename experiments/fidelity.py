# SPDX-License-Identifier: GPL-2.0
"""Compares the simulator with a guest: job files on the virtual SSD, each on both.

The guest has one CPU and counts instructions, and the drive is stretched, so that the drive is the
bottleneck. The simulator has one CPU, too, and runs with several seeds. For each cgroup the shares
of bytes and the p99 are compared: the median of the guest's runs with that of the seeds. A share
must be within 5 %, and a p99 within 25 %.

    python3 -m experiments.fidelity --cases flash-randread --json fidelity.json
    python3 -m experiments.fidelity --document doc/measurements/fidelity.md
    python3 -m experiments.fidelity --guest fidelity.json

With --document the table in that file gets the rows of these cases, and keeps those of others. A
guest runs all cases of one drive. With
--guest no guest runs: its figures are those in a file that --json wrote. So a change of the
simulator is judged in seconds.
"""

import argparse
import dataclasses
import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import harness
from experiments.harness import Candidate, Check
from experiments.markdown import filled, lines, places
from experiments.markdown import rows as rows_in
from mqfair.bench import jobfile, report, session
from mqfair.bench.device import parse_device
from mqfair.bench.plan import SIM
from mqfair.bench.result import CaseResult, CgroupResult, Document, document
from mqfair.bench.simulated import session as simulation
from mqfair.bench.variant import MQFQ, NONE
from mqfair.text.errors import UsageError

FULL = "ssd:model=980pro,size_mb=1024,fill=100,time_scale=100"
PART = "ssd:model=980pro,size_mb=1024,fill=85,time_scale=100"
# The job files, and the drive of each: a page that was never written needs no flash.
CASES: Mapping[str, str] = {
    "flash-randread": FULL,
    "flash-sizes": FULL,
    "isolation-reader": FULL,
    "isolation-deep": FULL,
    "nested": FULL,
    "light-tenant": FULL,
    "threads-1-4": FULL,
    "traces": PART,
    "flash-mixed": PART,
    "flash-reader-writer": PART,
}
# The third has no control loop: depth and isolation of the second follow the drive's latencies.
SCHEDULERS = (NONE, MQFQ, f"{MQFQ}:depth=64:isolation=0")
SEEDS = 5
REPEATS = 3
MOST_SHARE = 0.05
MOST_P99 = 0.25
# The places of the document.
TABLE = "table"
SUMMARY = "summary"


# By case and scheduler: the cgroups of each run of the guest.
Guest = Mapping[tuple[str, str], Sequence[Sequence[CgroupResult]]]


@dataclass(frozen=True)
class Row:
    """One cgroup of one job under one scheduler, in all runs of the guest and with all seeds."""

    case: str
    scheduler: str
    guest: Sequence[CgroupResult]
    simulated: Sequence[CgroupResult]

    @property
    def share_off(self) -> float:
        return report.median(self.simulated, _share) / report.median(self.guest, _share) - 1

    @property
    def p99_off(self) -> float:
        return report.median(self.simulated, _p99_ms) / report.median(self.guest, _p99_ms) - 1

    def cells(self) -> list[str]:
        return [
            self.case,
            self.scheduler,
            self.guest[0].name,
            report.spread([_share(one) for one in self.guest], "{:.2f}"),
            report.spread([_share(one) for one in self.simulated], "{:.2f}"),
            _marked(self.share_off, MOST_SHARE),
            report.spread([_p99_ms(one) for one in self.guest], "{:.1f}"),
            report.spread([_p99_ms(one) for one in self.simulated], "{:.1f}"),
            _marked(self.p99_off, MOST_P99),
        ]


def _share(group: CgroupResult) -> float:
    """In percent."""
    return group.share * 100


def _p99_ms(group: CgroupResult) -> float:
    return group.lat_ns["p99"] / 1e6


def _marked(off: float, most: float) -> str:
    """A deviation in percent; one beyond the bound is bold."""
    text = f"{off * 100:+.1f}"
    return text if abs(off) <= most else f"**{text}**"


def guest_of(documents: Sequence[Document]) -> Guest:
    """The runs of guests in documents of the bench; those of the simulator are left out."""
    found: dict[tuple[str, str], list[list[CgroupResult]]] = {}
    for one in documents:
        if one["where"]["accel"] == SIM:
            continue
        for run in one["runs"]:
            groups = [CgroupResult(**group) for group in run["cgroups"]]
            found.setdefault((one["job"], run["scheduler"]), []).append(groups)
    return found


def read_guest(names: Sequence[str]) -> Guest:
    """The guest's runs in the files @names, which --json wrote. Raises UsageError."""
    found: dict[tuple[str, str], list[Sequence[CgroupResult]]] = {}
    for name in names:
        try:
            runs = guest_of(json.loads(Path(name).read_text())["results"])
        except OSError as error:
            raise UsageError(f"--guest {name}: {error.strerror}: name a file of --json") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"--guest {name}: not a file that --json wrote: name one") from error
        for pair, more in runs.items():
            found.setdefault(pair, []).extend(more)
    return found


def rows(guest: Guest, simulated: CaseResult) -> Iterator[Row]:
    case = simulated.case.name
    for scheduler in report.schedulers_of(simulated):
        groups = zip(*guest[case, scheduler], strict=True)
        for left, right in zip(groups, report.by_cgroup(simulated, scheduler), strict=True):
            yield Row(case, scheduler, left, right)


HEAD = (
    "job", "scheduler", "cgroup", "share: guest", "simulator", "off, %",
    "p99 ms: guest", "simulator", "off, %",
)  # fmt: skip
_SHARE_OFF, _P99_OFF = 5, 8


def updated(text: str, found: Sequence[Row]) -> str:
    """The document @text with the rows @found, and a summary of all rows. Rows of other cases stay
    as they are."""
    new = [row.cells() for row in found]
    ran = {cells[0] for cells in new}
    kept = [cells for cells in rows_in(text, TABLE) if cells[0] not in ran]
    order = list(CASES)
    # The sort is stable, so the rows of a case keep their order.
    cells = sorted([*kept, *new], key=lambda one: order.index(one[0]))
    return filled(text, {TABLE: lines(HEAD, cells), SUMMARY: _summary(cells)})


def _summary(cells: Sequence[Sequence[str]]) -> str:
    shares, p99s = (
        sum(not row[column].startswith("**") for row in cells) for column in (_SHARE_OFF, _P99_OFF)
    )
    return (
        f"Of {len(cells)} rows {shares} have the share within {MOST_SHARE:.0%}, and {p99s} the p99"
        f" within {MOST_P99:.0%}.\n".replace("%", " %")
    )


def judge(found: Sequence[Row]) -> Iterator[Check]:
    for row in found:
        candidate = Candidate(row.case, row.scheduler)
        name = row.guest[0].name
        yield candidate.within(f"share of {name}", [row.share_off], MOST_SHARE)
        yield candidate.within(f"p99 of {name}", [row.p99_off], MOST_P99)


def requests(args: argparse.Namespace, names: Sequence[str]) -> Iterator[session.Request]:
    """A request for each drive, with all cases on it."""
    for device in dict.fromkeys(CASES[name] for name in names):
        chosen = [name for name in names if CASES[name] == device]
        paths = [str(harness.EXAMPLES / f"{name}.fio") for name in chosen]
        yield session.Request(
            jobs=tuple(jobfile.load(path, args.runtime) for path in paths),
            schedulers=SCHEDULERS,
            repeat=args.repeat,
            device=parse_device(device),
            cpus=1,
            icount=True,
            module=args.module,
        )


def in_simulator(asked: session.Request) -> session.Outcome:
    simulated = dataclasses.replace(asked, on=SIM, icount=False, module=None, repeat=SEEDS)
    with tempfile.TemporaryDirectory(prefix="mqfair-experiment-") as name:
        return simulation.run(simulated, Path(name))


def run(args: argparse.Namespace) -> int:
    if args.document:
        for name in {TABLE, SUMMARY} - places(args.document.read_text()):
            raise UsageError(
                f"--document {args.document}: no line <!-- {name} --> and <!-- end -->"
            )
    names = harness.cases(args, tuple(CASES))
    guest = dict(read_guest(args.guest))
    absent = [pair for pair in itertools.product(names, SCHEDULERS) if pair not in guest]
    if args.guest and absent:
        raise UsageError(f"--guest: no run of {absent[0][0]} under {absent[0][1]}: name its file")
    found: list[Row] = []
    outcomes = []
    for asked in requests(args, names):
        # The guest takes minutes: a mistake of the simulator is found before.
        simulated = in_simulator(asked)
        outcomes.append(simulated)
        if not args.guest:
            outcome = harness.run_bench(session.with_built_module(asked))
            outcomes.append(outcome)
            guest |= guest_of([document(one, outcome.where, ()) for one in outcome.results])
        for one in simulated.results:
            found += rows(guest, one)
    print(lines(HEAD, [row.cells() for row in found]), end="")
    if args.document:
        args.document.write_text(updated(args.document.read_text(), found))
    return harness.conclude(args, "fidelity", outcomes, list(judge(found)))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.fidelity",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    harness.add_cases(parser, tuple(CASES))
    parser.add_argument(
        "--repeat",
        type=int,
        default=REPEATS,
        metavar="N",
        help="runs of the guest under each scheduler (default %(default)s)",
    )
    parser.add_argument(
        "--guest",
        action="append",
        default=[],
        metavar="FILE",
        help="take the guest's runs from FILE, which --json wrote; may be repeated",
    )
    parser.add_argument(
        "--runtime",
        type=float,
        default=5.0,
        metavar="S",
        help="seconds of each run, counted by the guest's instructions (default %(default)s)",
    )
    parser.add_argument(
        "--module", type=Path, metavar="FILE", help="mqfair.ko (default: the one built here)"
    )
    parser.add_argument("--json", metavar="FILE", help="write checks and results to FILE")
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help="write the table into the document FILE"
    )
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
