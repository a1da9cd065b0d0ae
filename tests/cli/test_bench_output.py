# SPDX-License-Identifier: GPL-2.0
"""The files of a bench: their places are checked before the first run, and no result is lost."""

import json
import os
from pathlib import Path

import pytest
from conftest import ROOT

from mqfair.bench import command, session
from mqfair.text.errors import UsageError
from mqfair.text.output import require_writable


@pytest.fixture
def no_run(monkeypatch):
    """A bench that must not begin."""

    def begin(*_):
        pytest.fail("the bench has begun")

    monkeypatch.setattr(session, "run", begin)


@pytest.mark.parametrize("option", ["--json", "--timeline"])
@pytest.mark.parametrize("name", ["/nosuch/dir/x.json", "/proc/x.json", "/proc", "/dev/null/x"])
def test_a_file_that_cannot_be_written_is_refused_before_the_runs(run, four, no_run, option, name):
    result = run("bench", str(four), "--schedulers", "none", option, name)
    assert result.code == 2
    assert result.err.startswith(f"mqfair: {option} {name}: ")
    assert "name a file that can be written" in result.err
    assert result.err.count("\n") == 1


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """The files of a job, in the present folder."""
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text("[db]\ncgroup=db\nread_iolog=db.trace\n")
    Path("db.trace").write_text("mqfair trace 1\n0 read 0 4096 db\n")
    Path("my.svg").write_text((ROOT / "mqfair/drives/models/p4500.toml").read_text())
    Path("hard.fio").hardlink_to("job.fio")
    Path("soft.fio").symlink_to("job.fio")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--json", "out", "--timeline", "out"), "--timeline out: --json writes it, too"),
        (("--json", "-", "--timeline", "-"), "--timeline -: --json writes it, too"),
        (("--json", "p.png", "--picture", "./p.png"), "--picture ./p.png: --json writes it, too"),
        (("--picture", "p.txt"), "--picture p.txt: the ending names the format: use .png"),
        (("--cdf", "p"), "--cdf p: the ending names the format: use .png"),
        (("--json", "hard.fio"), "--json hard.fio: it is a file that is read"),
        (("--timeline", "soft.fio"), "--timeline soft.fio: it is a file that is read"),
        (("--json", "db.trace"), "--json db.trace: it is a file that is read"),
        (("--picture", "my.svg"), "--picture my.svg: it is a file that is read"),
    ],
)
def test_outputs_that_replace_a_file_are_refused(run, no_run, inputs, argv, said):
    device = "ssd:file=my.svg,size_mb=64"
    result = run("bench", "job.fio", "--schedulers", "none", "--device", device, *argv)
    assert result.code == 2
    assert result.err.startswith(f"mqfair: {said}")
    assert result.err.count("\n") == 1
    assert not Path("out").exists()


def test_a_pipe_that_the_simulator_reads_twice_is_refused(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    result = run("sim", str(tmp_path / "pipe"))
    assert (result.code, result.err) == (
        2, f"mqfair: {tmp_path}/pipe: it is read more than once: save it to a file first\n"
    )  # fmt: skip


def test_the_check_leaves_no_file_and_no_change(four, tmp_path):
    require_writable("--json", str(tmp_path / "new.json"))
    assert not (tmp_path / "new.json").exists()
    (tmp_path / "old.json").write_text("old")
    require_writable("--json", str(tmp_path / "old.json"))
    assert (tmp_path / "old.json").read_text() == "old"
    require_writable("--json", "-")


@pytest.mark.parametrize("make", [os.link, os.symlink])
def test_a_link_to_a_file_that_is_read_is_refused(tmp_path, make):
    (tmp_path / "in").write_text("read")
    make(tmp_path / "in", tmp_path / "link")
    with pytest.raises(UsageError, match="it is a file that is read: name another file"):
        require_writable("--out", str(tmp_path / "link"), ["nosuch", str(tmp_path / "in")])
    assert (tmp_path / "in").read_text() == "read"


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(UsageError, match="link: File exists: name a file that can be written"):
        require_writable("--out", str(tmp_path / "link"))


def test_the_name_of_an_open_pipe_is_accepted():
    reader, writer = os.pipe()
    require_writable("--out", f"/dev/fd/{writer}")
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


@pytest.mark.parametrize("folder", ["/proc/foo", "/dev/null/raw"])
def test_a_raw_folder_that_cannot_be_made_is_refused(run, four, no_run, folder):
    result = run("bench", str(four), "--schedulers", "none", "--raw", folder)
    assert result.code == 2
    assert result.err.startswith(f"mqfair: --raw {folder}: ")
    assert result.err.count("\n") == 1


def test_a_refused_bench_leaves_no_raw_folder(run, four, tmp_path):
    raw = tmp_path / "raw"
    result = run("bench", str(four), "--raw", str(raw), "--schedulers", "none", "--calibrate")
    assert result.code == 2
    assert not raw.exists()


def test_results_that_cannot_be_written_in_the_end_are_saved_elsewhere(monkeypatch, tmp_path):
    """The disk became full during the bench: /dev/full is a file that passes every check."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    timeline = tmp_path / "timeline.json"
    with pytest.raises(command.Failure) as failure:
        command._write_files({"/dev/full": {"runs": 7}, str(timeline): {"steps": 8}})
    text = str(failure.value)
    assert text.startswith("cannot write /dev/full: No space left on device: the results are in ")
    assert json.loads(Path(text.rpartition(" ")[2]).read_text()) == {"runs": 7}
    assert json.loads(timeline.read_text()) == {"steps": 8}


def test_the_demo_needs_its_folder_at_first(monkeypatch, capsys):
    from mqfair.bench import demo

    monkeypatch.setattr(demo, "OUT", Path("/proc/demo"))
    monkeypatch.setattr(session, "run", lambda *_: pytest.fail("the demo has begun"))
    assert demo.main() == 2
    assert "demo: /proc/demo: " in capsys.readouterr().err


def test_the_folder_of_a_guest_must_exist(run, monkeypatch):
    """As --share does: a misspelt name is not created on the host."""
    monkeypatch.setattr("lab.run", lambda *_, **__: pytest.fail("the guest has booted"))
    result = run("lab", "exec", "--out", "/nosuchdir", "--", "true")
    assert result.code == 2
    assert result.err == "mqfair: lab: --out /nosuchdir: no such folder: create it\n"
    assert not Path("/nosuchdir").exists()
