# SPDX-License-Identifier: GPL-2.0
"""Dues, the counted window, and the document of results."""

import dataclasses
import json
import math
import random
import re

import jsonschema
import numpy as np
import pytest

from mqfair.bench import report
from mqfair.bench.fairness import jain
from mqfair.bench.plan import (
    Case,
    Event,
    Plan,
    PlannedDevice,
    PlannedGroup,
    PlannedJob,
    read_plan,
    write_plan,
)
from mqfair.bench.result import (
    CaseResult,
    analyse,
    document,
    ratios_to_none,
    run_result,
    summarise,
)
from mqfair.bench.window import (
    Completions,
    Usage,
    common_window,
    histogram,
    latency_statistics,
    merge,
    read_log,
    timeline,
    usage,
)
from mqfair.due import Node, due, due_of_cgroups
from mqfair.manual import json_forms
from mqfair.text.errors import Failure

FOUR = {"a": 100, "b": 250, "c": 500, "d": 1000}
NESTED = {"prod": 900, "prod/db": 500, "prod/web": 500, "batch": 100}


def completions(times_ms, latency_ns=0, size=4096):
    times = np.array(times_ms, dtype=np.int64)
    return Completions(times, np.full(len(times), latency_ns), np.full(len(times), size))


def of_backlogged(weights, names):
    return due_of_cgroups(weights, dict.fromkeys(names, math.inf))


def test_histogram_has_buckets_of_a_sixteenth_of_an_octave():
    # As sim/stats.h says, and each value below 16 by itself.
    values = np.array([1000, 5000, 1020, 0, 15, 16, 17, 5119, 5120, 2**50])
    assert histogram(values) == (
        (0, 1),
        (15, 1),
        (16, 1),
        (17, 1),
        (1023, 2),
        (5119, 2),
        (5375, 1),
        (2**50 + 2**46 - 1, 1),
    )
    assert histogram(values[:0]) == ()


def test_flat_dues_are_weights_over_their_sum():
    assert of_backlogged(FOUR, FOUR) == pytest.approx(
        {"a": 100 / 1850, "b": 250 / 1850, "c": 500 / 1850, "d": 1000 / 1850}
    )


def test_nested_dues():
    assert of_backlogged(NESTED, ["prod/db", "prod/web", "batch"]) == pytest.approx(
        {"prod/db": 0.45, "prod/web": 0.45, "batch": 0.1}
    )


def test_an_idle_sibling_leaves_its_part_to_its_siblings_first():
    assert of_backlogged(NESTED, ["prod/db", "batch"]) == pytest.approx(
        {"prod/db": 0.9, "batch": 0.1}
    )
    assert of_backlogged(NESTED, ["batch"]) == {"batch": 1.0}


@pytest.mark.parametrize(
    ("web", "batch", "expected"),
    [
        (5, math.inf, (85, 5, 10)),  # web leaves its part to db
        (5, 2, (93, 5, 2)),  # batch leaves its part to prod, and prod to db
        (math.inf, 2, (49, 49, 2)),
        (math.inf, 100, (45, 45, 10)),  # a demand above the part by weight changes nothing
    ],
)
def test_a_full_cgroup_leaves_the_rest_to_its_siblings_first(web, batch, expected):
    demands = {"prod/db": math.inf, "prod/web": web, "batch": batch}
    assert tuple(due_of_cgroups(NESTED, demands, 100).values()) == pytest.approx(expected)


def test_cgroups_that_all_get_what_they_ask_for_leave_the_rest():
    assert due_of_cgroups(NESTED, {"prod/db": 1, "batch": 2}, 100) == {"prod/db": 1, "batch": 2}
    assert due([], 100) == {}
    assert due([Node("a", 5)], 100) == {"a": 0}


def test_names_that_begin_alike_are_not_related():
    assert of_backlogged({"a": 100, "ab": 300, "a/x": 5}, ["a/x", "ab"]) == pytest.approx(
        {"a/x": 0.25, "ab": 0.75}
    )


def test_dues_always_add_up():
    random.seed(7)
    for _ in range(50):
        weights = {}
        for name in ("a", "b", "c"):
            weights[name] = random.randint(1, 10000)
            for child in ("x", "y", "z"):
                weights[f"{name}/{child}"] = random.randint(1, 10000)
        leaves = [name for name in weights if "/" in name]
        active = random.sample(leaves, random.randint(1, len(leaves)))
        assert sum(of_backlogged(weights, active).values()) == pytest.approx(1)


def test_jain():
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert jain([0, 0]) == 0


def test_percentiles_are_latencies_that_occurred():
    values = np.arange(1, 1001, dtype=np.int64)
    found = latency_statistics(values)
    assert (found["p50"], found["p99"], found["p999"]) == (500, 990, 999)
    assert found["mean"] == pytest.approx(500.5)
    assert latency_statistics(np.array([7], dtype=np.int64))["p999"] == 7


def test_a_job_starts_when_its_first_io_is_submitted():
    assert completions([100, 200], latency_ns=30_000_000).start_ms == 70


def test_only_the_time_in_which_all_run_is_counted():
    early = completions(range(0, 5000))
    late = completions(range(500, 5500))
    window = common_window([early, late], ramp_s=1, runtime_s=3)
    assert (window.start_ms, window.end_ms) == (1500, 4500)
    assert usage(early, window).iops == usage(late, window).iops == pytest.approx(1000)


def test_the_window_ends_when_the_first_job_ends():
    window = common_window([completions(range(0, 4000)), completions(range(500, 9000))], 1, 3)
    assert (window.start_ms, window.end_ms) == (1500, 3999)
    assert window.seconds == pytest.approx(2.499)


def test_jobs_with_little_overlap_are_refused():
    with pytest.raises(Failure, match=r"ran together for 0\.5 s of 3\.0 s"):
        common_window([completions(range(0, 4001)), completions(range(2500, 7000))], 1, 3)


def test_latencies_are_those_of_completions_in_the_window():
    slow = completions([1000, 1400], latency_ns=900)
    fast = completions(range(1501, 4500), latency_ns=5)
    window = common_window([completions(range(500, 5500))], 1, 3)
    assert usage(merge([slow, fast]), window).latency_ns["mean"] == 5


def test_bytes_count_by_size():
    window = common_window([completions(range(0, 2001))], 0, 2)
    large = usage(completions(range(0, 2001), size=65536), window)
    assert large.bytes_per_s == pytest.approx(65536 * 1000)
    assert large.iops == pytest.approx(1000)


def test_timeline_has_every_byte_in_its_step():
    steps = timeline(completions([0, 99, 100, 250], size=10), 0, 250, 100)
    assert steps.tolist() == [20, 10, 10]


def case(weights=FOUR, groups=None, name="four"):
    leaves = groups or list(weights)
    jobs = {leaf: (PlannedJob(leaf, ("rw=randread",), 4.0),) for leaf in leaves}
    return Case(name, tuple(PlannedGroup(leaf, jobs[leaf]) for leaf in leaves), weights, 1.0, 2.0)


def ideal(total_bytes, weights=FOUR):
    """The cgroups divide the bytes by weight, each with a long queue."""
    whole = sum(weights.values())
    latency = {"mean": 1e12, "p50": 1.0, "p99": 1.0, "p999": 1.0}
    return {
        name: Usage(total_bytes * weight / whole / 4096, total_bytes * weight / whole, latency)
        for name, weight in weights.items()
    }


def test_an_ideal_division_has_jain_1_and_the_due_shares():
    run = run_result("mqfq", 0, case(), ideal(1e6))
    assert run.jain == pytest.approx(1)
    for group in run.cgroups:
        assert group.share == pytest.approx(group.due)
        assert group.backlogged


def test_equal_shares_of_unequal_weights_have_a_lower_jain():
    run = run_result("none", 0, case(), ideal(1e6, dict.fromkeys(FOUR, 1)))
    assert run.jain < 0.7
    assert [group.share for group in run.cgroups] == pytest.approx([0.25] * 4)


def use(bytes_per_s, outstanding):
    mean_ns = outstanding * 4096e9 / bytes_per_s if bytes_per_s else 0.0
    latency = {"mean": mean_ns, "p50": mean_ns, "p99": mean_ns, "p999": mean_ns}
    return Usage(bytes_per_s / 4096, bytes_per_s, latency)


def test_a_lone_reader_gets_what_it_asks_for():
    """One request at a time, of a weight of ten elevenths."""
    weights = {"reader": 1000, "others": 100}
    used = {"reader": use(5e6, 1), "others": use(995e6, 128)}
    run = run_result("mqfq", 0, case(weights), used)
    assert [(one.due, one.met, one.backlogged) for one in run.cgroups] == [
        (pytest.approx(0.005), pytest.approx(1), False),
        (pytest.approx(0.995), pytest.approx(1), True),
    ]
    (line,) = summarise([run])
    assert line["jain"] is None


@pytest.mark.parametrize("alone", ["none", "mqfq"])
def test_alone_a_lone_reader_shows_what_it_asks_for(alone):
    """none tells what a cgroup gets alone, and the scheduler itself where none did not run."""
    weights = {"reader": 1000, "others": 100}
    used = {"reader": use(5e6, 1), "others": use(995e6, 128)}
    rates = {(alone, 0, "reader"): 50e6, (alone, 0, "others"): 1100e6}
    rates |= {("mqfq", 0, "reader"): 9e6} if alone == "none" else {("none", 1, "reader"): 9e6}
    run = run_result("mqfq", 0, case(weights), used, rates)
    assert [one.due for one in run.cgroups] == pytest.approx([0.05, 0.95])
    assert [one.met for one in run.cgroups] == pytest.approx([0.1, 995 / 950])
    assert [one.backlogged for one in run.cgroups] == [False, True]


@pytest.mark.parametrize(("outstanding", "backlogged"), [(3, False), (3.9, True)])
def test_a_cgroup_with_four_requests_is_backlogged(outstanding, backlogged):
    used = {"a": use(1e6, outstanding), "b": use(1e6, 32)}
    run = run_result("mqfq", 0, case({"a": 300, "b": 100}), used)
    assert run.cgroups[0].backlogged == backlogged
    assert run.cgroups[0].due == pytest.approx(0.75 if backlogged else 0.5)


def test_a_cgroup_without_a_completed_request_gets_nothing_of_its_due():
    used = {"a": use(0, 0), "b": use(1e6, 32)}
    run = run_result("mqfq", 0, case({"a": 100, "b": 300}), used)
    assert [(one.due, one.met) for one in run.cgroups] == [
        (pytest.approx(0.25), 0),
        (pytest.approx(0.75), pytest.approx(4 / 3)),
    ]


def test_the_worst_cgroup_has_the_least_median_part_of_its_due():
    weights = {"a": 100, "b": 100}
    shares = [(30, 70), (60, 40), (60, 40)]
    runs = [
        run_result("mqfq", n, case(weights), {"a": use(a, 32), "b": use(b, 32)})
        for n, (a, b) in enumerate(shares)
    ]
    (line,) = summarise(runs)
    assert (line["worst"], line["met"]) == ("b", pytest.approx(0.8))
    assert (line["min"]["met"], line["max"]["met"]) == pytest.approx((0.8, 1.4))


def test_ratios_are_paired_by_repeat():
    """The machine halves its speed after the first repeat. Unpaired medians would give 0.75."""
    speed = {("none", 0): 1000, ("mqfq", 0): 900, ("none", 1): 500, ("mqfq", 1): 450}
    runs = [
        run_result(name, repeat, case(), ideal(total)) for (name, repeat), total in speed.items()
    ]
    assert ratios_to_none(runs, "mqfq") == pytest.approx([0.9, 0.9])
    line = next(line for line in summarise(runs) if line["scheduler"] == "mqfq")
    assert line["ratio_to_none"] == pytest.approx(0.9)
    assert (line["min"]["total_iops"], line["max"]["total_iops"]) == pytest.approx(
        (450 / 4096, 900 / 4096)
    )


def test_without_none_there_is_no_ratio():
    line = summarise([run_result("mqfq", 0, case(), ideal(1000))])[0]
    assert line["ratio_to_none"] is None
    assert line["min"]["ratio_to_none"] is None


def test_medians_and_extremes():
    runs = [
        run_result("none", repeat, case(), ideal(total)) for repeat, total in enumerate((9, 1, 5))
    ]
    line = summarise(runs)[0]
    assert [line["min"]["total_iops"], line["total_iops"], line["max"]["total_iops"]] == (
        pytest.approx([1 / 4096, 5 / 4096, 9 / 4096])
    )


def record(folder, number, *, scheduler, repeat=0, only=None, rates, end_ms=4000):
    """The files of one run of the runner: one thread for each cgroup, with the given IOPS."""
    place = folder / f"{number:03d}"
    place.mkdir()
    counts = []
    for index, rate in enumerate(rates.values()):
        times = [1000 + round(step * 1000 / rate) for step in range(int(rate * end_ms / 1000))]
        lines = [f"{time}, 2000000, 0, 4096, 0\n" for time in times]
        (place / f"{index}_lat.{index + 1}.log").write_text("".join(lines))
        counts.append(len(lines))
    none = {"lat_ns": {"N": 0}}
    jobs = [{"read": {"lat_ns": {"N": count}}, "write": none, "trim": none} for count in counts]
    (place / "fio.json").write_text(json.dumps({"jobs": jobs}))
    run = {
        "case": "four",
        "scheduler": scheduler,
        "repeat": repeat,
        "only": only,
        "groups": list(rates),
        "started_ms": 1000,
    }
    (place / "run.json").write_text(json.dumps(run))
    return place


def test_the_document_has_the_figures_of_the_files(tmp_path):
    record(tmp_path, 0, scheduler="none", rates={"a": 250, "b": 250, "c": 250, "d": 250})
    record(tmp_path, 1, scheduler="mqfq", rates={"a": 50, "b": 125, "c": 250, "d": 500})
    result = analyse(tmp_path, case())
    whole = json.loads(json.dumps(document(result, {"kernel": "6.1"}, ["a note"])))
    assert whole["schema"] == "mqfair.bench/2"
    assert set(whole) == {"schema", "job", "where", "notes", "runs", "summary"}
    assert set(whole["runs"][0]) == {
        "scheduler", "repeat", "total_iops", "total_bytes_per_s", "jain", "cgroups",
    }  # fmt: skip
    group = whole["runs"][1]["cgroups"][3]
    assert set(group) == {
        "name", "weight", "due", "share", "iops", "bytes_per_s", "lat_ns", "lat_histogram",
        "backlogged",
    }  # fmt: skip
    assert group["lat_histogram"]["end_ns"] == [2031615]  # all take 2 ms
    assert set(group["lat_ns"]) == {"mean", "p50", "p99", "p999"}
    assert (group["name"], group["weight"]) == ("d", 1000)
    assert group["due"] == pytest.approx(500 / 925, rel=0.01)
    assert group["share"] == pytest.approx(500 / 925, rel=0.01)
    assert group["iops"] == pytest.approx(500, rel=0.01)
    assert group["bytes_per_s"] == pytest.approx(500 * 4096, rel=0.01)
    assert group["lat_ns"]["p99"] == 2_000_000
    assert set(whole["summary"][0]) == {
        "scheduler", "worst", "met", "total_iops", "ratio_to_none", "jain", "min", "max",
    }  # fmt: skip
    assert whole["summary"][1]["ratio_to_none"] == pytest.approx(0.925, rel=0.01)
    assert whole["summary"][0]["min"].keys() == {"met", "total_iops", "ratio_to_none", "jain"}


def test_documents_hold_to_the_schema(tmp_path):
    """Without and with each part that is not in every document, and of both kinds of hosts."""
    schema = json_forms.schema("bench")
    check = jsonschema.Draft202012Validator(schema)
    record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 300})
    record(tmp_path, 1, scheduler="none", only="a", rates={"a": 400})
    result = analyse(tmp_path, case({"a": 1, "b": 1}))
    whole = json.loads(json.dumps(document(result, {"kernel": "6.1"}, ["a note"])))
    assert whole["solo"]
    check.validate(whole)
    assert set(schema["properties"]) == {*whole, "left_out"}
    left_out = dataclasses.replace(result, left_out={"bfq": "not in this kernel"}, runs=(), solo=())
    check.validate(json.loads(json.dumps(document(left_out, {}, []))))
    for broken in (
        {**whole, "schema": "mqfair.bench/1"},
        {**whole, "more": 1},
        {**whole, "runs": [{**whole["runs"][0], "jain": 2}]},
        {key: value for key, value in whole.items() if key != "summary"},
    ):
        assert not check.is_valid(broken)


def test_slowdown_is_alone_over_shared_of_the_same_scheduler(tmp_path):
    record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 300})
    record(tmp_path, 1, scheduler="none", only="a", rates={"a": 400})
    record(tmp_path, 2, scheduler="none", only="b", rates={"b": 450})
    result = analyse(tmp_path, case({"a": 1, "b": 1}))
    assert {one.cgroup: one.slowdown for one in result.solo} == pytest.approx(
        {"a": 4, "b": 1.5}, rel=0.02
    )
    assert "solo" in document(result, {}, [])


def test_the_timeline_counts_from_the_start_of_the_jobs(tmp_path):
    record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 200})
    whole = analyse(tmp_path, case({"a": 1, "b": 1})).timeline
    assert whole["interval_ms"] == 100
    steps = {group["name"]: group["bytes"] for group in whole["runs"][0]["cgroups"]}
    assert steps["a"][5] == 10 * 4096
    assert steps["b"][5] == 20 * 4096


def test_an_incomplete_log_is_refused(tmp_path):
    place = record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 200})
    log = place / "0_lat.1.log"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-2]))
    with pytest.raises(Failure, match="counted 1200 I/Os and logged 1198"):
        analyse(tmp_path, case({"a": 1, "b": 1}))


def test_a_job_without_io_is_refused(tmp_path):
    place = record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 200})
    (place / "1_lat.2.log").write_text("")
    with pytest.raises(Failure, match="cgroup b did no I/O"):
        analyse(tmp_path, case({"a": 1, "b": 1}))


def test_a_run_without_a_counted_request_is_refused(tmp_path):
    """Each job has a first I/O and a last one, and none in the time between."""
    place = record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 200})
    for log in place.glob("*_lat.*.log"):
        log.write_text("0, 0, 0, 4096, 0\n60000, 0, 0, 4096, 0\n")
    (place / "fio.json").write_text('{"jobs": []}')
    with pytest.raises(Failure, match="none: no request was completed in the time that is counted"):
        analyse(tmp_path, case({"a": 1, "b": 1}))


def test_a_file_that_is_no_log_is_refused(tmp_path):
    (tmp_path / "x.log").write_text("not, a, log, at all\n")
    with pytest.raises(Failure, match=r"not a latency log of fio: .*: mend it"):
        read_log(tmp_path / "x.log", "mend it")


LINES = ["1000, 2000000, 0, 4096, 0, 0\n", "1001, 3000000, 1, 8192, 512, 0\n"]


@pytest.mark.parametrize("kept", range(1, len("".join(LINES)) + 1))
def test_a_log_is_read_unless_its_last_line_is_cut(tmp_path, kept):
    """Half of a size is a number, too."""
    log = tmp_path / "x.log"
    log.write_text("".join(LINES)[:kept])
    if log.read_text().endswith("\n"):
        sizes = [4096, 8192][: log.read_text().count("\n")]
        assert read_log(log, "mend it").size_bytes.tolist() == sizes
        return
    with pytest.raises(Failure) as failure:
        read_log(log, "mend it")
    assert str(failure.value) == f"{log}: its last line is cut: mend it"


def test_a_cut_log_of_a_run_names_the_run_to_make_again(tmp_path):
    place = record(tmp_path, 0, scheduler="none", rates={"a": 100, "b": 200})
    log = place / "1_lat.2.log"
    log.write_text(log.read_text()[:-4])
    with pytest.raises(Failure) as failure:
        analyse(tmp_path, case({"a": 1, "b": 1}))
    assert str(failure.value) == (
        f"{log}: its last line is cut: remove the folder {place}, and add --resume"
    )


def test_a_plan_is_read_as_it_was_written(tmp_path):
    plan = Plan(
        (case(), case(NESTED, ["prod/db", "batch"], "nested")),
        ("none", "mqfq"),
        2,
        PlannedDevice("/dev/nullb0", {"gb": 4}),
        solo=True,
        tunables={"mqfq": {"depth": "64"}},
    )
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    assert math.isinf(read_plan(tmp_path / "plan.json").time_limit_s)


def test_events_are_read_as_they_were_written(tmp_path):
    event = Event(1.5, "a", "weight", 10000)
    with_event = Case("e", case().groups, FOUR, 1.0, 2.0, (event,))
    plan = Plan((with_event,), ("none",), 1, PlannedDevice("/dev/x"))
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json").cases[0].events == (event,)


def test_runs_are_interleaved():
    plan = Plan((case(),), ("none", "bfq", "mqfq"), 2, PlannedDevice("/dev/x"))
    assert [(run.repeat, run.scheduler) for run in plan.runs()] == [
        (0, "none"), (0, "bfq"), (0, "mqfq"), (1, "none"), (1, "bfq"), (1, "mqfq"),
    ]  # fmt: skip


def test_solo_runs_follow_the_shared_one():
    plan = Plan((case({"a": 1, "b": 1}),), ("none",), 1, PlannedDevice("/dev/x"), solo=True)
    assert [run.only.name if run.only else None for run in plan.runs()] == [None, "a", "b"]
    assert [len(run.groups) for run in plan.runs()] == [2, 1, 1]


def printed(renderable):
    console = report.console_for()
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_table_shows_the_figures():
    runs = tuple(run_result("mqfq", repeat, case(), ideal(4096 * 1850)) for repeat in range(2))
    text = printed(report.render(CaseResult(case(), runs, (), {}), ["look here"]))
    assert "54.05 %" in text
    assert "median of 2" in text
    assert "1,850" in text
    assert "note: look here" in text
    assert re.search(r"mqfq +a +1\.00 +1,850 +7\.2 +- +1\.0000", text)
    assert "--solo" not in text


@pytest.mark.parametrize(
    ("ns", "said"),
    [
        (0, "0.00 µs"),
        (1_234, "1.23 µs"),
        (57_349, "57.3 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (12_345_678, "12.3 ms"),
        (1_234_567_890, "1,235 ms"),
    ],
)
def test_latencies_below_a_millisecond_are_in_microseconds(ns, said):
    assert report.duration(ns) == said


def test_the_table_tells_which_demands_are_not_known():
    weights = {"reader": 1000, "others": 100}
    run = run_result("mqfq", 0, case(weights), {"reader": use(5e6, 1), "others": use(995e6, 128)})
    text = printed(report.render(CaseResult(case(weights), (run,), (), {}), ()))
    assert (
        "note: reader kept few requests, and counts as if it got what it asks for: --solo" in text
    )
    assert re.search(r"mqfq +reader +1\.00 .*-\s*$", text, re.MULTILINE)


def test_the_length_of_a_bar_is_its_share():
    run = run_result("none", 0, case({"a": 1, "b": 3}), ideal(4096, {"a": 1, "b": 3}))
    text = printed(report.share_bars(CaseResult(case({"a": 1, "b": 3}), (run,), (), {})))
    lines = [line for line in text.splitlines() if "█" in line]
    assert [line.count("█") for line in lines] == [13, report.BAR_CELLS]
