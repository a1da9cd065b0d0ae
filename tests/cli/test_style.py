# SPDX-License-Identifier: GPL-2.0
"""tests/style/: the words that words.py sees as prose, and the lengths and terms allowed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from conftest import loaded


@pytest.fixture(scope="module")
def words() -> ModuleType:
    return loaded("tests/style/words.py", "words")


@pytest.fixture(scope="module")
def length() -> ModuleType:
    return loaded("tests/style/length.py", "length")


def counted(words: ModuleType, tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    counts = words.count_files([str(path)])
    return counts["documents" if name.endswith(".md") else "comments"]


def places(count) -> list[tuple[int, str]]:
    return [(number, word) for _, number, word in count.ruled_out]


C = '/* One line.\n * Nobody waits. */\nchar *s = "/* who */";\nchar c = \'"\'; // whose\n'
CODE = "Somebody said `who`.\n\n    who\n\n```\nwhoever\n```\n\n| a | whose |\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        # Comments are read, and strings are not.
        ("a.c", C, [(2, "Nobody"), (4, "whose")]),
        ("a.py", '"""Who calls."""\nx = "nobody"  # whoever\n', [(1, "Who"), (2, "whoever")]),
        ("a.sh", "#!/bin/sh\necho who # whose\n", [(2, "whose")]),
        # Code in Markdown is left out, also a span over two lines.
        ("a.md", CODE, [(1, "Somebody"), (9, "whose")]),
        ("a.md", "Words like `who\nnobody` are quoted.\n", []),
    ],
)
def test_prose_is_read_and_code_is_not(words, tmp_path, name, text, expected):
    assert sorted(places(counted(words, tmp_path, name, text))) == expected


def test_long_sentences_and_cells_are_counted(words, tmp_path):
    text = "word " * 26 + "end.\nShort.\n\n| " + "word " * 16 + "|\n"
    assert len(counted(words, tmp_path, "a.md", text).long) == 2


def test_a_headless_clause_is_counted_and_a_question_is_not(words, tmp_path):
    text = "What a hook asks for is done.\n\nWhat does it ask?\n"
    assert len(counted(words, tmp_path, "a.md", text).headless) == 1


def test_rate_is_for_1000_words(words, tmp_path):
    count = counted(words, tmp_path, "a.md", "who " + "word " * 99 + "\n")
    assert count.words == 100
    assert count.rate == 10


def test_a_file_of_801_lines_and_a_function_of_61_are_too_long(length):
    assert list(length.too_long("a.c", "\n" * 800)) == []
    assert len(list(length.too_long("a.c", "\n" * 801))) == 1
    assert list(length.too_long("a.h", "\n" * 801)) == []
    longest = "int f(void)\n{\n" + "\t;\n" * 57 + "}\n"
    assert list(length.too_long("a.c", longest)) == []
    (found,) = length.too_long("a.c", longest.replace("\t;\n", "\t;\n\t;\n", 1))
    assert found.startswith("a.c:1: 61 lines in a function")


def test_no_file_and_no_function_is_too_long(length):
    assert length.main([]) == 0


@pytest.fixture(scope="module")
def terms() -> ModuleType:
    return loaded("tests/style/terms.py", "terms")


def test_a_term_counts_once_for_a_file_and_only_in_its_comments(terms):
    text = "/* A start\n * tag of two flows. */\nint queue; /* a flow */\n"
    assert terms.needed(text, ["flow", "queue", "start tag", "tag of"]) == [
        "flow",
        "start tag",
        "tag of",
    ]


def test_too_many_terms_are_named(terms):
    many = [f"term{n}" for n in range(terms.FILE_TERMS + 1)]
    (found,) = terms.above(many, {"a.c": f"/* {' '.join(many)} */"})
    assert found.startswith(f"a.c: {len(many)} terms, {terms.FILE_TERMS} are allowed: term0, ")
    assert terms.above(many[1:], {"a.c": f"/* {' '.join(many[1:])} */"}) == []
    entries = [f"entry{n}" for n in range(terms.GLOSSARY + 1)]
    (found,) = terms.above(entries, {})
    assert found.startswith(f"doc/glossary.md: {len(entries)} terms")


def test_no_file_needs_too_many_terms(terms):
    assert terms.main([]) == 0
