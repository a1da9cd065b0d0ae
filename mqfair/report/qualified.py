# SPDX-License-Identifier: GPL-2.0
"""The page of `mqfair qualify`: its sentences, tables, and curves over the depth of the load."""

import statistics
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from mqfair.qualify import figures
from mqfair.qualify.figures import Section
from mqfair.report import plots
from mqfair.report.compare import Document
from mqfair.text.palette import CURVES, MARK, STYLE

# The curve of a section: the title of its figure, and the value that is due, if any.
CURVES_OF: Mapping[str, tuple[str, float | None]] = {
    "two": ("worst got / due", 1.0),
    "four": ("worst got / due", 1.0),
    "reader": ("reader's p99 µs", None),
}


def page(found: Document) -> str:
    """The file for the document @found of form mqfair.qualify/1."""
    with mpl.rc_context({**STYLE, **plots.SVG_STYLE}):
        return _page(found)


def _page(found: Document) -> str:
    model = found["drive"]["model"] or found["benches"][0]["where"].get("device", "a drive")
    parts = [f'<p class="verdict">{plots.escaped(one)}</p>' for one in figures.sentences(found)]
    parts.append(
        plots.note(
            "A figure is the median of the repeats, and the least and the greatest in brackets. The"
            " last column relates the first figure to that under none in the same repeat."
        )
    )
    for section in figures.SECTIONS:
        parts += _of_section(section, found)
    parts += ["<h2>The machine</h2>", plots.rows(_about(found))]
    if found["notes"]:
        parts += ["<h2>Notes</h2>", *map(plots.note, found["notes"])]
    return plots.page(f"mqfair: {model}", parts)


def _of_section(section: Section, found: Document) -> list[str]:
    lines = figures.rows(section, found)
    if not lines:
        return []
    parts = [f"<h2>{plots.escaped(section.title)}</h2>", plots.note(section.how_to_read)]
    if section.load in CURVES_OF:
        parts.append(_curves(section, found))
    return [*parts, _table(lines)]


def _table(lines: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str], tag: str) -> str:
        kinds = ["", "", *[' class="number"'] * (len(cells) - 2)]
        pairs = zip(kinds, cells, strict=True)
        words = "".join(f"<{tag}{kind}>{plots.escaped(cell)}</{tag}>" for kind, cell in pairs)
        return f"<tr>{words}</tr>"

    head, *rest = lines
    return f"<table>{line(head, 'th')}{''.join(line(one, 'td') for one in rest)}</table>"


def _curves(section: Section, found: Document) -> str:
    """A curve for each scheduler: medians over the depth, and lines between the extremes."""
    title, due = CURVES_OF[section.load]
    metric = next(one for one in section.metrics if one.title == title)
    loads = section.loads(found)
    names = dict.fromkeys(name for bench in loads for name in figures.by_scheduler(bench))
    figure, (axes,) = plots.panels_of(1, across=1, high=3.2)
    for number, name in enumerate(names):
        points = [
            (place, figures.values(figures.by_scheduler(bench).get(name, []), metric.value))
            for place, bench in enumerate(loads)
        ]
        points = [(place, known) for place, known in points if known]
        colour = CURVES[number % len(CURVES)]
        middles = [statistics.median(known) for _, known in points]
        axes.plot([place for place, _ in points], middles, "o-", color=colour, label=name)
        for place, known in points:
            axes.vlines(place, min(known), max(known), color=colour)
    _finish(axes, title, [bench["job"].rpartition("-")[2] for bench in loads], due)
    return plots.svg_of(figure, section.title)


def _finish(axes: Axes, title: str, depths: Sequence[str], due: float | None) -> None:
    if due is not None:
        axes.axhline(due, color=MARK, linewidth=1.2)
        axes.set_ylim(0, None)
    else:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xticks(range(len(depths)), depths)
    axes.set_xlabel("requests outstanding: the number in the name of the load")
    plots.titled(axes, title)
    axes.legend(frameon=False)


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _about(found: Document) -> list[tuple[str, str]]:
    drive = {name: text for name, text in found["drive"].items() if text is not None}
    drive["rotational"] = _yes(drive["rotational"])
    where = found["benches"][0]["where"]
    versions = ", ".join(f"{name} {text}" for name, text in where.get("versions", {}).items())
    return [
        *((name.replace("_", " "), str(text)) for name, text in drive.items()),
        ("kernel", found["kernel"]),
        ("processor", f"{found['processor']}, {found['cpus']} CPUs"),
        ("programs", versions),
        ("written to", _yes(found["destructive"])),
        ("runs", f"{found['repeat']} of each, {found['runtime_s']:g} s counted in each"),
    ]
