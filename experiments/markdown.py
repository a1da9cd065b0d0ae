# SPDX-License-Identifier: GPL-2.0
"""Tables of the documents.

The place of a table lies between the lines `<!-- NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqfair.text.errors import UsageError

_PLACE = re.compile(r"(<!-- ([\w-]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in text)


def places(text: str) -> set[str]:
    """The names of the places in the document @text."""
    return {found[2] for found in _PLACE.finditer(text)}


def rows(text: str, name: str) -> list[list[str]]:
    """The cells of the table at the place @name of the document @text, without its head."""
    found = next(one[3] for one in _PLACE.finditer(text) if one[2] == name)
    return [
        [cell.strip() for cell in line.strip("| ").split(" | ")] for line in found.splitlines()[2:]
    ]


def filled(text: str, tables: Mapping[str, str]) -> str:
    """The document @text with @tables, by name, in their places. Other places stay as they are."""
    return _PLACE.sub(lambda m: f"{m[1]}{tables.get(m[2], m[3])}{m[4]}", text)


def put(path: Path, tables: Mapping[str, str]) -> None:
    """Writes @tables, by name, into their places of the document @path. Raises UsageError if one is
    missing, and changes nothing then."""
    old = path.read_text()
    if missing := sorted(set(tables) - places(old)):
        raise UsageError(f"{path}: no place for {', '.join(missing)}: write <!-- NAME --> there")
    path.write_text(filled(old, tables))
