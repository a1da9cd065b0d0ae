# SPDX-License-Identifier: GPL-2.0
"""The harness of the experiments: common options, runs of the bench, and checks."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from experiments.guest_options import add_guest_arguments
from mqfair.bench import report, session
from mqfair.bench.command import show_progress
from mqfair.bench.device import default_device, parse_device
from mqfair.bench.jobfile import JobFile
from mqfair.bench.result import CaseResult, Document, RunResult, document
from mqfair.bench.simulated import program
from mqfair.bench.variant import BFQ, NONE, parse_variants
from mqfair.text.errors import Failure, UsageError

EXAMPLES = session.ROOT / "examples"

Command = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Check:
    """One bound and whether it holds. @seen is the median that is judged, @spread the least and
    the greatest value of all repeats."""

    case: str
    scheduler: str
    what: str
    must: str
    seen: float
    spread: tuple[float, float]
    holds: bool

    def __str__(self) -> str:
        return (
            f"{'holds' if self.holds else 'FAILS':6} {self.case:20} {self.scheduler:12}"
            f" {self.what:28} must be {self.must:12} is {self.seen:8.4f}"
            f"  ({self.spread[0]:.4f} .. {self.spread[1]:.4f})"
        )


@dataclass(frozen=True)
class Candidate:
    """The scheduler under test, in one case. Each method takes a value for each repeat and checks
    their median."""

    case: str
    scheduler: str

    def at_least(self, what: str, values: Sequence[float], least: float) -> Check:
        seen = statistics.median(values)
        return self._check(what, f">= {least:.4g}", values, seen, seen >= least)

    def at_most(self, what: str, values: Sequence[float], most: float) -> Check:
        seen = statistics.median(values)
        return self._check(what, f"<= {most:.4g}", values, seen, seen <= most)

    def within(self, what: str, values: Sequence[float], most: float) -> Check:
        """The median lies between -@most and @most."""
        seen = statistics.median(values)
        return self._check(what, f"within {most:.4g}", values, seen, abs(seen) <= most)

    def _check(
        self, what: str, must: str, values: Sequence[float], seen: float, holds: bool
    ) -> Check:
        spread = (min(values), max(values))
        return Check(self.case, self.scheduler, what, must, seen, spread, holds)


def build(target: str) -> Path:
    """The folder of the release build, in which Ninja's @target is of the current sources. Raises
    Failure."""
    folder = program.ensure().parents[1]
    done = subprocess.run(
        ["ninja", "-C", str(folder), target], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"ninja -C {folder} {target}: {done.stdout.strip()[-2000:]}")
    return folder


def runs_of(result: CaseResult, label: str) -> list[RunResult]:
    return [run for run in result.runs if run.scheduler == label]


def ratios(
    result: CaseResult, label: str, base: str, figure: Callable[[RunResult], float]
) -> list[float]:
    """For each repeat, the figure under @label over the figure under @base."""
    other = {run.repeat: figure(run) for run in runs_of(result, base)}
    return [figure(run) / other[run.repeat] for run in runs_of(result, label)]


def total_iops(run: RunResult) -> float:
    return run.total_iops


def total_bytes(run: RunResult) -> float:
    return run.total_bytes_per_s


def add_arguments(
    parser: argparse.ArgumentParser, *, schedulers: str, runtime_s: float, repeat: int = 3
) -> None:
    """The options of most experiments; @schedulers are the default of --schedulers."""
    parser.add_argument(
        "--schedulers",
        default=schedulers,
        metavar="NAME,...",
        help="as for mqfair bench; a scheduler given with tunables is shown, not judged"
        " (default %(default)s)",
    )
    add_run_arguments(parser, runtime_s=runtime_s, repeat=repeat)


def add_run_arguments(
    parser: argparse.ArgumentParser, *, runtime_s: float, repeat: int = 3
) -> None:
    """The options of an experiment that chooses its schedulers itself."""
    parser.add_argument(
        "--repeat",
        type=int,
        default=repeat,
        metavar="N",
        help="runs of each scheduler, interleaved (default %(default)s)",
    )
    add_guest_arguments(parser, runtime_s=runtime_s)
    parser.add_argument(
        "--nr-requests", type=int, metavar="N", help="scheduler tags of each hardware queue"
    )
    parser.add_argument("--json", metavar="FILE", help="write checks and results to FILE")


def add_cases(parser: argparse.ArgumentParser, cases: Sequence[str]) -> None:
    parser.add_argument(
        "--cases",
        default=",".join(cases),
        metavar="NAME,...",
        help="cases to run (default %(default)s)",
    )


def chosen(option: str, text: str, known: Iterable[str], noun: str) -> list[str]:
    """The names in @text, the value of @option. Raises UsageError for a name not in @known, which
    it calls a @noun."""
    names = text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: no such {noun}: use {', '.join(known)}")
    return names


def cases(args: argparse.Namespace, known: Sequence[str]) -> list[str]:
    return chosen("--cases", args.cases, known, "case")


def cpus(args: argparse.Namespace) -> int:
    return 1 if args.icount else int(args.cpus)


def request(
    args: argparse.Namespace, jobs: Iterable[JobFile], device: str | None = None
) -> session.Request:
    """The bench's request for @jobs under none and --schedulers.

    @device is in the syntax of `mqfair bench --device`; None stands for the bench's default.
    """
    labels = parse_variants(args.schedulers)
    return session.with_built_module(
        session.Request(
            jobs=tuple(jobs),
            # Figures are given relative to none.
            schedulers=tuple(dict.fromkeys((NONE, *labels))),
            repeat=args.repeat,
            device=parse_device(device or default_device(cpus(args))),
            cpus=cpus(args),
            icount=args.icount,
            nr_requests=args.nr_requests,
            module=args.module,
        )
    )


def run_bench(
    asked: session.Request, look: Callable[[Path], None] = lambda _folder: None
) -> session.Outcome:
    """Runs the bench. @look is called with the folder of fio's raw files before it is removed."""
    with (
        tempfile.TemporaryDirectory(prefix="mqfair-experiment-") as name,
        show_progress([asked]) as progress,
    ):
        outcome = session.run(asked, Path(name), progress)
        look(Path(name))
    return outcome


def judged(result: CaseResult) -> list[str]:
    """The schedulers to judge: all but none and those given with tunables."""
    return [name for name in report.schedulers_of(result) if ":" not in name and name != NONE]


def above_bfq(
    result: CaseResult, label: str, figure: Callable[[RunResult], float], least: float = 1.0
) -> list[Check]:
    """One check against BFQ's total; none if BFQ did not run."""
    if not runs_of(result, BFQ):
        return []
    candidate = Candidate(result.case.name, label)
    return [candidate.at_least("total / bfq", ratios(result, label, BFQ, figure), least)]


def console() -> Console:
    return report.console_for()


def conclude(
    args: argparse.Namespace,
    experiment: str,
    outcomes: Sequence[session.Outcome],
    checks: Sequence[Check],
    figures: Document | None = None,
) -> int:
    """Prints notes and checks and writes the document of --json.

    @figures are added to the document at top level. Returns the exit status: 1 if a check fails.
    """
    for outcome in outcomes:
        for note in outcome.notes:
            console().print(f"note: {note}", style="dim", highlight=False)
    for one in checks:
        console().print(str(one), highlight=False)
    if args.json:
        whole = {
            "schema": f"mqfair.experiment-{experiment}/1",
            "verdicts": [vars(one) for one in checks],
            **(figures or {}),
            "results": [
                document(result, outcome.where, ())
                for outcome in outcomes
                for result in outcome.results
            ],
        }
        Path(args.json).write_text(json.dumps(whole, indent=1) + "\n")
    return 0 if all(one.holds for one in checks) else 1


def dispatch(args: argparse.Namespace) -> int:
    """Calls the function of the chosen subcommand, which its parser has set as `command`."""
    command: Command = args.command
    return command(args)


def main(
    parser: argparse.ArgumentParser,
    run: Command,
    argv: Sequence[str] | None = None,
) -> int:
    """Parses, runs, and turns UsageError into status 2 and Failure into status 1."""
    try:
        return run(parser.parse_args(argv))
    except (UsageError, Failure) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
