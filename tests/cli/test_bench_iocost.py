# SPDX-License-Identifier: GPL-2.0
"""The bench fits iocost's model, or goes on without iocost and says why."""

import dataclasses
import json
import os
import re
import stat
import time

import pytest

from mqfair.bench import iocost, jobfile, report, runner, session
from mqfair.bench.device import parse_device
from mqfair.bench.plan import PlannedDevice
from mqfair.bench.result import CaseResult, document
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure

JOB = "[a]\ncgroup=a\nrw=randread\n"
MODEL = {"rbps": 31, "wbps": 2}


@pytest.fixture
def fio(tmp_path):
    """A function that makes a program in the place of fio, from the lines of a shell script."""

    def made(*lines):
        program = tmp_path / "fio"
        program.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(program)

    return made


def sections():
    """The options of each probe in the job file, those of [global] included."""
    common, *probes = re.split(r"^\[.*\]$", iocost.probe_job("/dev/x"), flags=re.MULTILINE)[1:]
    return [dict(re.findall(r"^(\w+)=(.*)$", common + text, re.MULTILINE)) for text in probes]


def test_the_probes_keep_few_megabytes_outstanding():
    """fio waits for all of them when a probe ends, and a full flash drive writes slowly."""
    size = {"4k": 4096, "1m": 1 << 20}
    outstanding = [
        size[one["bs"]] * int(one["iodepth"]) * int(one["numjobs"]) for one in sections()
    ]
    assert len(outstanding) == len(iocost.PROBES)
    assert max(outstanding) <= 16 << 20


def test_a_drive_that_takes_too_long_has_no_model(fio, tmp_path):
    program = fio("exec sleep 60")
    begin = time.monotonic()
    with pytest.raises(Failure, match=r"fio did not measure /dev/x within 0 s: use a faster drive"):
        iocost.calibrate(program, "/dev/x", tmp_path, 0.2)
    assert time.monotonic() - begin < 30


def test_an_error_of_fio_is_quoted(fio, tmp_path):
    with pytest.raises(Failure, match="fio cannot measure /dev/x: no drive"):
        iocost.calibrate(fio("echo no drive >&2", "exit 1"), "/dev/x", tmp_path, 30.0)


@pytest.mark.parametrize(
    ("scale", "half_us"), [(1, 0), (2, 1000), (100, 50_000), (10_000, 500_000)]
)
def test_the_period_is_stretched_as_the_drive_is(scale, half_us):
    words = dict(word.split("=") for word in iocost.qos_on(scale).split())
    assert (words["rlat"], words["wlat"]) == (str(half_us), str(half_us))
    assert (words["rpct"], words["wpct"]) == ("0.00", "0.00")


def request(*schedulers, device="ssd:model=980pro,fill=100"):
    return session.Request((jobfile.parse(JOB, "j.fio"),), schedulers, device=parse_device(device))


class Bench:
    """A runner on a machine made of files. Its fit raises @failure, or finds MODEL."""

    def __init__(self, machine, monkeypatch, schedulers, failure=None):
        machine.put("/sys/fs/cgroup/io.cost.qos", "")
        self.remade = 0
        self.scheduler = None
        monkeypatch.setattr(runner.shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(runner, "_set_scheduler", self._select)
        monkeypatch.setattr(runner, "require_number", lambda disk: f"259:{self.remade}")
        monkeypatch.setattr(runner.ssd, "remake", self._remake)
        monkeypatch.setattr(runner.iocost, "calibrate", self._calibrate)
        self.failure = failure
        plan = session.plan_for(request(*schedulers))
        plan = dataclasses.replace(plan, device=PlannedDevice("/dev/ssd-bench", ssd={}))
        self.runner = runner.Runner(plan, machine.root)
        self.runner._fs = Fs(str(machine.root))
        self.runner._ssd = {"model": "980pro"}

    def _select(self, disk, scheduler):
        self.scheduler = scheduler

    def _remake(self, fs):
        self.remade += 1

    def _calibrate(self, fio, device, folder, timeout_s, *, reads_only):
        assert (self.scheduler, self.remade) == ("none", 0)
        if self.failure:
            raise self.failure
        return MODEL

    def fit(self):
        self.runner._fit_iocost(None)


def test_the_other_schedulers_run_without_a_model(machine, monkeypatch):
    bench = Bench(machine, monkeypatch, ["none", "iocost", "bfq"], Failure("iocost: too slow"))
    bench.fit()
    assert [run.scheduler for run in bench.runner._plan.runs()] == ["none", "bfq"]
    assert bench.runner._left_out == {"iocost": "too slow"}


def test_iocost_alone_ends_without_a_model(machine, monkeypatch):
    bench = Bench(machine, monkeypatch, ["iocost"], Failure("iocost: too slow"))
    with pytest.raises(Failure, match="iocost: too slow"):
        bench.fit()


@pytest.mark.parametrize("failure", [None, Failure("too slow")])
def test_the_virtual_ssd_is_made_anew_after_the_writes(machine, monkeypatch, failure):
    """It goes on collecting garbage, and none then reads a quarter of its bytes."""
    bench = Bench(machine, monkeypatch, ["none", "iocost"], failure)
    bench.fit()
    assert bench.remade == 1
    assert bench.runner._number == "259:1"


def test_nothing_is_measured_without_iocost(machine, monkeypatch):
    bench = Bench(machine, monkeypatch, ["none", "bfq"], Failure("too slow"))
    bench.fit()
    assert bench.remade == 0
    assert not bench.runner._left_out


def test_the_guest_has_time_for_the_fit():
    def limit(*schedulers):
        asked = request(*schedulers)
        return session._timeout_s(asked, session.plan_for(asked))

    runs = limit("none", "bfq") - limit("none")
    assert limit("none", "iocost") - limit("none") - runs > iocost.CALIBRATE_TIMEOUT_S


def test_the_results_name_the_scheduler_that_was_left_out(tmp_path, monkeypatch):
    """The part of the runner is played by files."""
    reason = "fio did not measure /dev/ssd-bench within 120 s"

    def in_guest(asked, plan, folder, progress):
        machine = {
            "kernel": "6.1", "cpus": 2, "fio": "fio-3", "python": "3", "module": None,
            "iocost_model": {}, "calibration": {}, "left_out": {"iocost": reason},
            "disk": "ssd-bench", "ssd": {"model": "980pro", "time_scale": "100"},
        }  # fmt: skip
        (folder / "machine.json").write_text(json.dumps(machine))
        (folder / "kernel.log").write_text("")
        return "tcg"

    monkeypatch.setattr(session, "check", lambda asked: None)
    monkeypatch.setattr(session, "_run_in_guest", in_guest)
    monkeypatch.setattr(session, "analyse", lambda folder, case: CaseResult(case, (), (), {}))
    outcome = session.run(request("none", "iocost"), tmp_path)
    assert f"iocost was left out: {reason}" in outcome.notes
    whole = json.loads(json.dumps(document(outcome.results[0], outcome.where, outcome.notes)))
    assert whole["left_out"] == {"iocost": reason}
    console = report.console_for()
    with console.capture() as capture:
        console.print(report.scheduler_table(outcome.results[0]))
    assert re.search(r"iocost +left out +- +- +-", capture.get())


def test_remaking_switches_the_drive_off_and_on(machine, monkeypatch):
    monkeypatch.setattr(runner.ssd, "open_log", lambda: os.open(os.devnull, os.O_RDONLY))
    fs = Fs(str(machine.root), dry_run=True)
    runner.ssd.remake(fs)
    assert [str(write).rpartition(" to ")[0] for write in fs.writes] == ["write '0'", "write '1'"]
