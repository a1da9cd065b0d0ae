# SPDX-License-Identifier: GPL-2.0
"""mqfair compare: two results of mqfair bench, figure by figure, with confidence over the repeats.

The ratio B / A is that of geometric means. Its interval is Welch's, on the logarithms: the runs of
two results are not pairs, and their variances may differ. A figure of one run has no interval.
"""

import argparse
import csv
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mqfair.bench import plan
from mqfair.manual.json_check import require
from mqfair.manual.json_forms import BY_NAME, FORMS, Node, tree
from mqfair.text import json_text
from mqfair.text.errors import UsageError
from mqfair.text.json_text import WrongJsonError
from mqfair.text.output import (
    add_json_argument,
    paint,
    print_json,
    read_text,
    require_writable,
    table,
    whole_output,
)

SCHEMA = "mqfair.compare/1"
MAKER = "mqfair bench JOB --json FILE"
QUALIFY_SCHEMA = "mqfair.qualify/1"
# The documents with several results, and the field that has them.
_LISTS = {plan.SEVERAL_SCHEMA: "devices", QUALIFY_SCHEMA: "benches"}
_WORK = {
    "busy_us": "CPU µs",
    "instructions": "instructions",
    "cycles": "cycles",
    "context_switches": "switches",
}
CONFIDENCE = 0.95
# A share is not related to a smaller due, which stands for 0.
LEAST_DUE = 1e-12

EPILOG = """\
A and B are files that `mqfair bench --json FILE` or `mqfair qualify` wrote. Each line has the
medians of a figure, the ratio B / A, and the interval that holds the true ratio with a confidence
of 95 %. A figure differs if that interval leaves out 1. With one run in A or B there is no
interval, and one difference among 20 equal figures is to be expected by chance.

Latencies are in milliseconds, shares in percent. Of results with several drives the same drives are
compared, by their --device. Of qualifications the same loads are compared.

examples:
  mqfair bench job.fio --repeat 5 --json before.json
  mqfair bench job.fio --repeat 5 --json after.json
  mqfair compare before.json after.json
  mqfair compare before.json after.json --csv changes.csv
"""

Document = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One figure in both results, with the values of all runs. @ratio is None if A is 0. @low
    and @high are None if there is no interval."""

    scheduler: str
    name: str
    a: tuple[float, ...]
    b: tuple[float, ...]
    ratio: float | None
    low: float | None
    high: float | None

    @property
    def verdict(self) -> str:
        if self.low is None or self.high is None:
            return "one run" if min(len(self.a), len(self.b)) < 2 else "no interval"
        if self.low > 1:
            return "more"
        return "less" if self.high < 1 else "no difference seen"


# --- statistics ------------------------------------------------------------------------------

_STEPS = 400
_ALMOST_0 = 1e-9


def _t_density(t: float, freedom: float) -> float:
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale -= 0.5 * math.log(freedom * math.pi)
    return math.exp(scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _t_above(t: float, freedom: float) -> float:
    """The probability above @t, by Simpson's rule over 0..1 of s, with x = t / s for the tail."""

    def slice_at(s: float) -> float:
        return _t_density(t / s, freedom) * t / (s * s)

    total = slice_at(_ALMOST_0) + slice_at(1)
    for step in range(1, _STEPS):
        total += (4 if step % 2 else 2) * slice_at(step / _STEPS)
    return total / (3 * _STEPS)


def t_quantile(confidence: float, freedom: float) -> float:
    """The t that a Student variable exceeds in absolute value with probability 1 - @confidence."""
    tail = (1 - confidence) / 2
    low, high = 0.1, 1.0
    while _t_above(high, freedom) > tail:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        if _t_above(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return high


def ratio_interval(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """The interval of B / A; None without two positive values on both sides, and where its end is
    greater than any number."""
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    logs = [[math.log(value) for value in values] for values in (a, b)]
    parts = [statistics.variance(values) / len(values) for values in logs]
    middle = statistics.mean(logs[1]) - statistics.mean(logs[0])
    spread = sum(parts)
    wide = 0.0
    if spread > 0:
        freedom = spread**2 / sum(
            part**2 / (len(values) - 1) for part, values in zip(parts, logs, strict=True)
        )
        wide = t_quantile(CONFIDENCE, freedom) * math.sqrt(spread)
    try:
        return math.exp(middle - wide), math.exp(middle + wide)
    except OverflowError:
        return None


def _ratio(a: Sequence[float], b: Sequence[float]) -> float | None:
    mean = statistics.geometric_mean if min(*a, *b) > 0 else statistics.mean
    ratio = mean(b) / mean(a) if mean(a) else math.inf
    return ratio if math.isfinite(ratio) else None


# --- results ---------------------------------------------------------------------------------


def load_benches(name: str) -> list[Document]:
    """The results in the file @name. Raises UsageError."""
    maker = f"`{MAKER}`"
    return benches_of(document_of(read_text(name, f"{maker} makes one"), name, maker))


def document_of(text: str, name: str, maker: str) -> Document:
    """The result of a bench, of several, or of a qualification, in the @text of the file @name.
    Raises UsageError for any other text; @maker is the command that makes a right one."""
    found = json_text.parse(text, name, f"{maker} makes it")
    schema = str(found.get("schema")) if isinstance(found, dict) else ""
    form = _form_of(schema)
    if form is None:
        raise UsageError(f"{name}: no result of mqfair bench ({plan.SCHEMA}): {maker} makes one")
    again = "qualify the drive again" if schema == QUALIFY_SCHEMA else "run the bench again"
    try:
        require(found, form)
    except WrongJsonError as error:
        raise UsageError(f"{name}: a damaged result: {error}: {again}") from error
    benches = benches_of(found)
    if not benches or not all(one["runs"] for one in benches):
        raise UsageError(f"{name}: has no finished run: {again}")
    return dict(found)


def _form_of(schema: str) -> Node | None:
    """The form of results of @schema; None for another document. Summaries and notes are not read
    here. The first form has no dues."""
    bench = tree(BY_NAME["bench"])
    del bench.children["summary"], bench.children["notes"]
    group = bench.children["runs"].children["[]"].children["cgroups"].children["[]"]
    for name in ("due", "backlogged"):
        group.children[name].optional = True
    if schema in (plan.SCHEMA, plan.FIRST_SCHEMA):
        return bench
    if schema not in _LISTS:
        return None
    several = tree(next(form for form in FORMS if form.schema == schema))
    several.children[_LISTS[schema]].children["[]"] = bench
    return several


def benches_of(found: Document) -> list[Document]:
    """The result of a bench, one for each drive, or for each load of a qualification."""
    several = _LISTS.get(found["schema"])
    return list(found[several]) if several else [found]


def names_of(benches: Sequence[Document]) -> list[str]:
    """What tells the results of one file apart: the load in a qualification, or else the drive."""
    of_loads = len({one["job"] for one in benches}) > 1
    return [one["job"] if of_loads else str(one["where"].get("device")) for one in benches]


def pairs_of(a: Sequence[Document], b: Sequence[Document]) -> list[tuple[Document, Document]]:
    """The results to compare: of the same name if @a or @b has several."""
    if len(a) == len(b) == 1:
        return [(a[0], b[0])]
    after = dict(zip(names_of(b), b, strict=True))
    return [(one, after[key]) for key, one in zip(names_of(a), a, strict=True) if key in after]


def figures_of(result: Document) -> dict[tuple[str, str], list[float]]:
    """The values of each figure in all runs, by scheduler and name."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in result["runs"]:
        for name, value in _of_run(run):
            found.setdefault((run["scheduler"], name), []).append(value)
    return found


def _of_run(run: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield "total IOPS", run["total_iops"]
    yield from per_io(run)
    worst = worst_met(run)
    if worst is not None:
        yield "worst of its due", worst
    if worst is None or all(group.get("backlogged") for group in run["cgroups"]):
        yield "Jain index", run["jain"]
    for group in run["cgroups"]:
        yield f"{group['name']} share %", 100 * group["share"]
        yield f"{group['name']} IOPS", group["iops"]
        for name in ("p50", "p99", "p999"):
            yield f"{group['name']} {name} ms", group["lat_ns"][name] / 1e6


def per_io(run: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The work of the processors for each request, in a run in which it was counted."""
    cpu = run.get("cpu", {})
    for name, words in _WORK.items():
        if cpu.get("ios") and name in cpu:
            yield f"{words} per I/O", cpu[name] / cpu["ios"]


def worst_met(run: Mapping[str, Any]) -> float | None:
    """The part of its due that the worst cgroup got. The first form of results lacks it."""
    known = [group for group in run["cgroups"] if group.get("due", 0) > LEAST_DUE]
    return min((group["share"] / group["due"] for group in known), default=None)


def compare(a: Document, b: Document, name: str = "") -> list[Figure]:
    """The figures that both results have, in the order of A. @name is put before the scheduler."""
    before, after = figures_of(a), figures_of(b)
    found = []
    for (scheduler, figure), values in before.items():
        others = after.get((scheduler, figure))
        if others:
            low, high = ratio_interval(values, others) or (None, None)
            label = f"{name} {scheduler}".lstrip()
            ratio = _ratio(values, others)
            found.append(Figure(label, figure, tuple(values), tuple(others), ratio, low, high))
    return found


def _schedulers(benches: Iterable[Document]) -> list[str]:
    return list(dict.fromkeys(run["scheduler"] for one in benches for run in one["runs"]))


def differences(a: Document, b: Document) -> list[str]:
    """Conditions that differ, so that the figures do not tell about the schedulers alone."""
    found = []
    if a["job"] != b["job"]:
        found.append(f"the jobs differ: {a['job']} and {b['job']}")
    keys = sorted({*a["where"], *b["where"]})
    for key in keys:
        was, now = a["where"].get(key), b["where"].get(key)
        if was != now:
            found.append(f"{key} differs: {_short(was)} and {_short(now)}")
    return found


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else text[:59] + "…"


# --- the verb --------------------------------------------------------------------------------


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("a", metavar="A", help="result of mqfair bench or qualify")
    parser.add_argument("b", metavar="B", help="the result to compare with it")
    parser.add_argument("--csv", metavar="FILE", help="write the figures to FILE; - for the output")
    add_json_argument(parser)


def _cells(figure: Figure) -> list[str]:
    interval = "-"
    if figure.low is not None and figure.high is not None:
        interval = f"{figure.low:.3f} .. {figure.high:.3f}"
    return [
        figure.scheduler,
        figure.name,
        f"{statistics.median(figure.a):.4g}",
        f"{statistics.median(figure.b):.4g}",
        "-" if figure.ratio is None else f"{figure.ratio:.3f}",
        interval,
        figure.verdict,
    ]


def _print_text(found: Sequence[Figure], notes: Sequence[str]) -> None:
    header = ("SCHEDULER", "FIGURE", "A", "B", "B/A", "95 %", "B HAS")
    colours = {"more": "yellow", "less": "yellow"}
    head, *lines = table(header, [_cells(figure) for figure in found], left=2)
    print(head)
    for line, figure in zip(lines, found, strict=True):
        colour = colours.get(figure.verdict)
        print(paint(line, colour) if colour else line)
    for text in notes:
        print(f"note: {text}")
    if any(figure.verdict == "one run" for figure in found):
        print("note: one run tells no difference from chance: use mqfair bench --repeat 5")


def _write_csv(name: str, found: Sequence[Figure]) -> None:
    with whole_output(name) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("scheduler", "figure", "a", "b", "ratio", "low", "high", "b_has"))
        for figure in found:
            middles = [statistics.median(figure.a), statistics.median(figure.b)]
            words = [figure.ratio, figure.low, figure.high, figure.verdict]
            writer.writerow([figure.scheduler, figure.name, *middles, *words])


def main(args: argparse.Namespace) -> int:
    require_writable("--csv", args.csv, (args.a, args.b))
    pairs = pairs_of(load_benches(args.a), load_benches(args.b))
    found: list[Figure] = []
    notes: list[str] = []
    drives = {a["where"].get("device") for a, _ in pairs}
    for (a, b), name in zip(pairs, names_of([a for a, _ in pairs]), strict=True):
        found += compare(a, b, name if len(pairs) > 1 else "")
        drive = name if len(drives) > 1 else ""
        notes += [f"{drive} {text}".lstrip() for text in differences(a, b)]
    # The loads of a qualification had the same machine.
    notes = list(dict.fromkeys(notes))
    if not pairs:
        raise UsageError(f"{args.a} and {args.b} have no drive in common: compare other results")
    if not found:
        names = [", ".join(_schedulers(side)) for side in zip(*pairs, strict=True)]
        raise UsageError(
            f"no scheduler in common: {args.a} has {names[0]}, and {args.b} has {names[1]}: run a"
            " bench with the --schedulers of the other"
        )
    if args.csv:
        _write_csv(args.csv, found)
    if args.json:
        lines = [{**asdict(figure), "b_has": figure.verdict} for figure in found]
        print_json({"schema": SCHEMA, "notes": notes, "figures": lines})
    elif args.csv != "-":
        _print_text(found, notes)
    return 0
