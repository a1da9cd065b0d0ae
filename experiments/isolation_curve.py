# SPDX-License-Identifier: GPL-2.0
"""The figures of experiments.isolation: points, curves and goals. Every function here is pure.

A *point* is one setting in one window of one case on one drive. The *curve* is the least slowdown
that a fixed depth has at a given total, from a sweep in the same experiment.
"""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from experiments.isolation_cases import Case, Goal
from experiments.isolation_run import DEPTH, Figures, Rates


@dataclass(frozen=True)
class Point:
    """One value for each seed in every list.

    @total: bytes per second / none's, and @requests: the same of requests. @slowdown: IOPS of the
    subject alone / shared, or the mean time of a request shared / alone if it pauses after each.
    @p99_ms: of the subject, and @p99_none: / none's. @part: of the subject in all bytes / its due
    part by weight. @by_count: the part that the subject's requests are of all in the drive, / the
    due part. @jain: Jain's index of the bytes, relative to the weights.
    """

    label: str
    role: str
    total: tuple[float, ...]
    requests: tuple[float, ...]
    slowdown: tuple[float, ...]
    p99_ms: tuple[float, ...]
    p99_none: tuple[float, ...]
    part: tuple[float, ...]
    by_count: tuple[float, ...]
    jain: tuple[float, ...]

    @property
    def at(self) -> tuple[float, float]:
        return statistics.fmean(self.total), statistics.fmean(self.slowdown)


def jain(values: Sequence[float]) -> float:
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def _over(value: float, base: float) -> float:
    return value / base if base else float("inf")


def due_part(case: Case) -> float:
    return case.subject.weight / sum(tenant.weight for tenant in case.tenants)


def _part(case: Case, shared: Figures) -> float:
    return _over(shared.tenants[case.subject.name].bytes_per_s, shared.bytes_per_s)


def _by_count(case: Case, shared: Figures) -> float:
    """The part by requests in the drive. It is that of the bytes if all requests are alike."""
    return _over(
        shared.tenants[case.subject.name].inside,
        sum(one.inside for one in shared.tenants.values()),
    )


def _jain(case: Case, shared: Figures) -> float:
    return jain([shared.tenants[one.name].bytes_per_s / one.weight for one in case.tenants])


def _slowdown(case: Case, shared: Rates, alone: Rates) -> float:
    """A tenant that pauses after each request spends most of its time in the pauses."""
    if case.subject.think_us:
        return _over(shared.mean_ns, alone.mean_ns)
    return _over(alone.iops, shared.iops)


def point(
    case: Case,
    name: tuple[str, str],
    shared: Sequence[Figures],
    *,
    none: Sequence[Figures],
    alone: Sequence[Figures],
) -> Point:
    """The point of a setting, which has the label and the role of @name. Each sequence has the
    figures of every seed, in the same order."""
    subject = case.subject.name
    subjects = [one.tenants[subject] for one in shared]
    nones = [one.tenants[subject] for one in none]
    alones = [one.tenants[subject] for one in alone]
    due = due_part(case)
    return Point(
        *name,
        total=tuple(
            one.bytes_per_s / base.bytes_per_s for one, base in zip(shared, none, strict=True)
        ),
        requests=tuple(one.iops / base.iops for one, base in zip(shared, none, strict=True)),
        slowdown=tuple(
            _slowdown(case, one, base) for one, base in zip(subjects, alones, strict=True)
        ),
        p99_ms=tuple(one.p99_ns / 1e6 for one in subjects),
        p99_none=tuple(
            _over(one.p99_ns, base.p99_ns) for one, base in zip(subjects, nones, strict=True)
        ),
        part=tuple(_part(case, one) / due for one in shared),
        by_count=tuple(_by_count(case, one) / due for one in shared),
        jain=tuple(_jain(case, one) for one in shared),
    )


# ---------------------------------------------------------------------- the curve

Curve = list[tuple[float, float]]

# The totals of a saturated drive differ by as much between two seeds.
SAME_TOTAL = 0.003


def front(points: Sequence[tuple[float, float]]) -> Curve:
    """The (total, slowdown) pairs of @points that no other pair beats in both, by rising total. A
    total counts as greater if it is greater by more than SAME_TOTAL: less is chance."""
    best: Curve = []
    for total, slowdown in sorted(points, key=lambda one: (one[1], -one[0])):
        if not best or total > best[-1][0] + SAME_TOTAL:
            best.append((total, slowdown))
    return best


def slowdown_at(curve: Curve, total: float) -> float | None:
    """The curve's slowdown at @total, interpolated linearly. None below the least total. Above the
    greatest total it is the slowdown there, because no depth reaches @total."""
    if not curve or total < curve[0][0]:
        return None
    for (low, below), (high, above) in itertools.pairwise(curve):
        if total <= high:
            return below + (above - below) * (total - low) / (high - low)
    return curve[-1][1]


def curve_of(points: Sequence[Point]) -> Curve:
    """The curve of the points with the role DEPTH."""
    return front([one.at for one in points if one.role == DEPTH])


def on_curve(point_: Point, curve: Curve) -> float | None:
    """The slowdown of @point_ / that of @curve at the same total."""
    total, slowdown = point_.at
    base = slowdown_at(curve, total)
    return slowdown / base if base else None


def spread(values: Sequence[float]) -> float:
    """The distance of the greatest from the least value, relative to their mean."""
    middle = statistics.fmean(values)
    return (max(values) - min(values)) / middle if 0 < middle < float("inf") else 0.0


# ---------------------------------------------------------------------- the table

HEAD = (
    "setting",
    "total/none",
    "slowdown",
    "spread",
    "curve",
    "/curve",
    "p99 ms",
    "p99/none",
    "part/due",
    "by count",
    "Jain",
)


def _cell(value: float | None, digits: int = 2) -> str:
    return "-" if value is None or value == float("inf") else f"{value:.{digits}f}"


def row(one: Point, curve: Curve) -> list[str]:
    total, slowdown = one.at
    mean = statistics.fmean
    return [
        one.label,
        _cell(total, 3),
        _cell(slowdown),
        f"{spread(one.slowdown) * 100:.0f} %",
        _cell(slowdown_at(curve, total)),
        _cell(on_curve(one, curve)),
        _cell(mean(one.p99_ms)),
        _cell(mean(one.p99_none)),
        _cell(mean(one.part)),
        _cell(mean(one.by_count)),
        _cell(mean(one.jain), 4),
    ]


# ---------------------------------------------------------------------- the goals


@dataclass(frozen=True)
class Verdict:
    what: str
    must: str
    seen: float
    holds: bool

    def __str__(self) -> str:
        state = "holds" if self.holds else "FAILS"
        return f"{state:6} {self.what:18} must be {self.must:8} is {self.seen:.3f}"


def judge(goal: Goal, one: Point, none: Point, curve: Curve) -> Iterator[Verdict]:
    """The verdicts on @one, by the bounds of @goal; @none is the point of none."""
    mean = statistics.fmean
    total, slowdown = one.at
    figures: Mapping[str, tuple[float | None, float | None, bool]] = {
        "total / none": (goal.total, total, True),
        "slowdown / curve": (goal.curve, on_curve(one, curve), False),
        "p99 / none": (goal.p99, mean(one.p99_none), False),
        "slowdown / none": (goal.none, slowdown / none.at[1], False),
        "part / due": (goal.part, mean(one.part), True),
        "part / due, most": (goal.most_part, mean(one.part), False),
        "Jain": (goal.jain, mean(one.jain), True),
    }
    for what, (bound, seen, least) in figures.items():
        if bound is None or seen is None:
            continue
        holds = seen >= bound if least else seen <= bound
        yield Verdict(what, f"{'>=' if least else '<='} {bound:.3g}", seen, holds)
