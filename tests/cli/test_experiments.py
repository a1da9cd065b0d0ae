# SPDX-License-Identifier: GPL-2.0
"""The experiments' evaluation and checks, on prepared figures."""

import argparse
import dataclasses
import math
import re

import numpy as np
import pytest

from experiments import harness, light, moving, scaling, shares, traces
from experiments.harness import Candidate
from mqfair.bench import jobfile, session
from mqfair.bench.plan import Case
from mqfair.bench.result import CaseResult, CgroupResult, RunResult
from mqfair.bench.window import Completions
from mqfair.text.errors import UsageError

WEIGHTS = {"w100": 100, "w250": 250, "w500": 500, "w1000": 1000}


def run_result(scheduler, repeat=0, *, iops=1000.0, jain=1.0, shares=None):
    due = {name: weight / 1850 for name, weight in WEIGHTS.items()}
    groups = tuple(
        CgroupResult(name, WEIGHTS[name], due[name], share, iops * share, 0.0, {})
        for name, share in (shares or due).items()
    )
    return RunResult(scheduler, repeat, iops, iops * 4096, jain, groups)


def case_result(*runs, name="four-cgroups"):
    return CaseResult(Case(name, (), WEIGHTS, 1.0, 2.0), runs, (), {})


def said(checks):
    return {(one.scheduler, one.what): one.holds for one in checks}


def test_shares_are_judged_by_the_limits_of_each_scheduler():
    off = {"w100": 0.06, "w250": 0.135, "w500": 0.27, "w1000": 0.535}
    found = said(
        shares.judge(
            case_result(
                run_result("none"),
                run_result("bfq", iops=960),
                run_result("mqfq", iops=960, shares=off),
                run_result("kyber-fair", iops=955, jain=0.98, shares=off),
                run_result("kyber-fair:work_conserving=0", iops=1),
                run_result("wdt", iops=910, jain=0.98),
            )
        )
    )
    assert found == {
        ("mqfq", "share of w100, off by"): False,
        ("mqfq", "Jain"): True,
        ("mqfq", "total / none"): True,
        ("kyber-fair", "Jain"): False,
        ("kyber-fair", "total / none"): True,
        ("kyber-fair", "total / bfq"): False,
        ("wdt", "Jain"): True,
        ("wdt", "total / none"): True,
    }


def test_a_check_judges_the_median_and_shows_the_spread():
    one = Candidate("case", "mqfq").at_least("total", [0.9, 0.96, 0.97], 0.95)
    assert (one.holds, one.seen, one.spread) == (True, 0.96, (0.9, 0.97))
    assert not Candidate("case", "mqfq").within("off", [-0.06, -0.06, 0.0], 0.05).holds
    assert not Candidate("case", "mqfq").at_most("late", [math.inf], 200).holds


def test_an_unknown_case_is_named():
    with pytest.raises(UsageError, match="--cases x: no such case: use four-cgroups"):
        shares.run(argparse.Namespace(cases="nested,x"))


def test_the_light_tenant_alone_is_the_same_job():
    job = jobfile.load(str(harness.EXAMPLES / "light-tenant.fio"), 2.0)
    lone = light.alone(job)
    assert (lone.name, [group.name for group in lone.groups]) == ("light-alone", ["light"])
    assert lone.groups[0] == next(group for group in job.groups if group.name == "light")


def test_each_trace_has_each_weight_once():
    job = jobfile.load(str(harness.EXAMPLES / "traces.fio"))
    rotated = traces.rotations(job)
    assert len({one.name for one in rotated}) == 4
    for group in job.groups:
        assert {one.weights[group.name] for one in rotated} == {100, 250, 500, 1000}
    for one in rotated:
        assert {group.name: group.weight for group in one.groups} == dict(one.weights)


@pytest.mark.parametrize(
    ("name", "kib", "reads_for_each_write"),
    [("lun0", 31.1, 3.44), ("lun1", 24.8, 3.19), ("lun2", 50.4, 2.78), ("lun3", 63.7, 1.60)],
)
def test_the_traces_have_the_mean_sizes_and_reads_of_the_paper(name, kib, reads_for_each_write):
    job = jobfile.load(str(harness.EXAMPLES / "traces.fio"))
    (one,) = next(group for group in job.groups if group.name == name).jobs
    options = dict(option.split("=", 1) for option in one.options if "=" in option)
    split = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)k/(\d+)", options["bssplit"])]
    assert sum(percent for _, percent in split) == 100
    assert sum(size * percent for size, percent in split) / 100 == pytest.approx(kib, abs=0.05)
    reads = int(options["rwmixread"])
    assert reads / (100 - reads) == pytest.approx(reads_for_each_write, rel=0.03)


def test_generated_cgroups():
    job = scaling.cgroups(8, 1.5)
    assert (job.name, len(job.groups), set(job.weights.values())) == ("cgroups-8", 8, {100})
    assert job.longest_s == 1.5
    assert job.ramp_s == scaling.RAMP_S


def test_a_run_with_counted_time_is_short():
    asked = session.Request((scaling.cgroups(64, 0.4),), ("none",), icount=True)
    (case,) = session.plan_for(asked).cases
    assert case.run_s == pytest.approx(scaling.RAMP_S + 0.4 + session.ICOUNT_SLACK_S)
    (slow,) = session.plan_for(dataclasses.replace(asked, icount=False)).cases
    assert slow.run_s - case.run_s == pytest.approx(session.SLACK_S - session.ICOUNT_SLACK_S)


def scaled(count, **iops):
    groups = scaling.cgroups(count, 1.0).groups
    case = Case(f"cgroups-{count}", groups, {}, 1.0, 1.0)
    return CaseResult(case, tuple(run_result(name, iops=one) for name, one in iops.items()), (), {})


def test_scaling_is_relative_to_none():
    found = scaling.curves([scaled(1, none=1000, wdt=800), scaled(64, none=500, wdt=361)])
    assert found["wdt"] == {1: [0.8], 64: [0.361]}
    (one,) = scaling.judge_curves(found)
    assert one.seen == pytest.approx(0.361 / 0.8 / 0.5)
    assert one.holds
    found = scaling.curves([scaled(1, none=1000, wdt=800), scaled(64, none=500, wdt=359)])
    assert not next(scaling.judge_curves(found)).holds


def completions(rate, spans, latency_ms=10):
    """@rate I/Os per second, completed evenly in each of @spans (ms)."""
    times = np.concatenate([np.arange(start, end, 1000 / rate) for start, end in spans])
    count = len(times)
    return Completions(
        times.astype(np.int64),
        np.full(count, latency_ms * 1_000_000, dtype=np.int64),
        np.full(count, 4096, dtype=np.int64),
    )


def moving_run(late_ms=0):
    """The heaviest tenant is idle from 2000 to 4000 ms. The others use its part of the device
    @late_ms after its stop."""
    done = {"w1000": completions(2162, [(0, 2000), (4010, 6000)])}
    for name in ("w100", "w250", "w500"):
        alone = 4000 * WEIGHTS[name] / 850
        shared = 4000 * WEIGHTS[name] / 1850
        part = [
            completions(shared, [(0, 2000 + late_ms)]),
            completions(alone, [(2000 + late_ms, 4000)]),
            completions(shared, [(4000, 6000)]),
        ]
        done[name] = moving.merge(part)
    return moving.Run("wdt", 0, 0.0, done)


def test_a_change_is_a_start_or_an_end_of_demand():
    found = moving.phases(moving_run())
    assert [(round(one.start_ms, -1), round(one.end_ms, -1)) for one in found] == [
        (2000, 4000),
        (4000, 6000),
    ]
    assert found[0].active == ("w100", "w250", "w500")
    assert set(found[1].active) == set(WEIGHTS)


def test_shares_that_are_right_at_once_settle_at_once():
    changes = moving.changes_of([moving_run()], WEIGHTS)["wdt"]
    assert [one.settled_ms for one in changes] == [0, 0]
    assert [one.iops for one in changes] == pytest.approx([4000, 4000], rel=0.01)


def test_an_idle_drive_lowers_the_total():
    changes = moving.changes_of([moving_run(late_ms=1000)], WEIGHTS)["wdt"]
    assert changes[0].iops == pytest.approx((4000 + 4000 * 850 / 1850) / 2, rel=0.01)
    assert changes[0].least_iops == pytest.approx(4000 * 850 / 1850, rel=0.02)
    found = said(moving.judge({"wdt": changes}, 4000.0))
    assert found == {("wdt", "settled after, ms"): True, ("wdt", "total / none"): False}


def test_shares_are_settled_when_they_stay_right():
    assert moving._settled([True] * 5) == 0
    assert moving._settled([False, False, True, True]) == 2
    assert moving._settled([True, False, True]) == 2
    assert moving._settled([True, True, False]) == math.inf


def test_the_worst_change_of_each_repeat_counts():
    changes = [
        moving.Change("wdt", repeat, (), settled, iops, iops, 1.0)
        for repeat, settled, iops in ((0, 50.0, 4000.0), (0, 300.0, 3000.0), (1, 0.0, 3900.0))
    ]
    assert moving.worst(changes, "settled_ms") == [300, 0]
    assert moving.worst(changes, "iops") == [3000, 3900]
