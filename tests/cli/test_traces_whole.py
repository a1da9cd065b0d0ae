# SPDX-License-Identifier: GPL-2.0
"""mqfair trace writes its output whole or not at all, whatever stops it and whatever is there."""

import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import ROOT
from test_traces import as_native, mixed

from mqfair.bench import jobfile
from mqfair.bench.jobfile import RUNTIME_MOST_S
from mqfair.traces import command, native, reader
from mqfair.traces.reader import Trace
from mqfair.traces.request import NS, Request

# More than the reader sorts, so that requests are written before the last line is read.
MANY = reader.WINDOW + 1000


@pytest.fixture
def good(tmp_path):
    return as_native(tmp_path / "good.trace", mixed(MANY))


@pytest.fixture
def bad(good, tmp_path):
    """A trace with a wrong line at its end."""
    path = tmp_path / "bad.trace"
    path.write_text(Path(good).read_text() + "abc read 0 4096 x\n")
    return str(path)


@pytest.fixture
def place(tmp_path):
    """An empty folder for the output."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def small_files():
    """No file may be longer than 64 KiB, which write() refuses like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


# ------------------------------------------------------------------ nothing is half done


@pytest.fixture(params=["--out", "--split"])
def output(request, place):
    """The option, and a check that nothing is written."""
    if request.param == "--split":
        return ["--split", str(place / "a" / "b")], lambda: list(place.iterdir()) == []
    kept = place / "keep.out"
    kept.write_text("precious")

    def untouched():
        return list(place.iterdir()) == [kept] and kept.read_text() == "precious"

    return ["--out", str(kept)], untouched


def test_a_wrong_line_late_in_a_trace_writes_nothing(bad, output, run):
    option, is_untouched = output
    got = run("trace", bad, *option)
    assert got.code == 2
    assert got.err.startswith(f"mqfair: {bad}:{MANY + 2}: 'abc': the time in ns is a whole number")
    assert is_untouched()


def test_a_full_disk_writes_nothing_and_names_the_output(good, output, run, small_files):
    option, is_untouched = output
    got = run("trace", good, *option)
    assert (got.code, got.out) == (1, "")
    assert got.err == (
        f"mqfair: cannot write {option[1]}: File too large: nothing is written:"
        " free space, or name another place\n"
    )
    assert is_untouched()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_writes_nothing(good, output, run, monkeypatch, how):
    option, is_untouched = output

    def interrupted(requests, whole):
        for number, request in enumerate(requests):
            if number == 5000:
                signal.raise_signal(how)
            yield request

    monkeypatch.setattr(command, "_counted", interrupted)
    got = run("trace", good, *option)
    assert (got.code, got.err) == (130, "mqfair: interrupted\n")
    assert is_untouched()


def test_too_many_sources_leave_no_folder(tmp_path, place, run):
    lines = [native.HEAD, *(f"0 read 0 512 s{number}" for number in range(300))]
    path = tmp_path / "in.trace"
    path.write_text("\n".join(lines) + "\n")
    got = run("trace", str(path), "--split", str(place / "parts"))
    assert got.code == 2
    assert "--split: more than 256 sources: choose some by --source" in got.err
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("longer_ns", [-1, 0, 1, 10**18])
@pytest.mark.parametrize("fitting", [1, 2, 5])
def test_a_split_is_no_longer_than_a_job_file_may_run(tmp_path, place, run, fitting, longer_ns):
    """Otherwise nothing is written, and the mend makes a job file that is read."""
    last_ns = int(RUNTIME_MOST_S) * NS + longer_ns
    times = [*range(fitting), last_ns, last_ns]
    source = as_native(tmp_path / "in", [Request(at, "read", 0, 512, "a") for at in times])
    words = ["trace", source, "--split", str(place / "parts")]
    got = run(*words)
    if longer_ns >= 0:
        assert got.code == 2
        assert f"--split: request {fitting + 1} is {last_ns / NS:.0f} s after the first" in got.err
        assert list(place.iterdir()) == []
        got = run(*words, *re.search(r"add (--requests \d+)\n", got.err)[1].split())
    assert got.code == 0
    job = jobfile.load(str(place / "parts/replay.fio"))
    assert job.window_s <= RUNTIME_MOST_S
    many = fitting if longer_ns >= 0 else len(times)
    assert written(place / "parts/a.trace") == many


@pytest.mark.parametrize("name", ["", "good.trace", "good.trace/x", "/proc/x", "x" * 300])
def test_a_folder_that_cannot_be_made_is_refused(good, run, tmp_path, name):
    got = run("trace", good, "--split", str(tmp_path / name))
    assert (got.code, got.out) == (2, "")
    assert got.err.startswith(f"mqfair: --split {tmp_path / name}: ")
    assert got.err.endswith(": name a new folder\n")
    assert [one.name for one in tmp_path.iterdir()] == ["good.trace"]


# ------------------------------------------------------------------ the file that is there


def written(path):
    return len(list(Trace(str(path)).requests()))


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_that_is_replaced_keeps_its_permissions(good, place, run, mode):
    out = place / "out"
    out.write_text("old")
    out.chmod(mode)
    assert run("trace", good, "--out", str(out)).code == 0
    assert (written(out), stat.S_IMODE(out.stat().st_mode)) == (MANY, mode)
    assert list(place.iterdir()) == [out]


def test_new_files_have_the_permissions_of_the_umask(good, place, run):
    before = os.umask(0o027)
    try:
        assert run("trace", good, "--out", str(place / "out")).code == 0
        assert run("trace", good, "--split", str(place / "a" / "b")).code == 0
    finally:
        os.umask(before)
    modes = {str(one.relative_to(place)): one.stat().st_mode & 0o777 for one in place.rglob("*")}
    files = ("out", "a/b/replay.fio", "a/b/lun1.trace", "a/b/lun3.trace")
    assert modes == {"a": 0o750, "a/b": 0o750, **dict.fromkeys(files, 0o640)}


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_written(good, place, run, there):
    target, link = place / "target", place / "link"
    link.symlink_to("target")
    if there:
        target.write_text("old")
    assert run("trace", good, "--out", str(link)).code == 0
    assert link.is_symlink()
    assert written(target) == MANY


@pytest.mark.parametrize("make", [os.link, os.symlink, lambda _, new: new.symlink_to(new)])
def test_no_link_destroys_the_trace_that_is_read(good, place, run, make):
    before = Path(good).read_bytes()
    make(good, place / "link")
    got = run("trace", good, "--out", str(place / "link"))
    assert (got.code, got.err.count("\n")) == (2, 1)
    assert Path(good).read_bytes() == before


def test_a_pipe_is_written_directly(good, place, run):
    pipe = place / "pipe"
    os.mkfifo(pipe)
    read = []
    reading = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reading.start()
    assert run("trace", good, "--out", str(pipe)).code == 0
    reading.join()
    assert read[0].count("\n") == MANY + 1
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("to", ["file", "pipe"])
def test_standard_output_by_its_name_is_written_directly(good, place, name, to):
    out = place / "out"
    argv = [sys.executable, "-m", "mqfair", "trace", good, "--requests", "3", "--out", name]
    shell = f'"$@" {">>" if to == "file" else "| cat >"} "$OUT"'
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OUT": str(out)}
    out.touch()
    number = out.stat().st_ino
    words = ["sh", "-c", shell, "sh", *argv]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert out.read_text().startswith(f"{native.HEAD}\n0 ")
    assert out.stat().st_ino == number


def test_a_full_device_is_named(good, run):
    got = run("trace", good, "--out", "/dev/full")
    assert got.code == 1
    assert got.err.startswith("mqfair: cannot write /dev/full: No space left on device: ")
