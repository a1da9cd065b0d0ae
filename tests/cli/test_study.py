# SPDX-License-Identifier: GPL-2.0
"""experiments/study: dues, intervals, returns, knees and models, and the places of doc/study.md."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import ROOT

from experiments.markdown import places
from experiments.study import idle, league, price, scene, sensitivity
from experiments.study.scene import BURSTS, LIGHT, PRO_980, WEIGHTS, Figures, Flow, Player, Scene
from mqfair.drives import model_file

DOCUMENT = ROOT / "doc" / "study.md"


def figures(**series: tuple[int, ...]) -> Figures:
    """The bytes of a flow are the sum of its series."""
    return Figures(
        {name: Flow(1.0, float(sum(one)), 1.0, 1.0, one) for name, one in series.items()}, {}
    )


def test_a_due_is_the_weight_over_all_weights():
    assert [WEIGHTS.due(one.name) for one in WEIGHTS.tenants] == pytest.approx(
        [100 / 1850, 250 / 1850, 500 / 1850, 1000 / 1850]
    )


def test_the_worst_tenant_has_the_least_part_of_its_due():
    found = figures(w100=(100,), w250=(250,), w500=(400,), w1000=(1000,))
    assert found.worst(WEIGHTS) == pytest.approx(400 / 1750 / (500 / 1850))


def test_an_interval_is_that_of_student():
    found = scene.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3
    assert found.half == pytest.approx(2.776 * 1.5811 / 5**0.5, rel=1e-3)
    assert scene.interval([2.0, 2.0]).text(1) == "2.0"
    assert found.text(1) == "3.0 ± 2.0"


def burst(late_ms: int) -> Figures:
    """Four bursts of 100 ms; the subject has its due of 0.8 from @late_ms on in each."""
    own, other = [], []
    for ms in range(800):
        on = ms % 200 < 100
        has = on and ms % 200 >= late_ms
        own.append(80 if has else 10 if on else 0)
        other.append(20 if has else 90)
    return figures(returning=tuple(own), steady=tuple(other))


def test_a_return_ends_with_the_first_window_of_the_due():
    assert league.returns_ms(burst(0), BURSTS) == 0
    # A window of 5 ms has 0.9 of the due before all of its ms have the due.
    assert league.returns_ms(burst(30), BURSTS) == pytest.approx(30, abs=1)
    assert league.returns_ms(burst(100), BURSTS) is None


def test_a_knee_has_the_most_work_for_the_slowdown():
    curve = [
        price.Point(8, 0.5, 1.5, 1.5, 1.5),
        price.Point(16, 0.8, 2.0, 2.0, 2.0),
        price.Point(32, 1.0, 4.0, 4.0, 4.0),
    ]
    assert price.knee(curve).value == 16


def test_a_model_differs_in_one_number_and_is_sound():
    base = model_file.built_in("980pro")
    found = list(sensitivity.models())
    assert len({words for words, _ in found}) == len(found) >= 18
    for words, one in found:
        changed = [name for name, value in one.values.items() if value != base[name]]
        assert changed == [words.split()[0]]
        assert not list(model_file.wrong(one))


@pytest.fixture
def player(tmp_path, monkeypatch) -> Player:
    monkeypatch.setattr(scene, "KEPT", tmp_path)
    return Player()


SHORT = replace(WEIGHTS, warm_ms=50, run_ms=50)


def test_a_run_is_played_once_and_has_the_price_of_its_scheduler(player, tmp_path):
    first = player.play("mqfq:depth=64", SHORT, PRO_980)
    assert player.played == 1
    assert player.play("mqfq:depth=64", SHORT, PRO_980) == first
    assert player.played == 1
    assert len(list(tmp_path.glob("*.json"))) == 1
    assert first.worst(SHORT) > 0.8
    text = player._description("bwf2q", SHORT, PRO_980, 3)
    assert "seed 3\n" in text
    assert "locked_ns " in text
    assert "locked_ns " not in player._description("kyber", SHORT, PRO_980, 3)


def test_limits_divide_what_none_does(player):
    total = player.play("none", SHORT, PRO_980).bytes_per_s
    found = player.play("throttle", SHORT, PRO_980)
    # The heaviest needs more requests for its limit than it has.
    assert 0.75 * total < found.bytes_per_s < 1.01 * scene.LIMITED * total
    assert found.worst(SHORT) > 0.9


def test_a_drive_of_its_own_has_its_numbers(player):
    slow = model_file.built_in("980pro")
    slow = replace(slow, values={**slow.values, "read_ns": 4 * slow["read_ns"]})
    base = player.play("none", SHORT, PRO_980).bytes_per_s
    own = player.play("none", SHORT, scene.Drive("980pro", slow)).bytes_per_s
    assert own < 0.5 * base


def test_the_scenes_of_idleness_differ_in_the_size_of_the_large_tenant():
    for kib in idle.LARGE_KIB:
        one: Scene = idle.scene(kib)
        assert one.tenants[1].bytes == kib * 1024
        assert one.tenants[0] == scene.SIZES.tenants[0]
    assert LIGHT.tenants[0].depth == LIGHT.tenants[0].jobs == 1


def test_the_document_has_a_place_for_each_table():
    text = DOCUMENT.read_text()
    assert places(text) == {
        "study-league-980pro",
        "study-league-p4500",
        "study-cpu",
        "study-knees",
        "study-isolation",
        "study-idle",
        "study-threshold",
        "study-alpha",
        "study-history",
        "study-sensitivity",
        "study-warm",
    }
    prose = [line for line in text.splitlines() if not line.startswith(("|", "<!--", "    "))]
    assert len(" ".join(prose).split()) < 3500
