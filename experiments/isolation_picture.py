# SPDX-License-Identifier: GPL-2.0
"""The picture of experiments.isolation: total / none against slowdown, a panel for each drive."""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter
from matplotlib.transforms import Bbox

from experiments.isolation_curve import Point
from experiments.isolation_run import DEPTH, ISOLATION, SCHEDULER
from experiments.pictures import COLOURS, MARKS
from mqfair.bench.variant import NONE
from mqfair.text.palette import FAINT, INK, MARK, NEUTRAL, STYLE

if TYPE_CHECKING:
    from experiments.isolation import Panel

PANEL_IN = (4.6, 3.7)
TICKS = (1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 100)
# Places of a label around its point, in points of print: the first that is free is taken.
DISTANCES = (7, 14, 22, 32, 44, 58, 74)
DIRECTIONS = (
    (1, 0),
    (1, 1),
    (1, -1),
    (-1, 0),
    (-1, 1),
    (-1, -1),
    (0, 1),
    (0, -1),
)
# A fixed depth with less than this total is not drawn.
LEAST_TOTAL = 0.25
# The depths that have a label; the others have a dot.
LABELLED_DEPTHS = (8, 16, 32, 64, 128)
# The distance, in pixels, of the boxes along a line.
LINE_STEP = 4
SOLID = MARK
HOW_TO_READ = "A point is one setting. Lower is better for the worst tenant, right for the total."


def _value(one: Point) -> str:
    return one.label.split("=")[-1]


def _shown(points: Sequence[Point]) -> list[Point]:
    return [one for one in points if one.role == SCHEDULER or one.at[0] >= LEAST_TOTAL]


def _line(axes: Axes, points: Sequence[Point], role: str, style: dict[str, Any]) -> list[Point]:
    """Draws the points of @role as a line in the order of their values, and returns them."""
    chosen = sorted((one for one in points if one.role == role), key=lambda one: int(_value(one)))
    axes.plot([one.at[0] for one in chosen], [one.at[1] for one in chosen], **style)
    return chosen


def _anchor(direction: tuple[int, int]) -> dict[str, Any]:
    across, up = direction
    return {
        "ha": {1: "left", -1: "right", 0: "center"}[across],
        "va": {1: "bottom", -1: "top", 0: "center"}[up],
    }


def _place_label(
    axes: Axes,
    at: tuple[float, float],
    text: str,
    *,
    distances: Sequence[int],
    taken: list[Bbox],
    style: dict[str, Any],
) -> None:
    """Writes @text at one of @distances from the point @at, where it covers nothing in @taken, and
    adds its box. Writes nothing if there is no room."""
    frame = axes.get_window_extent()
    for distance in distances:
        for across, up in DIRECTIONS:
            offset = across * distance, up * distance * 0.8
            label = axes.annotate(
                text,
                at,
                xytext=offset,
                textcoords="offset points",
                **_anchor((across, up)),
                **style,
            )
            box = label.get_window_extent().padded(1)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 + 30
            inside = inside and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                if distance > DISTANCES[0]:
                    _connect(axes, at, offset)
                return
            label.remove()


def _connect(axes: Axes, at: tuple[float, float], offset: tuple[float, float]) -> None:
    """Draws a thin line from the point @at to its label."""
    axes.annotate(
        "",
        at,
        xytext=offset,
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": NEUTRAL},
    )


def _marks(axes: Axes, points: Sequence[Point]) -> list[Bbox]:
    """The boxes of the marks of @points, which no label may cover."""
    places = axes.transData.transform([one.at for one in points])
    return [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in places]


def _along(axes: Axes, points: Sequence[Point]) -> list[Bbox]:
    """Small boxes along the line through @points, which a label should not cover."""
    places = [axes.transData.transform(one.at) for one in points]
    boxes: list[Bbox] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(places):
        steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / LINE_STEP))
        boxes += [
            Bbox.from_bounds(x0 + (x1 - x0) * i / steps - 1, y0 + (y1 - y0) * i / steps - 1, 2, 2)
            for i in range(steps)
        ]
    return boxes


def _mark(number: int, *, swept: bool) -> dict[str, Any]:
    """The style of the point of the scheduler @number. The light edge separates points that cover
    each other. The point of the scheduler that is @swept is an open mark around the others."""
    if swept:
        return {
            "marker": "s", "color": SOLID, "markersize": 12, "fillstyle": "none",
            "markeredgewidth": 1.8, "linestyle": "none", "zorder": 4,
        }  # fmt: skip
    return {
        "marker": MARKS[number % len(MARKS)],
        "color": COLOURS[number % len(COLOURS)],
        "markersize": 7.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        "linestyle": "none",
        "zorder": 3,
    }


def _draw_panel(axes: Axes, panel: "Panel") -> None:
    points = _shown(panel.points)
    schedulers = [one for one in points if one.role == SCHEDULER]
    dashed = {"color": NEUTRAL, "linestyle": "--", "marker": ".", "linewidth": 1.2}
    solid = {"color": SOLID, "linewidth": 1.8, "marker": "o", "markersize": 3.5}
    fixed = _line(axes, points, DEPTH, dashed)
    ours = _line(axes, points, ISOLATION, solid)
    for number, one in enumerate(schedulers):
        axes.plot(*one.at, **_mark(number, swept=one.label == panel.swept))
    slowdowns = [one.at[1] for one in points]
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(TICKS))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_ylim(min(1.0, *slowdowns) * 0.9, max(slowdowns) * 1.4)
    axes.set_xlim(min(one.at[0] for one in points) - 0.04, 1.08)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_title(panel.where, loc="left", fontsize=9.5, fontweight="bold")
    labels = [
        *(
            (one, one.label, DISTANCES, {"fontsize": 8.5, "color": INK})
            for one in schedulers
            if one.label == NONE
        ),
        *((one, _value(one), DISTANCES, {"fontsize": 7.5, "color": SOLID}) for one in ours),
        *(
            (one, _value(one), DISTANCES[:2], {"fontsize": 7.5, "color": NEUTRAL})
            for one in fixed
            if int(_value(one)) in LABELLED_DEPTHS
        ),
    ]
    taken = [*_marks(axes, points), *_along(axes, fixed), *_along(axes, ours)]
    for one, text, distances, style in labels:
        _place_label(axes, one.at, text, distances=distances, taken=taken, style=style)


def _legend(panels: Sequence["Panel"]) -> list[Line2D]:
    """The lines and the schedulers, which lie too close together for labels."""
    lines = [
        Line2D(
            [],
            [],
            color=NEUTRAL,
            linestyle="--",
            marker=".",
            label=f"{panels[0].swept}, fixed depth (grey numbers)",
        )
    ]
    if any(point.role == ISOLATION for point in panels[0].points):
        label = f"{panels[0].swept}, isolation (red numbers)"
        lines.append(Line2D([], [], color=SOLID, marker="o", markersize=3.5, label=label))
    schedulers = [one for one in panels[0].points if one.role == SCHEDULER]
    return lines + [
        Line2D([], [], label=one.label, **_mark(number, swept=one.label == panels[0].swept))
        for number, one in enumerate(schedulers)
    ]


def draw_case(panels: Sequence["Panel"], path: Path) -> None:
    """Draws the panels of one case: a row for each model and window, a column for each fill."""
    rows = list(dict.fromkeys((one.unit.drive.model, one.window) for one in panels))
    columns = list(dict.fromkeys(one.unit.drive.fill for one in panels))
    case = panels[0].unit.case
    with mpl.rc_context(STYLE):
        width = max(PANEL_IN[0] * len(columns), 6.5)
        figure = Figure(figsize=(width, PANEL_IN[1] * len(rows) + 1.1))
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(rows), len(columns), squeeze=False)
        height = PANEL_IN[1] * len(rows) + 1.1
        figure.subplots_adjust(
            left=0.6 / width,
            right=1 - 0.3 / width,
            top=1 - 0.8 / height,
            bottom=0.95 / height,
            wspace=0.2,
            hspace=0.32,
        )
        for one in panels:
            at = rows.index((one.unit.drive.model, one.window)), columns.index(one.unit.drive.fill)
            _draw_panel(grid[at], one)
        for axes in grid[:, 0]:
            axes.set_ylabel(f"slowdown of {case.subject.name}")
        for axes in grid[-1]:
            axes.set_xlabel("throughput of all tenants, relative to none")
        title = f"{case.about[:1].upper()}{case.about[1:]}\n{HOW_TO_READ}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.legend(
            handles=_legend(panels), loc="lower center", ncols=4, frameon=False, fontsize=9
        )
        figure.savefig(path, dpi=150)
