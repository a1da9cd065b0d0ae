# SPDX-License-Identifier: GPL-2.0
"""The picture of `mqfair top`: lines of styled words, for a terminal or as plain text."""

import functools
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mqfair.text.output import printable
from mqfair.watch import pressure
from mqfair.watch.pressure import Part
from mqfair.watch.sample import (
    DUE_MET,
    NO_PARTS,
    PPM,
    DiskSample,
    Line,
    Sample,
    Sampler,
    Total,
    Use,
    total,
    tree,
    uses,
)

NAME_LEAST = 20
NAME_MOST = 60
INDENT = "  "
# The intervals in the column of the past, and the heights of its bars.
PAST_MOST = 12
BARS = "▁▂▃▄▅▆▇█"

# A word with the name of a colour or "".
Word = tuple[str, str]


@dataclass(frozen=True)
class Column:
    """One column: its title, its width, its text, and the key by which lines are sorted."""

    title: str
    width: int
    text: Callable[[Use], str]
    key: Callable[[Use], float]


def count(number: float) -> str:
    """At most five characters: 999, 12.3k, 4.5M."""
    if number >= 1e7:
        return f"{number / 1e6:.1f}M" if number < 9.995e8 else f"{number / 1e6:.0f}M"
    if number >= 1e4:
        return f"{number / 1e3:.1f}k" if number < 9.995e5 else f"{number / 1e3:.0f}k"
    return f"{number:.0f}" if number >= 100 or number == 0 else f"{number:.1f}"


def duration(us: float | None) -> str:
    """At most five characters: 640u, 12.3m, 1.2s."""
    if us is None:
        return "-"
    if us < 1000:
        return f"{us:.0f}u"
    if us < 1e6:
        return f"{us / 1e3:.1f}m" if us < 99_950 else f"{us / 1e3:.0f}m"
    return f"{us / 1e6:.1f}s"


def share(ppm: int) -> str:
    return f"{100 * ppm / PPM:.1f}"


def mebibytes(number: float) -> str:
    scaled = number / (1 << 20)
    return f"{scaled:.1f}" if scaled < 1000 else f"{scaled:.0f}"


def requests(x100: int) -> str:
    return count(x100 / 100)


def slowdown(percent: int | None) -> str:
    return "-" if percent is None else f"{percent / 100:.1f}"


def pressed(ppm: int | None) -> str:
    return "-" if ppm is None else share(ppm)


def _or_0(value: float | None) -> float:
    return value or 0.0


def reason_of(use: Use) -> str:
    """A letter of LEGEND that tells why a cgroup has less than its due; empty if it has it."""
    return "S" if use.short_ms else "Q" if use.lacks else ""


COLUMNS = {
    "weight": Column("WGHT", 5, lambda use: str(use.weight), lambda use: use.weight),
    "due": Column("DUE%", 5, lambda use: share(use.due_ppm), lambda use: use.due_ppm),
    "achieved": Column("GOT%", 5, lambda use: share(use.achieved_ppm), lambda u: u.achieved_ppm),
    "iops": Column("IOPS", 5, lambda use: count(use.iops), lambda use: use.iops),
    "mib": Column("MiB/s", 6, lambda use: mebibytes(use.bytes_per_s), lambda use: use.bytes_per_s),
    "waiting": Column("Q", 5, lambda use: requests(use.waiting_x100), lambda use: use.waiting_x100),
    "inside": Column("IN", 5, lambda use: requests(use.inside_x100), lambda use: use.inside_x100),
    "wait": Column("WAIT", 5, lambda use: duration(use.wait_us), lambda use: _or_0(use.wait_us)),
    "service": Column(
        "SERV", 5, lambda use: duration(use.service_us), lambda use: _or_0(use.service_us)
    ),
    "p50": Column("P50", 5, lambda use: duration(use.p50_us), lambda use: _or_0(use.p50_us)),
    "p99": Column("P99", 5, lambda use: duration(use.p99_us), lambda use: _or_0(use.p99_us)),
    "slowdown": Column(
        "SLOW", 5, lambda use: slowdown(use.slowdown_percent),
        lambda use: _or_0(use.slowdown_percent),
    ),
    "pressure": Column(
        "PSI%", 5, lambda use: pressed(use.pressure_some_ppm),
        lambda use: _or_0(use.pressure_some_ppm),
    ),
    # The view has the text of this one: DiskView.bars().
    "past": Column("GOT/DUE PAST", PAST_MOST, lambda _: "", lambda _: 0),
    "short": Column("S", 1, reason_of, lambda use: use.short_ms),
}  # fmt: skip

PAST = "past"
# The columns that 80 columns have room for.
VIEWS = {
    "rates": ("weight", "due", "achieved", "iops", "waiting", "inside", "wait", "p99", "slowdown",
              "short"),
    "times": ("achieved", "waiting", "inside", "wait", "service", "p50", "p99", "slowdown",
              "pressure", "short"),
    PAST: ("weight", "due", "achieved", "iops", "mib", "waiting", "pressure", PAST, "short"),
}  # fmt: skip
# A wider terminal has these, too, the first one first.
MORE = ("pressure", "mib", "service", "p50", "iops", "due", "weight", "waiting", "inside", "wait",
        "p99", "slowdown", PAST)  # fmt: skip
NAME = "name"
SORTS = (
    "achieved",
    NAME,
    *(one for one in COLUMNS if one not in ("achieved", "short", PAST)),
    "short",
)

LEGEND = """\
WGHT  weight                           DUE%  share of the work that is due
GOT%  achieved share of the work done  IOPS  requests sent to the drive
Q     mean requests that wait outside  IN    mean requests in the drive
WAIT  mean wait outside                SERV  mean time in the drive
P50   median latency, last seconds     P99   the same, 99th percentile
SLOW  time in the drive / least known  S     why GOT% is below DUE%:
                                       S short: others slow it in the drive
                                       Q queued: its requests wait outside
PSI%  part of the time for which some task waited for I/O of any drive
GOT/DUE PAST  a bar for each interval, the last one right; full: all its due
+N            beside a name: N lines below it are hidden; it has their sums
"""


def fitting(view: str, width: int, *, past: bool = False) -> tuple[str, ...]:
    """The columns of @view, and others that leave room for names. The past needs @past."""
    chosen = set(VIEWS[view])
    for name in MORE:
        if name not in chosen and width - room((*chosen, name)) >= NAME_LEAST:
            chosen.add(name)
    return tuple(name for name in COLUMNS if name in chosen and (past or name != PAST))


def room(columns: Sequence[str]) -> int:
    return sum(COLUMNS[name].width + 1 for name in columns)


def cells(text: str) -> int:
    """The columns of a terminal that @text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells_of(one) for one in text)


@functools.lru_cache(maxsize=4096)
def _cells_of(one: str) -> int:
    if unicodedata.combining(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def fit(text: str, width: int) -> str:
    """@text in exactly @width columns; a longer one loses its end."""
    if cells(text) > width:
        kept = ""
        for one in text:
            if cells(kept) + _cells_of(one) > width - 1:
                break
            kept += one
        text = kept + "…"
    return text + " " * (width - cells(text))


def style_of(use: Use) -> str:
    if use.idle:
        return "dim"
    return "yellow" if use.lacks else ""


@dataclass(frozen=True)
class Picked:
    """The lines that are shown, and their order."""

    sort: str = SORTS[0]
    backwards: bool = False
    pattern: str = ""
    idle: bool = True
    levels: int | None = None

    def keeps(self, use: Use) -> bool:
        return self.pattern in use.cgroup and (self.idle or not use.idle)

    def key(self, use: Use) -> Any:
        """Names ascend and figures descend, unless the order is turned round."""
        if self.sort == NAME:
            return _Turned(use.cgroup) if self.backwards else use.cgroup
        value = COLUMNS[self.sort].key(use)
        return value if self.backwards else -value


def collapsed(lines: Sequence[Line], levels: int | None) -> list[Line]:
    """The first @levels of the tree. A label tells how many lines below it are left out."""
    if levels is None:
        return list(lines)
    kept: list[Line] = []
    hidden: dict[int, int] = {}
    for one in lines:
        if one.depth < levels:
            kept.append(one)
        else:
            hidden[len(kept) - 1] = hidden.get(len(kept) - 1, 0) + 1
    for place, count in hidden.items():
        kept[place] = replace(kept[place], label=f"{kept[place].label} +{count}")
    return kept


class _Turned(str):
    """A name that sorts behind those that it precedes."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)


@dataclass(frozen=True)
class DiskView:
    """One drive between two samples."""

    disk: DiskSample
    total: Total | None
    found: dict[str, Use]
    weight: Callable[[str], int] = field(repr=False)
    pressed: Mapping[str, Part] = field(default_factory=lambda: NO_PARTS)
    # The part of its due that each cgroup got, for each interval.
    past: Sequence[Mapping[str, float | None]] = ()
    # Trees of 500 cgroups that were asked for, because a picture needs the same one again.
    trees: dict[Picked, list[Line]] = field(default_factory=dict, repr=False, compare=False)

    def lines(self, picked: Picked) -> list[Line]:
        whole = picked if picked.levels is None else replace(picked, levels=None)
        if whole not in self.trees:
            self.trees[whole] = tree(self.found, self.weight, whole.key, whole.keeps, self.pressed)
        return collapsed(self.trees[whole], picked.levels)

    def bars(self, line: Line) -> str:
        """The past of the cgroup of @line. Its own processes have none."""
        parts = [None if line.own else one.get(line.use.cgroup) for one in self.past]
        return "".join(map(bar, parts))

    def head(self) -> list[list[Word]]:
        """Two lines: the drive with its total, and its depth, threshold and window."""
        disk = self.disk
        first: list[Word] = [(disk.name, "bold"), (f"  {disk.scheduler or 'gone'}", "cyan")]
        if self.total is not None:
            first.append(
                (
                    f"  {count(self.total.iops)} IOPS  {mebibytes(self.total.bytes_per_s)} MiB/s"
                    f"  {self.total.in_flight} in flight",
                    "",
                )
            )
        if not disk.ours:
            advice = f"mqfair enable {disk.name}" if disk.scheduler else "the drive was removed"
            return [first, [(f"  no mqfair scheduler: {advice}", "red")]]
        second = [f"D {disk.tunables['depth']}"] if "depth" in disk.tunables else []
        if "threshold_kb" in disk.tunables:
            number, *auto = disk.tunables["threshold_kb"].split()
            second.append(" ".join(["T", number, "KiB", *auto]))
        return [first, [("  " + "  ".join([*second, self._window()]), "")]]

    def _window(self) -> str:
        if self.disk.state is None:
            return "window unknown: debugfs is for root"
        size = self.disk.of_state("window")
        if size is None:
            return "window none"
        loss = (self.disk.of_state("isolation_loss_permille") or 0) / 10
        return f"window {size}, loss {loss:.1f} %"

    def as_dict(self) -> dict[str, object]:
        disk = self.disk
        return {
            "device": disk.name,
            "number": disk.number,
            "scheduler": disk.scheduler,
            "ours": disk.ours,
            "iops": self.total.iops if self.total else None,
            "bytes_per_s": self.total.bytes_per_s if self.total else None,
            "in_flight": self.total.in_flight if self.total else None,
            "depth": disk.tunables.get("depth"),
            "threshold_kb": disk.tunables.get("threshold_kb"),
            "window": disk.of_state("window"),
            "loss_permille": disk.of_state("isolation_loss_permille"),
            "met_ppm": disk.of_state("isolation_met_ppm"),
        }


def met(use: Use) -> float | None:
    """The part of its due that a cgroup got, at most all; None without a due or a request."""
    return min(use.achieved_ppm / use.due_ppm, 1.0) if use.due_ppm and not use.idle else None


def bar(part: float | None) -> str:
    """A full bar for a cgroup that has its due."""
    if part is None:
        return " "
    highest = len(BARS) - 1
    return BARS[highest if part >= DUE_MET else int(part / DUE_MET * highest)]


def views(sampler: Sampler, before: Sample, after: Sample) -> list[DiskView]:
    seconds = max(after.at - before.at, 1e-9)
    parts = pressure.parts(before.pressure, after.pressure, seconds)
    found = []
    for name, now in after.disks.items():
        was = before.disks.get(name, now)

        def weight(path: str, number: str | None = now.number) -> int:
            return sampler.weight(path, number)

        found.append(
            DiskView(now, total(was, now, seconds), uses(was, now, seconds, parts), weight, parts)
        )
    return found


def title(columns: Sequence[str], width: int, picked: Picked) -> list[Word]:
    words: list[Word] = [(fit("CGROUP", width), "reverse")]
    for name in columns:
        column = COLUMNS[name]
        style = "bold reverse" if name == picked.sort else "reverse"
        words.append((f" {column.title:>{column.width}}", style))
    return words


def row(view: DiskView, line: Line, columns: Sequence[str], width: int) -> list[Word]:
    use = line.use
    texts = [view.bars(line) if name == PAST else COLUMNS[name].text(use) for name in columns]
    figures = "".join(
        f" {text:>{COLUMNS[name].width}}" for name, text in zip(columns, texts, strict=True)
    )
    style = style_of(use)
    return [(fit(INDENT * line.depth + printable(line.label), width), style), (figures, style)]


def name_width(columns: Sequence[str], width: int) -> int:
    return min(max(width - room(columns), NAME_LEAST), NAME_MOST)


def narrowed(found: Sequence[DiskView], picked: Picked, columns: Sequence[str], width: int) -> int:
    """The width that the longest name in @found needs, so that figures stand beside the names."""
    longest = max(
        (
            len(INDENT) * one.depth + cells(one.label)
            for view in found
            for one in view.lines(picked)
        ),
        default=0,
    )
    return min(width, room(columns) + longest)


# A line of a picture that is drawn already, or one of the tree that is drawn if it is visible.
Entry = list[Word] | tuple[DiskView, Line]


def entries(view: DiskView, picked: Picked, columns: Sequence[str], width: int) -> list[Entry]:
    """The lines of one drive."""
    found: list[Entry] = [*view.head()]
    lines = view.lines(picked) if view.disk.ours else []
    if lines:
        found.append(title(columns, name_width(columns, width), picked))
        return [*found, *((view, line) for line in lines)]
    if view.disk.ours:
        why = "no cgroup matches" if view.found else "no cgroup has done I/O yet"
        found.append([(f"  {why}", "dim")])
    return found


def drawn(found: Sequence[Entry], columns: Sequence[str], width: int) -> list[list[Word]]:
    names = name_width(columns, width)
    return [row(*one, columns, names) if isinstance(one, tuple) else one for one in found]


def plain(lines: Sequence[Sequence[Word]]) -> list[str]:
    return ["".join(text for text, _ in words).rstrip() for words in lines]
