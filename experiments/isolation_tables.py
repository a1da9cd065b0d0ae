# SPDX-License-Identifier: GPL-2.0
"""Measures the tables of doc/measurements/isolation.md and writes them there.

Each table has a command of experiments.isolation behind it. Its result is a file of --folder, and
is measured only if the file is not there. A figure is the median over the seeds.

    python3 -m experiments.isolation_tables --list
    python3 -m experiments.isolation_tables variants adversaries
    python3 -m experiments.isolation_tables --document doc/measurements/isolation.md

The first command lists the tables, and the second prints two of them. The third measures all tables
and writes them.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import isolation_goals
from experiments.isolation_curve import Point, on_curve, slowdown_at, spread
from experiments.isolation_results import FOLDER, RESULTS, Results, Seen
from experiments.isolation_run import OURS
from experiments.markdown import lines, put
from mqfair.bench.variant import MQFQ, NONE
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import table

# A table has the p99 of the reader for each of these values of `isolation`.
PRICES = (8, 12, 20, 30)
median = statistics.median
Rows = list[list[str]]


# --------------------------------------------------------------------------- cells


def slowdown(point: Point) -> str:
    return f"{median(point.slowdown):.1f}"


def total(point: Point) -> str:
    return f"{median(point.total):.3f}"


def at(point: Point) -> str:
    """Slowdown at total / none."""
    return f"{slowdown(point)} at {total(point)}"


def p99(point: Point) -> str:
    return f"{median(point.p99_none):.2f}"


def scatter(point: Point) -> str:
    return f"{spread(point.slowdown) * 100:.0f} %"


def span(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}"


def part(point: Point) -> str:
    return f"{median(point.part):.2f}"


# -------------------------------------------------------------------------- tables


def each(settings: Sequence[str], cell: Callable[[Point], str]) -> Callable[[Seen], list[str]]:
    return lambda one: [cell(one[label]) for label in settings]


def by_drive(seen: Sequence[Seen], cells: Callable[[Seen], list[str]]) -> Rows:
    return [[one.drive, *cells(one)] for one in seen]


def by_case(seen: Sequence[Seen], cells: Callable[[Seen], list[str]]) -> Rows:
    """A row for each case, with the cells of each of its drives side by side."""
    rows: dict[str, list[str]] = {}
    for one in seen:
        rows.setdefault(one.case, [f"`{one.case}`"]).extend(cells(one))
    return list(rows.values())


def by_setting(seen: Sequence[Seen], cell: Callable[[Point], str]) -> Rows:
    """A row for each setting, with a cell for each panel."""
    labels = [label for label in seen[0].points if all(label in one.points for one in seen)]
    return [[label, *(cell(one[label]) for one in seen)] for label in labels]


def below(seen: Sequence[Seen]) -> Rows:
    """The totals of each scheduler over all drives and seeds, in bytes and in requests."""
    rows = []
    for label in OURS:
        totals = [value for one in seen for value in one[label].total]
        means = [statistics.fmean(one[label].total) for one in seen]
        few = sum(value < 0.92 for value in totals)
        asked = [median(one[label].requests) for one in seen]
        rows.append(
            [
                label,
                f"{min(means):.3f}",
                f"{few} of {len(totals)}",
                f"{min(totals):.3f}",
                f"{min(asked):.3f}",
            ]
        )
    return rows


def swept(seen: Sequence[Seen]) -> Rows:
    """The points of `isolation`, with their slowdown relative to the curve's in brackets."""

    def cell(one: Seen, label: str) -> str:
        point, base = one[label], on_curve(one[label], one.curve)
        mean = statistics.fmean
        text = f"{mean(point.slowdown):.2f} at {mean(point.total):.3f}"
        return text if base is None else f"{text} ({base:.2f})"

    labels = [label for label in seen[0].points if label.startswith("mqfq isolation=")]
    return [
        [label.removeprefix("mqfq isolation=").replace(MQFQ, "default")]
        + [cell(one, label) for one in seen]
        for label in [MQFQ, *labels]
    ]


def against_curve(seen: Sequence[Seen]) -> Rows:
    rows = []
    for one in seen:
        point = one[MQFQ]
        base = slowdown_at(one.curve, point.at[0])
        if base is None:
            continue
        rows.append(
            [
                f"`{one.case}`",
                f"{point.at[0]:.3f}",
                f"{point.at[1]:.2f}",
                f"{base:.2f}",
                f"{point.at[1] / base:.2f}",
            ]
        )
    return rows


def many(seen: Sequence[Seen]) -> Rows:
    strict = f"{MQFQ}:isolation=25"
    return by_case(
        seen,
        lambda one: [
            part(one[NONE]),
            f"{total(one[MQFQ])}, {part(one[MQFQ])}",
            f"{median(one[MQFQ].by_count):.2f}",
            f"{total(one[strict])}, {part(one[strict])}",
            f"{median(one[strict].by_count):.2f}",
        ],
    )


def many_by_scheduler(seen: Sequence[Seen]) -> Rows:
    return by_setting(seen, lambda point: f"{part(point)} at {total(point)}")


def deep(seen: Sequence[Seen]) -> Rows:
    """A row for each case, over all drives and seeds."""
    rows: Rows = []
    for case in dict.fromkeys(one.case for one in seen):
        points = [one[MQFQ] for one in seen if one.case == case]
        totals = [value for point in points for value in point.total]
        indices = [value for point in points for value in point.jain]
        rows.append([f"`{case}`", span(totals), f"{min(indices):.4f}"])
    return rows


def windows(seen: Sequence[Seen]) -> Rows:
    """A row for each drive and window. Without a subject in the window there is no slowdown."""
    rows: Rows = []
    for one in seen:
        point, none = one[MQFQ], one[NONE]
        absent = median(none.slowdown) == float("inf")
        figures = ["-", "-", "-"] if absent else [slowdown(none), slowdown(point), scatter(point)]
        model = one.drive.split(",")[0]
        cases = {other.case for other in seen}
        window = one.window if len(cases) == 1 else f"{one.case}, {one.window}"
        rows.append([model, window, *figures, f"{total(point)}, {span(point.total)}"])
    return rows


def bursts(seen: Sequence[Seen]) -> Rows:
    rows: Rows = []
    for drive in dict.fromkeys(one.drive for one in seen):
        of = {(one.case, one.window): one[MQFQ] for one in seen if one.drive == drive}
        short, rest = of["bursts", "burst"], of["bursts-50", "burst"]
        rows.append(
            [
                drive.split(",")[0],
                at(short),
                total(of["bursts", "after"]),
                at(of["bursts-50", "begin"]),
                at(rest),
                p99(rest),
                total(of["bursts-50", "after"]),
            ]
        )
    return rows


def adversaries(seen: Sequence[Seen]) -> Rows:
    return [
        [
            f"`{one.case}`",
            one.drive.split(",")[0],
            f"{total(point)}, {min(point.total):.3f}",
            f"{median(point.part):.3f}, {max(point.part):.3f}",
            slowdown(point),
            scatter(point),
        ]
        for one in seen
        for point in [one[MQFQ]]
    ]


def rare(seen: Sequence[Seen]) -> Rows:
    """A row for each case, with the drives side by side."""
    rows = by_case(seen, lambda one: [slowdown(one[NONE]), at(one[MQFQ])])
    return [[row[0].strip("`").removeprefix("A-every-"), *row[1:]] for row in rows]


def setting_rows(seen: Sequence[Seen]) -> Rows:
    return [
        [label, total(point), f"{median(point.slowdown):.2f}", scatter(point), p99(point)]
        for label, point in seen[0].points.items()
    ]


# ------------------------------------------------------------------------ the tables


@dataclass(frozen=True)
class Table:
    """@results names the results that the rows are made of: one, or some with commas."""

    results: str
    head: Sequence[str]
    rows: Callable[..., Rows]

    def made(self, results: Results) -> str:
        return lines(self.head, self.rows(*(results[name] for name in self.results.split(","))))


_DRIVE_WINDOW = ("drive", "time", "none", "slowdown", "spread", "total / none, range")
_EACH = ("drive, fill", *OURS)

TABLES: Mapping[str, Table] = {
    "goals": Table(isolation_goals.RESULTS, isolation_goals.HEAD, isolation_goals.goals),
    "first": Table(
        "first",
        ("drive, fill", "none", *OURS),
        lambda seen: by_drive(
            seen, lambda one: [slowdown(one[NONE]), *(at(one[label]) for label in OURS)]
        ),
    ),
    "first-spread": Table(
        "first",
        _EACH,
        lambda seen: by_drive(seen, each(OURS, lambda one: f"{scatter(one)}, {p99(one)}")),
    ),
    "first-below": Table(
        "first",
        ("", "least mean total", "seeds below 0.92", "least of a seed", "least in requests"),
        below,
    ),
    "curve": Table(
        "curve",
        ("isolation", "980pro, sequential", "980pro, random", "p4500, sequential", "p4500, random"),
        swept,
    ),
    "p99": Table(
        "curve",
        ("drive, fill", *(f"isolation={n}" for n in PRICES)),
        lambda seen: by_drive(
            seen,
            each(
                [f"{MQFQ} isolation={n}" for n in PRICES], lambda one: f"{p99(one)} at {total(one)}"
            ),
        ),
    ),
    "variants": Table(
        "variants",
        ("case", "980pro: none", "mqfq", "p99 / none", "p4500: none", "mqfq", "p99 / none"),
        lambda seen: by_case(
            seen, lambda one: [slowdown(one[NONE]), at(one[MQFQ]), p99(one[MQFQ])]
        ),
    ),
    "against-curve": Table(
        "against-curve",
        ("case", "total / none", "slowdown", "curve", "relative"),
        against_curve,
    ),
    "rare": Table("rare", ("pause", "980pro: none", "mqfq", "p4500: none", "mqfq"), rare),
    "b": Table(
        "b",
        (
            "case",
            "none",
            "mqfq: total / none, part / due",
            "by number",
            "isolation=25",
            "by number",
        ),
        many,
    ),
    "b-schedulers": Table(
        "b-schedulers", ("setting", "980pro", "p3700", "p4500"), many_by_scheduler
    ),
    "full": Table("full", ("case", "total / none", "Jain, least"), deep),
    "start512": Table(
        "start512", ("setting", "total / none", "slowdown", "spread", "p99 / none"), setting_rows
    ),
    "visits": Table("visits", _DRIVE_WINDOW, windows),
    "bursts": Table(
        "bursts",
        ("drive", "20 ms", "after", "50 ms: first 30", "rest", "p99 / none", "after"),
        bursts,
    ),
    "stall": Table("stall", _DRIVE_WINDOW, windows),
    "storm": Table("storm", _DRIVE_WINDOW, windows),
    "adversaries": Table(
        "adversaries",
        ("case", "drive", "total / none, least", "part / due, most", "slowdown", "spread"),
        adversaries,
    ),
    "writers": Table(
        "writers",
        ("setting", "4 KiB", "64 KiB"),
        lambda seen: by_setting(
            seen, lambda one: f"{median(one.slowdown):.2f} at {median(one.total):.3f}"
        ),
    ),
    "host": Table(
        "host",
        ("drive, fill", "none: slowdown", "mqfq: total / none", "slowdown", "spread", "p99 / none"),
        lambda seen: by_drive(
            seen,
            lambda one: [
                slowdown(one[NONE]),
                total(one[MQFQ]),
                f"{median(one[MQFQ].slowdown):.2f}",
                scatter(one[MQFQ]),
                p99(one[MQFQ]),
            ],
        ),
    ),
    "literature": Table(
        "literature", ("setting", "total / none", "slowdown", "spread", "p99 / none"), setting_rows
    ),
}


# -------------------------------------------------------------------------- command


def listing() -> Iterable[str]:
    """Each table with the command of its result. `goals` has the results of the other tables."""
    rows = [
        [name, f"experiments.isolation {RESULTS[one.results]}"]
        for name, one in TABLES.items()
        if one.results in RESULTS
    ]
    return table(["table", "command"], rows, left=2)


def run(args: argparse.Namespace) -> int:
    if args.list:
        print("\n".join(listing()))
        return 0
    for name in args.names:
        if name not in TABLES:
            raise UsageError(f"no table '{name}': use {', '.join(TABLES)}")
    results = Results(args.folder)
    names = args.names or list(TABLES)
    text = {}
    for name in names:
        text[name] = TABLES[name].made(results)
        if not args.document:
            print(f"{name}:\n\n{text[name]}", flush=True)
    if args.document:
        put(args.document, text)
    return 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="isolation_tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("names", nargs="*", metavar="NAME", help="tables (default: all)")
    options.add_argument("--list", action="store_true", help="list the tables and end")
    options.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        help="has the results, and gets new ones (default %(default)s)",
    )
    options.add_argument("--document", type=Path, metavar="FILE", help="write the tables there")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return run(parser().parse_args(argv))
    except (UsageError, Failure) as error:
        print(f"isolation_tables: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


if __name__ == "__main__":
    sys.exit(main())
