# SPDX-License-Identifier: GPL-2.0
"""The page doc/figures.md: the measured entries as tables."""

import statistics
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from experiments.markdown import lines
from experiments.papers.entry import Entry, Paper
from experiments.papers.sources import Values

HEAD = """\
# The figures of the papers

    python3 -m experiments.pages --make figures
    python3 -m experiments.papers mqfq.8.none mqfq.9
    python3 -m experiments.papers mqfq.5.sizes.none --show

The first command measures all figures and writes this page, in {minutes} minutes of one core. The
second measures two of them, and the third prints the job file of one. A name of the tables is an
argument of the command.

"Paper" is the number in the paper's text, or its words: pictures were not available. "Bound" is the
paper's number, or our reading of its words. "Ours" is the median over the seeds, with the least and
the greatest. A figure outside of its bound is bold. "Ratio" is ours over the paper's. "Seconds" are
those of one core for all runs of the jobs. Entries with the same jobs share them.

A number of the paper has a bound of 25 % on both sides, because its host and its drive were others,
and a tighter one where only the scheduler decides. A row without a bound is shown and not judged.
Either the number is the drive's, or a job was fitted to it, or the comparator is our reading of a
few words (MFAP). No drive was fitted to a figure of these pages, and no job to one that is judged.

In the simulator a request takes the CPU time of its scheduler, too
([simulator.md](simulator.md#a-host-with-prices)). `bwf2q` is the engine of BFQ, with BFQ's lock and
instructions.

{holds} of {judged} bounds hold.
"""
WIDTH = 100
COLUMNS = ("name", "figure", "quantity", "paper", "bound", "ours", "ratio", "seconds")


@dataclass(frozen=True)
class Measured:
    """@seconds are the processor time of the runs behind it."""

    entry: Entry
    values: Values
    seconds: float

    @property
    def seen(self) -> float:
        return statistics.median(self.values)

    @property
    def holds(self) -> bool:
        return self.entry.bound is None or self.entry.bound.holds(self.seen)

    @property
    def ratio(self) -> float | None:
        stated = self.entry.stated
        return None if isinstance(stated, str) else self.seen / stated

    def ours(self) -> str:
        """The median, and the extremes where they differ from it in print."""
        text = number(self.seen)
        extremes = [number(min(self.values)), number(max(self.values))]
        if set(extremes) != {text}:
            text += f" ({' … '.join(extremes)})"
        return text if self.holds else f"**{text}**"

    def cells(self, paper: Paper) -> list[str]:
        entry = self.entry
        stated = entry.stated if isinstance(entry.stated, str) else f"{entry.stated:g}"
        ratio = self.ratio
        return [
            f"`{full_name(paper, entry)}`",
            entry.place,
            entry.what,
            stated,
            "" if entry.bound is None else str(entry.bound),
            self.ours(),
            "" if ratio is None else f"{ratio:.2f}",
            f"{self.seconds:.0f}",
        ]


def full_name(paper: Paper, entry: Entry) -> str:
    return f"{paper.scheduler}.{entry.name}"


def number(value: float) -> str:
    """Four digits."""
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4g}"


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False)


def _named(measured: Sequence[Measured], text: Callable[[Measured], str]) -> Iterator[str]:
    """Each text once, after the names of the entries that have it."""
    for one in dict.fromkeys(map(text, measured)):
        names = [f"`{other.entry.name}`" for other in measured if text(other) == one]
        yield _item(f"{', '.join(names)}: {one}")


def section(paper: Paper, measured: Sequence[Measured]) -> str:
    text = [f"## {paper.scheduler}", "", textwrap.fill(f"{paper.title}.", WIDTH), ""]
    text += [lines(COLUMNS, [one.cells(paper) for one in measured])]
    text += ["Jobs and machines:", ""]
    text += [*_named(measured, lambda one: one.entry.source.words), ""]
    differ = [one for one in measured if not one.holds]
    if differ:
        text += ["Where ours differ:", ""]
        text += [*_named(differ, lambda one: one.entry.reason), ""]
    if paper.absent:
        text += ["Figures that do not run:", ""]
        rows = [(one.place, one.what, one.reason) for one in paper.absent]
        text += [lines(("figure", "quantity", "reason"), rows)]
    return "\n".join(text)


def page(papers: Sequence[tuple[Paper, Sequence[Measured]]]) -> str:
    every = {one.entry.source: one for _, measured in papers for one in measured}
    judged = [one for _, measured in papers for one in measured if one.entry.bound]
    head = HEAD.format(
        minutes=round(sum(one.seconds for one in every.values()) / 60),
        holds=sum(one.holds for one in judged),
        judged=len(judged),
    )
    return (
        "\n".join([head, *(section(paper, measured) for paper, measured in papers)]).rstrip() + "\n"
    )
