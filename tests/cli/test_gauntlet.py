# SPDX-License-Identifier: GPL-2.0
"""The gauntlet: what is due, the drawing of scenes, the judge and the shrinking, without a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gauntlet"))

import draw  # noqa: E402
import judge  # noqa: E402
import shrink  # noqa: E402
from due import Node, due  # noqa: E402
from scene import Scene, Tenant  # noqa: E402

HOST = (
    ("queues", 2), ("sockets", 1), ("tags", 64), ("tag_maps", 1), ("sched_tags", 128),
    ("most_bytes", 0), ("wake_ns", 0), ("submit_ns", 0), ("complete_ns", 0),
)  # fmt: skip


def tenant(name: str, weight: int = 100, parent: str = "", **words: str | int) -> Tenant:
    load = {"depth": 8, "bytes": 4096, "write": 0, "queues": 2, **words}
    return Tenant(name, weight, parent, tuple(load.items()))


def scene(*tenants: Tenant) -> Scene:
    return Scene(("device 64 1000000 0",), HOST, tenants)


@pytest.mark.parametrize(
    ("nodes", "budget", "expected"),
    [
        # All get what they ask for.
        ([Node("a", 1, demand=10), Node("b", 9, demand=20)], 100, {"a": 10, "b": 20}),
        # By weight.
        ([Node("a", 100, demand=999), Node("b", 900, demand=999)], 100, {"a": 10, "b": 90}),
        # What a full tenant leaves goes to the others.
        ([Node("a", 900, demand=10), Node("b", 100, demand=999)], 100, {"a": 10, "b": 90}),
        # What a quiet child leaves stays with its sibling.
        (
            [
                Node("g", 900), Node("quiet", 50, "g", 10), Node("busy", 50, "g", 999),
                Node("light", 100, "", 999),
            ],
            100,
            {"quiet": 10, "busy": 80, "light": 10},
        ),
        # A unit of `dear` takes twice the drive's time: 2 * 30 + 30.
        ([Node("dear", 1, demand=99, price=2), Node("b", 1, demand=99)], 90, {"dear": 30, "b": 30}),
    ],
)  # fmt: skip
def test_due_is_the_water_level(nodes, budget, expected):
    assert due(nodes, budget) == pytest.approx(expected, rel=1e-6)


def test_a_seed_is_one_scene_and_seeds_differ():
    for drawn in (draw.draw, draw.held_back):
        texts = [drawn(seed).play_text("mqfq") for seed in range(50)]
        assert texts == [drawn(seed).play_text("mqfq") for seed in range(50)]
        assert len(set(texts)) == 50


EVERYWHERE = (
    "device ", "drive p3700", "drive p4500", "drive 980pro", "drive fabric", "drive own", "stall",
    "retime 2000", "retime 10\n", "parent", "write 1000", "sizes ", "think_us", "pace_ns",
    "arrivals random", "on_ms", "burst_ios", "order sequential", "time_scale", "discard 1",
    "urgent ", "move_ms", "start_ms", "stop_ms", "retime 100\n",
)  # fmt: skip
LISTED = (
    "weight 10000",
    "urgent 1000",
    "queues 64",
    "depth 512",
    "channels 16 dies 16",
    "channels 4 dies 1 ",
)
FREE = ("fetch ", "write_times ", "bytes 512-1024", "flow i weight", "queues 3")


@pytest.mark.parametrize(
    ("drawn", "words"), [(draw.draw, EVERYWHERE + LISTED), (draw.held_back, EVERYWHERE + FREE)]
)
def test_scenes_are_of_every_kind(drawn, words):
    texts = "\n".join(drawn(seed).play_text("none") for seed in range(1000))
    for word in words:
        assert word in texts, word


def test_held_back_numbers_are_in_the_same_ranges():
    rng = draw.FreeNumbers("a seed")
    found = [rng.number((0, 2000, 6000)) for _ in range(600)]
    assert 150 < found.count(0) < 250
    assert all(2000 <= number <= 6000 for number in found if number)
    assert len(set(found)) > 100


def test_a_tenant_alone_has_its_groups_and_no_others():
    text = scene(
        Tenant("g", 100), Tenant("h", 100), tenant("a", parent="g"), tenant("b", parent="h")
    )
    lines = text.play_text("none", only=["a"]).splitlines()
    assert [line for line in lines if line.startswith(("flow", "load"))] == [
        "flow g weight 100",
        "flow a weight 100 parent g",
        "load a depth 8 bytes 4096 write 0 queues 2",
    ]


class Rates:
    """A player of given rates in bytes per second: of each scheduler, alone and at saturation."""

    def __init__(self, alone: float, most: float, **shared: dict[str, float]) -> None:
        self._alone, self._most, self._shared = alone, most, shared

    def play(self, text: str) -> dict:
        names = [line.split()[1] for line in text.splitlines() if line.startswith("flow")]
        scheduler = text.split()[1]
        if len(names) == 1:
            rate = self._most if f"depth {judge.SATURATING}" in text else self._alone
            rates = {names[0]: rate}
        else:
            rates = self._shared["fixed" if "set isolation 0" in text else scheduler]
        flows = {
            name: {"bytes_per_s": rate, "backlog_permille": 1000, "cost": rate}
            for name, rate in rates.items()
        }
        return {"flows": flows, "totals": {"ticks_per_s": 10}}


EQUAL = {"a": 50e6, "b": 50e6}
UNEQUAL = {"a": 20e6, "b": 80e6}


@pytest.mark.parametrize(
    ("none", "mqfq", "fixed", "expected"),
    [
        (EQUAL, EQUAL, EQUAL, set()),
        (EQUAL, UNEQUAL, EQUAL, {"P1", "P2", "P6"}),
        # No fixed depth is better for tenant a. The costs are still not by weight.
        (EQUAL, UNEQUAL, UNEQUAL, {"P1"}),
        # A tenth of the drive is lost, and then a twentieth, and no tenant gains.
        (EQUAL, {"a": 45e6, "b": 45e6}, EQUAL, {"P3"}),
        (EQUAL, {"a": 47.5e6, "b": 47.5e6}, EQUAL, {"P3"}),
        # A twentieth is lost, and the worst tenant gains.
        (UNEQUAL, {"a": 47.5e6, "b": 47.5e6}, EQUAL, set()),
        # No fixed depth does more.
        (EQUAL, {"a": 30e6, "b": 30e6}, {"a": 30e6, "b": 30e6}, set()),
    ],
)
def test_the_judge_names_the_promise_that_is_broken(none, mqfq, fixed, expected):
    player = Rates(100e6, 100e6, none=none, mqfq=mqfq, fixed=fixed)
    both = scene(tenant("a"), tenant("b"))
    verdict = judge.judge(both, judge.know(both, player), "mqfq", player)
    assert {fault.promise for fault in verdict.faults} == expected


def test_one_request_more_or_less_is_no_robbery():
    """A tenant of weight 1 beside 10,000 is due less than a request in the measured time."""
    shared = {"a": 0.0, "b": 100e6}
    player = Rates(100e6, 100e6, none=shared, mqfq=shared, fixed=shared)
    both = scene(tenant("a", 1, bytes=1 << 20), tenant("b", 10000))
    found = judge.judge(both, judge.know(both, player), "mqfq", player)
    assert found.worst == 1.0


def test_a_scene_is_shrunk_to_the_tenants_and_words_that_matter():
    big = scene(
        *(tenant(f"t{n}", weight=500, think_us=50, depth=128) for n in range(6)),
        tenant("odd", weight=777, write=500, order="sequential", sizes="512/1,4096/1"),
    )

    def breaks(smaller: Scene) -> bool:
        words = {t.name: t.words for t in smaller.loaded}
        return "odd" in words and words["odd"]["write"] == 500 and len(words) > 1

    least = shrink.shrink(big, breaks)
    assert len(least.loaded) == 2
    odd = next(t for t in least.loaded if t.name == "odd")
    assert odd.weight == 100
    assert odd.words == {"depth": 1, "bytes": 4096, "write": 500, "queues": 2}
