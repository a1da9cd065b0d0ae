# SPDX-License-Identifier: GPL-2.0
"""A bench that goes on after it was ended, and one of several drives."""

import dataclasses
import errno
import json
import shutil

import pytest
from test_bench_interrupt import MACHINE
from test_bench_result import record

from mqfair.bench import jobfile, resume, runner, session
from mqfair.bench.plan import read_plan
from mqfair.machine.fs import Fs
from mqfair.text import output
from mqfair.text.errors import Failure, UsageError

DRIVES = ("null:gb=1", "null:gb=2", "null:gb=3")


class Guest:
    """Stands for a guest with the runner: makes the runs that are not finished. The user presses
    Ctrl-C before the run number @ends, or that run fails."""

    def __init__(self):
        self.made = []
        self.ends = None
        self.how = KeyboardInterrupt
        self.log = True

    def __call__(self, _request, plan, folder, progress):
        (folder / "machine.json").write_text(json.dumps(MACHINE))
        for number, run in enumerate(plan.runs()):
            if resume.is_finished(folder, number):
                continue
            if len(self.made) == self.ends:
                self.ends = None
                resume.run_folder(folder, number).mkdir()
                if self.log:
                    (folder / "kernel.log").write_text("interrupted")
                raise self.how("the drive is gone")
            progress({"event": "run", "number": number, "runs": len(plan.runs()),
                      "case": run.case.name, "scheduler": run.scheduler, "repeat": run.repeat,
                      "only": None})  # fmt: skip
            record(folder, number, scheduler=run.scheduler, repeat=run.repeat,
                   rates={"a": 100, "b": 300}, end_ms=5000)  # fmt: skip
            self.made.append((plan.device.parameters["gb"], number))
        (folder / "kernel.log").write_text("ended")
        return "tcg"


@pytest.fixture
def guest(monkeypatch):
    found = Guest()
    monkeypatch.setattr(session, "_run_in_guest", found)
    monkeypatch.setattr(session.fiocheck, "check", lambda _job: None)
    return found


@pytest.fixture
def bench(run, four, tmp_path):
    """A function that runs a bench of none and bfq, with raw results in a folder."""

    def call(*words, raw="raw", drives=("null:gb=1",)):
        named = [word for drive in drives for word in ("--device", drive)]
        place = ["--raw", str(tmp_path / raw)] if raw else []
        return run("bench", str(four), "--schedulers", "none,bfq", *named, *place, *words)

    return call


def schedulers(document):
    return [(one["scheduler"], one["repeat"]) for one in document["runs"]]


ALL = [("none", 0), ("bfq", 0), ("none", 1), ("bfq", 1)]


def test_a_bench_goes_on_after_an_interruption(bench, guest, tmp_path):
    guest.ends = 3
    first = bench("--repeat", "2")
    assert first.code == 130
    assert first.err.splitlines()[-1] == (
        "mqfair: interrupted; 3 of 4 runs were finished; --resume goes on from there"
    )
    guest.made.clear()
    file = tmp_path / "r.json"
    second = bench("--repeat", "2", "--resume", "--json", str(file))
    assert (second.code, guest.made) == (0, [(1, 3)])
    assert "4 runs, of which 3 are finished: at least 4 s" in second.err
    document = json.loads(file.read_text())
    assert sorted(schedulers(document)) == sorted(ALL)
    assert "interrupted" not in str(document["notes"])
    logs = sorted(path.read_text() for path in (tmp_path / "raw").glob("kernel*.log"))
    assert logs == ["ended", "interrupted"]


def test_a_guest_that_was_killed_left_no_kernel_log(bench, guest):
    guest.ends, guest.log = 1, False
    assert "note: the kernel log of an interrupted guest was not examined" in bench().out
    assert "note: the kernel log of an interrupted guest was not examined" in bench("--resume").out


def test_finished_runs_are_kept_when_a_run_fails(bench, guest, tmp_path):
    guest.ends, guest.how = 1, Failure
    assert bench().code == 1
    guest.made.clear()
    assert (bench("--resume").code, guest.made) == (0, [(1, 1)])


def test_an_error_in_an_earlier_kernel_log_is_told_before_the_runs(bench, guest, tmp_path):
    guest.ends = 1
    bench()
    (tmp_path / "raw/kernel.log").write_text("BUG: unable to handle page fault\n")
    guest.made.clear()
    said = bench("--resume")
    assert (said.code, guest.made) == (1, [])
    assert "the kernel logged an error" in said.err


def test_more_repeats_are_added_to_a_finished_bench(bench, guest):
    bench("--repeat", "1")
    guest.made.clear()
    assert bench("--repeat", "2", "--resume").code == 0
    assert guest.made == [(1, 2), (1, 3)]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--repeat", "1"), "--repeat"),
        (("--repeat", "2", "--runtime", "9"), "the job file or --runtime"),
        (("--repeat", "2", "--tunable", "bfq.slice_idle=0"), "--tunable"),
        (("--repeat", "2", "--solo", "--nr-requests", "64"), "--solo, --nr-requests"),
    ],
)
def test_another_bench_does_not_go_on_in_the_folder(bench, guest, tmp_path, words, named):
    bench("--repeat", "2")
    guest.made.clear()
    said = bench(*words, "--resume")
    assert (said.code, guest.made) == (2, [])
    assert said.err.splitlines()[-1] == (
        f"mqfair: --resume: the bench in {tmp_path}/raw had another value of {named}: use the same"
        " command line, or a new folder"
    )
    assert len(list((tmp_path / "raw").glob("*/run.json"))) == 4


def test_where_a_bench_cannot_go_on(bench, guest, tmp_path):
    said = bench("--resume", raw=None)
    assert (said.code, said.err) == (
        2, "mqfair: --resume needs the folder of the finished runs: add --raw FOLDER\n",
    )  # fmt: skip
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    assert "no bench with as many drives has begun in" in bench("--resume", raw="other").err
    assert bench("--resume").code == 0
    assert "not empty: name a new folder or add --resume" in bench().err
    several = bench("--resume", drives=DRIVES)
    assert "no bench with as many drives has begun in" in several.err


CUT = ["", "{", "null", '{"case": "four", "sched', "\0" * 64]


@pytest.mark.parametrize("text", CUT)
def test_a_run_with_a_damaged_record_is_made_again(bench, guest, tmp_path, text):
    bench("--repeat", "2")
    (tmp_path / "raw/001/run.json").write_text(text)
    guest.made.clear()
    again = bench("--repeat", "2", "--resume")
    assert (again.code, guest.made) == (0, [(1, 1)])
    assert "4 runs, of which 3 are finished" in again.err


NO_FIGURE = ["[1]", '{"jobs": [{"read": {}}]}', '{"a": {"iops": NaN}}', "[" * 99999, "\udcff"]


@pytest.mark.parametrize("text", [*CUT, *NO_FIGURE])
@pytest.mark.parametrize("name", ["fio.json", "figures.json"])
def test_a_damaged_file_of_a_run_is_named_with_a_mend_that_works(
    bench, guest, tmp_path, name, text
):
    bench("--repeat", "2")
    file = tmp_path / "raw/001" / name
    file.write_text(text, errors="surrogateescape")
    said = bench("--repeat", "2", "--resume")
    assert said.code == 1
    (told,) = [line for line in said.err.splitlines() if line.startswith("mqfair: ")]
    assert told.startswith(f"mqfair: {file}: ")
    assert told.endswith(f": remove the folder {file.parent}, and add --resume")
    shutil.rmtree(file.parent)
    guest.made.clear()
    assert (bench("--repeat", "2", "--resume").code, guest.made) == (0, [(1, 1)])


@pytest.mark.parametrize("text", ["{}", '{"case": 5}'])
def test_a_record_of_another_form_is_named(bench, guest, tmp_path, text):
    bench()
    file = tmp_path / "raw/001/run.json"
    file.write_text(text)
    said = bench("--resume")
    assert said.code == 1
    assert said.err.splitlines()[-1].startswith(f"mqfair: {file}: ")


@pytest.mark.parametrize("text", [*CUT, "{}", "[" * 99999])
@pytest.mark.parametrize(
    ("name", "what"), [("plan.json", "the command line"), ("machine.json", "the machine")]
)
def test_a_damaged_file_of_all_runs_is_named(bench, guest, tmp_path, name, what, text):  # noqa: PLR0917
    guest.ends = 3
    bench("--repeat", "2")
    file = tmp_path / "raw" / name
    file.write_text(text)
    guest.made.clear()
    said = bench("--repeat", "2", "--resume")
    assert (said.code, guest.made, file.read_text()) == (2, [], text)
    assert said.err.splitlines()[-1] == (
        f"mqfair: --resume: {file} is damaged, so {what} of the finished runs is not known: delete"
        " the file if it is the same now, or use a new folder"
    )
    file.unlink()
    assert (bench("--repeat", "2", "--resume").code, guest.made) == (0, [(1, 3)])
    assert json.loads(file.read_text())


@pytest.mark.parametrize("name", ["plan.json", "machine.json"])
def test_a_damaged_file_without_a_finished_run_is_made_again(bench, guest, tmp_path, name):
    guest.ends = 0
    bench()
    (tmp_path / "raw" / name).write_text("{")
    assert (bench("--resume").code, len(guest.made)) == (0, 2)


def test_a_full_disk_leaves_the_plan_as_it_was(bench, guest, tmp_path, monkeypatch):
    bench("--repeat", "1")
    before = (tmp_path / "raw/plan.json").read_text()

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "_give_rights", full)
    assert bench("--repeat", "2", "--resume").code == 1
    assert (tmp_path / "raw/plan.json").read_text() == before


# -- the runner


@pytest.fixture
def one(four, tmp_path, monkeypatch, machine):
    """A runner with a plan of four runs. It notes each run that it makes."""
    monkeypatch.setattr(runner.shutil, "which", lambda name: f"/usr/bin/{name}")
    asked = session.Request((jobfile.load(str(four)),), ("none", "bfq"), repeat=2)
    folder = tmp_path / "raw"
    folder.mkdir()
    resume.begin(session.plan_for(asked), folder)

    def build():
        built = runner.Runner(read_plan(folder / "plan.json"), folder)
        built._fs = Fs(str(machine.root))
        built.made = []
        built._one = lambda _disk, _own, run, place: built.made.append((run.scheduler, place.name))
        return built

    build.folder = folder
    return build


def test_the_runner_makes_the_runs_without_a_record(one, capsys):
    record(one.folder, 0, scheduler="none", rates={"a": 100, "b": 300})
    record(one.folder, 2, scheduler="none", rates={"a": 100, "b": 300})
    (one.folder / "001").mkdir()
    (one.folder / "001/fio.json").touch()
    resume.begin(read_plan(one.folder / "plan.json"), one.folder)
    assert not (one.folder / "001").exists()
    found = one()
    found._all_runs(None, None)
    assert found.made == [("bfq", "001"), ("bfq", "003")]
    numbers = [json.loads(line.partition(" ")[2])["number"] for line in
               capsys.readouterr().out.splitlines()]  # fmt: skip
    assert numbers == [1, 3]


def test_the_runner_takes_over_the_measurements_of_the_part_before(one):
    before = {
        **MACHINE,
        "iocost_model": {"rbps": 7},
        "calibration": {"reasons": ["r"], "notes": []},
        "tunables": {"mqfq": {"depth": "48 auto"}},
        "left_out": {"bfq": "this kernel has none"},
    }
    (one.folder / "machine.json").write_text(json.dumps(before))
    found = one()
    found._take_over(found._before)
    assert found._model == {"rbps": 7}
    assert found._tunables == {"mqfq": {"depth": "48 auto"}}
    assert found._left_out == {"bfq": "this kernel has none"}
    assert [run.scheduler for run in found._plan.runs()] == ["none", "none"]


@pytest.mark.parametrize(
    ("name", "now", "words"),
    [
        ("kernel", "7.2", "kernel was 6.1 in the finished runs and is 7.2 now"),
        ("module", "ABC\n", "module was absent in the finished runs and is ABC now"),
        ("cpus", 4, "cpus was 2 in the finished runs and is 4 now"),
    ],
)
def test_the_machine_must_be_the_same(name, now, words):
    resume.require_same_machine(MACHINE, dict(MACHINE))
    with pytest.raises(UsageError, match=f"--resume: {words}: restore it, or use a new folder"):
        resume.require_same_machine(MACHINE, {**MACHINE, name: now})


# -- several drives


def test_each_drive_gets_its_runs_and_its_tables(bench, guest, tmp_path):
    file, steps, picture = (tmp_path / name for name in ("r.json", "t.json", "p.svg"))
    files = ("--json", str(file), "--timeline", str(steps), "--picture", str(picture))
    result = bench(*files, drives=DRIVES)
    assert result.code == 0, result.err
    assert guest.made == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert [line for line in result.out.splitlines() if line.startswith("drive ")] == [
        f"drive {drive}" for drive in DRIVES
    ]
    assert "6 runs: at least 24 s" in result.err
    assert "drive 2 of 3: run 1 of 2: four" in result.err
    document = json.loads(file.read_text())
    assert document["schema"] == "mqfair.bench-several/1"
    assert [one["where"]["device"] for one in document["devices"]] == list(DRIVES)
    assert all(one["schema"] == "mqfair.bench/2" for one in document["devices"])
    times = json.loads(steps.read_text())["devices"]
    assert [one["device"] for one in times] == list(DRIVES)
    assert picture.stat().st_size > 10_000


def test_an_interruption_keeps_the_drives_before_and_goes_on(bench, guest, tmp_path):
    file = tmp_path / "r.json"
    guest.ends = 3
    first = bench("--json", str(file), drives=DRIVES)
    assert first.code == 130
    assert "interrupted; drive 2 of 3: 1 of 2 runs were finished" in first.err
    devices = json.loads(file.read_text())["devices"]
    assert [len(one["runs"]) for one in devices] == [2, 1]
    guest.made.clear()
    assert bench("--resume", "--json", str(file), drives=DRIVES).code == 0
    assert guest.made == [(2, 1), (3, 0), (3, 1)]
    devices = json.loads(file.read_text())["devices"]
    assert [len(one["runs"]) for one in devices] == [2, 2, 2]


def test_a_failure_on_one_drive_keeps_those_before(bench, guest, tmp_path):
    file = tmp_path / "r.json"
    guest.ends, guest.how = 2, Failure
    result = bench("--json", str(file), drives=DRIVES)
    assert (result.code, result.err.splitlines()[-1]) == (1, "mqfair: the drive is gone")
    assert len(json.loads(file.read_text())["devices"]) == 1


def test_compare_and_report_take_several_drives(bench, guest, run, tmp_path):
    names = []
    for name, drives in (("a", DRIVES), ("b", DRIVES[1:])):
        names.append(str(tmp_path / f"{name}.json"))
        bench("--json", names[-1], raw=name, drives=drives)
    figures = run("compare", *names, "--json").json["figures"]
    assert {one["scheduler"] for one in figures} == {
        f"{drive} {scheduler}" for drive in DRIVES[1:] for scheduler in ("none", "bfq")
    }
    table = run("report", names[0], "--csv", "-").out.splitlines()
    assert any(line.startswith(f'"{names[0]}, null:gb=3",bfq,') for line in table)
    bench("--json", str(tmp_path / "c.json"), raw="c", drives=("null:gb=9",))
    none = run("compare", names[0], str(tmp_path / "c.json"))
    assert (none.code, none.err.count("\n")) == (2, 1)
    assert "have no drive in common" in none.err


def test_the_runs_of_the_simulator_go_on(run, tmp_path, monkeypatch):
    """A run with figures is not played again; another description is refused."""
    from mqfair.bench.simulated import session as simulated

    job = tmp_path / "j.fio"
    job.write_text("[global]\nruntime=1\ndirect=1\nrw=randread\n[a]\ncgroup=a\n[b]\ncgroup=b\n")
    asked = session.Request((jobfile.load(str(job)),), ("none",), on="sim")
    ((_, scene),) = simulated._scenes(asked)
    one = session.plan_for(asked).runs()[0]
    played = []

    def play(text):
        played.append(text)
        return {"wall_s": 1, "flows": {}, "pressure": {}}

    folder = tmp_path / "000"
    figures = simulated._play(asked, scene, one, play, folder, traces={})
    assert figures == {"flows": {}, "pressure": {}}
    assert simulated._play(asked, scene, one, play, folder, traces={}) == figures
    assert len(played) == 1
    (folder / "run.json").write_text("{")
    resume.begin(session.plan_for(asked), tmp_path)
    assert simulated._play(asked, scene, one, play, folder, traces={}) == figures
    assert len(played) == 2
    other = dataclasses.replace(asked, seed=5)
    with pytest.raises(UsageError, match=r"--resume: the run in .* had another description"):
        simulated._play(other, scene, one, play, folder, traces={})
