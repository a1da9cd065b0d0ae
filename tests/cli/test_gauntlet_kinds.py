# SPDX-License-Identifier: GPL-2.0
"""experiments/gauntlet_kinds.py: broken promises by kind of scene, without a run."""

from __future__ import annotations

from pathlib import Path

from experiments import gauntlet_kinds as kinds
from experiments import markdown

DOCUMENT = Path(__file__).resolve().parents[2] / "doc" / "isolation.md"


def test_a_promise_that_isolation_does_not_weigh_is_not_counted():
    known = {"0 mqfq": ["P2", "P7"], "1 mqfq": ["P7"], "1 wdt": ["P3"]}
    assert kinds.broken([0, 1, 2], "mqfq", known, kinds.WEIGHED) == 1
    assert kinds.broken([0, 1, 2], "mqfq", known, kinds.PROMISES) == 2


def test_every_kind_has_scenes_and_every_scene_a_drive():
    drawn = kinds.scenes()
    numbers = {name: sum(map(is_one, drawn.values())) for name, is_one in kinds.KINDS.items()}
    assert all(numbers.values())
    drives = ("flash, reads alone", "flash, with writes", "volume of 250 to 4,000 IOPS")
    assert sum(numbers[name] for name in drives) == numbers["all"] == len(drawn)


def test_the_known_promises_are_of_the_drawn_scenes():
    seeds = {name.split()[0] for name in kinds.known()}
    assert {int(seed) for seed in seeds if seed.isdecimal()} <= set(range(kinds.SCENES))


def test_the_tables_of_the_document_are_of_the_known_promises():
    text, tables = DOCUMENT.read_text(), kinds.tables()
    assert set(tables) <= markdown.places(text)
    assert markdown.filled(text, tables) == text, (
        "run python3 -m experiments.gauntlet_kinds --document doc/isolation.md"
    )
