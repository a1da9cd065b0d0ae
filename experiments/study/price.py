# SPDX-License-Identifier: GPL-2.0
"""The price of fairness: the total against the slowdown of a light reader, by depth and isolation.

Each scheduler with slots is a curve over its depth. Ours have a second curve over `isolation`,
with an automatic depth. The knee of a curve is the point with the greatest total / slowdown.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, MultipleLocator, NullLocator, StrMethodFormatter

from experiments.markdown import lines
from experiments.pictures import curve_style
from experiments.study.league import BFQ, DEADLINE, FLASHFQ, KYBER, SFQ
from experiments.study.scene import DRIVES, LIGHT, Drive, Player
from mqfair.bench.variant import IOCOST, NONE, THROTTLE
from mqfair.schedulers import SCHEDULERS
from mqfair.text.palette import FAINT, INK, NEUTRAL, STYLE

DEPTHS = (4, 8, 16, 24, 32, 48, 64, 128)
ISOLATIONS = (0, 2, 6, 12, 20)
SEEDS = 2
WITH_DEPTH = (SFQ, FLASHFQ, *SCHEDULERS)
POINTS = (NONE, DEADLINE, KYBER, BFQ, IOCOST, THROTTLE)
# These depths and values are written beside the curve of one scheduler.
WRITTEN = {SFQ: (4, 16, 32, 64, 128), "mqfq": (2, 6, 12, 20)}


@dataclass(frozen=True)
class Point:
    """Means of the seeds. @low and @high are the extremes of the slowdown."""

    value: int
    total: float
    slowdown: float
    low: float
    high: float

    @property
    def worth(self) -> float:
        return self.total / self.slowdown


Curve = Sequence[Point]


def point(player: Player, label: str, where: Drive, value: int = 0) -> Point:
    reader = LIGHT.tenants[0].name
    alone_ns = player.alone(LIGHT, where).mean_ns
    base = [one.bytes_per_s for one in player.seeds(NONE, LIGHT, where, SEEDS)]
    found = player.seeds(label, LIGHT, where, SEEDS)
    slowdowns = [one.flows[reader].mean_ns / alone_ns for one in found]
    return Point(
        value,
        statistics.median(one.bytes_per_s / other for one, other in zip(found, base, strict=True)),
        statistics.mean(slowdowns),
        min(slowdowns),
        max(slowdowns),
    )


def by_depth(player: Player, name: str, where: Drive) -> Curve:
    plain = ":isolation=0" if name in SCHEDULERS else ""
    return [point(player, f"{name}:depth={depth}{plain}", where, depth) for depth in DEPTHS]


def by_isolation(player: Player, name: str, where: Drive) -> Curve:
    return [point(player, f"{name}:isolation={value}", where, value) for value in ISOLATIONS]


@dataclass(frozen=True)
class Panel:
    where: Drive
    depth: Mapping[str, Curve]
    isolation: Mapping[str, Curve]
    points: Mapping[str, Point]


def panel(player: Player, where: Drive) -> Panel:
    return Panel(
        where,
        {name: by_depth(player, name, where) for name in WITH_DEPTH},
        {name: by_isolation(player, name, where) for name in SCHEDULERS},
        {name: point(player, name, where) for name in POINTS},
    )


def knee(curve: Curve) -> Point:
    return max(curve, key=lambda one: one.worth)


# --- tables ----------------------------------------------------------------------------------


def knees_table(panels: Sequence[Panel]) -> str:
    rows = []
    for name in WITH_DEPTH:
        cells = [f"`{name}`"]
        for one in panels:
            at = knee(one.depth[name])
            cells += [f"{at.value} ({at.value / one.where.planes:.1f})", f"{at.total:.2f}"]
            cells.append(f"{at.slowdown:.1f}")
        rows.append(cells)
    head = ["scheduler"]
    for one in panels:
        head += [f"{one.where.name}: knee (of {one.where.planes} planes)", "total", "slowdown"]
    return lines(head, rows)


def isolation_table(panels: Sequence[Panel]) -> str:
    """Total and slowdown of the reader for values of isolation, and of schedulers without it."""
    head = ["scheduler", *(f"{one.where.name}: {what}" for one in panels for what in _SHOWN)]
    rows = []
    for name in SCHEDULERS:
        cells = [f"`{name}`"]
        for one in panels:
            at = {p.value: p for p in one.isolation[name]}
            cells += [_both(at[0]), _both(at[6]), _both(at[20])]
        rows.append(cells)
    for name in POINTS:
        cells = [f"`{name}`"]
        for one in panels:
            cells += [_both(one.points[name]), "", ""]
        rows.append(cells)
    return lines(head, rows)


_SHOWN = ("isolation 0, or none", "6", "20")


def _both(at: Point) -> str:
    return f"{at.total:.2f}, {at.slowdown:.1f}"


# --- the picture -----------------------------------------------------------------------------


def _style(number: int) -> dict[str, Any]:
    return {**curve_style(number), "markersize": 4.5, "linewidth": 1.3}


def _line(axes: Axes, curve: Curve, number: int, *, joined: bool) -> None:
    style = _style(number) if joined else {**_style(number), "linestyle": "none"}
    axes.errorbar(
        [one.total for one in curve],
        [one.slowdown for one in curve],
        yerr=[
            [one.slowdown - one.low for one in curve],
            [one.high - one.slowdown for one in curve],
        ],
        elinewidth=0.8,
        capsize=2,
        **style,
    )


def _write(axes: Axes, curve: Curve, values: Sequence[int]) -> None:
    for one in curve:
        if one.value in values:
            axes.annotate(
                str(one.value),
                (one.total, one.slowdown),
                xytext=(5, -11),
                textcoords="offset points",
                fontsize=7.5,
                color=INK,
            )


# The marks of schedulers without a curve are open and grey. Marks of several sizes can lie on one
# another. Those that do little work lie outside of the lower panels: the table has them.
_ALONE = {NONE: ("o", 12), DEADLINE: ("s", 8), KYBER: ("D", 4.5), IOCOST: ("P", 9)}
LEAST_SHOWN = 0.8


def _mark(name: str) -> dict[str, Any]:
    mark, size = _ALONE[name]
    return {
        "marker": mark,
        "markersize": size,
        "color": INK,
        "markerfacecolor": "none",
        "linestyle": "none",
        "zorder": 4,
    }


def _alone(axes: Axes, points: Mapping[str, Point]) -> None:
    for name in _ALONE:
        axes.plot(points[name].total, points[name].slowdown, **_mark(name))


def _reference(axes: Axes, curve: Curve) -> None:
    axes.plot(
        [one.total for one in curve],
        [one.slowdown for one in curve],
        color=NEUTRAL,
        linestyle="--",
        linewidth=1.2,
    )


def _axes(axes: Axes, title: str, least: float) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator((1, 2, 4, 8, 16, 32, 64)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(MultipleLocator(0.2 if least == 0 else 0.05))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlim(least, 1 + 0.08 * (1 - least))
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold")


def _draw_panels(upper: Axes, lower: Axes, one: Panel) -> None:
    for number, name in enumerate(WITH_DEPTH):
        _line(upper, one.depth[name], number, joined=True)
    _write(upper, one.depth[SFQ], WRITTEN[SFQ])
    _reference(lower, one.depth[SFQ])
    for name in SCHEDULERS:
        _line(lower, one.isolation[name], WITH_DEPTH.index(name), joined=False)
    _write(lower, one.isolation["mqfq"], WRITTEN["mqfq"])
    _alone(lower, one.points)
    _axes(upper, f"{one.where.name}: fixed depth", 0)
    _axes(lower, f"{one.where.name}: isolation, and no parameter", LEAST_SHOWN)
    lower.set_ylim(2, 24)
    lower.set_xlabel("throughput of all tenants, relative to none")


def draw(panels: Sequence[Panel], path: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 8.6), layout="constrained")
        grid = figure.subplots(2, len(panels), sharey="row")
        for column, one in enumerate(panels):
            _draw_panels(grid[0][column], grid[1][column], one)
        for row in grid:
            row[0].set_ylabel("slowdown of the light reader")
        handles = [Line2D([], [], label=name, **_style(n)) for n, name in enumerate(WITH_DEPTH)]
        handles += [Line2D([], [], label=name, **_mark(name)) for name in _ALONE]
        handles.append(
            Line2D([], [], label="sfq, depth", color=NEUTRAL, linestyle="--", linewidth=1.2)
        )
        figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False)
        figure.suptitle(
            "One reader of 4 KiB beside 128 reads of 64 KiB. Right: more work. Down: the reader"
            " waits less.\nNumbers: depth of sfq above, isolation of mqfq below. Whiskers: the"
            f" extremes of {SEEDS} seeds",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def panels(player: Player) -> list[Panel]:
    return [panel(player, where) for where in DRIVES]


def tables(player: Player, picture: Path | None = None) -> dict[str, str]:
    found = panels(player)
    if picture:
        draw(found, picture)
    return {"study-knees": knees_table(found), "study-isolation": isolation_table(found)}
