# SPDX-License-Identifier: GPL-2.0
"""Compares the simulator with a guest: job files on the virtual SSD, each on both.

The guest has one CPU and counts instructions, and the drive is stretched, so that the drive is the
bottleneck. The simulator has one CPU, too, and runs with several seeds. For each cgroup the shares
of bytes and the p99 are compared: the median of the guest's runs with that of the seeds. A share
must be within 5 %, and a p99 within 25 %. Each scheduler of ours runs with its defaults, and with a
fixed window.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import harness
from experiments.harness import Candidate, Check
from experiments.markdown import check_places, filled, lines
from experiments.markdown import rows as rows_in
from mqfair.bench import jobfile, report, session
from mqfair.bench.device import parse_device
from mqfair.bench.plan import SIM
from mqfair.bench.result import CaseResult, CgroupResult, Document, document
from mqfair.bench.simulated import session as simulation
from mqfair.bench.variant import NONE
from mqfair.schedulers import SCHEDULERS as OURS
from mqfair.text.errors import UsageError

FULL = "ssd:model=980pro,size_mb=1024,fill=100,time_scale=100"
PART = "ssd:model=980pro,size_mb=1024,fill=85,time_scale=100"
JOBS = Path(__file__).with_name("jobs")


@dataclass(frozen=True)
class Job:
    """A job file, and the drive that it runs on."""

    device: str
    folder: Path = harness.EXAMPLES


# A page that was never written needs no flash, so a job that reads everywhere has a full drive.
CASES: Mapping[str, Job] = {
    "flash-randread": Job(FULL),
    "flash-sizes": Job(FULL),
    "isolation-reader": Job(FULL),
    "isolation-deep": Job(FULL),
    "nested": Job(FULL),
    "light-tenant": Job(FULL),
    "threads-1-4": Job(FULL),
    "paced": Job(FULL, JOBS),
    "bursts": Job(FULL, JOBS),
    "sizes-by-weight": Job(FULL, JOBS),
    "traces": Job(PART),
    "flash-mixed": Job(PART),
    "flash-reader-writer": Job(PART),
    "sync-writer": Job(PART, JOBS),
    "sequential-writer": Job(PART, JOBS),
}
# With a fixed window there is no control loop: depth and isolation follow the drive's latencies.
FIXED = "depth=64:isolation=0"
SCHEDULERS = (NONE, *OURS, *(f"{name}:{FIXED}" for name in OURS))
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
    """One job under one scheduler: for each cgroup all runs of the guest, and all seeds."""

    case: str
    scheduler: str
    guest: Sequence[Sequence[CgroupResult]]
    simulated: Sequence[Sequence[CgroupResult]]

    @property
    def names(self) -> list[str]:
        return [runs[0].name for runs in self.guest]

    @property
    def share_off(self) -> list[float]:
        """Of each cgroup; 0.1 if the simulator has a tenth more."""
        return self._off(_share)

    @property
    def p99_off(self) -> list[float]:
        return self._off(_p99_ms)

    def _off(self, value: Callable[[CgroupResult], float]) -> list[float]:
        return [
            report.median(seeds, value) / report.median(runs, value) - 1
            for runs, seeds in zip(self.guest, self.simulated, strict=True)
        ]

    def cells(self) -> list[str]:
        return [
            self.case,
            self.scheduler,
            _of_each(self.guest, _share, "{:.2f}"),
            _of_each(self.simulated, _share, "{:.2f}"),
            _marked(self.share_off, MOST_SHARE),
            _of_each(self.guest, _p99_ms, "{:.3g}"),
            _of_each(self.simulated, _p99_ms, "{:.3g}"),
            _marked(self.p99_off, MOST_P99),
        ]


def _of_each(
    groups: Sequence[Sequence[CgroupResult]], value: Callable[[CgroupResult], float], form: str
) -> str:
    """The median of each cgroup, and with several runs how far any is from the median of its
    cgroup."""
    medians = [report.median(runs, value) for runs in groups]
    spread = max(
        abs(value(run) / middle - 1)
        for runs, middle in zip(groups, medians, strict=True)
        for run in runs
    )
    text = ", ".join(form.format(middle) for middle in medians)
    return f"{text} ± {spread * 100:.0f} %" if len(groups[0]) > 1 else text


def _share(group: CgroupResult) -> float:
    """In percent."""
    return group.share * 100


def _p99_ms(group: CgroupResult) -> float:
    return group.lat_ns["p99"] / 1e6


def _marked(off: Sequence[float], most: float) -> str:
    """The greatest deviation of a cgroup in percent; one beyond the bound is bold."""
    worst = max(off, key=abs)
    text = f"{worst * 100:+.1f}"
    return text if abs(worst) <= most else f"**{text}**"


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
        runs = [list(one) for one in zip(*guest[case, scheduler], strict=True)]
        yield Row(case, scheduler, runs, report.by_cgroup(simulated, scheduler))


HEAD = (
    "job", "scheduler", "shares, %: guest", "simulator", "most off, %",
    "p99, ms: guest", "simulator", "most off, %",
)  # fmt: skip
_SHARE_OFF, _P99_OFF = 4, 7


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
        f"Of {len(cells)} rows {shares} have all shares within {MOST_SHARE:.0%}, and {p99s} all p99"
        f" within {MOST_P99:.0%}.\n".replace("%", " %")
    )


def judge(found: Sequence[Row]) -> Iterator[Check]:
    for row in found:
        candidate = Candidate(row.case, row.scheduler)
        for name, share, p99 in zip(row.names, row.share_off, row.p99_off, strict=True):
            yield candidate.within(f"share of {name}", [share], MOST_SHARE)
            yield candidate.within(f"p99 of {name}", [p99], MOST_P99)


def requests(args: argparse.Namespace, names: Sequence[str]) -> Iterator[session.Request]:
    """A request for each drive, with all cases on it."""
    for device in dict.fromkeys(CASES[name].device for name in names):
        chosen = [name for name in names if CASES[name].device == device]
        paths = [str(CASES[name].folder / f"{name}.fio") for name in chosen]
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
        check_places(args.document, [TABLE, SUMMARY])
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
