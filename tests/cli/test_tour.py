# SPDX-License-Identifier: GPL-2.0
"""The tour: its judgement and its document, from a record that no guest has made."""

import copy
import json

import pytest

from experiments import tour, tour_guest
from experiments.tour_steps import sections

EXPECTED = {
    r"\[mqfq\]": "qualify.json\nnone [mqfq]\n",
    r"default +900\b": "system.slice/db.service  default  900\n",
    r"default +950\b": "system.slice/db.service  default  950\n",
    r"mqfair 0.2.1\nmodule mqfair 0.2.0 \(loaded\)\nactive\n": (
        "mqfair 0.2.1\nmodule mqfair 0.2.0 (loaded)\nactive\n"
    ),
}
FIO = "  clat percentiles (usec):\n     | 99.00th=[{us}], 99.50th=[1],"


def result(step):
    if step.mistake:
        output = "mqfair: no such thing: name another\n"
    elif "99.00th" in step.command:
        output = "\n".join(FIO.format(us=us) for us in (40100, 900))
    else:
        output = EXPECTED.get(step.expect, "first line\n")
    return {"command": step.command, "status": step.status or 0, "output": output, "seconds": 0.5}


@pytest.fixture
def record():
    found = sections("0.2.0", "0.2.1")
    results = [result(step) for section in found for step in section.steps]
    return {
        "machine": "debian12", "kernel": "6.1.0", "boot_s": 30.0, "wall_s": 700.0, "trouble": None,
        "iops": 500,
        "missing": 0, "sections": tour.merged(found, results),
    }  # fmt: skip


def spoiled(record, word, **changes):
    """The record with another result of the first command that has @word."""
    found = copy.deepcopy(record)
    next(one for one in tour.steps_of(found) if word in one["command"])["result"].update(changes)
    return tour.judge(found)


def test_a_right_tour(record):
    assert tour.judge(record) == []
    assert tour.p99_ms(record) == [pytest.approx(40.1), pytest.approx(0.9)]
    assert tour.counted(record) == f"{len(tour.steps_of(record))} of {len(tour.steps_of(record))}"


@pytest.mark.parametrize(
    ("word", "changes", "said"),
    [
        ("mqfair enable nvme0n1", {"status": 1}, "exit status 1, not 0"),
        ("enabel", {"status": 0}, "exit status 0, not 2"),
        ("enabel", {"output": "Traceback\nmqfair: x\n"}, "2 lines in place of one"),
        ("mqfair weight db", {"output": "default  100"}, "no 'default +900"),
        ("enabel", {"output": "usage\n"}, "1 lines in place of one"),
    ],
)
def test_a_wrong_result_is_a_failure(record, word, changes, said):
    (failure,) = spoiled(record, word, **changes)
    assert said in failure


def test_a_p99_that_does_not_fall_is_a_failure(record):
    steps = [one for one in tour.steps_of(record) if "99.00th" in one["command"]]
    steps[-1]["result"]["output"] = "\n".join(FIO.format(us=us) for us in (900, 900))
    (failure,) = tour.judge(record)
    assert failure.startswith("p99 of db in ms, before and after: [0.9, 0.9]")


def test_a_tour_of_some_sections_has_no_p99(record):
    record["sections"] = [one for one in record["sections"] if one["title"] in ("Install", "Watch")]
    assert tour.judge(record) == []
    assert "| p99 of db with mqfair | - |" in tour.document([record])


def test_a_guest_that_ends_early_is_a_failure(record):
    found = sections("0.2.0", "0.2.1")
    results = [one["result"] for one in tour.steps_of(record)]
    short = {**record, "sections": tour.merged(found, results[:-3]), "missing": 3}
    assert [line for line in tour.judge(short) if "3 commands did not run" in line]


def test_the_document_has_each_command_with_its_status(record, tmp_path):
    for name in ("debian12", "debian13"):
        (tmp_path / f"{name}.json").write_text(json.dumps({**record, "machine": name}))
    tour.write(tmp_path, tmp_path / "tour.md")
    text = (tmp_path / "tour.md").read_text()
    for step in tour.steps_of(record):
        assert f"\n$ {step['command'].splitlines()[0]}" in text
    assert text.count("\n[status ") == len(tour.steps_of(record))
    assert "| p99 of db without mqfair | 40.1 ms | 40.1 ms |" in text
    assert "|  | Debian 12 | Debian 13 |" in text


def test_a_long_output_is_cut_in_the_middle():
    lines = tour.shown("\n".join(map(str, range(10))), 4)
    assert lines == ["0", "1", "[… 6 lines …]", "8", "9"]


def test_a_line_that_was_written_over_is_shown_as_on_a_terminal(tmp_path):
    output = tour_guest.run("printf 'a\\n5%%\\r10%%\\rdone\\nb\\r\\nc'", str(tmp_path))["output"]
    assert tour.shown(output, 9) == ["a", "done", "b", "c"]
    assert tour.shown("\n", 9) == []


def test_neighbours_in_one_place_run_together():
    places = [[one.chroot for one in part] for part in tour.parts(sections("1.0", "1.1"))]
    assert [len(set(one)) for one in places] == [1, 1, 1]
    assert [one[0] for one in places] == [True, False, True]


def test_the_guest_runs_each_command(tmp_path, capsys, monkeypatch):
    commands = tmp_path / "commands.json"
    commands.write_text(json.dumps(["echo a; echo b >&2; pwd", "exit 3"]))
    monkeypatch.setattr("sys.argv", ["tour_guest.py", str(commands), str(tmp_path)])
    assert tour_guest.main() == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["status"], first["output"]) == (0, f"a\nb\n{tmp_path}\n")
    assert (second["status"], second["output"]) == (3, "")
