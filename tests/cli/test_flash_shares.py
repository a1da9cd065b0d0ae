# SPDX-License-Identifier: GPL-2.0
"""experiments.flash_shares: shares of bytes and of device time, on prepared figures."""

import argparse
import json

import pytest

from experiments import flash_picture, flash_shares, harness
from experiments.flash_shares import Measured
from mqfair.bench import jobfile
from mqfair.bench.plan import Case
from mqfair.bench.result import CaseResult, CgroupResult, RunResult, document
from mqfair.text.errors import UsageError

WEIGHTS = {"reader": 100, "writer": 300}


def run_of(scheduler, reader, writer, repeat=0, jain=1.0):
    """@reader and @writer are rates in bytes per second."""
    total = reader + writer
    groups = tuple(
        CgroupResult(name, weight, weight / 400, rate / total, rate / 4096, rate, {})
        for (name, weight), rate in zip(WEIGHTS.items(), (reader, writer), strict=True)
    )
    return RunResult(scheduler, repeat, total / 4096, total, jain, groups)


def case_of(*runs, name="flash-mixed"):
    return CaseResult(Case(name, (), WEIGHTS, 1.0, 2.0), runs, (), {})


def busy_of(case, **times):
    return {
        (case, label.replace("_", "-"), 0): dict(zip(WEIGHTS, us, strict=True))
        for label, us in times.items()
    }


def test_shares_of_time_are_relative_to_dues():
    run = run_of("mqfq", 100, 300)
    assert flash_shares.time_shares(run, {"reader": 5, "writer": 15}) == {
        "reader": 0.25,
        "writer": 0.75,
    }
    assert flash_shares.time_jain(run, {"reader": 5, "writer": 15}) == pytest.approx(1.0)
    # The writer has three times the reader's time: Jain's index is (1 + 3)^2 / (2 (1 + 9)).
    assert flash_shares.time_jain(run, {"reader": 5, "writer": 45}) == pytest.approx(0.8)
    assert flash_shares.time_jain(run, {"reader": 0, "writer": 0}) == 0.0


def test_the_charged_quantity_is_judged():
    case = case_of(
        run_of("none", 100, 300, jain=0.5),
        run_of("bfq", 100, 300, jain=0.5),
        run_of("mqfq", 100, 300, jain=0.98),
        run_of("mqfq:cost=learned", 100, 255, jain=0.5),
        run_of("wdt", 50, 300, jain=0.98),
        run_of("hwabc", 1, 1, jain=0.5),
    )
    busy = busy_of("flash-mixed", none=(1, 3), bfq=(1, 3), mqfq=(1, 90), wdt=(1, 3), hwabc=(1, 3))
    busy["flash-mixed", "mqfq:cost=learned", 0] = {"reader": 10, "writer": 31}
    found = {
        (one.scheduler, one.what): one.holds
        for one in flash_shares.judge(Measured((case,), busy, {}))
    }
    assert found == {
        ("mqfq", "Jain of bytes"): False,
        ("mqfq", "total / none"): True,
        ("mqfq:cost=learned", "Jain of time"): True,
        ("mqfq:cost=learned", "total / none"): False,
        ("wdt", "Jain of bytes"): True,
        ("wdt", "total / none"): False,
    }


def test_totals_are_not_judged_where_tenants_differ():
    case = case_of(run_of("none", 100, 300), run_of("mqfq", 1, 1), name="flash-reader-writer")
    busy = busy_of("flash-reader-writer", none=(1, 3), mqfq=(1, 3))
    checks = list(flash_shares.judge(Measured((case,), busy, {})))
    assert [one.what for one in checks] == ["Jain of bytes"]


def test_only_one_of_each_kind_runs_alone():
    four = jobfile.load(str(harness.EXAMPLES / "flash-mixed.fio"), 2.0)
    assert set(flash_shares.kinds(four).values()) == {"w100"}
    assert [job.name for job in flash_shares.lone_jobs(four)] == ["flash-mixed.w100"]
    two = jobfile.load(str(harness.EXAMPLES / "flash-reader-writer.fio"), 2.0)
    lone = flash_shares.lone_jobs(two)
    assert [job.name for job in lone] == [
        "flash-reader-writer.reader",
        "flash-reader-writer.writer",
    ]
    assert [group.name for group in lone[1].groups] == ["writer"]


def test_slowdown_is_of_the_kind_that_ran_alone():
    four = jobfile.load(str(harness.EXAMPLES / "flash-mixed.fio"), 2.0)
    lone = case_of(run_of("none", 400, 400), run_of("none", 200, 200, 1), name="flash-mixed.w100")
    alone = flash_shares.alone_rates([four], (lone,))
    assert alone == {("flash-mixed", f"w{n}"): 600 for n in (100, 250, 500, 1000)}
    measured = Measured((), {}, {("flash-mixed", "reader"): 600.0})
    slower = flash_shares.slowdowns(case_of(run_of("mqfq", 150, 1)), measured, "mqfq")
    assert slower == {"reader": 4.0}


def test_runs_with_one_tenant_are_not_counted(tmp_path):
    for number, only in enumerate((None, "reader")):
        folder = tmp_path / f"{number:03d}"
        folder.mkdir()
        record = {"case": "c", "scheduler": "none", "repeat": 0, "only": only, "busy_us": {"r": 1}}
        (folder / "run.json").write_text(json.dumps(record))
    assert flash_shares.read_busy(tmp_path) == {("c", "none", 0): {"r": 1}}


@pytest.mark.parametrize("name", flash_shares.CASES)
def test_cases_are_examples_with_a_ramp(name):
    job = jobfile.load(str(harness.EXAMPLES / f"{name}.fio"), 2.0)
    assert job.ramp_s >= 1


def test_the_option_ramp_replaces_the_examples_ramp():
    args = argparse.Namespace(cases="flash-sizes", runtime=2.0, ramp=180.0)
    (job,) = flash_shares.load(args, flash_shares.CASES)
    assert (job.ramp_s, job.window_s) == (180.0, 2.0)
    args.cases = "flash-none"
    with pytest.raises(UsageError, match="--cases flash-none: no such case: use flash-randread"):
        flash_shares.load(args, flash_shares.CASES)


def written(case, busy):
    where = {"kernel": "6.1", "cpus": 1, "accel": "tcg", "device": "ssd:model=p4500"}
    figures = flash_shares.figures(Measured((case,), busy, {}))
    return {**figures, "results": [document(case, where, ())]}


def test_the_picture_has_all_schedulers_of_a_case(tmp_path):
    first = written(case_of(run_of("none", 1, 3)), busy_of("flash-mixed", none=(5, 45)))
    second = written(
        case_of(run_of("mqfq", 1, 3), run_of("bfq", 1, 3)), busy_of("flash-mixed", mqfq=(1, 3))
    )
    panels = flash_picture.merged([first, second])
    assert panels == {
        "flash-mixed": {"none": (1.0, pytest.approx(0.8)), "mqfq": (1.0, pytest.approx(1.0))}
    }
    path = tmp_path / "picture.png"
    flash_picture.draw(panels, first["results"][0]["where"], path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_document_of_another_experiment_is_refused(tmp_path):
    path = tmp_path / "shares.json"
    path.write_text("{}")
    args = argparse.Namespace(picture=tmp_path / "p.png", documents=[path])
    with pytest.raises(UsageError, match="no busy_us in it"):
        flash_picture.run(args)
    args.documents = [tmp_path / "none.json"]
    with pytest.raises(UsageError, match="No such file"):
        flash_picture.run(args)
