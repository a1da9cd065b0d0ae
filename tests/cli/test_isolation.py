# SPDX-License-Identifier: GPL-2.0
"""The pure parts of experiments.isolation: cases, curves, goals, tables and descriptions."""

import json

import pytest

from experiments import isolation
from experiments.isolation_cases import CASES, WARM_MS, Case, Goal, Tenant, Window
from experiments.isolation_curve import (
    Point,
    curve_of,
    due_part,
    front,
    jain,
    judge,
    on_curve,
    point,
    row,
    slowdown_at,
    spread,
)
from experiments.isolation_run import (
    DEPTH,
    ISOLATION,
    SCHEDULER,
    SIMULATED,
    WHOLE,
    Drive,
    Figures,
    LeftOutError,
    Rates,
    Run,
    Setting,
    in_window,
    statements,
)
from mqfair.bench.variant import NONE
from mqfair.text.errors import Failure

DRIVE = Drive("980pro", "steady", "device", 128)
CASE = Case(
    "pair",
    "two tenants",
    (
        Tenant("reader", weight=300, depth=1, bytes=4096),
        Tenant("others", weight=100, depth=8, bytes=4096, jobs=2, bytes_most=65536, writes=500),
    ),
    Goal(total=0.9, curve=1.0, p99=0.2),
)


def figures(reader_iops, others_iops, p99_ns=1e6):
    return Figures(
        {
            "reader": Rates(reader_iops, reader_iops * 4096, 1e5, p99_ns, inside=1.0),
            "others": Rates(others_iops, others_iops * 4096, 1e6, p99_ns, inside=15.0),
        }
    )


def made(total, slowdown, role=SCHEDULER, label="x"):
    def same(value):
        return (value, value)

    return Point(
        label,
        role,
        total=same(total),
        requests=same(total),
        slowdown=same(slowdown),
        p99_ms=same(2.0),
        p99_none=same(0.5),
        part=same(0.7),
        by_count=same(0.8),
        jain=same(0.99),
    )


# ---------------------------------------------------------------------- the curve


def test_the_front_has_no_point_that_another_beats_in_both():
    points = [(0.5, 2.0), (0.6, 1.5), (0.9, 4.0), (0.8, 5.0), (1.0, 9.0)]
    assert front(points) == [(0.6, 1.5), (0.9, 4.0), (1.0, 9.0)]


def test_a_total_that_is_greater_by_chance_is_no_reason_for_a_greater_slowdown():
    saturated = [(0.9, 2.0), (0.9990, 3.0), (0.9995, 7.0), (1.0, 30.0)]
    assert front(saturated) == [(0.9, 2.0), (0.9990, 3.0)]
    assert slowdown_at(front(saturated), 1.0) == 3.0


def test_the_curve_is_interpolated_between_its_points():
    curve = [(0.5, 1.0), (0.7, 2.0), (1.0, 8.0)]
    assert slowdown_at(curve, 0.6) == pytest.approx(1.5)
    assert slowdown_at(curve, 0.7) == pytest.approx(2.0)
    assert slowdown_at(curve, 0.9) == pytest.approx(6.0)


def test_the_curve_is_not_continued_below_its_least_total():
    curve = [(0.5, 1.0), (1.0, 8.0)]
    assert slowdown_at(curve, 0.4) is None
    assert slowdown_at(curve, 1.01) == 8.0
    assert slowdown_at([], 0.4) is None


def test_only_fixed_depths_make_the_curve():
    points = [
        made(1.0, 9.0, DEPTH),
        made(0.8, 2.0, DEPTH),
        made(1.0, 1.0),
        made(0.9, 1.0, ISOLATION),
    ]
    assert curve_of(points) == [(0.8, 2.0), (1.0, 9.0)]
    assert on_curve(made(0.9, 1.1), curve_of(points)) == pytest.approx(0.2)
    assert on_curve(made(0.5, 1.1), curve_of(points)) is None


def test_figures_are_relative_to_none_and_to_the_subject_alone():
    none, alone = figures(100, 900, 4e6), figures(1000, 0)
    found = point(
        CASE, ("mqfq", SCHEDULER), [figures(400, 500, 1e6)] * 2, none=[none] * 2, alone=[alone] * 2
    )
    assert found.total == pytest.approx((0.9, 0.9))
    assert found.slowdown == pytest.approx((2.5, 2.5))
    assert found.p99_ms == pytest.approx((1.0, 1.0))
    assert found.p99_none == pytest.approx((0.25, 0.25))
    assert found.part == pytest.approx((4 / 9 / 0.75,) * 2)
    assert found.by_count == pytest.approx((1 / 16 / 0.75,) * 2)
    assert due_part(CASE) == 0.75


def test_a_subject_that_starves_has_an_infinite_slowdown():
    found = point(
        CASE,
        ("mqfq", SCHEDULER),
        [figures(0, 500)],
        none=[figures(1, 1)],
        alone=[figures(1000, 0)],
    )
    assert found.slowdown == (float("inf"),)
    assert row(found, [])[2] == "-"


def test_jain_and_spread():
    assert jain([3, 3, 3]) == pytest.approx(1.0)
    assert jain([1, 0]) == pytest.approx(0.5)
    assert jain([0, 0]) == 0.0
    assert spread([9, 10, 11]) == pytest.approx(0.2)
    assert spread([float("inf")]) == 0.0


# ---------------------------------------------------------------------- goals, table


def test_goals_are_judged_against_none_and_the_curve():
    curve = [(0.8, 2.0), (1.0, 4.0)]
    goal = Goal(total=0.9, curve=1.0, p99=0.2, none=0.5, part=0.6, most_part=0.65, jain=0.999)
    found = judge(goal, made(0.9, 2.9), made(1.0, 10.0, label=NONE), curve)
    assert {one.what: one.holds for one in found} == {
        "total / none": True,
        "slowdown / curve": True,
        "p99 / none": False,
        "slowdown / none": True,
        "part / due": True,
        "part / due, most": False,
        "Jain": False,
    }


def test_only_given_bounds_are_judged():
    assert not list(judge(Goal(), made(1, 1), made(1, 1), []))
    # Below the curve's least total there is no value to judge.
    assert not list(judge(Goal(curve=1.0), made(0.1, 1), made(1, 1), [(0.5, 1.0)]))


class Prepared:
    """A backend with figures by the label of the setting."""

    scope = SIMULATED
    notes = ()

    def __init__(self, **shared):
        self.shared = shared
        self.played = []
        self.expected = []

    def tunables(self, scheduler):
        return ["depth", "isolation"]

    def expect(self, runs):
        self.expected += runs

    def play(self, run):
        assert run in self.expected
        self.played.append(run)
        found = (
            figures(1000, 0) if run.alone else self.shared.get(run.setting.role, figures(500, 400))
        )
        return {WHOLE: found}


def unit(tunables=("depth",), seeds=(1, 2)):
    swept = isolation.sweeps(CASE, "mqfq", tunables, SIMULATED)
    return isolation.Unit(CASE, DRIVE, (*isolation.fixed(["mqfq", "ifq"]), *swept), "mqfq", seeds)


def test_each_setting_runs_with_each_seed_and_the_subject_alone_once():
    runs = list(unit().runs())
    assert len(runs) == len(set(runs)) == 2 * (1 + len(unit().settings))
    assert sum(run.alone for run in runs) == 2


def test_fixed_depths_have_isolation_0_where_it_exists():
    plain = {one.label: dict(one.tunables) for one in unit().settings}
    assert plain["mqfq depth=8"] == {"depth": "8"}
    assert not any("isolation" in label for label in plain)
    found = {one.label: dict(one.tunables) for one in unit(("depth", "isolation")).settings}
    assert found["mqfq depth=8"] == {"depth": "8", "isolation": "0"}
    assert found["mqfq isolation=12"] == {"isolation": "12"}
    assert found["mqfq"] == {}


def test_depths_are_swept_until_every_request_has_a_slot():
    assert isolation.depths(CASE, SIMULATED.depths) == [1, 2, 4, 8, 12, 16, 24]
    assert isolation.depths(CASES["B"], SIMULATED.depths)[-1] == 384
    assert isolation.depths(CASE, [1, 2]) == [1, 2]


def test_a_scheduler_can_have_tunables():
    labels = isolation.labels_of("ifq:depth=8:isolation=0,none,ifq", SIMULATED.schedulers)
    assert [(one.label, one.scheduler, dict(one.tunables)) for one in isolation.fixed(labels)] == [
        ("none", "none", {}),
        ("ifq:depth=8:isolation=0", "ifq", {"depth": "8", "isolation": "0"}),
        ("ifq", "ifq", {}),
    ]


def test_the_table_and_the_document_have_a_row_for_each_setting():
    backend = Prepared(**{DEPTH: figures(250, 750)})
    (panels,) = isolation.measure(backend, [unit()], 2)
    (found,) = panels
    text = isolation.show(found)
    assert text.startswith("pair: 980pro, steady fill  (two tenants; 2 seeds)")
    assert "mqfq depth=8" in text
    # The curve has a slowdown of 4 at the greatest total; the default has 2 at a lesser one.
    assert found.curve == [(pytest.approx(1000 / 900), pytest.approx(4.0))]
    assert [one.what for one in found.verdicts] == ["total / none", "p99 / none"]
    args = isolation.parser().parse_args(["--seeds", "2"])
    whole = json.loads(json.dumps(isolation.document(args, [found])))
    (panel,) = whole["panels"]
    assert panel["case"] == "pair"
    assert len(panel["points"]) == len(unit().settings)
    assert len(panel["points"][0]["slowdown"]) == 2


def test_a_failing_run_ends_the_experiment():
    class Failing(Prepared):
        def play(self, run):
            raise Failure("no drive")

    with pytest.raises(Failure, match="no drive"):
        list(isolation.measure(Failing(), [unit()], 1))


def test_a_scheduler_that_cannot_run_is_named_with_the_reason():
    class Without(Prepared):
        def play(self, run):
            if run.setting.label == "ifq":
                raise LeftOutError("no model")
            return super().play(run)

    (panels,) = isolation.measure(Without(), [unit()], 1)
    text = isolation.show(panels[0])
    assert "  ifq was left out: no model" in text
    assert "ifq" not in [one.label for one in panels[0].points]
    args = isolation.parser().parse_args(["--seeds", "2"])
    (panel,) = isolation.document(args, panels)["panels"]
    assert panel["left_out"] == {"ifq": "no model"}


def test_the_document_has_no_infinity():
    backend = Prepared(**{SCHEDULER: figures(0, 900)})
    (panels,) = isolation.measure(backend, [unit()], 1)
    args = isolation.parser().parse_args([])
    text = json.dumps(isolation.document(args, panels), allow_nan=False)
    assert json.loads(text)["panels"][0]["points"][0]["slowdown"] == [None, None]


def parsed(*argv):
    args = isolation.parser().parse_args(argv)
    isolation.settle(args)
    return args


def test_options_have_the_defaults_of_the_backend():
    assert parsed().fills == "sequential,random,steady"
    assert (parsed("--on", "vm").fills, parsed("--on", "vm").jobs) == ("steady", 1)
    assert parsed("--on", "vm", "--fills", "random").fills == "random"
    assert parsed("--quick", "--seeds", "9").seeds == 1


# ---------------------------------------------------------------------- cases, backend


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_has_distinct_tenants_and_windows_within_its_time(case):
    names = [tenant.name for tenant in case.tenants]
    assert len(names) == len(set(names)) >= 2
    for window in case.windows:
        assert 0 <= window.first < window.last <= (window.every or case.run_ms) <= case.run_ms
        assert window.first % case.interval == window.last % case.interval == 0


def test_every_job_has_a_queue_of_its_own():
    lines = statements(Run(CASE, DRIVE, Setting("mqfq", "mqfq", (("depth", "8"),)), 7))
    assert "queues 3" in lines
    assert "set depth 8" in lines
    assert "seed 7" in lines
    assert "drive 980pro 128 steady" in lines
    loads = [line for line in lines if line.startswith("load")]
    assert loads == [
        "load reader queue 0 depth 1 bytes 4096 write 0",
        "load others queue 1 depth 8 bytes 4096-65536 write 500",
        "load others queue 2 depth 8 bytes 4096-65536 write 500",
    ]


def test_the_subject_runs_alone_with_the_events_of_the_case():
    case = CASES["throttled"]
    lines = statements(Run(case, DRIVE, Setting(NONE, NONE), 1, alone=True))
    assert [line for line in lines if line.startswith("flow")] == ["flow reader weight 1000"]
    assert f"at {WARM_MS + 1000} retime 200" in lines
    assert f"series {case.interval}" in lines


def test_a_pause_begins_with_the_measured_time():
    lines = statements(Run(CASES["visits"], DRIVE, Setting(NONE, NONE), 1))
    (reader,) = [line for line in lines if line.startswith("load reader")]
    assert reader.endswith(f"start_ms {WARM_MS} on_ms 1000 off_ms 9000")


def test_a_window_takes_its_intervals_in_every_period():
    window = Window("visit", Goal(), 20, 40, every=100)
    assert [begin for begin in range(0, 200, 10) if window.covers(begin, begin + 10)] == [
        20,
        30,
        120,
        130,
    ]
    series = [{"ios": at, "bytes": at * 512, "mean_ns": 10, "p99_ns": at} for at in range(20)]
    found = in_window(series, window, 10)
    assert found.iops == pytest.approx((2 + 3 + 12 + 13) / 0.04)
    assert found.bytes_per_s == pytest.approx(512 * found.iops)
    assert found.mean_ns == 10
    assert found.p99_ns == 13


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--cases", "Z"], "--cases Z: no such case: use A, A-reader16k"),
        (["--models", "ramdisk"], "--models ramdisk: no such model: use 980pro, p3700, p4500"),
        (["--fills", "half"], "--fills half: no such fill: use sequential, random, steady"),
        (["--schedulers", "bfq"], "--schedulers bfq: no such scheduler: use mqfq"),
        (["--schedulers", "ifq:depth"], "'depth' is not TUNABLE=VALUE"),
        (["--sweep", "mqfq,ifq"], "--sweep mqfq,ifq: give one scheduler"),
        (["--seeds", "0"], "--seeds 0: use 1 or more"),
    ],
)
def test_wrong_options_are_refused(argv, message, monkeypatch, capsys):
    monkeypatch.setattr(isolation.Simulator, "prepare", lambda self: None)
    monkeypatch.setattr(isolation.Simulator, "tunables", lambda self, name: [])
    assert isolation.main(argv) == 2
    assert message in capsys.readouterr().err


def test_cases_for_one_fill_run_on_it_alone():
    args = parsed("--cases", "A-writers-4k", "--models", "p4500")
    found = isolation.units_of(args, Prepared())
    assert [str(one.drive) for one in found] == ["p4500, steady fill"]
