# SPDX-License-Identifier: GPL-2.0
"""experiments/pages.py: a page with generated tables says whether it is older than its sources."""

from __future__ import annotations

import pytest
from conftest import ROOT

from experiments import pages, probe
from mqfair.text.errors import Failure

PAGE = pages.Page("p", "doc/p.md", "experiments.p", ("mqfq",), ("p/*.py",), quick=True)
TEXT = "# Title\n\nWords.\n"
NOW = {"sources": "11111111", "mqfq": "22222222"}
LATER = {**NOW, "mqfq": "33333333"}


def test_no_page_is_older_than_its_sources_without_saying_so():
    assert pages.look(mark=False) == []


def test_the_line_of_a_page_is_below_its_title_and_there_once():
    once = pages.stamped(TEXT, NOW)
    line = "<!-- made from: sources 11111111, mqfq 22222222 -->"
    assert once == f"# Title\n\n{line}\n\nWords.\n"
    assert pages.stamped(once, NOW) == once
    assert pages.made_from(pages.stamped(once, LATER)) == LATER


def test_a_page_without_a_line_is_wrong():
    assert "no line 'made from': run `python3 -m experiments.pages --make p`" in pages.wrong(
        PAGE, TEXT, NOW
    )


@pytest.mark.parametrize("part", NOW)
def test_a_page_of_other_sources_must_say_that_it_is_older(part):
    text = pages.stamped(TEXT, {**NOW, part: "33333333"})
    said = pages.wrong(PAGE, text, NOW)
    assert f"doc/p.md: older than its sources ({part} changed): run" in said
    assert "--make p`" in said
    older = pages.marked(text, True)
    assert pages.OLDER in older
    assert pages.wrong(PAGE, older, NOW) is None
    assert pages.marked(older, True) == older
    assert pages.marked(older, False) == text


def test_a_page_of_these_sources_must_not_say_that_it_is_older():
    text = pages.stamped(TEXT, NOW)
    assert pages.wrong(PAGE, text, NOW) is None
    assert "not older than its sources" in pages.wrong(PAGE, pages.marked(text, True), NOW)
    assert pages.OLDER not in pages.stamped(pages.marked(text, True), NOW)


def test_a_page_of_an_unknown_state_is_older_in_every_part():
    text = pages.stamped(TEXT, {})
    assert pages.made_from(text) == {}
    assert pages.changed(text, NOW) == list(NOW)
    assert pages.wrong(PAGE, pages.marked(text, True), NOW) is None


@pytest.mark.parametrize(
    ("name", "text", "same", "other"),
    [
        ("a.py", "x = 1\n", "# why\nx = 1\n\n", "x = 2\n"),
        ("a.c", "int a = 1;\n", "/* why\n * so */\nint a\t= 1; // b\n", "int a = 2;\n"),
        ("a.fio", "[a]\nbs=4k\n", "# why\n[a]\n; so\nbs=4k\n", "[a]\nbs=8k\n"),
    ],
)
def test_a_comment_of_a_source_makes_no_page_older(tmp_path, name, text, same, other):
    page = pages.Page("p", "doc/p.md", "experiments.p", (), (name,))

    def seen(one):
        (tmp_path / name).write_text(one)
        return pages.sources_of(page, tmp_path)

    assert seen(text) == seen(same)
    assert seen(text) != seen(other)


def test_a_pattern_without_a_file_is_named(tmp_path):
    with pytest.raises(Failure, match=r"no file p/\*.py: correct PAGES"):
        pages.sources_of(PAGE, tmp_path)


def test_the_tables_are_compared_without_the_time_that_they_took():
    figures = next(page for page in pages.PAGES if page.name == "figures")
    text = pages.stamped("# T\n\nmade in 4 minutes\n\n| `a` | 1.5 | 10 |\n", NOW)
    again = "# T\n\nmade in 5 minutes\n\n| `a` | 1.5 | 12 |\n"
    assert pages.differs(figures, text, again) is None
    said = pages.differs(figures, text, again.replace("1.5", "1.6"))
    assert "'| `a` | 1.5 ' is '| `a` | 1.6 ' when made anew" in said
    assert "is '' when" in pages.differs(figures, text, "# T\n\nmade in 5 minutes\n")


def test_each_page_has_a_place_and_parts_that_the_probe_has():
    known = {*pages.SIMULATED, probe.MACHINE}
    for page in pages.PAGES:
        assert (ROOT / page.path).is_file()
        assert set(page.parts) <= known


def test_a_figure_of_a_run_changes_the_hash_of_its_scheduler_alone(monkeypatch):
    before = probe.schedulers(("none", "mqfq"))
    monkeypatch.setattr(probe, "JOB", probe.JOB.replace("cgroup_weight=250", "cgroup_weight=251"))
    after = probe.schedulers(("none", "mqfq"))
    assert before["none"] == after["none"]
    assert before["mqfq"] != after["mqfq"]
