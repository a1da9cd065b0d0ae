# SPDX-License-Identifier: GPL-2.0
"""The picture of a bench: shares and dues, and the throughput of each scheduler."""

import statistics
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from mqfair.bench.device import in_words
from mqfair.bench.plan import SIM
from mqfair.bench.report import by_cgroup, median, schedulers_of
from mqfair.bench.result import (
    CaseResult,
    CgroupResult,
    Document,
    ratios_to_none,
    summarise,
)
from mqfair.text.output import whole_file
from mqfair.text.palette import FAINT, INK, MARK, NEUTRAL, SHADES, STYLE

# Numbers on these shades are dark, on the others white.
LIGHT_SHADES = SHADES[:2]

_BAR_HEIGHT = 0.74
_ROW_HEIGHT_IN = 0.34
_HEAD_HEIGHT_IN = 0.85
# The room that a number needs in a bar, and its least distance to a line.
_LABEL_WIDTH = 0.045
_LINE_WIDTH = 0.006
# Right of the bars, in parts of their length.
_MET_PLACE = 1.02
_TITLE: dict[str, Any] = {"fontsize": 10.5, "fontweight": "bold"}


def caption(where: Document) -> str:
    """The drive and the machine of a bench in words, from `where` of its document. Without a
    device, as for several drives, it is the machine alone."""
    cpus = int(where["cpus"])
    drive = f"{in_words(where['device'])}; " if where["device"] else ""
    if where["accel"] == SIM:
        return f"{drive}simulated, {cpus} CPU{'' if cpus == 1 else 's'}"
    kind = {"tcg": "emulated ", "kvm": "virtual ", "uml": "user-mode "}.get(where["accel"], "")
    number = "one" if cpus == 1 else str(cpus)
    plural = "" if cpus == 1 else "s"
    return f"{drive}Linux {where['kernel']}, {number} {kind}CPU{plural}"


def draw(results: Sequence[CaseResult], titles: Sequence[str], where: Document, path: Path) -> None:
    """Draws picture() to the file @path."""
    with mpl.rc_context(STYLE):
        save(picture(results, titles, where), path)


def save(figure: Figure, path: Path) -> None:
    """Writes @figure to the file @path. The ending of @path names the format."""
    with whole_file(str(path)) as file:
        figure.savefig(file, format=path.suffix.lower().lstrip("."), dpi=150)


def picture(results: Sequence[CaseResult], titles: Sequence[str], where: Document) -> Figure:
    """A row of two panels for each of @results, under its title."""
    rows = [len(schedulers_of(result)) * _ROW_HEIGHT_IN + _HEAD_HEIGHT_IN for result in results]
    figure = Figure(figsize=(12, sum(rows) + 1.3), layout="constrained")
    axes = figure.subplots(
        len(results), 2, squeeze=False, width_ratios=(2.4, 1), height_ratios=rows
    )
    for (shares, totals), result, title in zip(axes, results, titles, strict=True):
        _draw_shares(shares, result, title)
        _draw_totals(totals, result)
    figure.suptitle(
        f"Shares of {'one' if where['device'] else 'each'} drive between cgroups of different"
        f" weight\n{caption(where)}",
        x=0.01,
        ha="left",
        fontsize=12,
    )
    figure.legend(
        handles=_legend(results[0]),
        loc="outside lower center",
        ncols=len(results[0].case.groups) + 1,
        frameon=False,
    )
    return figure


def _legend(result: CaseResult) -> list[Patch | Line2D]:
    groups = by_cgroup(result, schedulers_of(result)[0])
    patches: list[Patch | Line2D] = [
        Patch(color=shade, label=f"weight {group[0].weight}")
        for shade, group in zip(_shades(len(groups)), groups, strict=True)
    ]
    line = Line2D([], [], color=MARK, linewidth=2, label="due")
    return [*patches, line]


def _shades(count: int) -> list[str]:
    """@count shades as different as possible; they repeat if there are more groups than shades."""
    if count > len(SHADES):
        return [SHADES[number % len(SHADES)] for number in range(count)]
    step = (len(SHADES) - 2) / max(count - 1, 1)
    return [SHADES[round(number * step)] for number in range(count)]


def _draw_shares(axes: Axes, result: CaseResult, title: str) -> None:
    """One bar for each scheduler, divided by the median shares. Lines divide it by the dues."""
    schedulers = schedulers_of(result)
    for place, line in enumerate(summarise(result.runs)):
        groups = by_cgroup(result, line["scheduler"])
        lines = list(accumulate(median(group, lambda one: one.due) for group in groups))[:-1]
        _draw_bar(axes, place, groups, lines)
        axes.vlines(lines, place - 0.5, place + 0.5, color=MARK, linewidth=2)
        axes.annotate(f"{line['met']:.2f}", (_MET_PLACE, place), va="center", annotation_clip=False)
    axes.set_title(f"{title}: shares of bytes", loc="left", **_TITLE)
    axes.annotate(
        "worst / its due",
        (_MET_PLACE, 1),
        xycoords="axes fraction",
        xytext=(0, 6),
        textcoords="offset points",
        annotation_clip=False,
        **_TITLE,
    )
    _schedulers_on_y(axes, schedulers)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _draw_bar(
    axes: Axes, place: int, groups: Sequence[Sequence[CgroupResult]], lines: Sequence[float]
) -> None:
    left = 0.0
    for group, shade in zip(groups, _shades(len(groups)), strict=True):
        share = median(group, lambda one: one.share)
        axes.barh(place, share, _BAR_HEIGHT, left=left, color=shade)
        centre = label_centre(left, left + share, lines)
        if centre is not None:
            axes.annotate(
                f"{share * 100:.1f}",
                (centre, place),
                ha="center",
                va="center",
                fontsize=8.5,
                color=INK if shade in LIGHT_SHADES else "white",
            )
        left += share


def label_centre(left: float, right: float, lines: Sequence[float]) -> float | None:
    """The place for a number between @left and @right that is nearest to the middle and covers none
    of @lines; None if there is no room."""
    half = _LABEL_WIDTH / 2
    inside = [line for line in lines if left < line < right]
    edges = [left, *(x for line in inside for x in (line - _LINE_WIDTH, line + _LINE_WIDTH)), right]
    gaps = [(a + half, b - half) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    middle = (left + right) / 2
    places = [min(max(middle, low), high) for low, high in gaps if low <= high]
    return min(places, key=lambda place: abs(place - middle), default=None)


def _draw_totals(axes: Axes, result: CaseResult) -> None:
    schedulers = schedulers_of(result)
    for place, scheduler in enumerate(schedulers):
        ratios = ratios_to_none(result.runs, scheduler)
        if not ratios:
            continue
        middle = statistics.median(ratios)
        axes.barh(place, middle, _BAR_HEIGHT, color=NEUTRAL)
        axes.hlines(place, min(ratios), max(ratios), color=INK, linewidth=1)
        inside = min(ratios) > 0.2
        axes.annotate(
            f"{middle:.2f}",
            (min(ratios) if inside else max(ratios), place),
            xytext=(-4 if inside else 4, 0),
            textcoords="offset points",
            ha="right" if inside else "left",
            va="center",
            color="white" if inside else INK,
            fontweight="bold",
            fontsize=9,
        )
    axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_title("total IOPS, relative to none", loc="left", **_TITLE)
    # The rows are those of the panel beside it.
    _schedulers_on_y(axes, [""] * len(schedulers))
    axes.set_xlim(left=0)
    axes.margins(x=0.12)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def _schedulers_on_y(axes: Axes, schedulers: Sequence[str]) -> None:
    axes.set_yticks(range(len(schedulers)), list(schedulers))
    axes.set_ylim(len(schedulers) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
