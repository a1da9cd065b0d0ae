# SPDX-License-Identifier: GPL-2.0
"""Results for a terminal: a table of cgroups, a table of schedulers, and bars of shares."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mqfair.bench import limits
from mqfair.bench.result import CaseResult, CgroupResult, RunResult, summarise

BAR_CELLS = 40
# The part of its due that a cgroup got: green from the first, yellow from the second.
GOOD_MET = 0.95
FAIR_MET = 0.90
PLAIN_WIDTH = 132

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_NS_PER_US = 1_000
_NS_PER_MS = 1_000_000
_US_PER_MS = 1_000
_MIB = 1 << 20


class _Console(Console):
    """A console that ends no program when its reader has gone away."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console_for(stderr: bool = False) -> Console:
    """A console for standard output or error; as wide as the tables if it is no terminal."""
    console = _Console(stderr=stderr)
    return console if console.is_terminal else _Console(stderr=stderr, width=PLAIN_WIDTH)


def render(result: CaseResult, notes: Sequence[str]) -> RenderableType:
    parts: list[RenderableType] = [cgroup_table(result), scheduler_table(result)]
    if any("limit" in run.details for run in result.runs):
        parts.append(limit_table(result))
    if result.solo:
        parts.append(solo_table(result))
    else:
        parts += [Text(f"note: {note}", style="dim") for note in _unknown_demands(result)]
    parts += [Text(f"note: {note}", style="dim") for note in notes]
    return Group(*parts)


def schedulers_of(result: CaseResult) -> list[str]:
    return list(dict.fromkeys(run.scheduler for run in result.runs))


def by_cgroup(result: CaseResult, scheduler: str) -> list[list[CgroupResult]]:
    """For each cgroup its results in all repeats."""
    runs = [run for run in result.runs if run.scheduler == scheduler]
    return [list(group) for group in zip(*(run.cgroups for run in runs), strict=True)]


def median(groups: Sequence[CgroupResult], value: Callable[[CgroupResult], float]) -> float:
    return statistics.median(value(group) for group in groups)


def cgroup_table(result: CaseResult) -> Table:
    repeats = len({run.repeat for run in result.runs})
    title = (
        f"{result.case.name}: median of {repeats} (least .. most)"
        if repeats > 1
        else (f"{result.case.name}: one run")
    )
    table = Table(title=title, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("scheduler", "cgroup"):
        table.add_column(name, overflow="fold")
    for name in ("weight", "due", "share", "of its due", "IOPS", "MiB/s"):
        table.add_column(name, justify="right")
    for name in ("p50", "p99", "p99.9"):
        table.add_column(name, justify="right")
    for scheduler in schedulers_of(result):
        for number, groups in enumerate(by_cgroup(result, scheduler)):
            table.add_row(scheduler if number == 0 else "", *_cells(groups))
        table.add_section()
    return table


def _cells(groups: Sequence[CgroupResult]) -> Iterator[RenderableType]:
    first = groups[0]
    met = median(groups, lambda group: group.met)
    yield first.name
    yield str(first.weight)
    yield f"{median(groups, lambda group: group.due) * 100:.2f} %"
    yield spread([group.share * 100 for group in groups], "{:.2f}")
    yield Text(f"{met:.2f}", style=_style(met))
    yield f"{median(groups, lambda group: group.iops):,.0f}"
    yield f"{median(groups, lambda group: group.bytes_per_s) / _MIB:,.1f}"
    for name in ("p50", "p99", "p999"):
        yield duration(statistics.median(group.lat_ns[name] for group in groups))


def duration(ns: float) -> str:
    """In µs below 1 ms, with three digits or more."""
    unit, name = (_NS_PER_MS, "ms") if round(ns / _NS_PER_US) >= _US_PER_MS else (_NS_PER_US, "µs")
    value = ns / unit
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"


def spread(values: Sequence[float], form: str) -> str:
    """The median of @values, with the least and the greatest if there are several."""
    middle = form.format(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({form.format(min(values))} .. {form.format(max(values))})"


def _style(met: float) -> str:
    if met >= GOOD_MET:
        return "green"
    return "yellow" if met >= FAIR_MET else "red"


def scheduler_table(result: CaseResult) -> Table:
    """The verdict: the cgroup that got the least part of its due, and the total."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("scheduler", overflow="fold")
    table.add_column("worst cgroup")
    single = len(result.runs) == len(schedulers_of(result))
    ratio = "ratio to none (one run)" if single else "ratio to none"
    for name in ("of its due", "total IOPS", "MiB/s", ratio, "Jain index"):
        table.add_column(name, justify="right")
    for line in summarise(result.runs):
        own = [run for run in result.runs if run.scheduler == line["scheduler"]]
        table.add_row(
            line["scheduler"],
            line["worst"],
            _range(line, "met", "{:.2f}"),
            _range(line, "total_iops", "{:,.0f}"),
            f"{statistics.median(run.total_bytes_per_s for run in own) / _MIB:,.1f}",
            _range(line, "ratio_to_none", "{:.3f}"),
            _range(line, "jain", "{:.4f}"),
        )
    for name in result.left_out:
        table.add_row(name, "left out", *["-"] * 5)
    return table


def limit_table(result: CaseResult) -> Table:
    """For each scheduler the medians of the repeats, and the limit of most of them."""
    details = {
        scheduler: [run.details for run in result.runs if run.scheduler == scheduler]
        for scheduler in schedulers_of(result)
    }
    drive = limits.names([one for runs in details.values() for one in runs])
    table = Table(
        title="where the limit is: part of the time for which each resource works",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("scheduler", overflow="fold")
    for name in (*drive, "CPUs", "busiest CPU", "inside", "window"):
        table.add_column(name, justify="right")
    table.add_column("limit")
    for scheduler, runs in details.items():
        uses = [limits.used_window(one["depth"]) for one in runs]
        windows = [window for _, window in uses if window is not None]
        table.add_row(
            scheduler,
            *(
                f"{statistics.median(one['pressure'][name] for one in runs):.2f}"
                for name in (*drive, "cpus", limits.BUSIEST)
            ),
            f"{statistics.median(inside for inside, _ in uses):,.1f}",
            f"{statistics.median_low(windows):,}" if windows else "-",
            statistics.mode(one["limit"] for one in runs),
        )
    return table


def _range(line: dict[str, Any], name: str, form: str) -> str:
    if line[name] is None:
        return "-"
    least, most = line["min"][name], line["max"][name]
    return spread([least, line[name], most] if least != most else [most], form)


def _unknown_demands(result: CaseResult) -> Iterator[str]:
    modest = {one.name: None for run in result.runs for one in run.cgroups if not one.backlogged}
    if modest:
        yield (
            f"{', '.join(modest)} kept few requests, and counts as if it got what it asks for:"
            " --solo measures what each cgroup asks for"
        )


def solo_table(result: CaseResult) -> Table:
    names = [group.name for group in result.case.groups]
    table = Table(
        title="slowdown: throughput alone / shared", title_justify="left", box=box.SIMPLE_HEAD
    )
    table.add_column("scheduler", overflow="fold")
    for name in names:
        table.add_column(name, justify="right")
    for scheduler in schedulers_of(result):
        table.add_row(scheduler, *(_slowdown(result, scheduler, name) for name in names))
    return table


def _slowdown(result: CaseResult, scheduler: str, name: str) -> str:
    values = [
        one.slowdown
        for one in result.solo
        if one.scheduler == scheduler and one.cgroup == name and one.slowdown is not None
    ]
    return spread(values, "{:.2f}") if values else "stopped"


def share_bars(result: CaseResult) -> Table:
    """A bar for each cgroup with a mark at its due."""
    longest = max(
        max(median(groups, lambda group: group.share), median(groups, lambda group: group.due))
        for scheduler in schedulers_of(result)
        for groups in by_cgroup(result, scheduler)
    )
    table = Table(
        title=f"{result.case.name}: share of each cgroup, │ its due",
        title_style="bold",
        title_justify="left",
        box=None,
        padding=(0, 1),
    )
    table.add_column("scheduler", overflow="fold")
    table.add_column("weight", justify="right")
    table.add_column("")
    table.add_column("share", justify="right")
    for scheduler in schedulers_of(result):
        for number, groups in enumerate(by_cgroup(result, scheduler)):
            share = median(groups, lambda group: group.share)
            due = median(groups, lambda group: group.due)
            table.add_row(
                Text(scheduler if number == 0 else "", style="bold"),
                str(groups[0].weight),
                _bar(
                    share / longest,
                    due / longest,
                    _style(median(groups, lambda group: group.met)),
                ),
                f"{share * 100:.1f} %",
            )
        table.add_row()
    return table


def _bar(part: float, mark: float, style: str) -> Text:
    eighths = round(part * BAR_CELLS * 8)
    full, rest = divmod(eighths, 8)
    cells = list(("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(BAR_CELLS + 1))
    place = min(round(mark * BAR_CELLS), BAR_CELLS)
    bar = Text("".join(cells), style=style)
    marked = Text("│", style="bold reverse" if place < full else "bold")
    return Text.assemble(bar[:place], marked, bar[place + 1 :])


def totals(runs: Sequence[RunResult], scheduler: str) -> list[float]:
    return [run.total_iops for run in runs if run.scheduler == scheduler]
