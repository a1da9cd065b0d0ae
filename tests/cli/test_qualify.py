# SPDX-License-Identifier: GPL-2.0
"""mqfair qualify: its loads, the runs of each, the figures by hand, the files, and errors."""

import json
import os
import struct
import subprocess
import time

import pytest
from test_bench_interrupt import MACHINE
from test_bench_result import case, record
from test_report import Page

from mqfair.bench import counters, device, iocost, resume, session
from mqfair.bench.plan import FIGURES, RECORD, read_plan, write_plan
from mqfair.bench.result import analyse, condense
from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs
from mqfair.qualify import command, figures, loads
from mqfair.text.errors import UsageError

LABELS = ("none", "kyber", "iocost", "mqfq")
SERIAL = "S64GNE0R123456"


def jobs(region=None, depths=(8, 64)):
    return {one.name: one for one in loads.jobs(LABELS, depths, 16, 2.0, region)}


def test_each_load_has_its_cgroups_and_schedulers():
    found = jobs()
    assert list(found) == [
        "one", "peak", "two-8", "two-64", "four-8", "four-64", "reader-8", "reader-64", "mixed",
    ]  # fmt: skip
    assert found["two-64"].weights == {"w100": 100, "w300": 300}
    assert all("iodepth=64" in one.jobs[0].options for one in found["four-64"].groups)
    assert "numjobs=8" in found["peak"].groups[0].jobs[0].options
    assert {one.schedulers for one in found.values()} == {
        LABELS, ("none", "mqfq"), ("none", "mqfq", "mqfq:isolation=0"),
    }  # fmt: skip
    assert found["peak"].schedulers == LABELS
    assert found["reader-8"].schedulers[-1] == "mqfq:isolation=0"


def test_only_a_destructive_qualification_writes():
    options = [
        {name: {option for group in one.groups for job in group.jobs for option in job.options}
         for name, one in jobs(region).items()}
        for region in (None, 1 << 30)
    ]  # fmt: skip
    reads, writes = options
    assert not any("write" in option for found in reads.values() for option in found)
    assert "rw=randwrite" in writes["writes"] and "rw=randwrite" in writes["mixed"]
    assert all(f"size={1 << 30}" in found for found in writes.values())


def test_the_model_of_io_cost_is_fitted_without_a_write():
    assert "write" in iocost.probe_job("/dev/a")
    assert "write" not in iocost.probe_job("/dev/a", reads_only=True)
    read = {"bw_bytes": 1e9, "iops": 5e4}
    names = ("rbps", "rseqiops", "rrandiops")
    found = iocost.coefficients(
        {"jobs": [{"jobname": name, "read": read} for name in names]}, reads_only=True
    )
    assert found == {
        "rbps": 10**9, "rseqiops": 50000, "rrandiops": 50000,
        "wbps": 10**9, "wseqiops": 50000, "wrandiops": 50000,
    }  # fmt: skip


def test_a_condensed_run_has_the_figures_of_its_logs(tmp_path):
    place = record(tmp_path, 0, scheduler="mqfq", rates={"a": 50, "b": 125, "c": 250, "d": 500})
    before = analyse(tmp_path, case()).runs[0].cgroups
    (place / FIGURES).write_text(condense(place, case(), "mqfq", ["a", "b", "c", "d"]))
    for log in place.glob("*.log"):
        log.unlink()
    run = json.loads((place / RECORD).read_text()) | {"cpu": {"ios": 925, "busy_us": 1850}}
    (place / RECORD).write_text(json.dumps(run))
    (after,) = analyse(tmp_path, case()).runs
    assert [(one.iops, one.share, one.lat_ns) for one in after.cgroups] == [
        (one.iops, one.share, one.lat_ns) for one in before
    ]
    assert after.details == {"cpu": {"ios": 925, "busy_us": 1850}}


# --- from the command line to the files ------------------------------------------------------


class Host:
    """Stands for the runner on this host. A request takes 2 us of a CPU, under mqfq 3 us. Under
    none all cgroups get the same, under the others shares by weight. The user presses Ctrl-C
    before the run number @ends."""

    def __init__(self):
        self.ends = None
        self.made = 0

    def __call__(self, _request, plan, folder, _progress):
        (folder / "machine.json").write_text(json.dumps(MACHINE | {"uncounted": "cycles (no)"}))
        write_plan(plan, folder / "plan.json")
        assert read_plan(folder / "plan.json") == plan
        (folder / "kernel.log").write_text("")
        for number, run in enumerate(plan.runs()):
            if resume.is_finished(folder, number):
                continue
            if self.made == self.ends:
                raise KeyboardInterrupt
            self._make(resume.run_folder(folder, number), run)
            self.made += 1
        return "host"

    def _make(self, place, run):
        ours = run.scheduler.startswith("mqfq")
        parts = {one.name: run.case.weights[one.name] if ours else 100 for one in run.case.groups}
        total = 10_000 - 500 * (run.scheduler == "mqfq")
        latency = {"mean": 9e9, "p50": 5e6, "p99": 1e6 if ours else 8e6, "p999": 9e9}
        used = {
            name: {"iops": total * part / sum(parts.values()),
                   "bytes_per_s": 4096 * total * part / sum(parts.values()),
                   "latency_ns": latency, "histogram": []}
            for name, part in parts.items()
        }  # fmt: skip
        place.mkdir()
        (place / FIGURES).write_text(json.dumps(used))
        ios = 2 * total
        cpu = {"ios": ios, "elapsed_us": 2_000_000, "busy_us": ios * (3 if ours else 2)}
        document = {
            "case": run.case.name, "scheduler": run.scheduler, "repeat": run.repeat, "only": None,
            "groups": list(used), "started_ms": 0, "cpu": cpu,
        }  # fmt: skip
        (place / RECORD).write_text(json.dumps(document))


@pytest.fixture
def host(machine, monkeypatch):
    machine.disk()
    path = "/sys/devices/virtual/block/nvme0n1"
    machine.put(f"{path}/device/model", "Fast 980   ")
    machine.put(f"{path}/device/firmware_rev", "3B2QGXA7")
    machine.put(f"{path}/device/serial", SERIAL)
    machine.put(f"{path}/queue/rotational", "0")
    machine.put("/proc/cpuinfo", "processor : 0\nmodel name : Quick 5\n")
    machine.put("/sys/fs/cgroup/io.cost.qos", "")
    found = Host()
    monkeypatch.setattr(session, "_run_here", found)
    monkeypatch.setattr(session, "check", lambda _request: None)
    monkeypatch.setattr(session, "with_built_module", lambda request: request)
    monkeypatch.setattr(command, "_lacks", lambda _disk, name: "no kyber" * (name == "kyber"))
    return found


@pytest.fixture
def qualify(run, tmp_path, host):
    def call(*words):
        return run("qualify", "nvme0n1", "--out", str(tmp_path / "q"), "--depths", "8,64", *words)

    return call


def test_the_files_of_a_qualification(qualify, tmp_path, run):
    result = qualify("--repeat", "2")
    assert result.code == 0
    # 28 runs of 4.5 s, 16 of 7 s, 1.2 s around each, and 5 s for io.cost.
    assert "/dev/nvme0n1, reads only: 44 runs: about 5 min" in result.err
    text = (tmp_path / "q/qualify.json").read_text()
    assert SERIAL not in text and str(tmp_path) not in text
    found = json.loads(text)
    assert found["drive"]["model"] == "Fast 980" and found["drive"]["firmware"] == "3B2QGXA7"
    assert (found["processor"], found["destructive"]) == ("Quick 5", False)
    assert found["notes"][0] == "kyber was left out: no kyber"
    assert "the machine does not count cycles (no)" in found["notes"]
    assert "mqfq reaches 0.95 (0.95 .. 0.95) of none's peak." in result.out
    assert (
        "Of four cgroups the worst gets at least 1.00 (1.00 .. 1.00) of its due under mqfq, and"
        " 0.46 (0.46 .. 0.46) under none." in result.out
    )
    assert "In reader-64 the reader's p99 is 1,000 (1,000 .. 1,000) µs under mqfq, and 8,000" in (
        result.out
    )
    assert "In reader-64 mqfq moves 0.95 (0.95 .. 0.95) of the bytes that it moves with isol" in (
        result.out
    )
    page = Page((tmp_path / "q/qualify.html").read_text())
    assert "script" not in page.tags and page.tags.count("svg") == 3
    at = page.cells.index("peak")
    assert page.cells[at + 1 : at + 5] == ["none", "10,000 (10,000 .. 10,000)", "2 (2 .. 2)",
                                           "1.00 (1.00 .. 1.00)"]  # fmt: skip
    again = tmp_path / "again.html"
    assert run("report", str(tmp_path / "q/qualify.json"), "--out", str(again)).code == 0
    assert again.read_text() == (tmp_path / "q/qualify.html").read_text()
    two = run("report", *[str(tmp_path / "q/qualify.json")] * 2, "--out", str(again))
    assert two.code == 2
    assert "a page has one qualification: use `mqfair compare` for two" in two.err


def test_two_qualifications_are_compared_load_by_load(qualify, tmp_path, run):
    qualify("--repeat", "2")
    file = tmp_path / "q/qualify.json"
    other = json.loads(file.read_text())
    for one in other["benches"]:
        one["where"]["drive"] = "Slow 1"
        for each in one["runs"]:
            each["total_iops"] /= 2
    (tmp_path / "other.json").write_text(json.dumps(other))
    result = run("compare", str(file), str(tmp_path / "other.json"), "--json").json
    halves = {one["scheduler"] for one in result["figures"] if one["b_has"] == "less"}
    assert {"peak none", "two-8 mqfq", "reader-64 mqfq:isolation=0"} <= halves
    work = [one for one in result["figures"] if one["name"] == "CPU µs per I/O"]
    assert {one["ratio"] for one in work} == {1.0}
    assert result["notes"] == ["drive differs: Fast 980, firmware 3B2QGXA7 and Slow 1"]


def test_an_interrupted_qualification_goes_on(qualify, host, tmp_path):
    host.ends = 5
    result = qualify("--repeat", "2")
    assert result.code == 130
    assert result.err.endswith("as before; --resume goes on from there\n")
    assert "interrupted: 5 of 44 runs" in (tmp_path / "q/qualify.html").read_text()
    host.ends = None
    result = qualify("--repeat", "2")
    assert (result.code, host.made) == (2, 5)
    assert f"{tmp_path}/q: a qualification is there: add --resume, or --out FOLDER" in result.err
    result = qualify("--repeat", "2", "--resume")
    assert (result.code, host.made) == (0, 44)
    assert "44 runs, of which 5 are finished: about 4 min" in result.err
    assert "interrupted" not in (tmp_path / "q/qualify.json").read_text()


def test_other_programs_and_busy_processors_are_noted(qualify, host, tmp_path, monkeypatch):
    make = host._make
    assert "note: other" not in qualify("--repeat", "1").out

    def with_others(place, run):
        make(place, run)
        found = json.loads((place / RECORD).read_text())
        found["cpu"]["ios"] *= 2
        # Of two processors.
        found["cpu"]["busy_us"] = found["cpu"]["elapsed_us"] * 19 // 10
        (place / RECORD).write_text(json.dumps(found))

    monkeypatch.setattr(host, "_make", with_others)
    out = qualify("--repeat", "1", "--out", str(tmp_path / "other")).out
    assert "note: other programs sent 50 % of the requests" in out
    assert "note: the processors were busy for 95 % of the peak under none" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--depths", "8,8"], "--depths 8,8: a number is given twice: give it once"),
        (["--depths", "0"], "--depths 0: use a number in 1..1024"),
        (["--runtime", "900"], "--runtime 900: use a number of seconds greater than 0, at most 60"),
        (["--schedulers", "mqfq"], "--schedulers mqfq: each figure stands beside none's: add it"),
        (["--schedulers", "none,x"], "unknown scheduler 'x'"),
        (["--resume"], "--resume: nothing has begun in "),
    ],
)
def test_mistakes_are_told_before_anything_runs(qualify, host, words, said):
    result = qualify(*words)
    assert (result.code, result.err.count("\n"), host.made) == (2, 1, 0)
    assert said in result.err


def test_a_partition_is_refused(machine, host, run):
    machine.partition("nvme0n1", "nvme0n1p1", "259:1")
    result = run("qualify", "nvme0n1p1")
    assert result.code == 2
    assert "nvme0n1p1 is a partition: schedulers act on whole drives: use /dev/nvme0n1" in (
        result.err
    )


def test_a_drive_in_use_may_be_read_and_not_written(machine, monkeypatch):
    machine.disk()

    def in_use(path):
        raise UsageError(f"{path} is in use")

    monkeypatch.setattr(device, "_require_unused", in_use)
    device.check_drive("/dev/nvme0n1", destroy_data=False, reads_only=True)
    with pytest.raises(UsageError, match="/dev/nvme0n1 is in use"):
        device.check_drive("/dev/nvme0n1", destroy_data=True)


def test_a_destructive_qualification_writes_its_region_first(qualify, host, tmp_path, monkeypatch):
    called = []
    real = command.subprocess.run

    def fill(argv, **options):
        called.append(argv)
        return real(["true"], **options)

    monkeypatch.setattr(command.subprocess, "run", fill)
    result = qualify("--destructive", "--repeat", "1")
    assert result.code == 0
    (argv,) = called
    assert {"--rw=write", f"--size={8 << 30}", "--filename=/dev/nvme0n1"} <= set(argv)
    assert "writing the first 8192 MiB of /dev/nvme0n1" in result.err
    assert json.loads((tmp_path / "q/qualify.json").read_text())["destructive"] is True
    qualify("--destructive", "--repeat", "2", "--resume")
    assert len(called) == 1, "a drive that is measured is not written to again"


def test_without_a_counter_there_is_no_column(qualify, tmp_path):
    found = qualify("--repeat", "1", "--json").json
    assert found == json.loads((tmp_path / "q/qualify.json").read_text())
    (peak,) = [one for one in figures.SECTIONS if one.load == "peak"]
    assert figures.rows(peak, found)[0] == [
        "load", "scheduler", "IOPS", "CPU µs per I/O", "IOPS, of none's",
    ]  # fmt: skip
    for one in found["benches"]:
        for each in one["runs"]:
            each["cpu"]["instructions"] = 7 * each["cpu"]["ios"]
    assert figures.rows(peak, found)[1][4] == "7 (7 .. 7)"


# --- the counters ----------------------------------------------------------------------------


@pytest.fixture
def disk(machine):
    machine.disk()
    machine.put("/sys/devices/virtual/block/nvme0n1/stat", "70 0 8 1 30 0 8 1 0 1 2")
    machine.put("/proc/stat", "cpu  100 0 50 900 40 5 5 0 7 0\ncpu0 100 0 50 900 40 5 5 0 7 0")
    return Disk(Fs(), "nvme0n1")


def test_a_counter_counts_or_says_why_it_cannot(disk):
    names = {"cycles", "instructions", "context_switches"}
    deadline = time.monotonic() + 10
    with counters.counting(disk) as found:
        first = found.look()
        counted = names - {*found.missing}
        while True:
            subprocess.run(["sleep", "0.02"], check=True)
            last = found.look()
            # The disk's machine has one CPU. On a busy one no task need begin there in 20 ms.
            if all(last[name] > first[name] for name in counted):
                break
            assert time.monotonic() < deadline, (first, last)
    assert first["ios"] == 100
    assert first["busy_us"] == 1_600_000, "user, system and interrupts, at 100 ticks a second"
    assert last["elapsed_us"] - first["elapsed_us"] >= 20_000
    assert {*found.missing} | {*first} == names | {"ios", "busy_us", "elapsed_us"}
    assert not {*found.missing} & {*first}
    if os.geteuid() == 0:
        assert "context_switches" not in found.missing, found.missing


@pytest.mark.parametrize(
    ("enabled", "counting", "value"), [(8, 8, 100), (8, 2, 400), (8, 0, 0)]
)  # fmt: skip
def test_a_counter_that_shared_its_register_is_scaled(enabled, counting, value):
    reader, writer = os.pipe()
    os.write(writer, struct.pack("QQQ", 100, enabled, counting))
    assert counters._count(reader) == value
    os.close(reader)
    os.close(writer)
