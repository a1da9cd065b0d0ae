# SPDX-License-Identifier: GPL-2.0
"""mqfair record and mqfair report: files of samples, read back, tables, and errors."""

import csv
import io
import json

import pytest
from test_top import host, write  # noqa: F401 -- host is a fixture

from mqfair.report.steps import steps
from mqfair.watch import recording
from mqfair.watch.pressure import Pressure
from mqfair.watch.sample import DiskSample, Figures, Sample


@pytest.fixture
def recorded(host, run, tmp_path):  # noqa: F811
    path = tmp_path / "minute.jsonl"
    result = run("record", "--out", str(path), "--seconds", "6", "--interval", "2")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{path}: 4 samples of nvme0n1, 3 cgroups with I/O\n"
    return path


def test_a_recording_is_read_as_it_was_written(recorded):
    found = recording.read(recorded.read_text())
    assert (found.head.kernel, found.head.interval_s) == ("6.1.0-56-amd64", 2.0)
    assert len(found.samples) == 4
    disks = [sample.disks["nvme0n1"] for sample in found.samples]
    assert [disk.flows["prod/db"].ios for disk in disks] == [3, 6, 9, 12]
    assert disks[0].tunables["depth"] == "128 auto"
    assert disks[0].state["window"] == 40


def test_cgroups_that_stay_the_same_are_written_once():
    def sample(at, **flows):
        return Sample(at, at, {"d": DiskSample("d", "8:0", "mqfq", flows=flows)})

    head = recording.Head(0.0, 1.0, "6.1", "0.2.0")
    busy, idle = Figures(ios=1), Figures(ios=7)
    samples = [
        sample(0.0, a=busy, b=idle),
        sample(1.0, a=Figures(ios=2), b=idle),
        sample(2.0, b=idle, c=busy),
    ]
    file = io.StringIO()
    assert list(recording.write(file, head, samples)) == samples
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [list(line["disks"]["d"]["flows"]) for line in lines[1:]] == [["a", "b"], ["a"], ["c"]]
    assert recording.read(file.getvalue()) == recording.Recording(head, tuple(samples))
    cut = file.getvalue()[:-20]
    assert len(recording.read(cut).samples) == 2


def test_the_pressure_is_recorded_where_it_changes(recorded):
    found = recording.read(recorded.read_text())
    assert [sample.pressure["prod/db"].some_us for sample in found.samples] == [
        7 + step * 1_000_000 for step in (1, 2, 3, 4)
    ]
    lines = [json.loads(line) for line in recorded.read_text().splitlines()[1:]]
    names = ["prod", "prod/db", "prod/web"]
    assert [sorted(line["pressure"]) for line in lines] == [names, *[names[:2]] * 3]
    uses = steps(found, "nvme0n1")[-1].uses
    assert (uses["prod/db"].pressure_some_ppm, uses["batch"].pressure_some_ppm) == (500_000, None)


def test_a_cgroup_that_ends_has_no_pressure():
    def sample(at, **pressure):
        return Sample(at, at, {}, pressure)

    head = recording.Head(0.0, 1.0, "6.1", "0.2.0")
    samples = [sample(0.0, a=Pressure(1, 0), b=Pressure(5, 2)), sample(1.0, b=Pressure(5, 2))]
    file = io.StringIO()
    assert list(recording.write(file, head, samples)) == samples
    assert recording.read(file.getvalue()).samples == tuple(samples)
    old = file.getvalue().replace('"pressure"', '"unknown"')
    assert [one.pressure for one in recording.read(old).samples] == [{}, {}]


def test_an_interrupted_recording_keeps_its_samples(host, run, tmp_path, monkeypatch):  # noqa: F811
    import time

    real, left = time.sleep, [3]

    def sleep(seconds):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        real(seconds)

    monkeypatch.setattr("time.sleep", sleep)
    path = tmp_path / "cut.jsonl"
    result = run("record", "--out", str(path))
    assert (result.code, result.err) == (130, f"mqfair: interrupted; {path} has 4 samples\n")
    assert len(recording.read(path.read_text()).samples) == 4


def test_to_standard_output(host, run):  # noqa: F811
    lines = run("record", "--out", "-", "--seconds", "2", "--interval", "1").out.splitlines()
    assert [set(json.loads(line)) for line in lines[1:]] == [{"at", "disks", "pressure"}] * 3


def test_a_table_of_a_recording(recorded, run, tmp_path):
    rows = list(csv.DictReader(io.StringIO(run("report", str(recorded), "--csv", "-").out)))
    assert len(rows) == 3 * 3
    first = rows[0]
    assert (first["device"], first["cgroup"]) == ("nvme0n1", "batch")
    assert (first["achieved_ppm"], first["iops"]) == ("500000", "2.0")
    result = run("report", str(recorded), "--csv", str(tmp_path / "t.csv"), "--json")
    assert result.json["csv"] == str(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["record"], 2, "--out"),
        (["record", "--out", "/nosuch/x"], 2, "--out /nosuch/x: No such file or directory: name a"),
        (["record", "--out", "/tmp"], 2, "--out /tmp: Is a directory"),
        (["record", "--out", "-", "--seconds", "0"], 2, "--seconds 0: use a number of seconds"),
        (["record", "vda", "--out", "-"], 1, "vda has no mqfair scheduler but mq-deadline"),
        (["record", "--out", "/dev/full"], 1, "cannot write /dev/full: No space left on device"),
        (["report", "/nosuch", "--out", "x.html"], 2, "/nosuch: No such file or directory"),
        (["report", "/etc/passwd", "--csv", "-"], 2, "/etc/passwd: no JSON"),
        (["report", "/etc/passwd"], 2, "name a file to write: --out HTML or --csv FILE"),
        (["report", "x", "--out", "/nosuch/x"], 2, "--out /nosuch/x: No such file or directory"),
    ],
)  # fmt: skip
def test_errors_are_one_line(host, run, argv, code, said):  # noqa: F811
    result = run(*argv)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert said in result.err


def test_damaged_recordings(recorded, run, tmp_path):
    text = recorded.read_text()
    bad = tmp_path / "bad.jsonl"
    for damaged, said in (
        ('{"schema": "mqfair.record/1"}\n', "a damaged recording"),
        (text.replace('"gone"', '"gnoe"'), "line 2: disks.nvme0n1.gone is missing: record anew"),
        (text.splitlines()[0] + "\n", "no sample is too few: record for longer"),
    ):
        bad.write_text(damaged)
        result = run("report", str(bad), "--csv", "-")
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert said in result.err
    result = run("report", str(recorded), str(recorded), "--csv", "-")
    assert "one recording, or one or two results" in result.err


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (1, ('"kernel": "6.1.0-56-amd64"', '"kernel": null'), "kernel is null, which is no text"),
        (1, ('"started": ', '"started": 1e300, "was": '), "started is 1e+300, which is no time"),
        (2, ('"ios": ', '"ios": "x", "was": '), 'disks.nvme0n1.ios is "x", which is no count'),
        (3, ('"at": ', '"at": NaN, "was": '), "at is NaN, which is no number"),
        (3, ('"disks": ', '"disks": [], "was": '), "disks is [], which is no object"),
        (
            4,
            ('"at": ', "[" * 9),
            "no JSON (Expecting property name enclosed in double quotes, column 2)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_field_is_named(recorded, run, number, change, said):
    lines = recorded.read_text().split("\n")
    lines[number - 1] = lines[number - 1].replace(*change, 1)
    recorded.write_text("\n".join(lines))
    result = run("report", str(recorded), "--csv", "-")
    told = f"mqfair: {recorded}: a damaged recording: line {number}: {said}: record anew\n"
    assert (result.code, result.out, result.err) == (2, "", told)


def test_a_byte_order_mark_and_later_fields_are_left_out(recorded, run):
    text = recorded.read_text().replace('"kernel"', '"later": 1, "kernel"')
    recorded.write_text(text, encoding="utf-8-sig")
    assert run("report", str(recorded), "--csv", "-").code == 0


def test_without_matplotlib_the_package_is_named(recorded, run, monkeypatch, tmp_path):
    import sys

    monkeypatch.delitem(sys.modules, "mqfair.report.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("report", str(recorded), "--out", str(tmp_path / "r.html"))
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "report: Python package matplotlib missing: apt install python3-matplotlib" in result.err
