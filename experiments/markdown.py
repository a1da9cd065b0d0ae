# SPDX-License-Identifier: GPL-2.0
"""Tables of the documents."""

from collections.abc import Sequence


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in text)
