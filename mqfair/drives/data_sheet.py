# SPDX-License-Identifier: GPL-2.0
"""Figures of a drive from a small TOML file, such as those of a maker's data sheet.

    [[figure]]
    rw = "randread"     # randread, read, randwrite or write
    bs = "4k"
    depth = 64          # requests outstanding
    iops = 460_000      # or mb_per_s, latency_us (the mean) and p99_us

They are figures of the drive alone: no time of a host is in them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqfair.drives.figures import (
    BYTES_MOST,
    DEPTH_MOST,
    LATENCY,
    LOADS,
    P99,
    VALUE_MOST,
    WHATS,
    Figure,
    Load,
    size_of,
)
from mqfair.text import toml_text
from mqfair.text.errors import UsageError
from mqfair.text.output import nearest

_KEYS = ("rw", "bs", "depth", *WHATS)
# The depth of a figure that states none: enough to keep all planes of a drive busy.
_DEPTHS = {"randread": 256, "read": 32, "randwrite": 64, "write": 32}


def parse(text: str, path: str) -> list[Figure]:
    """The figures in @text, in order. Raises UsageError with file, line, value and mend."""
    table, lines = toml_text.parse(text, path, _check)
    return list(_Reader(path, lines).figures(table))


def _check(table: Mapping[str, Any]) -> None:
    """Raises UsageError for a wrong key or value in @table, in which other keys may be absent."""
    filled = dict(table)
    if isinstance(table.get("figure"), list):
        needed = {"rw": "read", "bs": "4k", "iops": 1}
        filled["figure"] = [needed | one for one in table["figure"]]
    list(_Reader("", ()).figures(filled))


@dataclass(frozen=True)
class _Reader:
    path: str
    lines: Sequence[str]

    def figures(self, table: Mapping[str, object]) -> Iterator[Figure]:
        for key in table:
            if key != "figure":
                mend = "write a table [[figure]] for each figure"
                raise UsageError(f"{self._place(-1, key)}: no key '{key}' of a data sheet: {mend}")
        tables = table.get("figure", [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            raise UsageError(f"{self._place(-1, 'figure')}: figure is no list: write [[figure]]")
        if not tables:
            raise UsageError(f"{self.path}: no figure: add a table [[figure]]")
        for index, one in enumerate(tables):
            yield from self._of(index, one)

    def _of(self, index: int, table: Mapping[str, object]) -> Iterator[Figure]:
        for key in table:
            if key not in _KEYS:
                mend = nearest(key, _KEYS) or f"use {', '.join(_KEYS)}"
                raise UsageError(
                    f"{self._place(index, key)}: '{key}' is no key of a figure: {mend}"
                )
        rw = table.get("rw")
        if not isinstance(rw, str) or rw not in LOADS:
            raise self._bad(index, "rw", rw, f"use one of {', '.join(LOADS)}, in quotes")
        size = size_of(str(table.get("bs")))
        if size is None or not isinstance(table["bs"], str | int):
            mend = f'use a text such as "4k": a multiple of 512, up to {BYTES_MOST >> 20}m'
            raise self._bad(index, "bs", table.get("bs"), mend)
        whats = [what for what in WHATS if what in table]
        if not whats:
            raise UsageError(
                f"{self._place(index, '')}: the figure has no value: add one of {', '.join(WHATS)}"
            )
        usual = 1 if set(whats) <= {LATENCY, P99} else _DEPTHS[rw]
        depth = table.get("depth", usual)
        if type(depth) is not int or not 1 <= depth <= DEPTH_MOST:
            raise self._bad(index, "depth", depth, f"use a whole number in 1..{DEPTH_MOST}")
        load = Load(rw, size, depth, jobs=1, host=False)
        for what in whats:
            value = table[what]
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self._bad(index, what, value, "use a number without quotes")
            if not 0 < value <= VALUE_MOST:
                raise self._bad(index, what, value, f"use a number above 0, up to {VALUE_MOST:g}")
            yield Figure(load, what, float(value), self._place(index, what))

    def _bad(self, index: int, key: str, value: object, mend: str) -> UsageError:
        if value is None:
            return UsageError(f"{self._place(index, '')}: the figure has no {key}: {mend}")
        return UsageError(f"{self._place(index, key)}: {key} = {toml_text.shown(value)}: {mend}")

    def _place(self, index: int, key: str) -> str:
        """File and line of @key in figure @index, or of its head; -1 is the whole file."""
        seen, found = -1, 0
        for number, line in enumerate(self.lines, 1):
            if index < 0 and re.match(rf"\s*\[*\s*{re.escape(key)}\s*[=\].]", line):
                return f"{self.path}:{number}"
            if re.match(r"\s*\[", line):
                seen += 1
                if seen == index:
                    found = number
            if (
                seen == index
                and key
                and re.search(rf"(?:^|[{{,\[])\s*{re.escape(key)}\s*[=\]]", line)
            ):
                return f"{self.path}:{number}"
        return f"{self.path}:{found}" if found else self.path
