# SPDX-License-Identifier: GPL-2.0
"""The backend of experiments.isolation for guests: job files, drives, and figures of the bench."""

import types
from pathlib import Path

import pytest

from experiments import isolation, isolation_vm
from experiments.isolation_cases import CASES
from experiments.isolation_run import (
    WHOLE,
    Drive,
    LeftOutError,
    Run,
    Setting,
)
from experiments.isolation_vm import Guest, bench_label, device, job_file
from mqfair.bench import jobfile, session
from mqfair.bench.device import parse_device
from mqfair.bench.result import CaseResult, CgroupResult, RunResult
from mqfair.bench.variant import NONE
from mqfair.text.errors import UsageError

EXAMPLES = Path(__file__).parents[2] / "examples"
DRIVE = Drive("980pro", "steady", "device", 1024)
PRICED = Setting("mqfq:isolation=4", "mqfq", (("isolation", "4"),))


def options(job):
    """What fio gets for each section of a job file, without the order of options."""
    return {
        (group.name, group.weight, one.name): (set(one.options), one.runtime_s)
        for group in job.groups
        for one in group.jobs
    }


@pytest.mark.parametrize(("case", "example"), [("A", "isolation-reader"), ("B", "isolation-deep")])
def test_the_examples_are_the_cases(case, example):
    made = job_file(case, CASES[case].tenants, 10.0)
    shown = jobfile.load(str(EXAMPLES / f"{example}.fio"))
    assert options(made) == options(shown)
    assert (made.weights, made.ramp_s) == (shown.weights, shown.ramp_s)


@pytest.mark.parametrize(
    ("case", "tenant", "has"),
    [
        ("A-mixed", "others", {"rw=randread", "bsrange=4k-128k", "iodepth=32", "numjobs=4"}),
        ("A-writers-16k", "writers", {"rw=randwrite", "bs=16k"}),
        ("A-reader16k-depth4", "reader", {"rw=randread", "bs=16k", "iodepth=4"}),
    ],
)
def test_a_tenant_is_a_section(case, tenant, has):
    (found,) = [
        set(one.options)
        for group in job_file(case, CASES[case].tenants, 4.0).groups
        for one in group.jobs
        if group.name == tenant
    ]
    assert has <= found


def test_the_whole_drive_is_filled():
    settings = parse_device(device(CASES["A"], DRIVE, 100)).settings
    assert settings == {
        "model": "980pro",
        "size_mb": "1024",
        "fill": "100",
        "fill_pattern": "steady",
        "ftl": "device",
        "time_scale": "100",
    }


@pytest.mark.parametrize(("fill", "overwrites"), [("steady", 2), ("sequential", 0)])
def test_a_drive_that_is_written_is_made_anew_for_each_run(fill, overwrites):
    drive = Drive("p4500", fill, "host", 1024)
    settings = parse_device(device(CASES["A-writers-4k"], drive, 100)).settings
    assert settings["fill_parts"] == f"reader:100:{overwrites}"
    assert "fill" not in settings


@pytest.mark.parametrize("case", ["visits", "stall", "pretender"])
def test_cases_that_need_the_simulator_are_refused(case):
    with pytest.raises(UsageError, match=f"--cases {case}: .*--on sim"):
        Guest().expect([Run(CASES[case], DRIVE, Setting(NONE, NONE), 1)])


class Bench:
    """The bench, with figures by scheduler and repeat instead of a guest."""

    def __init__(self, left_out=None):
        self.asked = []
        self.left_out = left_out or {}

    def __call__(self, asked):
        self.asked.append(asked)
        case = session.plan_for(asked).cases[0]
        runs = tuple(
            RunResult(label, repeat, 0.0, 0.0, 1.0, tuple(self._groups(case, label, repeat)))
            for label in asked.schedulers
            if label not in self.left_out
            for repeat in range(asked.repeat)
        )
        result = CaseResult(case, runs, (), {}, self.left_out)
        return types.SimpleNamespace(results=(result,), notes=("slower",))

    def _groups(self, case, label, repeat):
        for number, group in enumerate(case.groups):
            iops = 1000.0 if len(case.groups) == 1 else 100.0 * (1 + repeat + number)
            latency = {"mean": 5e6, "p50": 4e6, "p99": 9e6, "p999": 9e6}
            yield CgroupResult(group.name, 1, 0.5, 0.5, iops, iops * 4096, latency)


@pytest.fixture(autouse=True)
def built(monkeypatch):
    """The module needs no build."""
    monkeypatch.setattr(session, "with_built_module", lambda asked: asked)


def batch(*settings, seeds=(1, 2)):
    case = CASES["A"]
    return list(isolation.Unit(case, DRIVE, settings, "mqfq", seeds).runs())


def test_one_guest_runs_a_case_and_one_the_subject_alone():
    bench = Bench()
    backend = Guest(bench=bench, icount=True, runtime_s=4.0)
    runs = batch(Setting(NONE, NONE), PRICED)
    backend.expect(runs)
    found = {run: backend.play(run)[WHOLE] for run in runs}
    alone, shared = bench.asked
    assert alone.schedulers == ("none",)
    assert [group.name for group in alone.jobs[0].groups] == ["reader"]
    assert shared.schedulers == ("none", "mqfq:isolation=4")
    assert [group.name for group in shared.jobs[0].groups] == ["reader", "others"]
    assert (shared.repeat, shared.cpus, shared.icount) == (2, 1, True)
    assert shared.jobs[0].window_s == 4.0
    figures = {
        (run.setting.label, run.seed, run.alone): one.tenants["reader"].iops
        for run, one in found.items()
    }
    assert figures == {
        ("none", 1, True): 1000,
        ("none", 2, True): 1000,
        ("none", 1, False): 100,
        ("none", 2, False): 200,
        ("mqfq:isolation=4", 1, False): 100,
        ("mqfq:isolation=4", 2, False): 200,
    }
    assert found[runs[1]].tenants["others"].p99_ns == 9e6
    assert backend.notes == ["slower"]


def test_a_scheduler_that_the_bench_left_out_is_left_out():
    runs = batch(Setting(NONE, NONE), Setting("iocost", "iocost"), seeds=(1,))
    backend = Guest(bench=Bench({"iocost": "too slow"}))
    backend.expect(runs)
    assert backend.play(runs[1])[WHOLE].tenants["reader"].iops == 100
    with pytest.raises(LeftOutError, match="too slow"):
        backend.play(runs[2])


def test_a_label_of_the_bench_has_the_tunables():
    assert bench_label(PRICED) == "mqfq:isolation=4"
    assert bench_label(Setting("mqfq depth=8", "mqfq", (("depth", "8"), ("isolation", "0")))) == (
        "mqfq:depth=8:isolation=0"
    )


def test_tunables_are_those_of_the_kernel(monkeypatch):
    asked = []

    def in_guest(spec, *, script, stream):
        asked.append(script)
        return types.SimpleNamespace(
            trouble=lambda: None, status=0, stdout="depth\nisolation\n", stderr=""
        )

    monkeypatch.setattr(isolation_vm.guest, "run", in_guest)
    backend = Guest(module=EXAMPLES / "isolation-deep.fio")
    assert list(backend.tunables("mqfq")) == ["depth", "isolation"]
    assert "echo mqfq > /sys/block/nullb0/queue/scheduler" in asked[0]
    with pytest.raises(UsageError, match="run `make module`"):
        Guest().tunables("mqfq")


@pytest.mark.parametrize(("on", "kernel"), [("vm", "6.1"), ("uml", "uml")])
def test_a_guest_has_the_kernel_that_was_asked_for(on, kernel):
    args = isolation.parser().parse_args(["--on", on, "--quick"])
    isolation.settle(args)
    assert isolation.backend_of(args).kernel == kernel
