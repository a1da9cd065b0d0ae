#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hold .c files to 800 lines, and functions to 60.

usage: tests/style/length.py [FILE...]

Without FILE, all .c and .h files that git tracks are read. The lines of a function are those from
its type to its last brace. Prints a line for each file or function that is too long. Exit status: 0
none is, 1 some are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from c_format import ROOT, functions, tracked

FILE_LINES = 800
FUNCTION_LINES = 60

# Tests from before this check. A ceiling is lowered when it can be, and never raised.
CEILING = {
    "tests/unit/budget_protocol.c": 823,
    "tests/unit/mqfq.c": 1049,
}
CEILING_OF_FUNCTIONS = {
    "tests/flash/gc.c": 70,
    "tests/mt/budget.c": 65,
}


def too_long(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    most = CEILING.get(name, FILE_LINES)
    if name.endswith(".c") and lines > most:
        yield f"{name}: {lines} lines, {most} are allowed: split it by idea"
    most = CEILING_OF_FUNCTIONS.get(name, FUNCTION_LINES)
    for first, last in functions(text):
        if last - first + 1 > most:
            yield (
                f"{name}:{first}: {last - first + 1} lines in a function, {most} are allowed: "
                "split it"
            )


def main(argv: list[str]) -> int:
    found = [
        line
        for name in argv or tracked()
        for line in too_long(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
