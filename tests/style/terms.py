#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hold the number of terms that a reader must know, in all and for each file of C.

usage: tests/style/terms.py [FILE...]

A term is an entry in bold of doc/glossary.md. A file needs a term if a comment of it has the word,
or its plural. Prints a line for each count above its ceiling. With FILE, prints the terms of each
file instead. Exit status: 0 no count is above, 1 some are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from c_format import ROOT, tracked
from words import c_comments

# A ceiling is lowered when it can be, and never raised.
GLOSSARY = 120
FILE_TERMS = 31

ENTRY = re.compile(r"^(?:-|\d+\.) \*\*(.+?)\*\*", re.MULTILINE)


def terms() -> list[str]:
    return ENTRY.findall((ROOT / "doc/glossary.md").read_text(encoding="utf-8"))


def needed(text: str, glossary: list[str]) -> list[str]:
    """The terms of @glossary that the comments of @text use."""
    comments = " ".join(comment for _, comment in c_comments(text))
    flat = re.sub(r"\s*\n[\s*]*", " ", comments)
    return [term for term in glossary if re.search(rf"\b{re.escape(term)}s?\b", flat, re.I)]


def above(glossary: list[str], files: dict[str, str]) -> list[str]:
    """A message for each count that is above its ceiling. @files: text by name."""
    found = []
    if len(glossary) > GLOSSARY:
        found.append(
            f"doc/glossary.md: {len(glossary)} terms, {GLOSSARY} are allowed: use one of them"
        )
    for name, text in files.items():
        used = needed(text, glossary)
        if len(used) > FILE_TERMS:
            found.append(f"{name}: {len(used)} terms, {FILE_TERMS} are allowed: {', '.join(used)}")
    return found


def main(argv: list[str]) -> int:
    glossary = terms()
    files = {name: (ROOT / name).read_text(encoding="utf-8") for name in argv or tracked()}
    if argv:
        for name, text in files.items():
            used = needed(text, glossary)
            print(f"{name}: {len(used)} terms: {', '.join(used)}")
        return 0
    found = above(glossary, files)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
