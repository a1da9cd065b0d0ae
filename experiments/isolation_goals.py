# SPDX-License-Identifier: GPL-2.0
"""The goals of isolation, each with its measured figure and a verdict, from results.

A figure of several seeds is their median, and that of a curve their mean. A row has the least and
the greatest figure of all drives, cases and schedulers that the goal is about. A goal is met if the
figure at its bad end keeps the bound.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.isolation_curve import Curve, Point, front, on_curve, slowdown_at
from experiments.isolation_results import Seen
from experiments.isolation_run import ISOLATION, OURS
from mqfair.bench.variant import MQFQ, NONE

HEAD = ("goal", "bound", "measured", "")
RESULTS = (
    "first,variants,curve,against-curve,literature,host,writers,b,b-schedulers,full,visits,bursts,"
    "stall,storm,adversaries"
)
STRICT = "mqfq:isolation=25"
# The drive does this at the same slowdown of the reader, to a scheduler that knows each plane's
# queue: total / none and slowdown on the 980pro with random fill, by a simulation.
ORACLE: Curve = [(0.80, 1.77), (0.85, 1.89), (0.90, 2.14), (0.95, 2.71)]
# The depths of case B at which a tenant has too few requests for its part.
SHALLOW = ("B-depth8", "B-depth16", "B-depth32")
DEEP = ("B", "B-2to1", "B-100to1")

median = statistics.median


Panels = Sequence[Seen]


@dataclass(frozen=True)
class Row:
    """@least: the bound is a lower one. @digits are those of the figures."""

    name: str
    bound: float
    figures: Sequence[float]
    least: bool = False
    digits: int = 2

    @property
    def met(self) -> bool:
        if self.least:
            return min(self.figures) >= self.bound
        return max(self.figures) <= self.bound

    def cells(self) -> list[str]:
        low, high = (f"{one:.{self.digits}f}" for one in (min(self.figures), max(self.figures)))
        sign = "≥" if self.least else "≤"
        span = low if low == high else f"{low} to {high}"
        return [self.name, f"{sign} {self.bound:.3g}", span, "met" if self.met else "**missed**"]


def points(panels: Panels, labels: Sequence[str] = OURS) -> Iterator[Point]:
    """The points with @labels in @panels."""
    for one in panels:
        for label in labels:
            if label in one.points:
                yield one.points[label]


def totals(found: Iterator[Point]) -> list[float]:
    return [median(one.total) for one in found]


def p99s(found: Iterator[Point]) -> list[float]:
    return [median(one.p99_none) for one in found]


def parts(found: Iterator[Point]) -> list[float]:
    return [median(one.part) for one in found]


def of(panels: Panels, *, cases: Sequence[str] = (), window: str = "") -> list[Seen]:
    return [
        one
        for one in panels
        if (not cases or one.case in cases) and (not window or one.window == window)
    ]


def relative(panels: Panels) -> list[float]:
    """Slowdowns of the defaults, divided by those of the curve at the same total."""
    found = [on_curve(one.points[MQFQ], one.curve) for one in panels]
    return [one for one in found if one is not None]


def swept(panels: Panels) -> list[float]:
    """The same for each value of the tunable."""
    found = [
        on_curve(point, one.curve)
        for one in panels
        for point in one.points.values()
        if point.role == ISOLATION
    ]
    return [one for one in found if one is not None]


def beside(panels: Panels, curve: Panels, label: str) -> list[float]:
    """The slowdown of `mqfq` at the total of @label, divided by that of @label, on the drive that
    both results have."""
    found = []
    for one in panels:
        for other in of(curve, window=one.window):
            if other.drive != one.drive or label not in one.points:
                continue
            ours = [point.at for point in other.points.values() if point.role == ISOLATION]
            total, slowdown = one.points[label].at
            base = slowdown_at(front(ours), total)
            if base is not None:
                found.append(base / slowdown)
    return found


def of_none(panels: Panels) -> list[float]:
    return [median(one.points[MQFQ].slowdown) / median(one.points[NONE].slowdown) for one in panels]


def oracle(panels: Panels) -> list[float]:
    found = []
    for one in panels:
        if one.drive.startswith("980pro"):
            point = one.points[MQFQ]
            base = slowdown_at(ORACLE, max(median(point.total), ORACLE[0][0]))
            found.append(median(point.slowdown) / (base or 1.0))
    return found


def readers(seen: Mapping[str, Panels]) -> Iterator[Row]:
    every = [*seen["first"], *seen["variants"]]
    sweep = swept(seen["curve"])
    below = sum(one <= 0.95 for one in sweep) / len(sweep) if sweep else 0.0
    yield Row("`A`: total / none", 0.92, totals(points(seen["first"])), True, 3)
    asked = [median(one.requests) for one in points(seen["first"])]
    yield Row("the same in requests, price 6 %", 0.94, asked, True, 3)
    yield Row("its variants: total", 0.92, totals(points(seen["variants"])), True, 3)
    yield Row("`A`: slowdown / curve", 1.0, relative(seen["curve"]))
    variants = [one for one in seen["against-curve"] if one.case.startswith("A-")]
    yield Row("its variants: slowdown / curve", 1.0, relative(variants))
    yield Row("`A` and variants: p99 / none's", 0.2, p99s(points(every)))
    yield Row("`isolation` swept: slowdown / curve", 1.0, sweep)
    yield Row("the same: part of the points 5 % below", 0.5, [below], True)
    for label in ("iocost", "bwf2q"):
        found = beside(seen["literature"], seen["curve"], label)
        if found:
            yield Row(f"at the total of `{label}`: slowdown / its", 1.0, found)
    yield Row("map on the host: slowdown / oracle's", 1.1, oracle(seen["host"]))
    yield Row("beside writers: slowdown / none's", 1 / 3, of_none(seen["writers"]))
    yield Row("the same: total", 0.9, totals(points(seen["writers"], [MQFQ])), True, 3)


def deep_tenants(seen: Mapping[str, Panels]) -> Iterator[Row]:
    every = [point for one in seen["b"] for point in (one.points[MQFQ], one.points[STRICT])]
    line = [median(one.part) / median(one.by_count) for one in every if median(one.by_count)]
    strict = [f"{name}:isolation=25" for name in OURS]
    yield Row("`B`, variants: part / part by number", 0.99, line or [0.0], True)
    yield Row("the same: total", 0.88, totals(points(seen["b"], [MQFQ])), True, 3)
    yield Row("the same, `isolation=25`: total", 0.75, totals(points(seen["b"], [STRICT])), True, 3)
    for name, cases in (("`B`", DEEP[:1]), ("2 to 1, 100 to 1", DEEP[1:]), ("depth 8-32", SHALLOW)):
        some = of(seen["b"], cases=cases)
        yield Row(f"{name}: part / due", 0.6, parts(points(some, [MQFQ])), True)
        yield Row(f"{name}, `isolation=25`: part", 0.85, parts(points(some, [STRICT])), True)
    yield Row("`B`, each scheduler: total", 0.88, totals(points(seen["b-schedulers"])), True, 3)
    yield Row("the same: part / due", 0.6, parts(points(seen["b-schedulers"])), True)
    yield Row(
        "the same, `isolation=25`: part", 0.85, parts(points(seen["b-schedulers"], strict)), True
    )
    full = seen["full"]
    jain = [value for one in points(full, [MQFQ]) for value in one.jain]
    yield Row("no short tenant: Jain's index", 0.999, jain, True, 4)
    yield Row("the same: total", 0.99, totals(points(full, [MQFQ])), True, 3)


def changes(seen: Mapping[str, Panels]) -> Iterator[Row]:
    visits, bursts = seen["visits"], seen["bursts"]
    begins = [*of(visits, window="arrival"), *of(bursts, window="begin")]
    begins += of(bursts, cases=["bursts"], window="burst")
    yield Row("visits and bursts begin: total", 0.92, totals(points(begins, [MQFQ])), True, 3)
    yield Row(
        "20 latencies after a visit: total",
        0.99,
        totals(points(of(visits, window="return"), [MQFQ])),
        True,
        3,
    )
    yield Row(
        "30 ms after a burst: total",
        0.99,
        totals(points(of(bursts, window="after"), [MQFQ])),
        True,
        3,
    )
    later = [one for one in seen["stall"] if one.window != "before"]
    yield Row("stall, throttling: total", 0.92, totals(points(later, [MQFQ])), True, 3)
    for name, window, bound in (("in a storm", "storm", 0.9), ("after it", "calm", 0.92)):
        some = of(seen["storm"], window=window)
        yield Row(f"{name}: total", bound, totals(points(some, [MQFQ])), True, 3)
    foes = list(points(seen["adversaries"], [MQFQ]))
    yield Row("adversaries, each seed: total", 0.91, [min(one.total) for one in foes], True, 3)
    yield Row("the same: part / due", 1.0, [max(one.part) for one in foes])


def goals(*panels: Panels) -> list[list[str]]:
    """The rows of the table; @panels are the results of RESULTS in that order."""
    seen = dict(zip(RESULTS.split(","), panels, strict=True))
    rows = [*readers(seen), *deep_tenants(seen), *changes(seen)]
    return [row.cells() for row in rows if row.figures]
