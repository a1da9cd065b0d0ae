# SPDX-License-Identifier: GPL-2.0
"""Pictures of the experiments' results, in the style of the bench's own."""

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter, ScalarFormatter

from mqfair.bench.picture import caption
from mqfair.bench.report import schedulers_of
from mqfair.bench.result import CaseResult, Document
from mqfair.text.palette import CURVES, FAINT, INK, MARK, SHADES, STYLE

# Curves differ in hue, in lightness and in their mark, so that they can be told apart in print.
COLOURS = (INK, MARK, *CURVES[1:6])
MARKS = "osD^vPX"
COLUMNS = 2


def curve_style(number: int) -> dict[str, Any]:
    """The look of curve @number. Those after the colours are dashed, with marks that are not
    filled, so that they differ from the first ones."""
    again = number >= len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKS[number % len(MARKS)],
        "linestyle": "--" if again else "-",
        "markerfacecolor": "white" if again else COLOURS[number % len(COLOURS)],
    }


def draw_curves(
    curves: Mapping[str, Mapping[int, float]], *, title: str, across: str, up: str, path: Path
) -> None:
    """Draws one line for each scheduler over a horizontal axis with logarithmic scale (base 2)."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.5, 5), layout="constrained")
        axes = figure.subplots()
        for number, (label, curve) in enumerate(curves.items()):
            axes.plot(
                list(curve),
                list(curve.values()),
                **curve_style(number),
                markersize=5,
                label=label,
            )
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({x for c in curves.values() for x in c})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set_ylim(bottom=0)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.legend(frameon=False, ncols=2)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.savefig(path, dpi=150)


def draw_machines(machines: Mapping[str, Mapping[str, Mapping[int, float]]], path: Path) -> None:
    """Draws a panel for each machine: million requests per second over CPUs, a line a variant."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.5, 4.2), layout="constrained")
        panels = figure.subplots(1, len(machines), sharey=True, squeeze=False)
        for axes, (machine, curves) in zip(panels.flat, machines.items(), strict=True):
            for number, (label, curve) in enumerate(curves.items()):
                axes.plot(
                    list(curve),
                    list(curve.values()),
                    **curve_style(number),
                    markersize=4,
                    label=label,
                )
            axes.set_title(machine, loc="left", fontsize=10.5, fontweight="bold")
            axes.set_xlabel("CPUs")
            axes.set_ylim(bottom=0)
            axes.grid(axis="y", color=FAINT, linewidth=0.8)
        panels.flat[0].set_ylabel("million requests per second")
        figure.legend(
            *panels.flat[0].get_legend_handles_labels(), loc="outside right upper", frameon=False
        )
        figure.suptitle(
            "Requests of 1 KiB on simulated machines, drive of 4 million a second",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def draw_shares_over_time(result: CaseResult, where: Document, path: Path) -> None:
    """Draws a panel for each scheduler. It stacks the rates of the cgroups in each step of the
    scheduler's first run, relative to the median total under none. The last step is left out,
    because the jobs end within it."""
    labels = schedulers_of(result)
    first = {run["scheduler"]: run for run in reversed(result.timeline["runs"])}
    seconds = result.timeline["interval_ms"] / 1000
    none = statistics.median(
        run.total_bytes_per_s for run in result.runs if run.scheduler == labels[0]
    )
    with mpl.rc_context(STYLE):
        rows = math.ceil(len(labels) / COLUMNS)
        figure = Figure(figsize=(12.5, 2.5 * rows + 1.2), layout="constrained")
        panels = figure.subplots(rows, COLUMNS, sharex=True, sharey=True, squeeze=False)
        for axes, label in zip(panels.flat, labels, strict=False):
            _draw_stack(axes, first[label], seconds, none)
            axes.set_title(label, loc="left", fontsize=10.5, fontweight="bold")
        for axes in panels.flat[len(labels) :]:
            axes.set_visible(False)
        for axes in panels[:, 0]:
            axes.set_ylabel(f"of {labels[0]}'s total")
        for axes in panels[-1]:
            axes.set_xlabel("seconds")
        figure.suptitle(
            "Moving demand: the heaviest of four tenants is idle every other 2 s\n"
            f"{caption(where)}",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        handles, names = panels.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
        figure.savefig(path, dpi=150)


def _draw_stack(axes: Axes, run: Document, seconds: float, none: float) -> None:
    groups = run["cgroups"]
    steps = min(len(group["bytes"]) for group in groups) - 1
    times = [(step + 0.5) * seconds for step in range(steps)]
    rates = [[value / seconds / none for value in group["bytes"][:steps]] for group in groups]
    axes.stackplot(
        times,
        rates,
        labels=[group["name"] for group in groups],
        colors=[SHADES[number % 4] for number in range(len(groups))],
        linewidth=0,
    )
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(0, 1.15)
    axes.set_xlim(0, times[-1])
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
