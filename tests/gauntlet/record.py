# SPDX-License-Identifier: GPL-2.0
"""The verdicts of many scenes, in a file to which each scene adds a line, so that a run goes on.

The first line says of which program, judge and set of scenes they are. Each other line has the name
of a scene, and by scheduler the promises that are broken. `far` is among them if one is missed by
more than twice its bound.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from judge import Verdict

from mqfair.text.errors import Failure

COLUMNS = ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "any", "far")
Broken = Mapping[str, Sequence[str]]


def broken(verdicts: Iterable[Verdict]) -> dict[str, list[str]]:
    found = {}
    for verdict in verdicts:
        promises = sorted({fault.promise for fault in verdict.faults})
        far = ["far"] if any(fault.far for fault in verdict.faults) else []
        found[verdict.scheduler] = promises + far
    return found


class Record:
    """The verdicts in @path, of scenes in @scenes. Without a path they are in memory."""

    def __init__(self, path: Path | None, head: Mapping[str, object]) -> None:
        self._path = path
        self.scenes: dict[str, Broken] = {}
        if path is None:
            return
        if path.exists():
            found, self.scenes = read(path)
            if found != head:
                changed = ", ".join(name for name in head if found.get(name) != head[name])
                raise Failure(f"{path}: it has verdicts of another {changed}: name another file")
        else:
            path.write_text(json.dumps(head) + "\n")

    def add(self, name: str, verdicts: Iterable[Verdict]) -> None:
        self.scenes[name] = broken(verdicts)
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps([name, self.scenes[name]]) + "\n")


def read(path: Path) -> tuple[dict[str, object], dict[str, Broken]]:
    """The head of the file @path, and its scenes. A line that was cut off is no line."""
    head, *lines = path.read_text().splitlines()
    scenes = {}
    for line in lines:
        if line.endswith("}]"):
            name, found = json.loads(line)
            scenes[name] = found
    return json.loads(head), scenes


def counts(scenes: Mapping[str, Broken]) -> dict[str, collections.Counter[str]]:
    """The number of scenes that break each promise, by scheduler; `scenes` is that of all."""
    found: dict[str, collections.Counter[str]] = {}
    for one in scenes.values():
        for scheduler, promises in one.items():
            counter = found.setdefault(scheduler, collections.Counter())
            counter.update(promises)
            counter["any"] += any(promise != "far" for promise in promises)
            counter["scenes"] += 1
    return found


def table(scenes: Mapping[str, Broken]) -> str:
    lines = ["scheduler   scenes " + "".join(f"{column:>6}" for column in COLUMNS)]
    for name, counter in counts(scenes).items():
        cells = "".join(f"{counter[column]:6}" for column in COLUMNS)
        lines.append(f"{name:10} {counter['scenes']:7} {cells}")
    return "\n".join(lines)


def compared(before: Mapping[str, Broken], after: Mapping[str, Broken]) -> str:
    """A table in Markdown of the scenes that are in both."""
    both = [name for name in before if name in after]
    old, new = (counts({name: one[name] for name in both}) for one in (before, after))
    lines = [
        f"Of {len(both)} scenes so many break a promise, before and after:",
        "",
        "| scheduler | " + " | ".join(COLUMNS) + " |",
        "|---|" + "---|" * len(COLUMNS),
    ]
    for name in old:
        if name in new:
            cells = " | ".join(f"{old[name][c]} → {new[name][c]}" for c in COLUMNS)
            lines.append(f"| `{name}` | {cells} |")
    return "\n".join(lines)
