# SPDX-License-Identifier: GPL-2.0
"""experiments/tutorial.py: the commands of doc/tutorial.md, and the parts of their outputs."""

from __future__ import annotations

import pytest
from conftest import ROOT

from experiments import markdown, tutorial
from mqfair.text.errors import Failure

OUTPUT = """\
j: one run

  scheduler   cgroup   p50
 ──────────────────────────
  none        a        1 µs

  mqfq        a        2 µs


  scheduler   worst cgroup
 ──────────────────────────
  none        a

where the limit is: part of the time

  scheduler   limit
 ───────────────────
  none        load

note: a kept few requests
"""


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("x-shares", "      scheduler   cgroup   p50", "      mqfq        a        2 µs"),
        ("x-depths", "      scheduler   worst cgroup", "      none        a"),
        ("x-limit", "    where the limit is: part of the time", "      none        load"),
    ],
)
def test_a_part_is_one_table(name, first, last):
    lines = tutorial.part(OUTPUT, name).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


def test_a_part_that_is_missing_is_named():
    with pytest.raises(Failure, match="the place x-limit: no line with 'where the limit'"):
        tutorial.part("nothing", "x-limit")


def test_each_place_of_the_page_belongs_to_a_command():
    text = (ROOT / "doc" / "tutorial.md").read_text()
    found = list(tutorial.commands(text))
    assert all(words[0] == "sim" and "\\" not in words for words, _ in found)
    places = [name for _, names in found for name in names]
    assert sorted(places) == sorted(markdown.places(text))
    pictures = [word for words, _ in found for word in words if word.endswith(".png")]
    assert [name for name in pictures if f"(tutorial-{name})" not in text] == []
