# SPDX-License-Identifier: GPL-2.0
"""The form of an entry: one number of a paper, the run that shows it here, and its bound.

The text of a paper states a number, or a relation in words. The bound of a relation is our reading
of it. A number of the text has a bound on both sides, 25 % if nothing else is said: another drive
and another host do not give the same number. No machine or bound is fitted to a result, and a job
to none but a row that is not judged for that. A bound that does not hold is a result, too. Its
reason is in the table, or the table says that no reason was found.
"""

from dataclasses import dataclass

from experiments.papers.sources import Read, Source

# A number of a paper was measured on another host and another drive.
OTHER_HOST = 0.25
UNKNOWN = "The reason was not found."


@dataclass(frozen=True)
class Bound:
    least: float | None = None
    most: float | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )

    def __str__(self) -> str:
        if self.least is None:
            return f"≤ {self.most:g}"
        if self.most is None:
            return f"≥ {self.least:g}"
        return f"{self.least:g} … {self.most:g}"


def least(value: float) -> Bound:
    return Bound(least=value)


def most(value: float) -> Bound:
    return Bound(most=value)


def near(value: float, part: float = OTHER_HOST) -> Bound:
    """Within @part of @value."""
    return Bound(value * (1 - part), value * (1 + part))


@dataclass(frozen=True)
class Entry:
    """@place is the paper's figure, @stated the number of its text or the relation in words.

    A number without a @bound is shown and not judged: it depends on the paper's drive, a job was
    fitted to it, or a scheduler that it is compared with is our reading of a few words."""

    name: str
    place: str
    what: str
    stated: float | str
    bound: Bound | None
    source: Source
    read: Read
    reason: str = UNKNOWN


@dataclass(frozen=True)
class Absent:
    """A figure that does not run here."""

    place: str
    what: str
    reason: str


@dataclass(frozen=True)
class Paper:
    """@scheduler is ours after the paper."""

    scheduler: str
    title: str
    entries: tuple[Entry, ...]
    absent: tuple[Absent, ...]
