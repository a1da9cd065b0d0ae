# SPDX-License-Identifier: GPL-2.0
"""The picture of a bench: who got what, against what was due, and what it cost in throughput."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from mqfair.benchlib.report import by_cgroup, schedulers_of
from mqfair.benchlib.result import CaseResult, CgroupResult, ratios_to_none, summarise

INK = "#22303c"
FAINT = "#d9dee3"
MARK = "#d1495b"
NEUTRAL = "#6c7f90"
# From the least weight to the greatest; distinct in grey as well.
SHADES = ("#cfe3ee", "#93c1d9", "#4a93b8", "#1f5f86", "#0f3a57", "#071f30")

_GROUP_WIDTH = 0.82
# Of the axis: a mark this near above a bar would run through the bar's number.
_LABEL_HEIGHT = 0.03
_ROW_HEIGHT_IN = 3.6
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
}


def draw(results: Sequence[CaseResult], titles: Sequence[str], subtitle: str, path: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12.5, _ROW_HEIGHT_IN * len(results) + 1.2), layout="constrained")
        axes = figure.subplots(len(results), 2, squeeze=False, width_ratios=(2.6, 1))
        for (shares, totals), result, title in zip(axes, results, titles, strict=True):
            _draw_shares(shares, result, title)
            _draw_totals(totals, result)
        figure.suptitle(
            f"Shares of one drive by cgroup weight\n{subtitle}", x=0.01, ha="left", fontsize=12
        )
        figure.legend(
            handles=_legend(results[0]),
            loc="outside lower center",
            ncols=len(results[0].case.groups) + 1,
            frameon=False,
        )
        figure.savefig(path, dpi=150)


def _legend(result: CaseResult) -> list[Patch | Line2D]:
    groups = by_cgroup(result, schedulers_of(result)[0])
    patches: list[Patch | Line2D] = [
        Patch(color=shade, label=f"weight {group[0].weight}")
        for shade, group in zip(_shades(len(groups)), groups, strict=True)
    ]
    return [*patches, Line2D([], [], color=MARK, linewidth=2, label="entitled")]


def _shades(count: int) -> list[str]:
    """As far apart as there are shades for; beyond that they repeat."""
    if count > len(SHADES):
        return [SHADES[number % len(SHADES)] for number in range(count)]
    step = (len(SHADES) - 2) / max(count - 1, 1)
    return [SHADES[round(number * step)] for number in range(count)]


def _draw_shares(axes: Axes, result: CaseResult, title: str) -> None:
    schedulers = schedulers_of(result)
    for place, scheduler in enumerate(schedulers):
        _draw_group(axes, place, by_cgroup(result, scheduler))
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    jain = {line["scheduler"]: line["jain"] for line in summarise(result.runs)}
    labels = [f"{scheduler}\nJain {jain[scheduler]:.3f}" for scheduler in schedulers]
    axes.set_xticks(range(len(schedulers)), labels)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylabel("share of bytes")
    axes.set_ylim(bottom=0)
    axes.margins(y=0.12)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


def _draw_group(axes: Axes, place: int, groups: Sequence[Sequence[CgroupResult]]) -> None:
    width = _GROUP_WIDTH / len(groups)
    for number, (group, shade) in enumerate(zip(groups, _shades(len(groups)), strict=True)):
        left = place - _GROUP_WIDTH / 2 + number * width
        shares = [one.share for one in group]
        middle = statistics.median(shares)
        axes.bar(left, middle, width * 0.92, align="edge", color=shade)
        centre = left + width * 0.46
        if len(shares) > 1:
            axes.vlines(centre, min(shares), max(shares), color=INK, linewidth=1)
        due = group[0].entitled
        axes.hlines(due, left - width * 0.04, left + width * 0.96, color=MARK, linewidth=2)
        top = max(shares)
        axes.annotate(
            f"{middle * 100:.1f}",
            (centre, due if top < due < top + _LABEL_HEIGHT else top),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
        )


def _draw_totals(axes: Axes, result: CaseResult) -> None:
    schedulers = schedulers_of(result)
    for place, scheduler in enumerate(reversed(schedulers)):
        ratios = ratios_to_none(result.runs, scheduler)
        if not ratios:
            continue
        middle = statistics.median(ratios)
        axes.barh(place, middle, 0.62, color=NEUTRAL)
        axes.hlines(place, min(ratios), max(ratios), color=INK, linewidth=1)
        axes.annotate(
            f"{middle:.2f}",
            (min(ratios), place),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color="white",
            fontweight="bold",
            fontsize=9,
        )
    axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(schedulers)), list(reversed(schedulers)))
    axes.tick_params(axis="y", length=0)
    axes.set_title("total IOPS, relative to none", loc="left", fontsize=10.5, fontweight="bold")
    axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)
