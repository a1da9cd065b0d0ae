# SPDX-License-Identifier: GPL-2.0
"""tests/style/words.py: which words it sees as prose, and which not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def words() -> ModuleType:
    import sys

    spec = importlib.util.spec_from_file_location("words", ROOT / "tests/style/words.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["words"] = module
    spec.loader.exec_module(module)
    return module


def counted(words: ModuleType, tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    counts = words.count_files([str(path)])
    return counts["documents" if name.endswith(".md") else "comments"]


def places(count) -> list[tuple[int, str]]:
    return [(number, word) for _, number, word in count.ruled_out]


def test_c_comments_are_read_and_strings_are_not(words, tmp_path):
    text = '/* One line.\n * Nobody waits. */\nchar *s = "/* who */";\nchar c = \'"\'; // whose\n'
    assert places(counted(words, tmp_path, "a.c", text)) == [(2, "Nobody"), (4, "whose")]


def test_python_docstrings_and_comments_are_read(words, tmp_path):
    text = '"""Who calls."""\nx = "nobody"  # whoever\n'
    found = places(counted(words, tmp_path, "a.py", text))
    assert sorted(found) == [(1, "Who"), (2, "whoever")]


def test_shell_comments_are_read(words, tmp_path):
    assert places(counted(words, tmp_path, "a.sh", "#!/bin/sh\necho who # whose\n")) == [
        (2, "whose")
    ]


def test_code_in_markdown_is_left_out(words, tmp_path):
    text = "Somebody said `who`.\n\n    who\n\n```\nwhoever\n```\n\n| a | whose |\n"
    assert places(counted(words, tmp_path, "a.md", text)) == [(1, "Somebody"), (9, "whose")]


def test_a_code_span_over_two_lines_is_left_out(words, tmp_path):
    assert places(counted(words, tmp_path, "a.md", "Words like `who\nnobody` are quoted.\n")) == []


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
