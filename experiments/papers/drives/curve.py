# SPDX-License-Identifier: GPL-2.0
"""Compares the models of flash/ with the drives that they are named after.

Runs flash-curve, which measures each model over queue depth. Its figures are compared with those of
the drive: published figures, and for the 980 PRO a measured curve. A figure must be within 10 %,
and a p99 within 25 %. flash/model.c says why a figure is not judged.

    python3 -m experiments.papers.drives.curve --document doc/measurements/flash.md \\
        --picture build/flash.png

Exit status: 0 if all judged figures hold, 1 if some do not, 2 for bad input.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from experiments import harness
from experiments.markdown import check_places, lines, put
from experiments.pictures import COLOURS, MARKS
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import table
from mqfair.text.palette import FAINT, INK, STYLE

SCHEMA = "mqfair.flash-curve/1"
UNITS = {
    "iops": (1e3, "K IOPS"),
    "latency_ns": (1e3, "us"),
    "p99_ns": (1e3, "us"),
    "bytes_per_s": (1e6, "MB/s"),
}
# The columns, and the place of the document that has them.
HEAD = ("model", "series", "depth", "drive", "model's", "off", "check", "source")
TABLE = "models"
NVME = ("980pro", "p3700", "p4500")


@dataclass(frozen=True)
class Point:
    depth: int
    iops: int
    latency_ns: int
    p99_ns: int
    bytes_per_s: int
    amplification_permille: int


@dataclass(frozen=True)
class Target:
    """A figure of the drive (@target) and of its model (@seen). @depth 0 stands for the greatest
    value at any depth."""

    series: str
    what: str
    depth: int
    target: int
    seen: int
    judged: bool
    tolerance_percent: int
    source: str

    @property
    def off(self) -> float:
        return self.seen / self.target - 1

    @property
    def holds(self) -> bool:
        return not self.judged or abs(self.off) * 100 <= self.tolerance_percent


@dataclass(frozen=True)
class Model:
    name: str
    curves: dict[str, list[Point]]
    targets: list[Target]

    def most(self, series: str) -> Target | None:
        """The drive's greatest IOPS in @series, if known."""
        found = [t for t in self.targets if (t.series, t.what, t.depth) == (series, "iops", 0)]
        return found[0] if found else None


def build() -> Path:
    """The path of flash-curve, from the current sources. Raises Failure."""
    target = "tests/flash/flash-curve"
    return harness.build(target) / target


def measure(program: Path) -> list[Model]:
    done = subprocess.run([program, "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{program} --json ended with {done.returncode}: {done.stderr.strip()}")
    document = json.loads(done.stdout)
    if document["schema"] != SCHEMA:
        raise Failure(f"{program}: its output is {document['schema']}, not {SCHEMA}")
    return [_model(one) for one in document["models"]]


def _model(one: dict[str, Any]) -> Model:
    curves: dict[str, list[Point]] = {}
    for point in one["points"]:
        values = {key: value for key, value in point.items() if key != "series"}
        curves.setdefault(point["series"], []).append(Point(**values))
    return Model(one["model"], curves, [Target(**target) for target in one["targets"]])


def rows(models: Sequence[Model]) -> list[list[str]]:
    found = []
    for model in models:
        for t in model.targets:
            scale, unit = UNITS[t.what]
            check = ("ok" if t.holds else "OFF") if t.judged else "not judged"
            found.append(
                [
                    model.name,
                    f"{t.series}, p99" if t.what == "p99_ns" else t.series,
                    str(t.depth) if t.depth else "any",
                    f"{t.target / scale:.0f} {unit}",
                    f"{t.seen / scale:.0f} {unit}",
                    f"{100 * t.off:+.1f} %",
                    check,
                    t.source,
                ]
            )
    return found


# --- the picture -----------------------------------------------------------------------------


def _across(axes: Axes, title: str, up: str) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    axes.set_xlabel("queue depth")
    axes.set_ylabel(up)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


def _drive_point(axes: Axes, t: Target, scale: float, label: str) -> None:
    """Marks a figure of the drive with its tolerance; a figure that is not judged is hollow."""
    value = t.target / scale
    axes.errorbar(
        t.depth,
        value,
        yerr=t.tolerance_percent * value / 100,
        fmt="^" if t.what == "p99_ns" else "o",
        color=COLOURS[1],
        markerfacecolor=COLOURS[1] if t.judged else "white",
        capsize=4,
        zorder=5,
        label=label,
    )


def _draw_iops(axes: Axes, model: Model) -> None:
    curve = model.curves["randread-4k"]
    axes.plot([p.depth for p in curve], [p.iops / 1e3 for p in curve], color=INK, label="model")
    labelled: set[bool] = set()
    for t in model.targets:
        if t.series != "randread-4k" or t.what != "iops" or not t.depth:
            continue
        label = "drive, ±10 %" if t.judged else "drive, perhaps limited by its host"
        _drive_point(axes, t, 1e3, "" if t.judged in labelled else label)
        labelled.add(t.judged)
    most = model.most("randread-4k")
    if most:
        axes.axhline(most.target / 1e3, color=COLOURS[1], linestyle="--", linewidth=1)
        axes.annotate(
            f"drive's maximum, {most.target / 1e3:.0f}",
            (1, most.target / 1e3),
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=9,
            color=COLOURS[1],
        )
    axes.set_ylim(0, 900)
    _across(axes, f"{model.name}: 4 KiB random reads", "thousand IOPS")
    axes.legend(frameon=False, loc="lower right")


def _draw_latency(axes: Axes, model: Model) -> None:
    for number, series in enumerate(("randread-4k", "randread-64k")):
        curve = [p for p in model.curves[series] if p.depth <= 64]
        colour = COLOURS[2 * number]
        depths = [p.depth for p in curve]
        size = series.rpartition("-")[2]
        axes.plot(depths, [p.latency_ns / 1e3 for p in curve], color=colour, label=f"{size}, mean")
        axes.plot(depths, [p.p99_ns / 1e3 for p in curve], ":", color=colour, label=f"{size}, p99")
    points = [t for t in model.targets if t.series.startswith("randread") and t.depth <= 64]
    for what, label in (("latency_ns", "drive, mean"), ("p99_ns", "drive, p99")):
        for number, t in enumerate(t for t in points if t.what == what):
            _drive_point(axes, t, 1e3, "" if number else label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    _across(axes, f"{model.name}: latency of random reads", "µs")
    axes.legend(frameon=False)


def _draw_models(axes: Axes, models: Sequence[Model], series: str, title: str) -> None:
    for number, model in enumerate(models):
        curve = model.curves[series]
        colour = COLOURS[number]
        axes.plot(
            [p.depth for p in curve],
            [p.iops / 1e3 for p in curve],
            color=colour,
            marker=MARKS[number],
            markersize=4,
            label=model.name,
        )
        most = model.most(series)
        if most:
            axes.axhline(most.target / 1e3, color=colour, linestyle="--", linewidth=0.9)
    axes.plot([], [], color=INK, linestyle="--", linewidth=0.9, label="maximum of the drive")
    axes.set_ylim(bottom=0)
    _across(axes, title, "thousand IOPS")
    axes.legend(frameon=False)


def draw(models: Sequence[Model], path: Path) -> None:
    by_name = {model.name: model for model in models}
    drives = [by_name[name] for name in NVME]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11.5, 8), layout="constrained")
        panels = figure.subplots(2, 2)
        _draw_iops(panels[0][0], by_name["980pro"])
        _draw_latency(panels[0][1], by_name["980pro"])
        _draw_models(panels[1][0], drives, "randread-4k", "4 KiB random reads")
        _draw_models(
            panels[1][1], drives, "randwrite-4k", "4 KiB random writes, full drive, steady state"
        )
        figure.suptitle(
            "Models of flash/ and the drives that they are named after",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def run(args: argparse.Namespace) -> int:
    if args.document:
        check_places(args.document, [TABLE])
    models = measure(build())
    print("\n".join(table(HEAD, rows(models), left=2)))
    if args.document:
        put(args.document, {TABLE: lines(HEAD, rows(models))})
    if args.picture:
        draw(models, args.picture)
    if args.json:
        whole = {
            "schema": "mqfair.experiment-drives/1",
            "models": [dataclasses.asdict(model) for model in models],
        }
        args.json.write_text(json.dumps(whole, indent=1) + "\n")
    return 0 if all(t.holds for model in models for t in model.targets) else 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m experiments.papers.drives.curve",
        description="Compare the models of flash/ with the drives that they are named after.",
        epilog="example: python3 -m experiments.papers.drives.curve --picture build/flash.png",
    )
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help=f"write the table into FILE, at {TABLE}"
    )
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write curves and checks to FILE")
    try:
        return run(parser.parse_args(argv))
    except UsageError as error:
        print(f"curve: {error}", file=sys.stderr)
        return 2
    except Failure as error:
        print(f"curve: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
