# SPDX-License-Identifier: GPL-2.0
"""The differences of the samples of a recording."""

from dataclasses import dataclass

from mqfair.watch import pressure
from mqfair.watch.recording import Recording
from mqfair.watch.sample import Total, Use, total, uses


@dataclass(frozen=True)
class Step:
    """The time between two samples of one drive. @at is its end, in seconds since the start."""

    at: float
    total: Total | None
    uses: dict[str, Use]


def steps(found: Recording, disk: str) -> list[Step]:
    steps = []
    for before, after in zip(found.samples, found.samples[1:], strict=False):
        if disk in before.disks and disk in after.disks:
            was, now = before.disks[disk], after.disks[disk]
            seconds = max(after.at - before.at, 1e-9)
            parts = pressure.parts(before.pressure, after.pressure, seconds)
            steps.append(Step(after.at, total(was, now, seconds), uses(was, now, seconds, parts)))
    return steps
