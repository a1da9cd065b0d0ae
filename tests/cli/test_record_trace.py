# SPDX-License-Identifier: GPL-2.0
"""mqfair record --trace: from the lines of tracefs to a trace that the other verbs read."""

import errno
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from mqfair.traces.reader import Trace

INSTANCES = "/sys/kernel/tracing/instances"
FILES = (
    "tracing_on",
    "trace_options",
    "trace_clock",
    "buffer_size_kb",
    "events/block/block_bio_queue/filter",
    "events/block/block_bio_queue/enable",
)
STATS = "entries: 0\noverrun: {}\ncommit overrun: 0\nbytes: 52\ndropped events: {}\nread events: 9"
# The task's name tries to look like a line. A flush and a zone's reset have no data.
LINES = (
    "       a-5 [001]-11  [000] ..... 100.000001: block_bio_queue: 259,0 R 2048 + 8 [a-5 [001]]\n",
    "     <...>-12      [001] d..1. 100.000251: block_bio_queue: 259,2 WS 4096 + 16 [db]\n"
    "CPU:1 [LOST 3 EVENTS]\n"
    "        fio-12     [001] ..... 100.000300: block_bio_queue: 259,0 FF 0 + 0 [fio]\n"
    "        fio-12     [001] ..... 100.000301: block_bio_queue: 259,0 ZR 0 + 524288 [fio]\n"
    "        fio-12     [001] ..... 100.000302: block_bio_queue: 259,0 WZS 0 + 64 [fio]\n",
    # Half a line, and its rest.
    "        fio-13     [000] ..... 101.500000: block_bio_queue: 259,0 FWFS 0 + 1",
    " [fio]\n        fio-13     [000] ..... 101.499999: block_bio_queue: 259,0 DS 64 + 64 [fio]\n",
    # The task has ended, and its number was seen before; another one never was.
    "        fio-11     [000] ..... 102.000000: block_bio_queue: 259,0 RA 8 + 8 [fio]\n"
    "        fio-14     [000] ..... 102.000000: block_bio_queue: 259,0 R 16 + 8 [fio]\n",
)
TRACE = """\
mqfair trace 1
0 read 1048576 4096 prod/db
250000 write 2097152 8192 batch
1499999000 write 0 512 /
1499999000 trim 32768 32768 /
1999999000 read 4096 4096 prod/db
1999999000 read 8192 4096 unknown
"""


class Tracefs:
    """A kernel that fills a new folder with the files of an instance. Each sleep of the program
    brings the next of @chunks, and takes half a second."""

    def __init__(self, machine, monkeypatch):
        self.machine = machine
        self.chunks = list(LINES)
        self.lost = (0, 0)
        self.wrote = {}
        self.made = []
        self.now = 0.0
        self.at_sleep = lambda: None
        self.feed = -1
        folder = machine.host(INSTANCES)
        folder.mkdir(parents=True)
        mkdir, rmdir = Path.mkdir, Path.rmdir

        def make(path, *args, **kwargs):
            mkdir(path, *args, **kwargs)
            if path.parent == folder and not self.made:
                self._fill(path)

        def remove(path):
            if path.parent == folder and self.made:
                self.wrote = {name: machine.get(f"{self.made[-1]}/{name}") for name in FILES}
                shutil.rmtree(path)
            else:
                rmdir(path)

        monkeypatch.setattr(Path, "mkdir", make)
        monkeypatch.setattr(Path, "rmdir", remove)
        monkeypatch.setattr(time, "sleep", self._sleep)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def _fill(self, path):
        self.made.append(f"{INSTANCES}/{path.name}")
        for name in FILES:
            self.machine.put(f"{self.made[-1]}/{name}", "")
        for cpu, lost in enumerate(self.lost):
            self.machine.put(f"{self.made[-1]}/per_cpu/cpu{cpu}/stats", STATS.format(lost, lost))
        os.mkfifo(path / "trace_pipe")

    def _sleep(self, _seconds):
        self.now += 0.5
        self.at_sleep()
        if self.feed < 0:
            pipe = self.machine.host(f"{self.made[-1]}/trace_pipe")
            self.feed = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        if self.chunks:
            os.write(self.feed, self.chunks.pop(0).encode())
        if len(self.chunks) == 1:
            shutil.rmtree(self.machine.host("/proc/11"))


@pytest.fixture
def tracefs(machine, monkeypatch):
    machine.disk()
    machine.partition("nvme0n1", "nvme0n1p2", "259:2")
    machine.put("/proc/11/cgroup", "0::/prod/db")
    machine.put("/proc/12/cgroup", "3:cpu:/other\n9:blkio,devices:/batch (deleted)\n0::/else")
    machine.put("/proc/13/cgroup", "0::/")
    return Tracefs(machine, monkeypatch)


@pytest.fixture
def record(run, tmp_path):
    path = tmp_path / "x.trace"

    def call(*argv, device="nvme0n1"):
        return path, run("record", device, "--trace", "--out", str(path), "--seconds", "4", *argv)

    return call


def test_a_trace_has_time_place_operation_and_cgroup(tracefs, record):
    path, result = record()
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{path}: 6 requests of 52.5 KiB in 2.0 s, from 4 cgroups\n"
    assert path.read_text() == TRACE
    assert len(list(Trace(str(path)).requests())) == 6
    assert tracefs.made == [f"{INSTANCES}/mqfair-{os.getpid()}"]
    assert list(tracefs.machine.host(INSTANCES).iterdir()) == []


def test_a_path_of_multipath_is_refused_by_the_name_of_its_head(tracefs, record):
    tracefs.machine.stacked("nvme2n1", "259:9", "")
    tracefs.machine.disk("nvme2c0n1", None)
    path, result = record(device="nvme2c0n1")
    assert (result.code, path.exists(), tracefs.made) == (2, False, [])
    assert result.err == (
        "mqfair: --trace nvme2c0n1: the kernel names a request of this path by its head: record"
        " all paths with mqfair record nvme2n1 --trace\n"
    )
    record(device="nvme2n1")
    event = "events/block/block_bio_queue"
    assert f"dev == {259 << 20 | 9})" in tracefs.wrote[f"{event}/filter"]


def test_the_kernel_chooses_the_requests_of_the_disk_and_its_partitions(tracefs, record):
    record()
    device = 259 << 20
    either = f"dev == {device} || dev == {device + 2}"
    event = "events/block/block_bio_queue"
    assert tracefs.wrote[f"{event}/filter"] == f"({either}) && common_pid != {os.getpid()}"
    assert (tracefs.wrote[f"{event}/enable"], tracefs.wrote["trace_clock"]) == ("1", "mono")
    assert tracefs.wrote["tracing_on"] == "0"


def test_a_partition_is_recorded_alone(tracefs, record):
    record(device="nvme0n1p2")
    assert tracefs.wrote["events/block/block_bio_queue/filter"].startswith(
        f"(dev == {(259 << 20) + 2}) &&"
    )


def test_a_load_that_never_pauses_is_recorded_for_the_asked_time(tracefs, record, monkeypatch):
    """Each read of the pipe brings a request and takes a tenth of a second."""
    line = LINES[0]

    def chunk(_instance):
        tracefs.now += 0.1
        on = tracefs.machine.get(f"{tracefs.made[-1]}/tracing_on") == "1"
        return line.encode() if on else b""

    monkeypatch.setattr("mqfair.machine.tracefs.Instance._chunk", chunk)
    path, result = record()
    assert (result.code, result.err) == (0, "")
    assert 40 <= len(list(Trace(str(path)).requests())) <= 40 + 64


def test_lost_requests_are_an_error(tracefs, record):
    tracefs.lost = (3, 4)
    path, result = record()
    assert result.code == 1
    assert result.err == (
        f"mqfair: {path}: 14 requests were lost, since they came faster than they were written:"
        " record a partition, or a smaller load\n"
    )
    assert path.read_text() == TRACE


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_trace_keeps_its_requests(tracefs, record, how):
    def interrupt():
        if len(tracefs.chunks) == 3:
            signal.raise_signal(how)

    tracefs.at_sleep = interrupt
    tracefs.lost = (0, 2)
    path, result = record()
    lost = "4 requests were lost, since they came faster than they were written"
    assert (result.code, result.err) == (
        130,
        f"mqfair: interrupted; {path} has 2 requests; {lost}\n",
    )
    assert path.read_text() == "".join(TRACE.splitlines(keepends=True)[:3])
    assert list(tracefs.machine.host(INSTANCES).iterdir()) == []


def test_a_signal_amid_a_batch_loses_no_request_of_it(tracefs, record, monkeypatch):
    from mqfair.watch import record_trace

    real = record_trace._Recorder._parse

    def parse(recorder, line, fresh):
        if "<...>-12" in line:
            signal.raise_signal(signal.SIGINT)
        return real(recorder, line, fresh)

    monkeypatch.setattr(record_trace._Recorder, "_parse", parse)
    tracefs.chunks = ["".join(LINES)]
    path, result = record()
    assert (result.code, result.err) == (130, f"mqfair: interrupted; {path} has 6 requests\n")


def test_the_folder_of_a_killed_program_is_replaced(tracefs, record):
    tracefs.made.append("as if it were full")
    tracefs.machine.host(f"{INSTANCES}/mqfair-{os.getpid()}").mkdir()
    tracefs.made.clear()
    assert record()[1].code == 0


def test_an_instance_that_is_still_in_use_is_removed_later(tracefs, record, monkeypatch):
    real, left = Path.rmdir, [2]

    def refuse(path):
        left[0] -= tracefs.made != []
        if tracefs.made and left[0] >= 0:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real(path)

    monkeypatch.setattr(Path, "rmdir", refuse)
    assert record()[1].code == 0
    assert left[0] == -1
    assert list(tracefs.machine.host(INSTANCES).iterdir()) == []


def test_json(tracefs, record):
    path, result = record("--json")
    assert result.json == {
        "schema": "mqfair.record-trace/1",
        "file": str(path),
        "requests": 6,
        "bytes": 53760,
        "seconds": 1.999999,
        "cgroups": ["/", "batch", "prod/db", "unknown"],
        "without_data": 3,
        "lost": 0,
    }


def test_to_standard_output(tracefs, run):
    result = run("record", "nvme0n1", "--trace", "--out", "-", "--seconds", "4")
    assert (result.code, result.out) == (0, TRACE)


def test_progress_on_a_terminal(tracefs, record, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    _, result = record()
    assert "recording nvme0n1: 1 of 4 s, 2 requests" in result.err
    assert result.err.endswith("\r\x1b[K")


def test_a_line_that_is_not_known_is_an_error(tracefs, record):
    tracefs.chunks = ["fio-12 [001] ..... 100.0: block_bio_queue: sector 5\n"]
    result = record()[1]
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "'fio-12 [001] ..... 100.0: block_bio_queue: sector 5': not the text of" in result.err
    assert list(tracefs.machine.host(INSTANCES).iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--trace", "--out", "-"], 2, "--trace: name one device"),
        (["nvme0n1", "nvme0n1", "--trace", "--out", "-"], 2, "--trace: name one device"),
        (["sdz", "--trace", "--out", "-"], 2, "unknown device 'sdz'"),
        (["nvme0n1", "--trace", "--out", "/nosuch/x"], 2, "--out /nosuch/x: No such file"),
        (["nvme0n1", "--trace", "--out", "/tmp"], 2, "--out /tmp: Is a directory"),
        (["nvme0n1", "--trace", "--out", "-", "--seconds", "0"], 2, "--seconds 0: use a number"),
        (["nvme0n1", "--trace", "--out", "-", "--interval", "2"], 2, "--interval 2: is for"),
        (["nvme0n1", "--trace", "--out", "/dev/full"], 1, "/dev/full: No space left on device: it"),
    ],
)  # fmt: skip
def test_errors_are_one_line(tracefs, run, argv, code, said):
    result = run("record", *argv)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert said in result.err
    assert list(tracefs.machine.host(INSTANCES).iterdir()) == []


def test_without_tracefs_the_remedy_is_a_mount(tracefs, record):
    tracefs.machine.host(INSTANCES).rename(tracefs.machine.host("/sys/kernel/tracing/other"))
    result = record()[1]
    assert result.code == 1
    assert re.search(r"no tracefs at /sys/kernel/tracing: mount -t tracefs", result.err)


@pytest.mark.parametrize(("number", "hint"), [(errno.EACCES, "root"), (errno.EROFS, "read-only")])
def test_without_the_right_to_trace(tracefs, record, monkeypatch, number, hint):
    def refuse(_path):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    result = record()[1]
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert f"cannot make {INSTANCES}/mqfair-" in result.err and hint in result.err


def test_a_kernel_without_the_event(tracefs, record):
    """It has tracefs at its old place, and the folder stays empty."""
    old = tracefs.machine.host("/sys/kernel/debug/tracing")
    old.mkdir(parents=True)
    tracefs.machine.host(INSTANCES).rename(old / "instances")
    result = record()[1]
    assert result.code == 1
    assert result.err == (
        "mqfair: this kernel has no event block/block_bio_queue: it needs CONFIG_EVENT_TRACING\n"
    )
    assert list((old / "instances").iterdir()) == []
