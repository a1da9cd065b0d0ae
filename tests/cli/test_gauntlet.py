# SPDX-License-Identifier: GPL-2.0
"""The gauntlet: what is due, the drawing of scenes, the judge and the shrinking, without a run."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/gauntlet"))

import draw  # noqa: E402
import guest  # noqa: E402
import judge  # noqa: E402
import record  # noqa: E402
import shrink  # noqa: E402
from due import Node, due  # noqa: E402
from scene import Scene, Tenant, parse  # noqa: E402

from mqfair.text.errors import Failure  # noqa: E402

SPEC = importlib.util.spec_from_file_location("gauntlet", ROOT / "tests/gauntlet/__main__.py")
command = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(command)

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
    "urgent ", "move_ms", "start_ms", "stop_ms", "retime 100\n", "answers ", "answers 65536 ",
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


def quiet_groups(drawn: Scene) -> int:
    """Groups of @drawn with a child of little demand and a sibling with a backlog, of which the
    first has five times the weight or more."""
    found = 0
    for group in (t for t in drawn.present if not t.load):
        children = [t for t in drawn.loaded if t.parent == group.name]
        busy = [t.weight for t in children if is_busy(t)]
        quiet = [t.weight for t in children if t.words["depth"] == 1 and not is_busy(t)]
        found += bool(busy and quiet and max(quiet) >= 5 * max(busy))
    return found


def is_busy(one: Tenant) -> bool:
    words = one.words
    return int(words["depth"]) >= 32 and not {"think_us", "pace_ns", "on_ms"} & set(words)


@pytest.mark.parametrize("numbers", [draw.Numbers, draw.FreeNumbers])
def test_each_quiet_child_has_a_busy_sibling_and_a_busy_tenant_outside(numbers):
    drive = draw.Drive(("drive 980pro 256 random 85",), 1.0)
    depths, groups = set(), set()
    for seed in range(100):
        drawn = Scene((), (), draw._quiet_children(numbers(f"quiet {seed}"), 4, drive))
        above = {t.name: t.parent for t in drawn.tenants}
        inside = [t.name for t in drawn.tenants if not t.load]
        assert quiet_groups(drawn) == len(inside)
        assert any(is_busy(t) for t in drawn.loaded if not t.parent)
        depths.add(max(1 + bool(above[name]) for name in inside))
        groups.add(len(inside))
    assert depths == {1, 2}
    assert {1, 2, 3, 4} <= groups


@pytest.mark.parametrize("drawn", [draw.draw, draw.held_back])
def test_a_kind_on_purpose_is_in_one_of_eight_seeds(drawn, monkeypatch):
    """The other seeds are the same scenes without the kind."""
    seeds = range(400)
    found = [drawn(seed) for seed in seeds]
    batches = [any(line.startswith("answers ") for line in one.drive) for one in found]
    quiet = [quiet_groups(one) > 0 for one in found]
    assert 30 < sum(batches) < 80
    assert 30 < sum(quiet) < 80
    assert any(both == (True, True) for both in zip(batches, quiet, strict=True))
    monkeypatch.setattr(draw, "EACH", 1e9)
    plain = [drawn(seed) for seed in seeds]
    kinds = zip(found, plain, batches, quiet, strict=True)
    assert all(one == other or batch or group for one, other, batch, group in kinds)
    assert not any(line.startswith("answers ") for one in plain for line in one.drive)


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
    """A player of given rates in bytes per second: of each scheduler, alone and at saturation.
    @late are those of the series, by scheduler, and @waits mean and 99th percentile of latencies in
    ms, by scheduler and tenant. Every depth is the scheduler `fixed`."""

    def __init__(self, alone: float | dict[str, float], most: float, **shared: dict[str, float]):
        self._alone, self._most, self._shared = alone, most, shared
        self.late: dict[str, dict[str, float]] = {}
        self.waits: dict[tuple[str, str], tuple[float, float]] = {}
        self.done: dict[tuple[str, str], int] = {}
        self.ticks = 10
        self.backlog_permille = 1000
        self.ios = 5000

    def play(self, text: str) -> dict:
        names = [line.split()[1] for line in text.splitlines() if line.startswith("flow")]
        scheduler = "fixed" if "set isolation 0" in text else text.split()[1]
        if len(names) == 1:
            alone = self._alone[names[0]] if isinstance(self._alone, dict) else self._alone
            rate = self._most if f"depth {judge.SATURATING}" in text else alone
            rates = late = {names[0]: rate}
        else:
            rates = self._shared[scheduler]
            late = self.late.get(scheduler, rates)
        flows = {name: self._flow(scheduler, name, rates[name], late[name]) for name in rates}
        return {"flows": flows, "totals": {"ticks_per_s": self.ticks}}

    def _flow(self, scheduler: str, name: str, rate: float, late: float) -> dict:
        mean_ms, p99_ms = self.waits.get((scheduler, name), (1, 2))
        return {
            "bytes_per_s": rate, "backlog_permille": self.backlog_permille,
            "cost": rate, "ios": self.done.get((scheduler, name), self.ios),
            "mean_ns": mean_ms * 1e6, "p99_ns": p99_ms * 1e6, "series": [{"bytes": late / 20}] * 60,
        }  # fmt: skip


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


@pytest.mark.parametrize(
    ("backlog_permille", "ios", "words", "expected"),
    [
        (1000, 5000, {}, {"P1"}),
        (999, 5000, {}, set()),
        (1000, 5000, {"urgent": 50}, set()),
        # Two requests of each tenant are more than they differ by.
        (1000, 3, {}, set()),
    ],
)
def test_shares_are_those_of_tenants_that_always_wait(backlog_permille, ios, words, expected):
    player = Rates(100e6, 100e6, none=EQUAL, mqfq=UNEQUAL, fixed=UNEQUAL)
    player.backlog_permille, player.ios = backlog_permille, ios
    assert promises(player, scene(tenant("a", **words), tenant("b"))) == expected


def promises(player: Rates, tested: Scene) -> set[str]:
    found = judge.judge(tested, judge.know(tested, player), "mqfq", player)
    return {fault.promise for fault in found.faults}


LIGHT = {"light": 1e6, "heavy": 99e6}


@pytest.mark.parametrize(
    ("mqfq", "fixed", "expected"),
    [
        ((1.04, 2.0), (1.0, 2.0), set()),
        # The mean, and then the 99th percentile.
        ((1.06, 2.0), (1.0, 2.0), {"P4"}),
        ((1.0, 2.2), (1.0, 2.0), {"P4"}),
        # No fixed depth has a shorter wait.
        ((9.0, 20.0), (9.0, 20.0), set()),
    ],
)
def test_a_tenant_that_needs_little_waits_no_longer_than_under_a_fixed_depth(mqfq, fixed, expected):
    rates = {"light": 1e6, "heavy": 100e6}
    player = Rates(rates, 100e6, none=LIGHT, mqfq=LIGHT, fixed=LIGHT)
    player.waits = {("mqfq", "light"): mqfq, ("fixed", "light"): fixed}
    both = scene(tenant("light", depth=1), tenant("heavy", think_us=1))
    assert promises(player, both) - {"P1"} == expected


def test_a_depth_that_starves_a_tenant_has_no_latency_of_it():
    rates = {"light": 1e6, "heavy": 100e6}
    player = Rates(rates, 100e6, none=LIGHT, mqfq=LIGHT, fixed=LIGHT)
    player.waits = {("mqfq", "light"): (9, 20), ("fixed", "light"): (0, 0)}
    player.done = {("fixed", "light"): 0}
    both = scene(tenant("light", depth=1), tenant("heavy", think_us=1))
    assert "P4" not in promises(player, both)


def test_a_tenant_that_needs_much_may_wait():
    player = Rates(100e6, 100e6, none=EQUAL, mqfq=EQUAL, fixed=EQUAL)
    player.waits = {("mqfq", "a"): (50, 90)}
    assert promises(player, scene(tenant("a"), tenant("b"))) == set()


LESS = {"a": 45e6, "b": 45e6}


@pytest.mark.parametrize(
    ("word", "mqfq", "fixed", "expected"),
    [
        ("start_ms", EQUAL, EQUAL, set()),
        # The shares are right later, and not when the latencies are over.
        ("start_ms", UNEQUAL, EQUAL, {"P5"}),
        ("start_ms", UNEQUAL, UNEQUAL, set()),
        # The others do not take the part of a tenant that has left.
        ("stop_ms", LESS, EQUAL, {"P5"}),
        ("stop_ms", LESS, LESS, set()),
        ("stop_ms", EQUAL, EQUAL, set()),
    ],
)
def test_shares_are_right_soon_after_a_change(word, mqfq, fixed, expected):
    three = {**EQUAL, "c": 0.0}
    player = Rates({"a": 100e6, "b": 100e6, "c": 0.0}, 100e6, none=three, mqfq=three, fixed=three)
    player.late = {"mqfq": {**mqfq, "c": 0.0}, "fixed": {**fixed, "c": 0.0}}
    tenants = [tenant("a"), tenant("b"), tenant("c", **{word: 1000})]
    changed = dataclasses.replace(scene(*tenants), warm_ms=2000, run_ms=1000)
    assert promises(player, changed) - {"P1"} == expected


def test_the_span_after_a_change_begins_when_the_latencies_are_over():
    flows = {"a": {"ios": 10, "mean_ns": 4_000_000}, "b": {"ios": 30, "mean_ns": 8_000_000}}
    base = dataclasses.replace(scene(tenant("a")), warm_ms=3000, run_ms=1000)
    spans = [
        judge.after_change(dataclasses.replace(base, **changes), {"flows": flows})
        for changes in (
            {},
            {"actions": ("at 1000 retime 50",)},
            {"actions": ("at 1000 stall 100",)},
            {"actions": ("at 1000 retime 50", "at 2000 retime 100")},
            {"tenants": (tenant("a", start_ms=1000),)},
            {"tenants": (tenant("a", stop_ms=1000),)},
        )
    ]
    come, stalled, left = (judge.Span(first, first + 500) for first in (1150, 1250, 1700))
    assert spans == [None, come, stalled, None, come, left]
    slow = {"flows": {"a": {"ios": 10, "mean_ns": 300_000_000}}}
    late = dataclasses.replace(base, actions=("at 1000 retime 50",))
    assert judge.after_change(late, slow) == judge.Span(3000, 3500)


def test_ticks_are_counted():
    player = Rates(100e6, 100e6, none=EQUAL, mqfq=EQUAL, fixed=EQUAL)
    both = scene(tenant("a"), tenant("b"))
    player.ticks = judge.P7_TICKS
    assert promises(player, both) == set()
    player.ticks += 1
    assert promises(player, both) == {"P7"}


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


@pytest.mark.parametrize(
    ("matters", "least"),
    [
        (lambda drive: True, ()),
        (lambda drive: len(drive) == 2, ("answers 65536 1000",)),
        (lambda drive: "answers 7 300" in drive, ("answers 7 300",)),
    ],
)
def test_answers_in_batches_are_dropped_or_made_plain(matters, least):
    given = dataclasses.replace(
        scene(tenant("a", on_ms=5, off_ms=100)), drive=("device 64 1000000 0", "answers 7 300")
    )
    found = shrink.shrink(given, lambda smaller: matters(smaller.drive))
    assert found.drive == ("device 64 1000000 0", *least)
    # sim-run takes both or neither.
    assert not {"on_ms", "off_ms"} & set(found.loaded[0].words)


def test_a_shrunk_load_pauses_with_both_words_or_with_neither():
    def breaks(smaller: Scene) -> bool:
        words = smaller.loaded[0].words
        assert ("on_ms" in words) == ("off_ms" in words)
        return False

    shrink.shrink(scene(tenant("a", on_ms=5, off_ms=100)), breaks)


@pytest.mark.parametrize("drawn", [draw.draw, draw.held_back])
def test_a_scene_is_read_back_from_its_text(drawn):
    for seed in range(50):
        found = drawn(seed)
        assert parse("# a comment\n" + found.play_text("mqfq", ["set depth 4"])) == found


def verdict(scheduler: str, *faults: judge.Fault) -> judge.Verdict:
    return judge.Verdict(scheduler, {"a": 1.0}, 1.0, faults)


NEAR = judge.Fault("P2", "a", 0.7, 0.8)
FAR = judge.Fault("P2", "a", 0.1, 0.8)
HEAD = {"program": "1", "settings": []}


def test_verdicts_are_kept_by_scene_and_counted_by_scheduler(tmp_path):
    path = tmp_path / "verdicts"
    first = record.Record(path, HEAD)
    first.add("7", [verdict("mqfq", NEAR), verdict("wdt")])
    first.add("8", [verdict("mqfq", FAR, FAR), verdict("wdt")])
    with path.open("a") as file:
        file.write('["9", {"mqfq": ["P')
    again = record.Record(path, HEAD)
    assert again.scenes == {
        "7": {"mqfq": ["P2"], "wdt": []},
        "8": {"mqfq": ["P2", "far"], "wdt": []},
    }
    counted = record.counts(again.scenes)
    assert counted["mqfq"] == {"P2": 2, "far": 1, "any": 2, "scenes": 2}
    assert counted["wdt"] == {"any": 0, "scenes": 2}
    with pytest.raises(Failure, match="verdicts of another program: name another file"):
        record.Record(path, {**HEAD, "program": "2"})


def test_verdicts_before_and_after_are_of_the_same_scenes():
    before = {"7": {"mqfq": ["P2", "far"]}, "8": {"mqfq": ["P2"]}, "9": {"mqfq": ["P1"]}}
    after = {"7": {"mqfq": []}, "8": {"mqfq": ["P2"]}}
    text = record.compared(before, after)
    assert "Of 2 scenes" in text
    assert "| `mqfq` | 0 → 0 | 2 → 1 |" in text
    assert text.endswith("| 2 → 1 | 1 → 0 |")


def test_known_scenes_are_kept_in_order():
    names = ["volume mqfq", "10 wdt", "2 mqfq", "2 ifq"]
    found = command.in_order(dict.fromkeys(names, "P2"))
    assert list(found) == ["2 ifq", "2 mqfq", "10 wdt", "volume mqfq"]


def test_scenes_of_files_have_their_names():
    file = ROOT / "tests/gauntlet/scenes/volume.txt"
    arguments = argparse.Namespace(scenes=[file], seeds=[3], known=False, held_back=True)
    found = command.scenes_of(arguments)
    assert {name: one() for name, one in found.items()} == {
        "volume": parse(file.read_text()),
        "3": draw.held_back(3),
    }
    known = argparse.Namespace(scenes=[], seeds=None, known=True, held_back=False)
    assert list(command.scenes_of(known)) == [
        "volume", *map(str, command.seeds_of(command.KNOWN_SEEDS))
    ]  # fmt: skip
    assert len(command.seeds_of(command.KNOWN_SEEDS)) == 40


@pytest.mark.parametrize(
    ("text", "said"),
    [("a", "write N or N-M"), ("1,", "write N or N-M"), ("5-3", "the lesser seed")],
)
def test_wrong_seeds_are_named(text, said):
    with pytest.raises(argparse.ArgumentTypeError, match=said):
        command.seeds_of(text)


def test_a_kept_scene_may_leave_out_words_of_the_host():
    kept = parse("device 4 1000 0\nflow a weight 1\nload a depth 4 bytes 4096\n")
    assert judge.depths(kept) == [2, 4]


@pytest.mark.parametrize(
    ("host", "load", "most"),
    [
        # 64 tags of the driver, and then 2 maps of them.
        ({}, {"depth": 512}, 64),
        ({"tag_maps": 2}, {"depth": 512}, 128),
        # 2 times 9 requests, and then each in two parts.
        ({}, {"depth": 9}, 32),
        # No limit of tags.
        ({"tags": 0}, {"depth": 60}, 128),
        ({"most_bytes": 131072}, {"depth": 9, "bytes": 262144}, 64),
    ],
)
def test_depths_that_bound_nothing_are_played_once(host, load, most):
    both = scene(tenant("a", **load), tenant("b", **load))
    both = dataclasses.replace(both, host=tuple({**dict(HOST), **host}.items()))
    assert judge.depths(both) == [depth for depth in judge.DEPTHS if depth <= most]


def on_flash(*tenants: Tenant, queues: int = 1, **host: int) -> Scene:
    merged = {**dict(HOST), "queues": queues, **host}
    return Scene(("drive 980pro 256 random 85",), tuple(merged.items()), tenants)


def test_guests_play_the_first_scenes_that_they_can():
    seeds, left_out = guest.held(len(guest.SCENES))
    assert tuple(seeds) == guest.SCENES
    assert len(seeds) + left_out.total() == seeds[-1] + 1


@pytest.mark.parametrize(
    ("left_out", "reason"),
    [
        (scene(tenant("a")), "no built-in model"),
        (on_flash(tenant("a"), queues=2), "several queues"),
        (
            dataclasses.replace(
                on_flash(tenant("a")), drive=("drive 980pro 256 random 85", "answers 4 100")
            ),
            "answers in batches",
        ),
        (on_flash(*(tenant(f"t{n}") for n in range(9))), "8 tenants"),
        (on_flash(tenant("a"), tenant("b", stop_ms=1000)), "changes"),
        (on_flash(tenant("a", discard=1)), "discards"),
        (on_flash(tenant("a", depth=2, think_us=50)), "pauses"),
        (on_flash(tenant("a", write=500, pace_ns=1000, arrivals="even")), "a pace"),
        (on_flash(tenant("a", depth=512, bytes=1 << 20)), "256 MiB"),
    ],
)
def test_each_scene_that_no_guest_plays_has_a_reason(left_out, reason):
    assert reason in guest.why_not(left_out)


def test_a_scene_for_a_guest_is_as_slow_as_its_drive():
    paced = tenant("a", pace_ns=50_000, arrivals="random", write=1000)
    given = dataclasses.replace(
        on_flash(paced, tenant("b", depth=1, think_us=50)),
        drive=("drive 980pro 256 random 85", "time_scale 5"),
    )
    assert not guest.why_not(given)
    found = guest.stretched(given)
    assert found.drive == ("drive 980pro 256 random 85", "time_scale 100")
    # The virtual SSD splits requests that the scene does not.
    assert dict(found.host)["most_bytes"] == 512 * 1024
    assert dict(found.host)["submit_ns"] == 6000
    options = [guest.fio(found, one) for one in found.loaded]
    assert options[0]["rate_iops"] == 1000 and options[0]["rate_process"] == "poisson"
    assert options[1]["thinktime"] == 1000
    # Each fio has places of its own.
    assert all(one["randrepeat"] == 0 for one in options)
    assert options[0]["randseed"] != options[1]["randseed"]


@pytest.mark.parametrize(
    ("part", "agrees"),
    [(0.5, True), (0.44, False), (0.46, True), (0.64, True), (0.66, False)],
)
def test_a_part_agrees_within_the_fidelity_of_the_seeds(part, agrees):
    """The seeds have 0.48 to 0.60, so with 5 % 0.456 to 0.63, and two requests are 0.0123."""
    both = on_flash(tenant("a", bytes=4096), tenant("b", bytes=4096))
    total = 8192 / 0.0123
    seeds = [{"a": 48, "b": 52}, {"a": 60, "b": 40}, {"a": 50, "b": 50}]
    found = guest.compare(both, {"a": part * total, "b": (1 - part) * total}, seeds)
    assert next(found).agrees == agrees
