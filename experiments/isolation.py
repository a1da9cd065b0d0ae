# SPDX-License-Identifier: GPL-2.0
"""Measures how far a tenant with few requests is isolated from tenants with many, and the price.

The subject is the first tenant of a case. In case A it is a reader of 4 KiB at depth 1, weight
1000. The others are four jobs of 64 KiB reads at depth 32, together weight 100. Each setting gives
two figures:

  - total / none: the bytes per second of all tenants, relative to none;
  - slowdown: the IOPS of the subject alone, divided by its IOPS beside the others.

The settings are none, every scheduler with its defaults, and two sweeps of one scheduler. One is
over fixed depths, the other over the tunable `isolation` where the scheduler has it. The fixed
depths, with isolation=0, give the curve that a setting is compared with: /curve is the slowdown
divided by that of the curve at the same total.

Every figure is the mean over seeds; spread is that of the slowdown. In a case with windows, p99 is
the greatest of the window's intervals. `by count` is the part of the subject in the drive's
requests, relative to its due part.

    python3 -m experiments.isolation --quick
    python3 -m experiments.isolation --cases A,B --picture build/isolation.png --json build/i.json

Exit status: 0 if the swept scheduler keeps the goals of all cases at its defaults, 1 if not, 2 for
bad input.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.isolation_cases import CASES, Case, Goal
from experiments.isolation_curve import HEAD, Curve, Point, Verdict, curve_of, judge, point, row
from experiments.isolation_run import (
    DEPTH,
    ISOLATION,
    NONE,
    WHOLE,
    Backend,
    Drive,
    Figures,
    Run,
    Setting,
    Simulator,
)
from mqfair.errors import Failure, UsageError
from mqfair.output import table

SCHEMA = "mqfair.experiment-isolation/1"
MODELS = ("980pro", "p3700", "p4500")
FILLS = ("sequential", "random", "steady")
SCHEDULERS = ("mqfq", "ifq", "kyber-fair", "wdt", "hwabc")
DEPTHS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
ISOLATIONS = (2, 5, 8, 12, 20, 30, 50)
BACKENDS = ("sim",)
DRIVE_MIB = 1024
QUICK = {"cases": "A", "models": "980pro", "fills": "random", "seeds": 1}


@dataclass(frozen=True)
class Unit:
    """One case on one drive, with the runs that its table needs."""

    case: Case
    drive: Drive
    settings: tuple[Setting, ...]
    seeds: tuple[int, ...]

    def runs(self) -> Iterator[Run]:
        for seed in self.seeds:
            yield Run(self.case, self.drive, self.settings[0], seed, alone=True)
            for setting in self.settings:
                yield Run(self.case, self.drive, setting, seed)


@dataclass(frozen=True)
class Panel:
    """The points of a unit in one window, with their curve and the verdicts on the scheduler."""

    unit: Unit
    window: str
    points: list[Point]
    curve: Curve
    verdicts: list[Verdict]

    @property
    def swept(self) -> str:
        return next(one.scheduler for one in self.unit.settings if one.role == DEPTH)

    @property
    def where(self) -> str:
        window = "" if self.window == WHOLE else f", {self.window}"
        return f"{self.unit.drive}{window}"


def depths(case: Case) -> list[int]:
    """The depths to sweep: up to the first at which every request of the case has a slot."""
    enough = next((depth for depth in DEPTHS if depth >= case.outstanding), DEPTHS[-1])
    return [depth for depth in DEPTHS if depth <= enough]


def settings(
    case: Case, schedulers: Sequence[str], swept: str, tunables: Sequence[str]
) -> tuple[Setting, ...]:
    """The settings of @case, none first. @tunables are those of the scheduler @swept."""
    has_isolation = ISOLATION in tunables
    without = ((ISOLATION, "0"),) if has_isolation else ()
    found = [Setting(NONE, NONE), *(Setting(name, name) for name in schedulers)]
    found += [
        Setting(f"{swept} depth={depth}", swept, ((DEPTH, str(depth)), *without), DEPTH)
        for depth in depths(case)
    ]
    if has_isolation:
        found += [
            Setting(f"{swept} isolation={price}", swept, ((ISOLATION, str(price)),), ISOLATION)
            for price in ISOLATIONS
        ]
    return tuple(found)


def panel(
    unit: Unit, window: str, goal: Goal, figures: Mapping[Run, Mapping[str, Figures]]
) -> Panel:
    case = unit.case

    def of(setting: Setting, *, alone: bool = False) -> list[Figures]:
        return [figures[Run(case, unit.drive, setting, seed, alone)][window] for seed in unit.seeds]

    none = of(unit.settings[0])
    alone = of(unit.settings[0], alone=True)
    points = [
        point(case, (one.label, one.role), of(one), none=none, alone=alone) for one in unit.settings
    ]
    curve = curve_of(points)
    swept = next(one.scheduler for one in unit.settings if one.role == DEPTH)
    judged = [one for one in points if one.label == swept]
    verdicts = [verdict for one in judged for verdict in judge(goal, one, points[0], curve)]
    return Panel(unit, window, points, curve, verdicts)


def panels(unit: Unit, figures: Mapping[Run, Mapping[str, Figures]]) -> list[Panel]:
    if not unit.case.windows:
        return [panel(unit, WHOLE, unit.case.goal, figures)]
    return [panel(unit, one.name, one.goal, figures) for one in unit.case.windows]


def show(one: Panel) -> str:
    lines = [
        f"{one.unit.case.name}: {one.where}  ({one.unit.case.about}; {len(one.unit.seeds)} seeds)"
    ]
    lines += table(HEAD, [row(found, one.curve) for found in one.points])
    lines += [f"  {verdict}" for verdict in one.verdicts]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------ running


class Progress:
    """A line on standard error: the number of runs that are done, and the time that is left."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.begin = time.monotonic()
        self.shown = False

    def step(self, _: object = None) -> None:
        self.done += 1
        passed = time.monotonic() - self.begin
        left = passed / self.done * (self.total - self.done)
        if sys.stderr.isatty():
            print(
                f"\r{self.done} of {self.total} runs, {left:.0f} s left \x1b[K",
                end="",
                file=sys.stderr,
                flush=True,
            )
            self.shown = True

    def clear(self) -> None:
        """Ends the line, so that other text can be printed."""
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(f"{self.done} of {self.total} runs", file=sys.stderr, flush=True)
        self.shown = False


def measure(backend: Backend, units: Sequence[Unit], jobs: int) -> Iterator[list[Panel]]:
    """Yields the panels of each unit, in order. Runs of different units run side by side."""
    progress = Progress(sum(len(list(unit.runs())) for unit in units))
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            started: list[dict[Run, Future[dict[str, Figures]]]] = []
            for unit in units:
                started.append({run: pool.submit(backend.play, run) for run in unit.runs()})
                for future in started[-1].values():
                    future.add_done_callback(progress.step)
            for unit, futures in zip(units, started, strict=True):
                figures = {run: future.result() for run, future in futures.items()}
                progress.clear()
                yield panels(unit, figures)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# ------------------------------------------------------------------------- command


def chosen(option: str, text: str, known: Sequence[str], noun: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: no such {noun}: use {', '.join(known)}")
    return names


def units_of(args: argparse.Namespace, backend: Backend) -> list[Unit]:
    cases = [CASES[name] for name in chosen("--cases", args.cases, list(CASES), "case")]
    models = chosen("--models", args.models, MODELS, "model")
    fills = chosen("--fills", args.fills, FILLS, "fill")
    schedulers = chosen("--schedulers", args.schedulers, SCHEDULERS, "scheduler")
    swept = chosen("--sweep", args.sweep, SCHEDULERS, "scheduler")
    if len(swept) > 1:
        raise UsageError(f"--sweep {args.sweep}: give one scheduler")
    if args.seeds < 1:
        raise UsageError(f"--seeds {args.seeds}: use 1 or more")
    tunables = backend.tunables(swept[0])
    return [
        Unit(
            case,
            Drive(model, fill, args.ftl, DRIVE_MIB),
            settings(case, schedulers, swept[0], tunables),
            tuple(range(1, args.seeds + 1)),
        )
        for case in cases
        for model in models
        for fill in fills
        if not case.fills or fill in case.fills
    ]


def document(args: argparse.Namespace, found: Sequence[Panel]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "on": args.on,
        "seeds": args.seeds,
        "swept": args.sweep,
        "panels": [
            {
                "case": one.unit.case.name,
                "about": one.unit.case.about,
                "window": one.window,
                "drive": asdict(one.unit.drive),
                "points": [asdict(each) for each in one.points],
                "curve": one.curve,
                "verdicts": [asdict(each) for each in one.verdicts],
            }
            for one in found
        ],
    }


def draw(found: Sequence[Panel], path: Path) -> None:
    """Draws a picture for each case: to @path, or with the case's name if there are several."""
    # matplotlib is not on every machine that measures.
    from experiments.isolation_picture import draw_case  # noqa: PLC0415

    names = list(dict.fromkeys(one.unit.case.name for one in found))
    for name in names:
        target = path if len(names) == 1 else path.with_stem(f"{path.stem}-{name}")
        draw_case([one for one in found if one.unit.case.name == name], target)
        print(f"picture: {target}")


def run(args: argparse.Namespace) -> int:
    if args.quick:
        vars(args).update(QUICK)
    backend = Simulator(args.build)
    backend.prepare()
    found: list[Panel] = []
    for some in measure(backend, units_of(args, backend), args.jobs):
        found += some
        for one in some:
            print(show(one), flush=True)
    if args.json:
        args.json.write_text(json.dumps(document(args, found), indent=1) + "\n")
    if args.picture:
        draw(found, args.picture)
    return 0 if all(verdict.holds for one in found for verdict in one.verdicts) else 1


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="isolation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--on", choices=BACKENDS, default="sim", help="where to run (default %(default)s)"
    )
    options.add_argument(
        "--cases", default="A,B", metavar="NAME,...", help=f"of {', '.join(CASES)} (default A,B)"
    )
    options.add_argument(
        "--models", default=",".join(MODELS), metavar="NAME,...", help="default %(default)s"
    )
    options.add_argument(
        "--fills", default=",".join(FILLS), metavar="NAME,...", help="default %(default)s"
    )
    options.add_argument(
        "--schedulers", default=",".join(SCHEDULERS), metavar="NAME,...", help="default %(default)s"
    )
    options.add_argument(
        "--sweep", default="mqfq", metavar="NAME", help="scheduler of the sweeps (%(default)s)"
    )
    options.add_argument(
        "--ftl", choices=("device", "host"), default="device", help="keeps the map"
    )
    options.add_argument("--seeds", type=int, default=3, metavar="N", help="default %(default)s")
    options.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs side by side"
    )
    options.add_argument(
        "--build",
        type=Path,
        default=Simulator.folder,
        metavar="FOLDER",
        help="of a build without sanitizers (default %(default)s)",
    )
    options.add_argument(
        "--quick", action="store_true", help="case A, one model, one fill, one seed"
    )
    options.add_argument("--json", type=Path, metavar="FILE", help="write points and verdicts")
    options.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return run(parser().parse_args(argv))
    except (UsageError, Failure) as error:
        print(f"isolation: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


if __name__ == "__main__":
    sys.exit(main())
