# SPDX-License-Identifier: GPL-2.0
"""The first table of a report: a row for each tenant, with its due, the share that it got, and
a verdict.

A tenant is a cgroup with I/O of its own. Its figures are means over the intervals in which the
drive did work.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from mqfair.report.compare import Document
from mqfair.report.steps import Step
from mqfair.watch.sample import DUE_MET, PPM, Use

# A tenant that is below its due for a smaller part of the time has its due.
BELOW_MOST = 0.1
HAS_DUE = "has its due"
BELOW = "below its due"
NO_IO = "no I/O"


@dataclass(frozen=True)
class Tenant:
    """One row. Shares are parts of the work, and latencies are in milliseconds. @below is the part
    of the intervals in which the tenant was below its due."""

    name: str
    weight: int
    due: float | None
    got: float
    p99_ms: float | None
    p99_worst_ms: float | None
    verdict: str
    below: float | None = None

    @property
    def met(self) -> float | None:
        return self.got / self.due if self.due else None

    @property
    def lacks(self) -> bool:
        return self.verdict.startswith(BELOW)


def _reason(lacking: Sequence[Use]) -> str:
    """The letters S and Q of `mqfair top` in words, by the larger part of @lacking."""
    short = sum(use.short_ms > 0 for use in lacking)
    if 2 * short >= len(lacking):
        return "others slow it in the drive"
    return "its requests wait outside"


def _verdict(due: float, got: float, lacking: Sequence[Use], intervals: int) -> str:
    if not due and not got:
        return NO_IO
    part = len(lacking) / intervals
    if got < DUE_MET * due and lacking:
        return f"{BELOW}: {_reason(lacking)}"
    if part > BELOW_MOST:
        return f"{BELOW} for {100 * part:.0f} % of the time: {_reason(lacking)}"
    return HAS_DUE


def _tenant(name: str, found: Sequence[Step]) -> Tenant:
    of_it = [step.uses[name] for step in found if name in step.uses]
    lacking = [use for use in of_it if use.lacks]
    due = sum(use.due_ppm for use in of_it) / PPM / len(found)
    got = sum(use.achieved_ppm for use in of_it) / PPM / len(found)
    p99 = [use.p99_us / 1000 for use in of_it if use.p99_us is not None]
    return Tenant(
        name,
        of_it[-1].weight,
        due,
        got,
        statistics.median(p99) if p99 else None,
        max(p99, default=None),
        _verdict(due, got, lacking, len(found)),
        len(lacking) / len(found),
    )


def of_steps(found: Sequence[Step]) -> list[Tenant]:
    """The tenants of a drive: those below their due first, then by what they got."""
    worked = [step for step in found if any(use.achieved_ppm for use in step.uses.values())]
    names = dict.fromkeys(name for step in worked for name in step.uses)
    tenants = [_tenant(name, worked) for name in names]
    return sorted(tenants, key=lambda one: (not one.lacks, -one.got, one.name))


def _of_group(name: str, groups: Sequence[Document]) -> Tenant:
    dues = [group["due"] for group in groups if group.get("due") is not None]
    due = statistics.median(dues) if dues else None
    got = statistics.median(group["share"] for group in groups)
    p99 = [group["lat_ns"]["p99"] / 1e6 for group in groups]
    verdict = "-" if due is None else BELOW if got < DUE_MET * due else HAS_DUE
    return Tenant(
        name, groups[0].get("weight", 0), due, got, statistics.median(p99), max(p99), verdict
    )


def of_runs(runs: Sequence[Document]) -> list[Tenant]:
    """The tenants of the runs of one scheduler, in the order of the job: medians of the runs."""
    names = dict.fromkeys(group["name"] for run in runs for group in run["cgroups"])
    return [
        _of_group(name, [one for run in runs for one in run["cgroups"] if one["name"] == name])
        for name in names
    ]


def headline(tenants: Sequence[Tenant]) -> str:
    """One sentence: the tenants that have their due, and the worst of those that have not."""
    judged = [one for one in tenants if one.verdict not in (NO_IO, "-")]
    if not judged:
        return "No tenant can be judged."
    lacking = [one for one in judged if one.lacks]
    if not lacking:
        return (
            "The one tenant has its due."
            if len(judged) == 1
            else (f"All {len(judged)} tenants have their due.")
        )
    verb = "is below its" if len(lacking) == 1 else "are below their"
    worst = min(lacking, key=lambda one: (one.met or 0.0, one.name))
    return (
        f"{len(lacking)} of {len(judged)} tenants {verb} due. The worst is {worst.name}: it got"
        f" {100 * worst.got:.1f} % of the work, and {100 * (worst.due or 0):.1f} % was due."
    )
