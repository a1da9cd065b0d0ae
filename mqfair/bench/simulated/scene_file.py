# SPDX-License-Identifier: GPL-2.0
"""A scene: a description for sim-run (sim/describe.h) that leaves the scheduler to the command.

`make gauntlet` prints such files. The drive, the host, the cgroups and their loads are those of the
file. A scheduler in the file, its tunables, the seed and the series give way to those of the
command. So a file that sim-run plays is a scene, too.
"""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from mqfair.bench.jobfile import Group, Job, JobFile, Section
from mqfair.machine.cgroup import WEIGHT_DEFAULT
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.traces.replay import name_of

_REPLACED = ("scheduler", "set", "seed", "series", "audit")
_RUN_MS_DEFAULT = 1000


@dataclasses.dataclass(frozen=True)
class SceneFile(JobFile):
    """@lines are the statements, without comments and without those that the command replaces, on
    the lines of the file. @flows has the flow of each cgroup, by its path. Times are ms. @copies
    has the name of each trace in @lines, by its path."""

    lines: tuple[str, ...] = ()
    flows: Mapping[str, str] = dataclasses.field(default_factory=dict)
    warm_ms: int = 0
    run_ms: int = _RUN_MS_DEFAULT
    seed: int = 1
    copies: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def text(self, head: Sequence[str], chosen: Collection[str]) -> str:
        """The description with the statements @head, in which only the cgroups @chosen do I/O.
        @head comes last, so that a message of sim-run names a line of the file."""
        wanted = {self.flows[name] for name in chosen}
        # sim-run refuses the load of a flow that does not exist.
        quiet = {("load", flow) for flow in self.flows.values() if flow not in wanted}
        kept = ["" if tuple(line.split()[:2]) in quiet else line for line in self.lines]
        return "\n".join([*kept, *head]) + "\n"


def is_scene(path: str) -> bool:
    """Has the file @path a flow and no section?"""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    return bool(re.search(r"^\s*flow\s", text, re.M)) and not re.search(r"^\s*\[", text, re.M)


def load(path: str) -> SceneFile:
    """The scene in the file @path. Raises UsageError for one without loads. The first run finds
    other mistakes."""
    text = Path(path).read_text(encoding="utf-8-sig")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    statements = [line.split() for line in lines if line]
    flows: dict[str, str] = {}
    weights: dict[str, int] = {}
    for _, name, *words in (words for words in statements if words[0] == "flow" and words[1:]):
        values = dict(zip(words[::2], words[1::2], strict=False))
        parent = next((path for path, flow in flows.items() if flow == values.get("parent")), "")
        place = f"{parent}/{name}" if parent else name
        flows[place] = name
        weights[place] = _number(values.get("weight", ""), WEIGHT_DEFAULT)
    loaded = {words[1] for words in statements if words[0] == "load" and words[1:]}
    numbers = {words[0]: _number(words[1], 0) for words in statements if len(words) == 2}
    warm_ms, run_ms = numbers.get("warm_ms", 0), numbers.get("run_ms", _RUN_MS_DEFAULT)
    groups = tuple(
        Group(place, weights[place], (_job(name, run_ms),))
        for place, name in flows.items()
        if name in loaded
    )
    if not groups:
        raise UsageError(f"{path}: no load of a flow: add load FLOW depth N bytes N")
    copies: dict[str, str] = {}
    kept = tuple(_kept(line, f"{path}:{i}", copies) for i, line in enumerate(lines, start=1))
    seed = numbers.get("seed", 1)
    return SceneFile(
        path, groups, weights, warm_ms / 1000, (), (), kept, flows, warm_ms, run_ms, seed, copies
    )


def _kept(line: str, place: str, copies: dict[str, str]) -> str:
    """The @line of a scene at @place for sim-run: empty if the command replaces it. A trace gets
    the name of its copy, which is added to @copies by its path."""
    words = line.split()
    if not words or (words[0] in _REPLACED and not _is_wrong_seed(words)):
        return ""
    if words[0] == "load" and "trace" in words[2:-1]:
        where = words.index("trace", 2) + 1
        path = Path(place).parent / words[where]
        try:
            name = name_of(path)
        except OSError as error:
            raise UsageError(
                f"{place}: trace {words[where]}: {path}: {error.strerror}: name a trace of mqfair"
                " beside the scene"
            ) from error
        words[where] = copies[str(path)] = name
    return " ".join(words)


def _is_wrong_seed(words: Sequence[str]) -> bool:
    """Such a line stays, so that sim-run names it."""
    return words[0] == "seed" and not (len(words) == 2 and is_number(words[1], 0, (1 << 64) - 1))


def traces(scene: SceneFile) -> Iterator[str]:
    """The trace files that @scene replays."""
    return iter(scene.copies)


def _number(word: str, otherwise: int) -> int:
    return int(word) if is_number(word, 0, (1 << 64) - 1) else otherwise


def _job(name: str, run_ms: int) -> Job:
    return Job(name, (), run_ms / 1000, delayed=False, section=Section(name, 0, (), ()))
