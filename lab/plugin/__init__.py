# SPDX-License-Identifier: GPL-2.0
"""Counts the instructions that a guest executes, by function.

tools = plugin.build()
spec = GuestSpec(cpus=1, icount=True, plugin=tools.argument(out / "counts"))
# The guest saves /proc/kallsyms and runs tools.mark after each section.
symbols = plugin.Symbols((out / "kallsyms").read_text())
sections = list(plugin.read_sections(out / "counts", symbols))
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lab.cache import locked
from lab.errors import LabError

_SOURCES = Path(__file__).resolve().parent
_BUILT = _SOURCES.parents[1] / "build" / "plugin"
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")

# Labels that share their address with a function.
_BOUNDARY = re.compile(r"(^_?|_)(start|end|begin|stext|etext|sinittext|array)(_|$)")
# Thunks with the same few instructions, one for each register.
_THUNK = re.compile(r"(__x86_indirect_(?:thunk|call_thunk|jump_thunk))_\w+$")


@dataclasses.dataclass(frozen=True)
class Tools:
    """@count is the plugin for the emulator, @mark the program for the guest."""

    count: Path
    mark: Path

    def argument(self, out: Path) -> str:
        """The value of GuestSpec.plugin that makes the plugin write its counts to @out."""
        return ",".join(_escape(str(word)) for word in (self.count, f"out={out.absolute()}"))


def _escape(text: str) -> str:
    return text.replace(",", ",,")


def build() -> Tools:
    """Compiles the plugin and the guest's program if their sources have changed. Raises LabError if
    the compiler fails or is missing."""
    tools = Tools(_BUILT / "count.so", _BUILT / "mark")
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise LabError(f"{compiler}: not found: install the package gcc, or set CC to a compiler")
    with locked(_BUILT / ".lock"):
        _compile(compiler, "count.c", tools.count, "-shared", "-fPIC", "-fvisibility=hidden")
        # The guest loads a single file if the program is static.
        _compile(compiler, "mark.c", tools.mark, "-static")
    return tools


def _compile(compiler: str, source: str, target: Path, *flags: str) -> None:
    newest = max(path.stat().st_mtime for path in _SOURCES.glob("*.[ch]"))
    if target.exists() and target.stat().st_mtime > newest:
        return
    argv = [compiler, *_FLAGS, *flags, "-o", str(target), str(_SOURCES / source)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{source}: {compiler} failed\n{done.stderr.strip()}")


class Function(NamedTuple):
    """A function of the guest's kernel; @module is empty for the kernel proper."""

    name: str
    module: str = ""


USER_SPACE = Function("(user space)")


@dataclasses.dataclass(frozen=True)
class Count:
    """The instructions executed in a function, without its callees, the calls of it, and the locked
    ones of the instructions."""

    instructions: float = 0
    entries: float = 0
    locked: float = 0

    def __sub__(self, other: Count) -> Count:
        return Count(
            self.instructions - other.instructions,
            self.entries - other.entries,
            self.locked - other.locked,
        )

    def __truediv__(self, by: float) -> Count:
        return Count(self.instructions / by, self.entries / by, self.locked / by)


Profile = Mapping[Function, Count]


class Symbols:
    """Finds the function at an address, by the guest's /proc/kallsyms."""

    def __init__(self, kallsyms: str) -> None:
        at: dict[int, Function] = {}
        for line in kallsyms.splitlines():
            address, kind, name, *module = line.split()
            if kind not in "tTwW":
                continue
            start = int(address, 16)
            function = Function(name, module[0].strip("[]") if module else "")
            at[start] = min(at.get(start, function), function, key=_preference)
        if not at or max(at) == 0:
            raise LabError("kallsyms has no addresses: set kernel.kptr_restrict=0 in the guest")
        self._starts = sorted(at)
        self._functions = [_folded(at[start]) for start in self._starts]
        self.find = functools.cache(self._find)

    def _find(self, address: int) -> tuple[Function, bool]:
        """The function at @address, and whether @address is its first."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index < 0:
            return Function(f"{address:#x}"), False
        return self._functions[index], self._starts[index] == address


def _preference(function: Function) -> tuple[bool, int, str]:
    return _BOUNDARY.search(function.name) is not None, len(function.name), function.name


def _folded(function: Function) -> Function:
    match = _THUNK.match(function.name)
    return Function(f"{match.group(1)}_*", function.module) if match else function


def read_sections(counts: Path, symbols: Symbols) -> Iterator[Profile]:
    """The sections in the plugin's file @counts, one profile each. A section lasts from one mark to
    the next."""
    with counts.open() as lines:
        for _, section in itertools.groupby(lines, key=_Sections()):
            yield _profile(section, symbols)


class _Sections:
    """The number of the section that a line belongs to."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, line: str) -> int:
        self._number += line.startswith("section")
        return self._number


def _profile(lines: Iterable[str], symbols: Symbols) -> Profile:
    # A file has millions of lines, so numbers are summed before objects are made.
    sums: dict[Function, list[int]] = {}
    for line in lines:
        words = line.split()
        if words[0] == "section":
            continue
        if words[0] == "user":
            sums[USER_SPACE] = [int(words[1]), 0, 0]
            continue
        length, locked, times = (int(word) for word in words[1:])
        function, is_start = symbols.find(int(words[0], 16))
        total = sums.setdefault(function, [0, 0, 0])
        total[0] += length * times
        total[1] += times * is_start
        total[2] += locked * times
    return {function: Count(*total) for function, total in sums.items()}
