# SPDX-License-Identifier: GPL-2.0
"""The pages of `mqfair report`: one HTML file with tables and with plots as SVG, and no script.

The page begins with a table: due, got, p99 and a verdict for each tenant. Below each heading of a
plot a sentence says how to read it. matplotlib draws the plots in the colours of the bench's own
pictures.
"""

import html
import io
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from mqfair.report import summary
from mqfair.report.compare import Document, worst_met
from mqfair.report.steps import Step, steps
from mqfair.report.summary import Tenant
from mqfair.text.output import printable
from mqfair.text.palette import CURVES, FAINT, INK, MARK, NEUTRAL, SHADES, STYLE
from mqfair.watch.recording import Recording
from mqfair.watch.sample import PPM, Use

SIZE_MOST = 2_000_000
# So many cgroups have a colour of their own, and a panel; more cannot be told apart.
DRAWN_MOST = len(CURVES)
# The rows of a table, and those of the tables of all drives.
ROWS_MOST = 60
ROWS_OF_ALL = 1200
ROWS_LEAST = 5
# So many drives have plots, the busiest; the others have their table.
DRIVES_MOST = 6
POINTS_MOST = 300
POINTS_LEAST = 15
# Percentiles that differ by more have a logarithmic axis.
LINEAR_MOST = 30
PANELS_ACROSS = 4
NAME_MOST = 28

PAGE_STYLE = f"""
body {{ font: 15px system-ui, sans-serif; color: {INK} }}
body {{ margin: 2em auto; padding: 0 2em; max-width: 1100px }}
h1 {{ font-size: 1.5em }} h2 {{ font-size: 1.25em; margin-top: 2em }}
h3 {{ font-size: 1.05em; margin: 1.8em 0 .2em }}
table {{ border-collapse: collapse; margin: .6em 0 }}
td, th {{ padding: .25em 1.2em .25em 0; text-align: left; border-bottom: 1px solid {FAINT} }}
td.number, th.number {{ text-align: right; font-variant-numeric: tabular-nums }}
td.below {{ color: {MARK}; font-weight: bold }}
td.name {{ overflow-wrap: anywhere; min-width: 15em }}
p.note {{ color: {NEUTRAL}; margin: .2em 0 .6em; max-width: 50em }}
p.verdict {{ font-size: 1.1em }}
.key span {{ margin-right: 1.2em; white-space: nowrap }}
.key i {{ display: inline-block; width: .8em; height: .8em; margin-right: .4em }}
svg {{ max-width: 100%; height: auto }}
"""
# Text stays text in the SVG, so that a browser finds names.
SVG_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "path.simplify_threshold": 0.5,
}


def page(title: str, parts: Sequence[str]) -> str:
    """The whole file. The @parts are HTML already."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}'
        f'</title>\n<link rel="icon" href="data:,">\n<style>{PAGE_STYLE}</style></head>\n<body>'
        f"<h1>{escaped(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def escaped(text: str) -> str:
    """@text without meaning to HTML."""
    return html.escape(printable(text))


def rows(pairs: Sequence[tuple[str, str]]) -> str:
    lines = (f"<tr><th>{escaped(name)}</th><td>{escaped(text)}</td></tr>" for name, text in pairs)
    return f"<table>{''.join(lines)}</table>"


def note(text: str) -> str:
    return f'<p class="note">{escaped(text)}</p>'


def _heading(title: str, how_to_read: str) -> str:
    return f"<h3>{escaped(title)}</h3>\n{note(how_to_read)}"


def _shortened(name: str) -> str:
    """The end of a long name: the parts that differ stand there."""
    shown = printable(name)
    return shown if len(shown) <= NAME_MOST else "…" + shown[1 - NAME_MOST :]


# --- the first table -------------------------------------------------------------------------


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.1f}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _cells(one: Tenant) -> str:
    numbers = [
        str(one.weight or "-"), _percent(one.due), _percent(one.got),
        "-" if one.met is None else f"{one.met:.2f}", _ms(one.p99_ms), _ms(one.p99_worst_ms),
    ]  # fmt: skip
    words = "".join(f'<td class="number">{text}</td>' for text in numbers)
    mark = ' class="below"' if one.lacks else ""
    return f'<td class="name">{escaped(one.name)}</td>{words}<td{mark}>{escaped(one.verdict)}</td>'


def tenants_table(
    groups: Sequence[tuple[Sequence[str], Sequence[Tenant]]],
    left: Sequence[str] = (),
    most: int = ROWS_MOST,
) -> str:
    """A row for each tenant, @most for each group. @left are the titles of the cells that stand
    before a tenant's own."""
    numbers = ("weight", "due %", "got %", "got / due", "p99 ms", "worst p99 ms")
    head = "".join(f"<th>{escaped(text)}</th>" for text in [*left, "tenant"])
    head += "".join(f'<th class="number">{text}</th>' for text in numbers) + "<th>verdict</th>"
    lines = [f"<tr>{head}</tr>"]
    for before, tenants in groups:
        cells = "".join(f"<td>{escaped(text)}</td>" for text in before)
        lines += [f"<tr>{cells}{_cells(one)}</tr>" for one in tenants[:most]]
        rest = tenants[most:]
        if rest:
            got = _percent(sum(one.got for one in rest))
            text = f"{len(rest)} more tenants, which got {got} % together: --csv has them"
            wide = len(left) + len(numbers) + 2
            lines.append(f'<tr><td colspan="{wide}">{escaped(text)}</td></tr>')
    return f"<table>{''.join(lines)}</table>"


# --- SVG -------------------------------------------------------------------------------------


def svg_of(figure: Figure, label: str) -> str:
    """The element alone. The names in it differ from those in the other plots of the page."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.hashsalt": label}):
        figure.savefig(file, format="svg", metadata=nothing)
    element = file.getvalue().partition("<svg ")[2].rpartition("</svg>")[0]
    return f'<svg role="img" aria-label="{escaped(label)}" {element}</svg>'


def panels_of(
    count: int, *, across: int = PANELS_ACROSS, high: float = 1.9
) -> tuple[Figure, list[Axes]]:
    columns = min(across, count)
    lines = math.ceil(count / columns)
    figure = Figure(figsize=(11.5, high * lines + 0.3), layout="constrained")
    found = figure.subplots(lines, columns, squeeze=False, sharex=True)
    panels = list(found.flat)
    for unused in panels[count:]:
        unused.set_visible(False)
    return figure, panels[:count]


def titled(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


# --- a recording -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One panel: @value of a cgroup's use over time. A point stands for several intervals, by
    @joined of their values. The cgroups without a colour are drawn together if @sums."""

    title: str
    value: Callable[[Use], float | None]
    joined: Callable[[Sequence[float]], float] = statistics.fmean
    sums: bool = False


@dataclass(frozen=True)
class Plot:
    title: str
    how_to_read: str
    panels: tuple[Panel, ...]


def _in_ms(us: float | None) -> float | None:
    return None if us is None else us / 1000


def _in_percent(ppm: int | None) -> float | None:
    return None if ppm is None else 100 * ppm / PPM


PLOTS = (
    Plot(
        "Throughput",
        "The sum of all lines is the work of the drive.",
        (
            Panel("MiB/s", lambda use: use.bytes_per_s / (1 << 20), sums=True),
            Panel("requests per second", lambda use: use.iops, sums=True),
        ),
    ),
    Plot(
        "Latency: the 99th percentile",
        "99 of 100 requests took less, in the scheduler and in the drive together.",
        (Panel("ms", lambda use: _in_ms(use.p99_us), max),),
    ),
    Plot(
        "Where a request spends its time",
        "Left: its mean time in the scheduler, until its turn comes. Right: its mean time in the"
        " drive. A weight changes the left one.",
        (
            Panel("outside the drive, ms", lambda use: _in_ms(use.wait_us)),
            Panel("in the drive, ms", lambda use: _in_ms(use.service_us)),
        ),
    ),
    Plot(
        "Why a cgroup is below its due",
        "Left: requests that wait for their turn. Right: the time for which a cgroup was short,"
        " because others slowed it in the drive.",
        (
            Panel("requests waiting", lambda use: use.waiting_x100 / 100, sums=True),
            Panel("short, ms in an interval", lambda use: use.short_ms),
        ),
    ),
    Plot(
        "Pressure: the time that tasks lose",
        "The kernel's own account, in % of the time and for all drives together. Left: some task of"
        " the cgroup waited for I/O. Right: all its tasks did at once.",
        (
            Panel("some task waits, %", lambda use: _in_percent(use.pressure_some_ppm)),
            Panel("all tasks wait, %", lambda use: _in_percent(use.pressure_full_ppm)),
        ),
    ),
)  # fmt: skip


def busiest(found: Sequence[Step]) -> list[str]:
    """The cgroups by their bytes in the whole time, most first."""
    sums: dict[str, float] = {}
    for step in found:
        for name, use in step.uses.items():
            sums[name] = sums.get(name, 0) + use.bytes_per_s
    return sorted(sums, key=lambda name: (-sums[name], name))


def with_colours(tenants: Sequence[Tenant], order: Sequence[str]) -> list[str]:
    """The cgroups to draw one by one: half of them the worst of those below their due, and the
    others the first of @order."""
    lacking = sorted((one for one in tenants if one.lacks), key=lambda one: one.met or 0.0)
    worst = [one.name for one in lacking[: DRAWN_MOST // 2]]
    others = [name for name in order if name not in worst]
    chosen = {*worst, *others[: DRAWN_MOST - len(worst)]}
    return [name for name in order if name in chosen]


@dataclass(frozen=True)
class _Drawn:
    """The intervals of a drive, so many of them to a point, and the cgroups with a colour."""

    found: Sequence[Step]
    each: int
    names: Sequence[str]
    rest: Sequence[str]

    @property
    def chunks(self) -> list[Sequence[Step]]:
        return [self.found[at : at + self.each] for at in range(0, len(self.found), self.each)]

    @property
    def times(self) -> list[float]:
        return [chunk[-1].at for chunk in self.chunks]

    def line(self, name: str, panel: Panel) -> list[float]:
        return [self._joined([name], chunk, panel) for chunk in self.chunks]

    def rest_line(self, panel: Panel) -> list[float]:
        return [self._joined(self.rest, chunk, panel) for chunk in self.chunks]

    @staticmethod
    def _joined(names: Sequence[str], chunk: Sequence[Step], panel: Panel) -> float:
        sums = []
        for step in chunk:
            values = [panel.value(step.uses[name]) for name in names if name in step.uses]
            known = [value for value in values if value is not None]
            if known:
                sums.append(sum(known))
        return panel.joined(sums) if sums else math.nan


def _key(drawn: _Drawn) -> str:
    """The colours of the cgroups, in words."""
    pairs = [(escaped(name), CURVES[number]) for number, name in enumerate(drawn.names)]
    if drawn.rest:
        pairs.append((f"{len(drawn.rest)} others together, where they have a sum", NEUTRAL))
    spans = (f'<span><i style="background: {colour}"></i>{name}</span>' for name, colour in pairs)
    return f'<p class="key">{" ".join(spans)}</p>'


def _shares(drawn: _Drawn, label: str) -> str:
    """A panel for each cgroup: the area that it got, and the line of its due."""
    figure, panels = panels_of(len(drawn.names))
    got = Panel("", lambda use: 100 * use.achieved_ppm / PPM)
    due = Panel("", lambda use: 100 * use.due_ppm / PPM)
    for axes, name in zip(panels, drawn.names, strict=True):
        axes.fill_between(drawn.times, drawn.line(name, got), color=SHADES[1], linewidth=0)
        axes.plot(drawn.times, drawn.line(name, due), color=MARK, linewidth=1.6)
        axes.set_ylim(0, None)
        axes.margins(x=0)
        titled(axes, _shortened(name))
    _seconds_below(panels)
    return svg_of(figure, label)


def _seconds_below(panels: Sequence[Axes]) -> None:
    for axes in panels:
        if axes.get_subplotspec() is not None:
            axes.set_xlabel("seconds")
            axes.tick_params(labelbottom=True)


def _lines(plot: Plot, drawn: _Drawn, label: str) -> str:
    figure, panels = panels_of(len(plot.panels), across=2, high=2.9)
    for axes, panel in zip(panels, plot.panels, strict=True):
        known: list[float] = []
        for number, name in enumerate(drawn.names):
            values = drawn.line(name, panel)
            known += [value for value in values if value > 0]
            axes.plot(drawn.times, values, color=CURVES[number], linewidth=1.4)
        if drawn.rest and panel.sums:
            axes.plot(drawn.times, drawn.rest_line(panel), color=NEUTRAL, linewidth=1.4)
        axes.margins(x=0)
        titled(axes, panel.title)
        if panel.joined is max and known and max(known) > LINEAR_MOST * min(known):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        else:
            axes.set_ylim(0, None)
    _seconds_below(panels)
    return svg_of(figure, label)


def _has_values(plot: Plot, found: Sequence[Step]) -> bool:
    """False for a figure that the kernel or the module of the recording does not tell."""
    uses = (use for step in found for use in step.uses.values())
    return any(panel.value(use) is not None for use in uses for panel in plot.panels)


def _drive_plots(
    name: str, found: Sequence[Step], tenants: Sequence[Tenant], points: int
) -> list[str]:
    order = busiest(found)
    each = math.ceil(len(found) / points)
    names = with_colours(tenants, order)
    drawn = _Drawn(found, each, names, [one for one in order if one not in names])
    parts = []
    if each > 1:
        parts.append(note(f"A point is the mean of {each} intervals; of percentiles, the highest."))
    parts.append(
        _heading(
            "Due and got",
            "Each panel is a cgroup, in % of the drive's work. The blue area is the part that it"
            " got. The red line is the part that it was due. Below the line it lacked something.",
        )
    )
    parts.append(_shares(drawn, f"{name}: due and got"))
    for plot in PLOTS:
        if not _has_values(plot, found):
            continue
        parts += [_heading(plot.title, plot.how_to_read), _key(drawn)]
        parts.append(_lines(plot, drawn, f"{name}: {plot.title}"))
    return parts


def _recording_page(found: Recording, points: int) -> str:
    first, last = found.samples[0], found.samples[-1]
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.head.started))
    of_disks = {name: steps(found, name) for name in last.disks}
    work = {
        name: sum(use.bytes_per_s for step in of_disk for use in step.uses.values())
        for name, of_disk in of_disks.items()
    }
    plotted = sorted(work, key=lambda name: -work[name])[:DRIVES_MOST]
    parts = []
    drives = []
    for name, disk in last.disks.items():
        tenants = summary.of_steps(of_disks[name])
        drives.append(f"<h2>{escaped(name)}: plots</h2>")
        parts.append(f"<h2>{escaped(name)}</h2>")
        if not tenants:
            parts.append(note("No cgroup did I/O on this drive."))
            drives.pop()
            continue
        parts.append(f'<p class="verdict">{escaped(summary.headline(tenants))}</p>')
        most = max(min(ROWS_MOST, ROWS_OF_ALL // len(last.disks)), ROWS_LEAST)
        parts.append(tenants_table([((), tenants)], most=most))
        settings = ", ".join(f"{key} {value}" for key, value in disk.tunables.items())
        parts.append(note(f"scheduler {disk.scheduler or '-'}: {settings}"))
        if name in plotted:
            drives += _drive_plots(name, of_disks[name], tenants, points)
        else:
            drives.append(note(f"Only the {DRIVES_MOST} busiest drives have plots."))
    about = [
        ("started", started),
        ("length", f"{last.at - first.at:.0f} s, {len(found.samples)} samples"),
        ("kernel", found.head.kernel),
        ("mqfair", found.head.version),
    ]
    how = note(
        "due: the part of the work that a tenant's weight gives it, as far as it asks for it. got:"
        " the part that the drive did for it. Below its due is less than nine tenths of it. p99:"
        " the median and the highest of the 99th percentiles of the latency."
    )
    return page("mqfair: recording", [*parts, how, *drives, "<h2>The machine</h2>", rows(about)])


def of_recording(found: Recording) -> str:
    """The page, with fewer points if it would be larger than SIZE_MOST."""
    points = max(POINTS_MOST // min(len(found.samples[-1].disks), DRIVES_MOST), POINTS_LEAST)
    with mpl.rc_context({**STYLE, **SVG_STYLE}):
        while True:
            text = _recording_page(found, points)
            if len(text.encode()) <= SIZE_MOST or points <= POINTS_LEAST:
                return text
            points //= 2


# --- results of bench ------------------------------------------------------------------------


def of_benches(names: Sequence[str], benches: Sequence[Document]) -> str:
    with mpl.rc_context({**STYLE, **SVG_STYLE}):
        return _benches_page(names, benches)


def _benches_page(names: Sequence[str], benches: Sequence[Document]) -> str:
    several = len(names) > 1
    table = [
        ([name, scheduler] if several else [scheduler], summary.of_runs(runs))
        for name, bench in zip(names, benches, strict=True)
        for scheduler, runs in _runs(bench).items()
    ]
    parts = [tenants_table(table, ["result", "scheduler"] if several else ["scheduler"])]
    parts.append(
        note(
            "due: the part of the work that a tenant's weight gives it, as far as it asks for it."
            " got: the part that the drive did for it. Below its due is less than nine tenths of"
            " it. Each figure is the median of the runs."
        )
    )
    if any(len(values) == 1 for bench in benches for values in _runs(bench).values()):
        parts.append(note("A figure of one run has no spread: use --repeat 5."))
    if several:
        parts.append(_key_of(names))
    drawn = _Bars(names, benches)
    parts.append(
        _heading(
            "Each scheduler as a whole",
            "Left: more is better. Right: the share of the worst cgroup, in parts of its due. A bar"
            " that reaches 1 means that all have their due. Thin lines go from the least to the"
            " greatest run.",
        )
    )
    wholes = [
        ("requests per second", lambda run: run["total_iops"], None),
        ("the worst cgroup: got / due", worst_met, 1.0),
    ]
    parts.append(drawn.svg("total", wholes))
    groups = list(
        dict.fromkeys(
            group["name"] for bench in benches for run in bench["runs"] for group in run["cgroups"]
        )
    )
    parts.append(
        _heading("Due and got", "Each panel is a cgroup, in % of the work. A red mark is its due.")
    )
    shown = groups[: 2 * DRAWN_MOST]
    parts.append(drawn.svg("shares", [(_shortened(one), _share(one), _due(one)) for one in shown]))
    parts.append(
        _heading("Latency: the 99th percentile", "Each panel is a cgroup, in ms. Less is better.")
    )
    parts.append(drawn.svg("p99", [(_shortened(one), _p99(one), None) for one in shown]))
    if len(groups) > len(shown):
        parts.append(note(f"{len(groups) - len(shown)} more cgroups are in the table alone."))
    pairs = [
        (name, f"{bench['job']}, {len(bench['runs'])} runs, kernel {bench['where'].get('kernel')}")
        for name, bench in zip(names, benches, strict=True)
    ]
    return page("mqfair: bench", [*parts, "<h2>The results</h2>", rows(pairs)])


Value = Callable[[Document], float | None]


def _share(group: str) -> Value:
    return _of(group, lambda one: 100 * one["share"])


def _due(group: str) -> Value:
    return _of(group, lambda one: 100 * one["due"] if one.get("due") is not None else None)


def _p99(group: str) -> Value:
    return _of(group, lambda one: one["lat_ns"]["p99"] / 1e6)


def _of(group: str, value: Value) -> Value:
    def find(run: Document) -> float | None:
        return next((value(one) for one in run["cgroups"] if one["name"] == group), None)

    return find


def _runs(bench: Document) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for run in bench["runs"]:
        found.setdefault(run["scheduler"], []).append(run)
    return found


def _colour(number: int) -> str:
    return (SHADES[2], NEUTRAL, *CURVES)[number % (2 + len(CURVES))]


def _key_of(names: Sequence[str]) -> str:
    spans = (
        f'<span><i style="background: {_colour(number)}"></i>{escaped(name)}</span>'
        for number, name in enumerate(names)
    )
    return f'<p class="key">{" ".join(spans)}</p>'


@dataclass(frozen=True)
class _Bars:
    """Bars of the medians: a place for each scheduler, and a bar for each result there."""

    names: Sequence[str]
    benches: Sequence[Document]

    def svg(self, label: str, panels: Sequence[tuple[str, Value, Value | float | None]]) -> str:
        """A panel for each title and value, with the mark or the line where the value should be."""
        schedulers = list(
            dict.fromkeys(run["scheduler"] for bench in self.benches for run in bench["runs"])
        )
        across = min(len(panels), PANELS_ACROSS)
        high = 0.24 * len(schedulers) * len(self.names) + 0.9
        lines = math.ceil(len(panels) / across)
        figure = Figure(figsize=(11.5, high * lines), layout="constrained")
        found = figure.subplots(lines, across, squeeze=False, sharey=True)
        for axes in list(found.flat)[len(panels) :]:
            axes.set_visible(False)
        for axes, (title, value, wanted) in zip(found.flat, panels, strict=False):
            self._draw(axes, schedulers, value, wanted)
            axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
            axes.grid(axis="x", color=FAINT, linewidth=0.8)
        return svg_of(figure, label)

    def _draw(
        self, axes: Axes, schedulers: Sequence[str], value: Value, wanted: Value | float | None
    ) -> None:
        thick = 0.8 / len(self.names)
        for number, bench in enumerate(self.benches):
            for scheduler, runs in _runs(bench).items():
                known = [one for one in map(value, runs) if one is not None]
                if not known:
                    continue
                place = schedulers.index(scheduler) + (number - (len(self.names) - 1) / 2) * thick
                axes.barh(place, statistics.median(known), 0.9 * thick, color=_colour(number))
                axes.hlines(place, min(known), max(known), color=INK, linewidth=1)
                if callable(wanted):
                    dues = [one for one in map(wanted, runs) if one is not None]
                    if dues:
                        ends = (place - thick / 2, place + thick / 2)
                        axes.vlines(statistics.median(dues), *ends, color=MARK, linewidth=2)
        if isinstance(wanted, float):
            axes.axvline(wanted, color=MARK, linewidth=1.6)
        axes.set_yticks(range(len(schedulers)), [printable(one) for one in schedulers])
        axes.set_ylim(len(schedulers) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(left=0)
