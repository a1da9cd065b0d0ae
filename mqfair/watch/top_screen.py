# SPDX-License-Identifier: GPL-2.0
"""The live picture of `mqfair top`, on a terminal, with rich.

The terminal takes whole frames. Only lines that are visible are drawn, so a frame costs the same
for 50 cgroups and for 5000. Between two frames the program sleeps in poll(), until a key, a change
of the terminal's size or the next sample.
"""

import contextlib
import dataclasses
import os
import select
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.segment import Segment
from rich.style import Style

from mqfair.machine.signals import interrupted_once
from mqfair.text.output import printable
from mqfair.watch.drives import INTERVAL_LEAST_S, INTERVAL_MOST_S
from mqfair.watch.sample import Sample, Sampler
from mqfair.watch.top_lines import (
    LEGEND,
    PAST_MOST,
    SORTS,
    VIEWS,
    DiskView,
    Entry,
    Picked,
    Word,
    cells,
    drawn,
    entries,
    fit,
    fitting,
    met,
    narrowed,
    views,
)

# Weights change rarely; only those of parents are read, because io.stat has the others.
WEIGHTS_EVERY = 5
UNKNOWN_SIZE = (80, 24)
KEYS_HELP = (
    "q quit  space pause  s sort  r turn  v view  / filter  i idle  c collapse  C expand  tab drive"
    "  ? help"
)
KEYS_ACROSS = 4

# The sequences that terminals send, in both modes of their cursor keys.
_SEQUENCES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home",
    "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\x1b[Z": "back tab", "\t": "tab", "\r": "enter", "\n": "enter",
    "\x7f": "backspace", "\b": "backspace", "\x1b": "escape",
}  # fmt: skip
_ENDS = ("q", "Q", "\x03", "\x04")


def keys_of(text: str) -> Iterator[str]:
    """The keys in @text, which one read from a terminal returned."""
    while text:
        word = next(
            (one for one in sorted(_SEQUENCES, key=len, reverse=True) if text.startswith(one)),
            text[0],
        )
        text = text[len(word) :]
        yield _SEQUENCES.get(word, word)


class Screen:
    """The state of the picture: the lines that are picked, the drive, and the place in the list."""

    def __init__(self, sampler: Sampler, interval_s: float, picked: Picked, view: str) -> None:
        self._sampler = sampler
        self._interval_s = interval_s
        self.picked = picked
        self.view = view
        self.drive: int | None = None
        self.first = 0
        self.paused = False
        self.help = False
        self.typed: str | None = None
        self.ended = False
        self._samples = 0
        self._before: Sample = sampler.sample()
        self._views: list[DiskView] = []
        self._past: dict[str, deque[dict[str, float | None]]] = {}
        self._console = Console(highlight=False)
        self._styles: dict[str, Style] = {}

    # --- samples

    def step(self) -> None:
        """Takes a sample. While paused the picture stays, and the next one covers all the time."""
        if self.paused:
            return
        self._samples += 1
        if self._samples % WEIGHTS_EVERY == 0:
            self._sampler.forget_weights()
        after = self._sampler.sample()
        self._views = [self._remembered(one) for one in views(self._sampler, self._before, after)]
        self._before = after

    def _remembered(self, view: DiskView) -> DiskView:
        """@view with the past of its cgroups."""
        past = self._past.setdefault(view.disk.name, deque(maxlen=PAST_MOST))
        past.append(
            {line.use.cgroup: met(line.use) for line in view.lines(Picked()) if not line.own}
        )
        return dataclasses.replace(view, past=past)

    # --- keys

    def press(self, key: str) -> None:
        if self.typed is not None:
            self._type(key)
        elif key in _ENDS:
            self.ended = True
        elif self.help:
            self.help = False
        elif key == "?":
            self.help = True
        else:
            self._choose(key)

    def _type(self, key: str) -> None:
        """The line of the filter takes all keys until enter; escape gives up."""
        text = self.typed or ""
        if key in ("enter", "escape", "\x03"):
            if key == "enter":
                self.picked = dataclasses.replace(self.picked, pattern=text)
                self.first = 0
            self.typed = None
        elif key == "backspace":
            self.typed = text[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed = text + key

    def _choose(self, key: str) -> None:
        place = SORTS.index(self.picked.sort)
        if key == " ":
            self.paused = not self.paused
        elif key in ("s", "S"):
            step = 1 if key == "s" else -1
            sort = SORTS[(place + step) % len(SORTS)]
            self.picked = dataclasses.replace(self.picked, sort=sort, backwards=False)
        elif key == "r":
            self.picked = dataclasses.replace(self.picked, backwards=not self.picked.backwards)
        elif key == "i":
            self.picked = dataclasses.replace(self.picked, idle=not self.picked.idle)
        elif key in ("c", "C"):
            self._collapse(1 if key == "c" else -1)
        elif key == "v":
            names = list(VIEWS)
            self.view = names[(names.index(self.view) + 1) % len(names)]
        elif key == "/":
            self.typed = self.picked.pattern
        elif key in ("tab", "back tab"):
            self._turn_to(1 if key == "tab" else -1)
        elif key in ("+", "-"):
            factor = 2.0 if key == "+" else 0.5
            wished = self._interval_s * factor
            self._interval_s = min(max(wished, INTERVAL_LEAST_S), INTERVAL_MOST_S)
        else:
            self._scroll(key)

    def _shown(self) -> list[DiskView]:
        return self._views if self.drive is None else [self._views[self.drive]]

    def _collapse(self, step: int) -> None:
        """@step levels of the tree less."""
        every = dataclasses.replace(self.picked, levels=None)
        deepest = max(
            (one.depth + 1 for view in self._shown() for one in view.lines(every)), default=1
        )
        levels = max(min(self.picked.levels or deepest, deepest) - step, 1)
        self.picked = dataclasses.replace(self.picked, levels=levels if levels < deepest else None)
        self.first = 0

    def _turn_to(self, step: int) -> None:
        """All drives, then each alone."""
        places: list[int | None] = [None, *range(len(self._views))]
        self.drive = places[(places.index(self.drive) + step) % len(places)]
        self.first = 0

    def _scroll(self, key: str) -> None:
        page = max(self._size()[1] - 2, 1)
        steps = {"up": -1, "down": 1, "page up": -page, "page down": page}
        if key in steps:
            self.first = max(self.first + steps[key], 0)
        elif key == "home":
            self.first = 0
        elif key == "end":
            self.first = sys.maxsize

    # --- the picture

    def frame(self, width: int, height: int) -> list[list[Word]]:
        """@height lines of at most @width columns."""
        columns = fitting(self.view, width, past=True)
        narrow = narrowed(self._shown(), self.picked, columns, width)
        found = self._help() if self.help else self._entries(columns, narrow)
        room = max(height - 1, 1)
        self.first = max(min(self.first, len(found) - room), 0)
        visible = drawn(found[self.first : self.first + room], columns, narrow)
        visible += [[] for _ in range(room - len(visible))]
        return [*visible, self._foot(width, len(found) - self.first - room)]

    def _help(self) -> list[Entry]:
        words = KEYS_HELP.split("  ")
        rows = [words[at : at + KEYS_ACROSS] for at in range(0, len(words), KEYS_ACROSS)]
        keys = ["".join(f"{word:16}" for word in row).rstrip() for row in rows]
        lines = [*LEGEND.splitlines(), "", *keys, "", "any key: back"]
        return [[(line, "")] for line in lines]

    def _entries(self, columns: Sequence[str], width: int) -> list[Entry]:
        if not self._views:
            return [[(f"first picture in {self._interval_s:g} s", "dim")]]
        found: list[Entry] = []
        for view in self._shown():
            if found:
                found.append([])
            found += entries(view, self.picked, columns, width)
        return found

    def _foot(self, width: int, below: int) -> list[Word]:
        if self.typed is not None:
            return [(fit(f"filter: {self.typed}_", width), "reverse")]
        words = ["PAUSED"] if self.paused else []
        words.append(f"{self._interval_s:g} s")
        words.append(f"sort {self.picked.sort}{' turned' if self.picked.backwards else ''}")
        if self.picked.pattern:
            words.append(f"filter {printable(self.picked.pattern)}")
        if not self.picked.idle:
            words.append("busy only")
        if self.picked.levels is not None:
            words.append(f"levels {self.picked.levels}")
        if below > 0:
            words.append(f"{below} more below")
        return [(fit("  ".join([*words, "? help  q quit"]), width), "reverse")]

    def _draw(self) -> None:
        width, height = self._size()
        lines = [
            [Segment(text, self._style(style)) for text, style in _cut(words, width)]
            for words in self.frame(width, height)
        ]
        self._console.update_screen_lines(lines)

    def _size(self) -> tuple[int, int]:
        """The terminal's present size. rich prefers COLUMNS, which does not follow a change."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except (OSError, ValueError):
            return self._console.size
        # A serial line does not know its size.
        return size.columns or UNKNOWN_SIZE[0], size.lines or UNKNOWN_SIZE[1]

    def _style(self, text: str) -> Style:
        if text not in self._styles:
            self._styles[text] = Style.parse(text)
        return self._styles[text]

    # --- the loop

    def run(self) -> int:
        """Runs until a key or a signal ends it. The terminal is as before afterwards."""
        with (
            contextlib.suppress(KeyboardInterrupt),
            interrupted_once(),
            _wakes() as wakes,
            _keys_at_once(),
            self._console.screen(hide_cursor=True),
        ):
            self._loop(wakes)
        return 0

    def _loop(self, wakes: int) -> None:
        due = time.monotonic() + self._interval_s
        self._draw()
        while not self.ended:
            self._wait(wakes, due - time.monotonic())
            if time.monotonic() >= due:
                self.step()
                due = time.monotonic() + self._interval_s
            self._draw()

    def _wait(self, wakes: int, seconds: float) -> None:
        keyboard = sys.stdin.fileno()
        ready, _, _ = select.select([keyboard, wakes], [], [], max(seconds, 0))
        if wakes in ready:
            os.read(wakes, 64)
        if keyboard in ready:
            text = os.read(keyboard, 256).decode(errors="replace")
            self.ended = self.ended or not text
            for key in keys_of(text):
                self.press(key)


def _cut(words: Sequence[Word], width: int) -> Iterator[Word]:
    """The words in exactly @width columns, so that nothing of the frame before stays."""
    left = width
    for text, style in words:
        taken = cells(text)
        yield fit(text, left) if taken > left else text, style
        left = max(left - taken, 0)
        if left == 0:
            return
    yield " " * left, ""


@contextlib.contextmanager
def _keys_at_once() -> Iterator[None]:
    """Keys arrive one by one, without an echo."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _wakes() -> Iterator[int]:
    """A file that becomes readable when the terminal's size changes."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.signal(signal.SIGWINCH, lambda *_: None)
    descriptor = signal.set_wakeup_fd(writer)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(descriptor)
        signal.signal(signal.SIGWINCH, before)
        os.close(reader)
        os.close(writer)
