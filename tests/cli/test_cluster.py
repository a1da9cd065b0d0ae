# SPDX-License-Identifier: GPL-2.0
"""mqfair sim --cluster: the workers of a Dask scheduler give the same bytes as this machine."""

import contextlib
import dataclasses
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_replays import HEAD
from test_traces import as_native, mixed

from mqfair.bench.session import ROOT
from mqfair.bench.simulated import player, program
from mqfair.text.errors import Failure

FAST = "null:irqmode=2,completion_nsec=10000,submit_queues=2,hw_queue_depth=64,gb=1"
JOB = str(ROOT / "examples/four-cgroups.fio")
SWEEP = ("--schedulers", "none,mqfq", "--sweep", "mqfq.depth=8,16", "--repeat", "2")


def started(folder, *argv):
    """A program of Dask. Its folder has no package of ours."""
    log = (folder / f"{argv[0]}.log").open("a")
    argv = [sys.executable, "-P", "-m", f"distributed.cli.dask_{argv[0]}", *argv[1:]]
    env = {"PATH": "/usr/bin:/bin", "TMPDIR": str(folder)}
    return subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log, env=env)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def scheduler_in(folder):
    pytest.importorskip("distributed", reason="the package distributed is missing")
    port = str(free_port())
    process = started(folder, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
    try:
        wait_for(lambda: "Scheduler at" in (folder / "scheduler.log").read_text(), process)
        yield f"tcp://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@dataclasses.dataclass
class Cluster:
    """A scheduler at @address, with its log in @folder. @workers has all that were ever started."""

    address: str
    folder: Path
    workers: list[subprocess.Popen] = dataclasses.field(default_factory=list)

    def alive(self):
        return [one for one in self.workers if one.poll() is None]

    def have_two_workers(self):
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        while len(self.alive()) < 2:
            self.workers.append(started(self.folder, "worker", self.address, *options))
        log = self.folder / "worker.log"
        said = len(self.workers)
        wait_for(lambda: log.read_text().count("Registered to") == said, *self.alive())

    def end_workers(self):
        for one in self.alive():
            one.kill()
            one.wait()


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A scheduler without workers."""
    folder = tmp_path_factory.mktemp("cluster")
    with scheduler_in(folder) as address:
        cluster = Cluster(address, folder)
        yield cluster
        cluster.end_workers()


@pytest.fixture
def workers(scheduler):
    """The scheduler with two workers; those that a test has ended are replaced."""
    scheduler.have_two_workers()
    return scheduler


@pytest.fixture
def address(workers):
    return workers.address


def wait_for(condition, *processes):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        assert all(one.poll() is None for one in processes)
        time.sleep(0.1)


@pytest.fixture
def impatient(monkeypatch):
    module = pytest.importorskip("mqfair.bench.simulated.cluster")
    monkeypatch.setattr(module, "PATIENCE_S", 1)


def test_a_scheduler_without_workers_is_told(scheduler, impatient, run):
    """Before the workers of the other tests have begun."""
    got = run("sim", JOB, "--cluster", scheduler.address)
    assert (got.code, got.out) == (1, "")
    said = (
        f"mqfair: --cluster {scheduler.address}: no worker within 1 s: start some by `dask worker"
    )
    assert got.err.splitlines()[-1].startswith(said)


def results(run, tmp_path, name, *argv):
    path = tmp_path / f"{name}.json"
    got = run("sim", *argv, "--json", str(path), "--raw", str(tmp_path / name))
    assert got.code == 0, got.err
    raw = tmp_path / name
    records = [file.read_bytes() for file in sorted(raw.glob("*/run.json"))]
    return path.read_bytes(), got.out, records


def test_a_sweep_gives_the_same_bytes_as_here(address, run, tmp_path):
    here = results(run, tmp_path, "here", JOB, *SWEEP)
    there = results(run, tmp_path, "there", JOB, *SWEEP, "--cluster", address)
    assert there == here
    assert len(there[2]) == 6


def test_traces_are_sent(address, run, tmp_path):
    as_native(tmp_path / "in.trace", mixed(3000))
    job = tmp_path / "j.fio"
    job.write_text(f"{HEAD}[a]\ncgroup=a\nread_iolog=in.trace\nnumjobs=32\n")
    argv = (str(job), "--device", FAST, "--schedulers", "none,mqfq")
    here = results(run, tmp_path, "here", *argv)
    there = results(run, tmp_path, "there", *argv, "--cluster", address)
    assert there == here
    assert json.loads(there[2][0])["totals"]["ios"] == 3000


def test_a_mistake_in_a_description_is_told_as_here(address, tmp_path):
    from mqfair.bench.simulated import cluster

    binary = program.ensure()
    said = []
    with cluster.connected(address, binary, tmp_path) as there:
        for place in (there, player.Here(binary, tmp_path, 1)):
            with pytest.raises(program.WrongDescriptionError) as error:
                place.play("scheduler none\nnonsense 1\n")
            said.append(str(error.value))
    assert said[0] == said[1] and "nonsense" in said[0]


def test_a_worker_that_cannot_run_the_program_is_named(address, tmp_path):
    from mqfair.bench.simulated import cluster

    wrong = tmp_path / "sim-run"
    wrong.write_bytes(b"\x7fELF of another machine")
    with cluster.connected(address, wrong, tmp_path) as there:
        with pytest.raises(Failure, match=r"worker \S+ cannot run sim-run: Exec format error"):
            there.play("run_ms 1\n")
        there.end()
        with pytest.raises(Failure, match="the scheduler is gone"):
            there.play("run_ms 1\n")


def test_an_interrupted_bench_ends_soon_and_keeps_its_runs(address, tmp_path):
    argv = ["sim", JOB, "--runtime", "60", "--schedulers", "none,mqfq", "--repeat", "20"]
    raw = tmp_path / "raw"
    process = subprocess.Popen(
        [sys.executable, "-m", "mqfair", *argv, "--raw", raw, "--cluster", address],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(lambda: any(raw.glob("*/run.json")), process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 40 runs were finished" in said
    assert "Traceback" not in said


def test_a_run_of_a_lost_worker_is_played_by_another(workers, run, tmp_path):
    argv = [JOB, "--runtime", "20", "--schedulers", "none,mqfq", "--repeat", "3"]
    here = results(run, tmp_path, "here", *argv)
    raw, document = tmp_path / "there", tmp_path / "there.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "mqfair", "sim", *argv, "--raw", raw, "--json", document,
         "--cluster", workers.address], cwd=ROOT, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(lambda: any(raw.glob("*/run.json")), process)
    workers.alive()[0].kill()
    assert process.wait(timeout=120) == 0
    assert document.read_bytes() == here[0]


def test_lost_workers_are_told(workers, tmp_path, monkeypatch):
    from mqfair.bench.simulated import cluster

    monkeypatch.setattr(cluster, "_LOOK_S", 0.2)
    monkeypatch.setattr(cluster, "ABSENCE_S", 1)
    with cluster.connected(workers.address, program.ensure(), tmp_path) as there:
        workers.end_workers()
        with pytest.raises(Failure, match="no worker for 1 s: start some; with --raw, --resum"):
            there.play("scheduler none\ndevice 1 1000 0\nrun_ms 1\nflow a weight 1\n")


def test_no_scheduler(impatient, run):
    address = f"tcp://127.0.0.1:{free_port()}"
    got = run("sim", JOB, "--cluster", address)
    assert (got.code, got.out) == (1, "")
    assert got.err.splitlines()[-1] == (
        f"mqfair: --cluster {address}: no scheduler answers within 1 s: start one by"
        " `dask scheduler`"
    )


def test_the_package_is_named_if_it_is_missing(run, monkeypatch):
    monkeypatch.setattr(player.importlib.util, "find_spec", lambda _name: None)
    got = run("sim", JOB, "--cluster", "tcp://127.0.0.1:1")
    assert (got.code, got.err.count("\n")) == (1, 1)
    assert "package distributed missing" in got.err and "mqfair[cluster]" in got.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["sim", JOB, "--cluster", "here"], "--cluster here: use the scheduler's address, as tcp"),
        (["sim", JOB, "--cluster", "tcp://a:1", "--jobs", "2"], "--jobs 2: the workers of --clu"),
        (["bench", JOB, "--cluster", "tcp://a:1"], "--cluster is for the simulator: add --on sim"),
    ],
)
def test_wrong_command_lines(run, argv, said):
    got = run(*argv)
    assert (got.code, got.out, got.err.count("\n")) == (2, "", 1)
    assert said in got.err


def test_a_run_here_needs_no_dask(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "mqfair.bench.simulated.cluster", raising=False)
    assert run("sim", JOB, "--schedulers", "none").code == 0


def test_exit_statuses_of_a_run():
    assert program.outcome(0, "{}", "", "p") == {}
    with pytest.raises(program.WrongDescriptionError, match="line 3"):
        program.outcome(2, "", "sim-run: line 3", "p")
    with pytest.raises(Failure, match="signal 9 ended the program p: memory may be short"):
        program.outcome(-9, "", "", "p")
