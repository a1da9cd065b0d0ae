# SPDX-License-Identifier: GPL-2.0
"""Tables of the documents.

The place of a table lies between the lines `<!-- NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
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


def check_places(path: Path, names: Iterable[str]) -> None:
    """Raises UsageError if the document @path has no place for one of @names. Before a long
    measurement an experiment calls it for the document that gets the tables."""
    if missing := sorted(set(names) - places(path.read_text())):
        raise UsageError(
            f"{path}: no place for {', '.join(missing)}: write the lines <!-- {missing[0]} --> and"
            " <!-- end --> there"
        )


def put(path: Path, tables: Mapping[str, str]) -> None:
    """Writes @tables, by name, into their places of the document @path. Raises UsageError if one is
    missing, and changes nothing then."""
    check_places(path, tables)
    path.write_text(filled(path.read_text(), tables))
