# SPDX-License-Identifier: GPL-2.0
"""Several programs that change one disk at the same time."""

import contextlib
import fcntl
import io
import multiprocessing
import os
import re
import time

import pytest
from conftest import OURS

from mqfair.__main__ import main
from mqfair.machine import lock
from mqfair.machine.fs import Fs

SCHEDULER = "/sys/block/nvme0n1/queue/scheduler"
LOCK = f"{lock.FOLDER}/nvme0n1.lock"
SAID = re.compile(r"nvme0n1: (\S+) \((?:was (\S+)|(as before))\)  (.*)")


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    machine.host("/run").mkdir()
    return machine


def enable_slowly(scheduler, machine, start, answers):
    """The whole verb in a process, with a kernel that takes 50 ms for each write."""

    def store(_self, path, value):
        time.sleep(0.05)
        machine.store(path, value)

    time.sleep = REAL_SLEEP
    Fs._store = store
    text = io.StringIO()
    start.wait()
    with contextlib.redirect_stdout(text):
        code = main(["enable", "nvme0n1", "--scheduler", scheduler])
    answers.put((code, text.getvalue()))


REAL_SLEEP = time.sleep


def test_each_of_several_enables_reports_the_truth(host):
    """Each line names the scheduler before and after. Without a race the lines form a chain from
    the first scheduler to the last."""
    fork = multiprocessing.get_context("fork")
    start, answers = fork.Barrier(4), fork.Queue()
    programs = [
        fork.Process(target=enable_slowly, args=(name, host, start, answers)) for name in OURS[:4]
    ]
    for program in programs:
        program.start()
    said = [answers.get(timeout=60) for _ in programs]
    for program in programs:
        program.join()
    assert [code for code, _ in said] == [0] * 4, said
    matches = [SAID.match(text) for _, text in said]
    after = {match[2]: match[1] for match in matches}
    active = re.search(r"\[(\S+)\]", host.get(SCHEDULER))[1]
    place, steps = "none", 0
    while place in after and steps < 4:
        place, steps = after[place], steps + 1
    assert (place, steps) == (active, 4), said


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_a_disk_that_another_program_changes_is_left_alone(host, run, verb):
    host.put(LOCK, "4711")
    before = host.snapshot()
    with host.host(LOCK).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = run(verb, "nvme0n1")
    assert result.code == 1
    assert f"process 4711 is changing nvme0n1 (lock {LOCK})" in result.err
    assert host.snapshot() == before


def test_the_lock_names_its_holder_and_is_released(host, run):
    assert run("enable", "nvme0n1").code == 0
    assert host.get(LOCK) == str(os.getpid())
    assert run("disable", "nvme0n1").code == 0


def test_a_dry_run_needs_no_lock(host, run):
    assert run("enable", "nvme0n1", "--dry-run").code == 0
    assert not host.host(LOCK).exists()


def test_a_switch_by_a_program_without_the_lock_is_reported(host, run, monkeypatch):
    """`echo ifq > scheduler` at the moment of the last write."""

    def store(_self, path, value):
        host.store(path, value)
        if path.endswith("nr_requests"):
            host.store(SCHEDULER, "ifq")

    monkeypatch.setattr(Fs, "_store", store)
    result = run("enable", "nvme0n1")
    assert (result.code, result.out) == (1, "")
    assert "reads 'ifq', not 'mqfq': another program switched it" in result.err
    assert "[ifq]" in host.get(SCHEDULER)
