# SPDX-License-Identifier: GPL-2.0
"""The evaluation of the experiments with their own guest half, on prepared figures."""

import argparse
import io
from pathlib import Path

import pytest
from rich.console import Console

from experiments import cpu_bound, inside, journal
from mqfair.text.errors import UsageError


def cpu_runs(*, loads=("qd1", "qd32", "batch8"), **iops):
    return [
        {"workload": load, "scheduler": name, "repeat": repeat, "iops": value, "mean_ns": 1000.0}
        for load in loads
        for name, values in iops.items()
        for repeat, value in enumerate(values)
    ]


def said(checks):
    return {(one.case, one.what): one.holds for one in checks}


def text_of(table):
    out = io.StringIO()
    Console(file=out, width=120).print(table)
    return out.getvalue()


def test_throughput_is_compared_within_a_repeat():
    runs = cpu_runs(none=[100, 10, 100], kyber=[34, 5, 34], bfq=[24, 2, 24], mqfq=[70, 7, 66])
    found = said(cpu_bound.judge(runs))
    assert found[("qd32", "IOPS / none")]
    assert not found[("qd32", "IOPS / kyber")]
    assert not found[("qd1", "IOPS / bfq")]
    assert found[("batch8", "IOPS / kyber")]
    assert ("batch8", "IOPS / bfq") not in found


def test_the_median_of_the_repeats_counts():
    assert not said(cpu_bound.judge(cpu_runs(none=[10, 10, 10], mqfq=[6, 6, 60])))[
        ("qd1", "IOPS / none")
    ]


def test_a_scheduler_that_did_not_run_is_not_judged():
    assert set(said(cpu_bound.judge(cpu_runs(none=[1.0], mqfq=[1.0])))) == {
        ("qd1", "IOPS / none"),
        ("qd32", "IOPS / none"),
        ("batch8", "IOPS / none"),
    }


@pytest.mark.parametrize(("iops", "holds"), [(15.0, True), (14.9, False)])
def test_kyber_fair_has_one_and_a_half_times_bfqs_iops_in_the_mix(iops, holds):
    runs = cpu_runs(loads=("mixed",), none=[30.0], bfq=[10.0], **{"kyber-fair": [iops]})
    assert said(cpu_bound.judge(runs)) == {("mixed", "IOPS / bfq"): holds}


def test_an_unknown_workload_is_refused(capsys):
    assert cpu_bound.main(["--workloads", "qd1,qd7"]) == 2
    assert "--workloads qd7" in capsys.readouterr().err


def test_the_table_shows_every_scheduler_beside_none():
    text = text_of(cpu_bound.show(cpu_runs(none=[1000.0], mqfq=[650.0]), "a guest"))
    assert "0.650" in text
    assert "1,000" in text


def turn(fsyncs, heavy, seconds=1.0, light=0):
    return {"fsyncs": fsyncs, "seconds": seconds, "writes": {"heavy": heavy, "light": light}}


def journal_run(kind, scheduler, *turns):
    return {"file system": kind, "scheduler": scheduler, "turns": turns}


def test_the_heavy_tenant_is_judged_by_its_rate_in_turns():
    runs = [
        journal_run("ext4", "none", turn(False, 100), turn(True, 10)),
        journal_run("ext4", "mqfq", turn(False, 100), turn(True, 192, seconds=2.0, light=6)),
        journal_run("xfs", "mqfq", turn(False, 100), turn(True, 94)),
    ]
    assert {(one.case, one.scheduler): one.holds for one in journal.judge(runs)} == {
        ("ext4", "mqfq"): True,
        ("xfs", "mqfq"): False,
    }
    text = text_of(journal.show(runs, "a guest"))
    assert "0.960" in text
    assert "0.100" in text


def test_a_scheduler_with_tunables_is_refused():
    assert inside.schedulers("mqfq,bfq") == ("none", "mqfq", "bfq")
    with pytest.raises(UsageError, match="write kyber-fair"):
        inside.schedulers("kyber-fair:work_conserving=0")


def test_a_missing_module_is_reported():
    args = argparse.Namespace(module=Path("/nowhere/mqfair.ko"), icount=True)
    with pytest.raises(UsageError, match="run `make module`"):
        inside.run(args, "journal_guest", (), 1, 1.0)
