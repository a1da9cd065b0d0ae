# SPDX-License-Identifier: GPL-2.0
"""Measures how far a tenant with few requests is isolated from tenants with many, and the price.

The subject is the first tenant of a case. In case A it is a reader of 4 KiB at depth 1, weight
1000. The others are four jobs of 64 KiB reads at depth 32, together weight 100. Each setting gives
two figures:

  - total / none: the bytes per second of all tenants, relative to none;
  - slowdown: the IOPS of the subject alone, divided by its IOPS beside the others; or the mean time
    of its requests beside the others, divided by that alone, if it pauses after each request.

The settings are none, every scheduler with its defaults, and two sweeps of one scheduler. One is
over fixed depths, the other over the tunable `isolation` where the scheduler has it. The fixed
depths, with isolation=0, give the curve that a setting is compared with: /curve is the slowdown
divided by that of the curve at the same total.

Every figure is the mean over seeds; spread is that of the slowdown. In a case with windows, p99 is
the greatest of the window's intervals. `by count` is the part of the subject in the drive's
requests, relative to its due part.

In a guest (--on vm, or --on uml after `make uml`) a seed is a repeat, and `by count` is not known.
The drive is stretched, and so are the latencies. --schedulers takes tunables, as in `mqfair bench`.

    python3 -m experiments.isolation --quick
    python3 -m experiments.isolation --on vm --icount --schedulers bfq,mqfq:depth=32 --no-sweep
    python3 -m experiments.isolation --cases A,B --picture build/isolation.png --json build/i.json

Exit status: 0 if the swept scheduler keeps the goals of all cases at its defaults, 1 if not, 2 for
bad input.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.guest_options import add_guest_arguments
from experiments.isolation_cases import CASES, Case, Goal
from experiments.isolation_curve import HEAD, Curve, Point, Verdict, curve_of, judge, point, row
from experiments.isolation_run import (
    DEPTH,
    FILLS,
    ISOLATION,
    MODELS,
    OURS,
    RUNTIME_S,
    SCALE,
    SCOPES,
    SIM,
    UML,
    WHOLE,
    Backend,
    Drive,
    Figures,
    LeftOutError,
    Run,
    Scope,
    Setting,
    Simulator,
)
from lab import DEFAULT_KERNEL
from mqfair.bench.variant import NONE, parse_variants, scheduler_of, tunables_of
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import table

SCHEMA = "mqfair.experiment-isolation/1"
DRIVE_MIB = 1024


@dataclass(frozen=True)
class Unit:
    """One case on one drive, with the runs that its table needs."""

    case: Case
    drive: Drive
    settings: tuple[Setting, ...]
    swept: str
    seeds: tuple[int, ...]

    def runs(self) -> Iterator[Run]:
        for seed in self.seeds:
            yield Run(self.case, self.drive, self.settings[0], seed, alone=True)
            for setting in self.settings:
                yield Run(self.case, self.drive, setting, seed)


@dataclass(frozen=True)
class Panel:
    """The points of a unit in one window, with their curve and the verdicts on the scheduler.
    @left_out are the settings that could not run, with the reasons."""

    unit: Unit
    window: str
    points: list[Point]
    curve: Curve
    verdicts: list[Verdict]
    left_out: Mapping[str, str]

    @property
    def swept(self) -> str:
        return self.unit.swept

    @property
    def where(self) -> str:
        window = "" if self.window == WHOLE else f", {self.window}"
        return f"{self.unit.drive}{window}"


def depths(case: Case, known: Sequence[int]) -> list[int]:
    """The depths to sweep: up to the first at which every request of the case has a slot."""
    enough = next((depth for depth in known if depth >= case.outstanding), known[-1])
    return [depth for depth in known if depth <= enough]


def fixed(labels: Sequence[str]) -> tuple[Setting, ...]:
    """none, and the settings of @labels, which are NAME or NAME:TUNABLE=VALUE."""
    named = [one for one in labels if one != NONE]
    return (
        Setting(NONE, NONE),
        *(Setting(one, scheduler_of(one), tuple(tunables_of(one).items())) for one in named),
    )


def sweeps(case: Case, swept: str, tunables: Sequence[str], scope: Scope) -> tuple[Setting, ...]:
    """The settings of the scheduler @swept, which has @tunables."""
    has_isolation = ISOLATION in tunables
    without = ((ISOLATION, "0"),) if has_isolation else ()
    found = [
        Setting(f"{swept} depth={depth}", swept, ((DEPTH, str(depth)), *without), DEPTH)
        for depth in depths(case, scope.depths)
    ]
    if has_isolation:
        found += [
            Setting(f"{swept} isolation={price}", swept, ((ISOLATION, str(price)),), ISOLATION)
            for price in scope.isolations
        ]
    return tuple(found)


@dataclass(frozen=True)
class Played:
    """The figures of a unit's runs by window. @left_out are labels of settings, with the reasons
    why they could not run."""

    figures: Mapping[Run, Mapping[str, Figures]]
    left_out: Mapping[str, str]


def panel(unit: Unit, window: str, goal: Goal, played: Played) -> Panel:
    case, figures = unit.case, played.figures

    def of(setting: Setting, *, alone: bool = False) -> list[Figures]:
        return [figures[Run(case, unit.drive, setting, seed, alone)][window] for seed in unit.seeds]

    none = of(unit.settings[0])
    alone = of(unit.settings[0], alone=True)
    points = [
        point(case, (one.label, one.role), of(one), none=none, alone=alone)
        for one in unit.settings
        if one.label not in played.left_out
    ]
    curve = curve_of(points)
    judged = [one for one in points if one.label == unit.swept]
    verdicts = [verdict for one in judged for verdict in judge(goal, one, points[0], curve)]
    return Panel(unit, window, points, curve, verdicts, played.left_out)


def panels(unit: Unit, played: Played) -> list[Panel]:
    if not unit.case.windows:
        return [panel(unit, WHOLE, unit.case.goal, played)]
    return [panel(unit, one.name, one.goal, played) for one in unit.case.windows]


def show(one: Panel) -> str:
    lines = [
        f"{one.unit.case.name}: {one.where}  ({one.unit.case.about}; {len(one.unit.seeds)} seeds)"
    ]
    lines += table(HEAD, [row(found, one.curve) for found in one.points])
    lines += [f"  {label} was left out: {why}" for label, why in one.left_out.items()]
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


def played(futures: Mapping[Run, Future[dict[str, Figures]]]) -> Played:
    """The results of @futures; raises Failure if a run failed."""
    figures, left_out = {}, {}
    for run, future in futures.items():
        try:
            figures[run] = future.result()
        except LeftOutError as error:
            left_out[run.setting.label] = str(error)
    return Played(figures, left_out)


def measure(backend: Backend, units: Sequence[Unit], jobs: int) -> Iterator[list[Panel]]:
    """Yields the panels of each unit, in order. Runs of different units run side by side."""
    progress = Progress(sum(len(list(unit.runs())) for unit in units))
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            started: list[dict[Run, Future[dict[str, Figures]]]] = []
            for unit in units:
                backend.expect(list(unit.runs()))
                started.append({run: pool.submit(backend.play, run) for run in unit.runs()})
                for future in started[-1].values():
                    future.add_done_callback(progress.step)
            for unit, futures in zip(units, started, strict=True):
                found = played(futures)
                progress.clear()
                yield panels(unit, found)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# ------------------------------------------------------------------------- command


def chosen(option: str, text: str, known: Sequence[str], noun: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: no such {noun}: use {', '.join(known)}")
    return names


def labels_of(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The labels in @text, the value of --schedulers."""
    names = [name for name in map(scheduler_of, text.split(",")) if name != NONE]
    if names:
        chosen("--schedulers", ",".join(names), known, "scheduler")
    return parse_variants(text)


def units_of(args: argparse.Namespace, backend: Backend) -> list[Unit]:
    scope = backend.scope
    cases = [CASES[name] for name in chosen("--cases", args.cases, list(CASES), "case")]
    models = chosen("--models", args.models, MODELS, "model")
    fills = chosen("--fills", args.fills, FILLS, "fill")
    labels = labels_of(args.schedulers, scope.schedulers)
    swept = chosen("--sweep", args.sweep, OURS, "scheduler")
    if len(swept) > 1:
        raise UsageError(f"--sweep {args.sweep}: give one scheduler")
    if args.seeds < 1:
        raise UsageError(f"--seeds {args.seeds}: use 1 or more")
    tunables = () if args.no_sweep else backend.tunables(swept[0])

    def settings(case: Case) -> tuple[Setting, ...]:
        found = fixed(labels)
        return found if args.no_sweep else (*found, *sweeps(case, swept[0], tunables, scope))

    return [
        Unit(
            case,
            Drive(model, fill, args.ftl, DRIVE_MIB),
            settings(case),
            swept[0],
            tuple(range(1, args.seeds + 1)),
        )
        for case in cases
        for model in models
        for fill in fills
        if not case.fills or fill in case.fills
    ]


def _plain(value: object) -> object:
    """@value for JSON, which has no infinity."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def document(
    args: argparse.Namespace, found: Sequence[Panel], notes: Sequence[str] = ()
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "on": args.on,
        "seeds": args.seeds,
        "swept": args.sweep,
        "notes": list(notes),
        "panels": _plain(
            [
                {
                    "case": one.unit.case.name,
                    "about": one.unit.case.about,
                    "window": one.window,
                    "drive": asdict(one.unit.drive),
                    "points": [asdict(each) for each in one.points],
                    "left_out": dict(one.left_out),
                    "curve": one.curve,
                    "verdicts": [asdict(each) for each in one.verdicts],
                }
                for one in found
            ]
        ),
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


def backend_of(args: argparse.Namespace) -> Backend:
    if args.on != SIM:
        # The packages of the bench are not on every machine that simulates.
        from experiments.isolation_vm import Guest  # noqa: PLC0415

        kernel = UML if args.on == UML else DEFAULT_KERNEL
        return Guest(args.runtime, args.scale, args.cpus, args.icount, args.module, kernel)
    simulator = Simulator(args.build)
    simulator.prepare()
    return simulator


def settle(args: argparse.Namespace) -> None:
    """Replaces absent options by the defaults of the backend, and options of --quick by its own."""
    scope = SCOPES[args.on]
    for name, value in scope.defaults.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if args.quick:
        vars(args).update(scope.quick)


def run(args: argparse.Namespace) -> int:
    settle(args)
    backend = backend_of(args)
    found: list[Panel] = []
    for some in measure(backend, units_of(args, backend), args.jobs):
        found += some
        for one in some:
            print(show(one), flush=True)
    for note in backend.notes:
        print(f"note: {note}")
    if args.json:
        whole = document(args, found, backend.notes)
        args.json.write_text(json.dumps(whole, indent=1) + "\n")
    if args.picture:
        draw(found, args.picture)
    return 0 if all(verdict.holds for one in found for verdict in one.verdicts) else 1


def _defaults(name: str) -> str:
    return "; ".join(f"--on {on}: {scope.defaults[name]}" for on, scope in SCOPES.items())


def _add_guest_arguments(options: argparse.ArgumentParser) -> None:
    group = options.add_argument_group("with --on vm or uml")
    add_guest_arguments(group, runtime_s=RUNTIME_S)
    group.add_argument(
        "--scale",
        type=int,
        default=SCALE,
        metavar="N",
        help="how many times slower than the model the drive is (default %(default)s)",
    )


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="isolation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--on", choices=tuple(SCOPES), default=SIM, help="where to run (default %(default)s)"
    )
    options.add_argument(
        "--cases", default="A,B", metavar="NAME,...", help=f"of {', '.join(CASES)} (default A,B)"
    )
    for name in ("models", "fills", "schedulers"):
        options.add_argument(f"--{name}", metavar="NAME,...", help=_defaults(name))
    options.add_argument(
        "--sweep", default="mqfq", metavar="NAME", help="scheduler of the sweeps (%(default)s)"
    )
    options.add_argument(
        "--ftl", choices=("device", "host"), default="device", help="keeps the map"
    )
    options.add_argument(
        "--no-sweep", action="store_true", help="no fixed depths and no curve: fewer runs"
    )
    options.add_argument("--seeds", type=int, metavar="N", help=_defaults("seeds"))
    options.add_argument("--jobs", type=int, metavar="N", help="simulations side by side")
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
    _add_guest_arguments(options)
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
