# SPDX-License-Identifier: GPL-2.0
"""The picture of latencies: for each cgroup a CDF under each scheduler.

The vertical axis is that of percentiles: 90, 99 and 99.9 % have the same distance. A curve ends at
the greatest latency that was counted. Histograms of the repeats are added.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from mqfair.bench.picture import caption, save
from mqfair.bench.report import by_cgroup, duration, schedulers_of
from mqfair.bench.result import CaseResult, CgroupResult, Document
from mqfair.text.palette import CURVES, FAINT, STYLE

DASHES = ("-", "--", ":")
PERCENTILES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)
MOST_NINES = 4  # 99.99 %
COLUMNS = 4


def cdf(groups: Sequence[CgroupResult]) -> list[tuple[int, float]]:
    """The ends of the buckets of all @groups together, and the part of the requests that took no
    longer."""
    sums: Counter[int] = Counter()
    for one in groups:
        ends, requests = one.lat_histogram["end_ns"], one.lat_histogram["requests"]
        sums.update(dict(zip(ends, requests, strict=True)))
    total, seen = sum(sums.values()), 0
    found: list[tuple[int, float]] = []
    for end, number in sorted(sums.items()):
        seen += number
        found.append((end, seen / total))
    return found


def nines(part: float) -> float:
    """The place of @part on the axis: 0 for 0, 1 for 90 %, 2 for 99 %. All is beyond the axis."""
    return -math.log10(1 - part) if part < 1 else 2 * MOST_NINES


def draw(result: CaseResult, where: Document, path: Path) -> None:
    """Draws picture() to the file @path."""
    with mpl.rc_context(STYLE):
        save(picture(result, where), path)


def picture(result: CaseResult, where: Document) -> Figure:
    schedulers = schedulers_of(result)
    number = len(by_cgroup(result, schedulers[0]))
    columns = min(number, COLUMNS)
    rows = -(-number // columns)
    figure = Figure(figsize=(max(3.1 * columns, 6), 2.7 * rows + 1.2), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flat
    for place, panel in enumerate(panels):
        if place < number:
            _draw_cgroup(panel, result, place)
        else:
            panel.set_axis_off()
    figure.suptitle(
        f"{result.case.name}: latencies of each cgroup\n{caption(where)}",
        x=0.01,
        ha="left",
        fontsize=12,
    )
    figure.legend(
        handles=[Line2D([], [], label=name, **_style(at)) for at, name in enumerate(schedulers)],
        loc="outside lower center",
        ncols=min(len(schedulers), 5),
        frameon=False,
    )
    return figure


def _style(index: int) -> dict[str, Any]:
    """Of the scheduler with this @index."""
    return {
        "color": CURVES[index % len(CURVES)],
        "linestyle": DASHES[index // len(CURVES) % len(DASHES)],
        "linewidth": 1.8,
    }


def _draw_cgroup(panel: Axes, result: CaseResult, place: int) -> None:
    schedulers = schedulers_of(result)
    for index, scheduler in enumerate(schedulers):
        curve = cdf(by_cgroup(result, scheduler)[place])
        if curve:
            ends = [end for end, _ in curve]
            heights = [nines(part) for _, part in curve]
            panel.step([ends[0], *ends], [0.0, *heights], where="post", **_style(index))
    first = by_cgroup(result, schedulers[0])[place][0]
    panel.set_title(f"{first.name}, weight {first.weight}", loc="left", fontsize=10.5)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: duration(ns).replace(".00", "")))
    panel.xaxis.set_minor_formatter(FuncFormatter(lambda _ns, _: ""))
    panel.set_yticks([nines(one / 100) for one in PERCENTILES], [f"{p:g} %" for p in PERCENTILES])
    panel.set_ylim(0, MOST_NINES)
    panel.grid(color=FAINT, linewidth=0.8)
