# SPDX-License-Identifier: GPL-2.0
"""The pages of `mqfair report`, with plotly: one HTML file, with the library in it."""

import html
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.colors import qualitative

from mqfair.report.compare import Document, worst_met
from mqfair.report.steps import Step, steps
from mqfair.watch.recording import Recording
from mqfair.watch.sample import PPM, Use

# So many cgroups have lines of their own; more cannot be told apart.
DRAWN_MOST = 12
OTHERS = "all others"
HEIGHT = 380
COLOURS = [*qualitative.Plotly, *qualitative.Set2]

STYLE = """
body { font: 15px system-ui, sans-serif; color: #222 }
body { margin: 2em auto; padding: 0 2em; max-width: 1200px }
h1 { font-size: 1.5em } h2 { font-size: 1.2em; margin-top: 2em }
table { border-collapse: collapse } td, th { padding: .2em .9em .2em 0; text-align: left }
p.note { color: #555 }
"""


def page(title: str, parts: Sequence[str | go.Figure]) -> str:
    """The whole file. Text in @parts is HTML already."""
    body = []
    has_library = False
    for part in parts:
        if isinstance(part, str):
            body.append(part)
            continue
        config = {"responsive": True, "displaylogo": False}
        body.append(part.to_html(full_html=False, include_plotlyjs=not has_library, config=config))
        has_library = True
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}'
        f'</title>\n<link rel="icon" href="data:,">\n<style>{STYLE}</style></head>\n<body>'
        f"<h1>{escaped(title)}</h1>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def escaped(text: str) -> str:
    """@text without meaning to HTML, nor to plotly, which obeys tags in names."""
    return html.escape("".join(one if one.isprintable() else "?" for one in text))


def rows(pairs: Sequence[tuple[str, str]]) -> str:
    lines = (f"<tr><th>{escaped(name)}</th><td>{escaped(text)}</td></tr>" for name, text in pairs)
    return f"<table>{''.join(lines)}</table>"


# --- a recording -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Plot:
    """One plot of a drive: @value of a cgroup's use. Sums of cgroups are drawn if @sums."""

    title: str
    unit: str
    value: Callable[[Use], float | None]
    sums: bool = False
    stacked: bool = False


def _ms(us: float | None) -> float | None:
    return None if us is None else us / 1000


def _percent(ppm: int) -> float:
    return 100 * ppm / PPM


PLOTS = (
    Plot("Achieved share", "% of the work", lambda use: _percent(use.achieved_ppm), True, True),
    Plot("Due share", "% of the work", lambda use: _percent(use.due_ppm), True, True),
    Plot("Throughput", "MiB/s", lambda use: use.bytes_per_s / (1 << 20), True),
    Plot("Requests", "IOPS", lambda use: use.iops, True),
    Plot("99th percentile of the latency", "ms", lambda use: _ms(use.p99_us)),
    Plot("Mean wait outside the drive", "ms", lambda use: _ms(use.wait_us)),
    Plot("Mean time in the drive", "ms", lambda use: _ms(use.service_us)),
    Plot("Mean requests that wait outside", "requests", lambda use: use.waiting_x100 / 100, True),
    Plot("Time for which a cgroup was short", "ms in the interval", lambda use: use.short_ms),
)  # fmt: skip


def busiest(found: Sequence[Step]) -> list[str]:
    """The cgroups by their bytes in the whole time, most first."""
    sums: dict[str, float] = {}
    for step in found:
        for name, use in step.uses.items():
            sums[name] = sums.get(name, 0) + use.bytes_per_s
    return sorted(sums, key=lambda name: (-sums[name], name))


def figure(plot: Plot, found: Sequence[Step]) -> go.Figure:
    order = busiest(found)
    drawn, rest = order[:DRAWN_MOST], order[DRAWN_MOST:]
    built = go.Figure()
    for index, name in enumerate(drawn):
        values = [
            (step.at, plot.value(step.uses[name]) if name in step.uses else None) for step in found
        ]
        built.add_trace(_line(plot, escaped(name), COLOURS[index % len(COLOURS)], values))
    if rest and plot.sums:
        sums = [
            (step.at, sum(plot.value(step.uses[one]) or 0 for one in rest if one in step.uses))
            for step in found
        ]
        built.add_trace(_line(plot, f"{OTHERS} ({len(rest)})", "#999999", sums))
    built.update_layout(
        title=plot.title, height=HEIGHT, hovermode="x unified", template="plotly_white",
        xaxis_title="seconds", yaxis_title=plot.unit, yaxis_rangemode="tozero",
        margin={"t": 50, "b": 45},
    )  # fmt: skip
    return built


def _line(
    plot: Plot, name: str, colour: str, values: Sequence[tuple[float, float | None]]
) -> go.Scatter:
    """A line through the pairs of time and value."""
    stack: Mapping[str, str] = {"stackgroup": "one"} if plot.stacked else {}
    return go.Scatter(
        x=[round(at, 3) for at, _ in values],
        y=[None if value is None else round(value, 4) for _, value in values],
        name=name, mode="lines", line={"color": colour, "width": 1.5}, **stack,
    )  # fmt: skip


def of_recording(found: Recording) -> str:
    first, last = found.samples[0], found.samples[-1]
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found.head.started))
    parts: list[Any] = [
        rows(
            [
                ("started", started),
                ("length", f"{last.at - first.at:.0f} s, {len(found.samples)} samples"),
                ("kernel", found.head.kernel),
                ("mqfair", found.head.version),
            ]
        )
    ]
    for name, disk in last.disks.items():
        of_disk = steps(found, name)
        parts.append(f"<h2>{escaped(name)}</h2>")
        settings = [f"{key} {value}" for key, value in disk.tunables.items()]
        parts.append(
            rows([("scheduler", disk.scheduler or "-"), ("tunables", ", ".join(settings))])
        )
        if not busiest(of_disk):
            parts.append('<p class="note">No cgroup did I/O on this drive.</p>')
            continue
        parts += [figure(plot, of_disk) for plot in PLOTS]
    return page("mqfair: recording", parts)


# --- results of bench ------------------------------------------------------------------------


def of_benches(names: Sequence[str], benches: Sequence[Document]) -> str:
    pairs = [
        (name, f"{bench['job']}, {len(bench['runs'])} runs, kernel {bench['where'].get('kernel')}")
        for name, bench in zip(names, benches, strict=True)
    ]
    parts: list[Any] = [rows(pairs)]
    if any(len(values) == 1 for bench in benches for values in _runs(bench).values()):
        parts.append('<p class="note">A figure of one run has no spread: use --repeat 5.</p>')
    parts.append(_bars("Total throughput", "IOPS", names, benches, lambda run: run["total_iops"]))
    parts.append(_bars("The worst cgroup's part of its due", "", names, benches, worst_met))
    groups = dict.fromkeys(
        group["name"] for bench in benches for run in bench["runs"] for group in run["cgroups"]
    )
    for group in groups:
        parts.append(f"<h2>{escaped(group)}</h2>")
        parts.append(
            _bars("Share", "%", names, benches, _of(group, lambda one: 100 * one["share"]))
        )
        p99 = _of(group, lambda one: one["lat_ns"]["p99"] / 1e6)
        parts.append(_bars("99th percentile of the latency", "ms", names, benches, p99))
    return page("mqfair: bench", parts)


def _of(group: str, value: Callable[[Document], float]) -> Callable[[Document], float | None]:
    def find(run: Document) -> float | None:
        return next((value(one) for one in run["cgroups"] if one["name"] == group), None)

    return find


def _runs(bench: Document) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for run in bench["runs"]:
        found.setdefault(run["scheduler"], []).append(run)
    return found


def _bars(
    title: str,
    unit: str,
    names: Sequence[str],
    benches: Sequence[Document],
    value: Callable[[Document], float | None],
) -> go.Figure:
    """Medians as bars, side by side, with the least and the greatest."""
    built = go.Figure()
    for name, bench in zip(names, benches, strict=True):
        found = {
            scheduler: [one for one in map(value, runs) if one is not None]
            for scheduler, runs in _runs(bench).items()
        }
        found = {scheduler: values for scheduler, values in found.items() if values}
        middles = [statistics.median(values) for values in found.values()]
        built.add_trace(
            go.Bar(
                x=[escaped(scheduler) for scheduler in found],
                y=middles,
                name=escaped(name),
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [max(v) - m for v, m in zip(found.values(), middles, strict=True)],
                    "arrayminus": [
                        m - min(v) for v, m in zip(found.values(), middles, strict=True)
                    ],
                },
            )
        )
    built.update_layout(
        title=title, height=HEIGHT, barmode="group", template="plotly_white", yaxis_title=unit,
        margin={"t": 50, "b": 45}, showlegend=len(names) > 1,
    )  # fmt: skip
    return built
