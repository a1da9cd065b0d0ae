# SPDX-License-Identifier: GPL-2.0
"""A bench that the user ends: the machine is restored, and finished runs are not lost."""

import json
import os
import signal
import textwrap
import threading
import time

import pytest
from test_bench_result import record

from mqfair.bench import jobfile, session
from mqfair.bench.device import parse_device

MACHINE = {
    "kernel": "6.1", "cpus": 2, "fio": "fio-3", "python": "3.11", "disk": "nullb0", "ssd": {},
    "iocost_model": {}, "calibration": {}, "left_out": {}, "module": None,
}  # fmt: skip


def finish(folder, *schedulers):
    """The files of @schedulers as the runner leaves them, and of one more run that has begun."""
    (folder / "machine.json").write_text(json.dumps(MACHINE))
    for number, scheduler in enumerate(schedulers):
        record(folder, number, scheduler=scheduler, rates={"a": 100, "b": 300}, end_ms=5000)
    (folder / f"{len(schedulers):03d}").mkdir()


@pytest.fixture
def interrupted(monkeypatch):
    """A function that replaces the guest: it finishes runs, then the user presses Ctrl-C."""

    def after(*schedulers, how=KeyboardInterrupt):
        def run(_request, _plan, folder, _progress):
            if schedulers:
                finish(folder, *schedulers)
            raise how

        monkeypatch.setattr(session, "_run_in_guest", run)

    return after


@pytest.mark.parametrize("how", [KeyboardInterrupt, SystemExit(143)])
def test_finished_runs_are_shown_and_written(run, four, tmp_path, interrupted, how):
    interrupted("none", "bfq", how=how)
    file = tmp_path / "out.json"
    words = ("--schedulers", "none,bfq", "--repeat", "2", "--json", str(file))
    result = run("bench", str(four), *words)
    assert result.code == 130
    assert result.err.splitlines()[-1] == "mqfair: interrupted; 2 of 4 runs were finished"
    assert "bfq" in result.out and "75.0" in result.out
    assert "note: interrupted: 2 of 4 runs were finished" in result.out
    whole = json.loads(file.read_text())
    assert [one["scheduler"] for one in whole["runs"]] == ["none", "bfq"]
    assert whole["notes"][0] == "interrupted: 2 of 4 runs were finished"


@pytest.mark.parametrize("schedulers", [(), ("none",)])
def test_an_interruption_without_a_result_is_one_line(run, four, interrupted, schedulers):
    """The second case: the record of the only run is damaged."""
    interrupted(*schedulers)
    if schedulers:
        damage_records(session)
    result = run("bench", str(four), "--schedulers", "none,bfq")
    assert (result.code, result.out) == (130, "")
    assert result.err.splitlines()[-1].startswith("mqfair: interrupted; ")


def damage_records(module):
    whole = module._run_in_guest

    def run(request, plan, folder, progress):
        try:
            whole(request, plan, folder, progress)
        finally:
            (folder / "000" / "run.json").write_text("{")

    module._run_in_guest = run


RUNNER = """
    import signal, sys, time
    from pathlib import Path
    folder = Path(sys.argv[1])
    ends = []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(1))
    (folder.parent / "ready").touch()
    while not ends:
        time.sleep(0.01)
    while not (folder.parent / "sent").exists():  # restores the scheduler, the cgroups, the modules
        time.sleep(0.01)
    (folder / "kernel.log").write_text("restored")
    (folder.parent / "ended").write_text(str(len(ends)))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_bench_on_this_host_waits_for_its_runner(four, tmp_path, monkeypatch, how):
    """`timeout -s INT` sends the signal to the program and to its group, so it comes twice."""
    (tmp_path / "slow_runner.py").write_text(textwrap.dedent(RUNNER))
    monkeypatch.setattr(session, "ROOT", tmp_path)
    monkeypatch.setattr(session, "RUNNER", "slow_runner")
    monkeypatch.setattr(session, "check", lambda _request: None)
    folder = tmp_path / "raw"
    folder.mkdir()
    asked = session.Request(
        (jobfile.load(str(four)),), ("none",), device=parse_device("/dev/null"), on="host"
    )

    def interrupt():
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        for _ in range(3):
            os.kill(os.getpid(), how)
            time.sleep(0.1)
        (tmp_path / "sent").touch()

    user = threading.Thread(target=interrupt)
    user.start()
    with pytest.raises(session.Interrupted) as interruption:
        session.run(asked, folder)
    user.join()
    assert (tmp_path / "ended").read_text() == "1"
    assert (folder / "kernel.log").read_text() == "restored"
    assert interruption.value.outcome is None
    assert "scheduler, cgroups and modules are as before" in str(interruption.value)
