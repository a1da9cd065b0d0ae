#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Count the words that CONTRIBUTING.md rules out (L1), in comments and in documents.

usage: tests/style/words.py [--list] [--long] [--what] [FILE...]

Comments are those of C, Python (docstrings included), shell, make, Meson and TOML files. Documents
are Markdown files without code. Text in backquotes is not counted, so a rule can name its words.
Prints one line for each group, and fails when a rate is above its ceiling. Three more counts do not
fail: sentences of more than 25 words, table cells of more than 15, and places where "what" may
stand for a noun. Exit status: 0 below the ceilings, 1 above.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Words of L1 for each 1,000 words. A ceiling is lowered when it can be, and never raised.
CEILING = {"comments": 0.5, "documents": 0.5}
SENTENCE_WORDS = 25
CELL_WORDS = 15

RULED_OUT = re.compile(r"\b(?:who|whoever|whose|nobody|somebody|anybody)\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
TOKEN = re.compile(r"\S*[A-Za-z0-9]\S*")
HEADLESS = re.compile(r"\b(?:what|that which)\b", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'*]*\s+(?=[A-Z\"'(`*@\[]|[a-z]\w*(?:\(\)|[._]\w))")
CODE_SPAN = re.compile(r"``.+?``|`[^`]+`")
HASH_FILES = ("Makefile", "meson.build", "Kbuild", "meson_options.txt")
HASH_SUFFIXES = (".sh", ".toml", ".conf", ".yml")


@dataclass
class Paragraph:
    """Prose of one place, as (line number, text) pairs; a cell is one cell of a table."""

    lines: list[tuple[int, str]]
    prose: bool = True
    cell: bool = False

    @property
    def text(self) -> str:
        return CODE_SPAN.sub(" Code ", " ".join(text for _, text in self.lines))


@dataclass
class Count:
    words: int = 0
    ruled_out: list[tuple[str, int, str]] = field(default_factory=list)
    long: list[tuple[str, int, str]] = field(default_factory=list)
    headless: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return 1000 * len(self.ruled_out) / self.words if self.words else 0.0


def c_comments(text: str) -> Iterator[tuple[int, str]]:
    """First line and text of each comment of a C file, with its marks."""
    token = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)
    for match in token.finditer(text):
        if match[0].startswith("/"):
            yield text.count("\n", 0, match.start()) + 1, match[0]


def c_paragraphs(text: str) -> Iterator[Paragraph]:
    for first, comment in c_comments(text):
        body = re.sub(r"^/\*+|\*/$|^//", "", comment)
        lines = [
            (first + number, re.sub(r"^\s*\* ?", "", line) if number else line)
            for number, line in enumerate(body.split("\n"))
        ]
        yield from plain_paragraphs(lines)


def plain_paragraphs(lines: list[tuple[int, str]]) -> Iterator[Paragraph]:
    """Paragraphs of a comment. Lines that begin with a tab are an example or a table."""
    now: list[tuple[int, str]] = []
    for number, line in lines:
        example = line.startswith(("\t", "    ")) and bool(line.strip())
        item = re.match(r"\s*(?:[-*]|[A-Z]\d+|\(\w\)) ", line) is not None
        if now and (example or item or not line.strip()):
            yield Paragraph(now)
            now = []
        if example:
            yield Paragraph([(number, line)], prose=False)
        elif line.strip() and "SPDX-License-Identifier" not in line:
            now.append((number, line))
    if now:
        yield Paragraph(now)


def python_paragraphs(text: str) -> Iterator[Paragraph]:
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is None:
            continue
        constant = node.body[0].value  # type: ignore[attr-defined]
        lines = ast.get_docstring(node, clean=True).split("\n")
        yield from plain_paragraphs(list(enumerate(lines, constant.lineno)))
    comments = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            comments.append((token.start[0], token.string.lstrip("#").strip()))
    yield from runs(comments)


def runs(comments: list[tuple[int, str]]) -> Iterator[Paragraph]:
    """Comments on adjacent lines are one paragraph."""
    now: list[tuple[int, str]] = []
    for number, line in comments:
        if now and now[-1][0] != number - 1:
            yield from plain_paragraphs(now)
            now = []
        now.append((number, line))
    yield from plain_paragraphs(now)


def hash_paragraphs(text: str) -> Iterator[Paragraph]:
    comments = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"(?:\s*|.*\s)#(?!!)\s+(.*)$|[\w-]+:.*## (.*)$", line)
        if match:
            comments.append((number, match[1] or match[2] or ""))
    yield from runs(comments)


def markdown_paragraphs(text: str) -> Iterator[Paragraph]:
    now: list[tuple[int, str]] = []
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        code = fenced or line.startswith("```") or (line.startswith("    ") and not now)
        special = code or line.startswith(("|", "#")) or not line.strip()
        if now and (special or re.match(r"\s*(?:[-*]|\d+\.) ", line)):
            yield Paragraph(now)
            now = []
        if code or not line.strip() or re.fullmatch(r"[|\s:-]+", line):
            continue
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield Paragraph([(number, without_links(cell))], cell=True)
        elif line.startswith("#"):
            yield Paragraph([(number, line)], prose=False)
        else:
            now.append((number, without_links(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line))))
    if now:
        yield Paragraph(now)


def without_links(text: str) -> str:
    return re.sub(r"\]\([^)]*\)", "]", text)


def group_of(name: str) -> str | None:
    path = ROOT / name
    if name.endswith(".md"):
        return "documents"
    if name.endswith((".c", ".h", ".py")) or is_hash_file(path):
        return "comments"
    return None


def is_hash_file(path: Path) -> bool:
    if path.name in HASH_FILES or path.suffix in HASH_SUFFIXES:
        return True
    return not path.suffix and path.is_file() and first_line(path).endswith(("bash", "sh"))


def first_line(path: Path) -> str:
    with path.open("rb") as file:
        return file.readline(100).decode(errors="replace").strip()


def paragraphs(name: str) -> Iterator[Paragraph]:
    path = ROOT / name
    text = path.read_text()
    if name.endswith(".md"):
        return markdown_paragraphs(text)
    if name.endswith((".c", ".h")):
        return c_paragraphs(text)
    if name.endswith(".py") or "python" in first_line(path):
        return python_paragraphs(text)
    return hash_paragraphs(text)


def add(count: Count, name: str, paragraph: Paragraph) -> None:
    # A pair of backquotes may span two lines, so they are blanked in the whole paragraph.
    joined = "\n".join(text for _, text in paragraph.lines)
    joined = CODE_SPAN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), joined)
    for (number, _), text in zip(paragraph.lines, joined.split("\n"), strict=True):
        count.words += len(WORD.findall(text))
        count.ruled_out += [(name, number, m[0]) for m in RULED_OUT.finditer(text)]
    number = paragraph.lines[0][0]
    if paragraph.cell:
        length = len(TOKEN.findall(paragraph.text))
        if length > CELL_WORDS:
            count.long.append((name, number, f"cell of {length} words: {paragraph.text}"))
    elif paragraph.prose:
        for sentence in SENTENCE_END.split(paragraph.text):
            length = len(TOKEN.findall(sentence))
            if length > SENTENCE_WORDS:
                count.long.append((name, number, f"{length} words: {sentence}"))
            if HEADLESS.search(sentence) and not sentence.rstrip().endswith("?"):
                count.headless.append((name, number, sentence))


def tracked() -> list[str]:
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def count_files(names: list[str]) -> dict[str, Count]:
    counts = {group: Count() for group in CEILING}
    for name in names:
        group = group_of(name)
        if group is None and "python" in first_line(ROOT / name):
            group = "comments"
        if group is None:
            continue
        for paragraph in paragraphs(name):
            add(counts[group], name, paragraph)
    return counts


def show(places: list[tuple[str, int, str]]) -> None:
    for name, number, text in places:
        print(f"{name}:{number}: {' '.join(text.split())}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list each word that is ruled out")
    parser.add_argument("--long", action="store_true", help="list long sentences and cells")
    parser.add_argument("--what", action="store_true", help='list where "what" may be a noun')
    parser.add_argument("file", nargs="*", help="default: all files of the repository")
    arguments = parser.parse_args()
    counts = count_files([str(Path(name)) for name in arguments.file] or tracked())
    above = False
    for group, count in counts.items():
        if arguments.list:
            show(count.ruled_out)
        if arguments.long:
            show(count.long)
        if arguments.what:
            show(count.headless)
        print(
            f"{group}: {count.words} words, {len(count.ruled_out)} ruled out by L1: "
            f"{count.rate:.2f} per 1,000 (ceiling {CEILING[group]}); "
            f"{len(count.long)} long sentences or cells, {len(count.headless)} headless clauses"
        )
        above = above or count.rate > CEILING[group]
    if above:
        print("words.py: above the ceiling; --list shows the places", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
