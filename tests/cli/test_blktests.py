# SPDX-License-Identifier: GPL-2.0
"""The runs of blktests: the parser of its results, the comparison and the expected differences."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/blktests"
sys.path.insert(0, str(HERE))

import results  # noqa: E402
from results import Difference, Expected, Key, Outcome  # noqa: E402

SPEC = importlib.util.spec_from_file_location("blktests_command", HERE / "__main__.py")
command = importlib.util.module_from_spec(SPEC)
sys.modules["blktests_command"] = command
SPEC.loader.exec_module(command)

PASSED = "status\tpass\nruntime\t1.2s\ndate\t2026-01-01\nexit_status\t0\n"
FAILED = "status\tfail\nreason\toutput\nexit_status\t0\n"
NOT_RUN = "status\tnot run\n"
KEY = Key("block/005", "disk")


def write(folder, name, text):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def difference(ours="fail", reference="pass", key=KEY):
    return Difference(key, Outcome(reference), Outcome(ours))


def test_each_place_of_a_test_is_found(tmp_path):
    write(tmp_path, "nodev_tr_loop/nvme/004", PASSED)
    write(tmp_path, "nodev_tr_tcp/nvme/004", FAILED)
    write(tmp_path, "nodev_tr_tcp/nvme/004.out.bad", "Running nvme/004\nwrong\n")
    write(tmp_path, "nodev_tr_tcp/nvme/005", FAILED)
    found = results.collect(tmp_path, "nvme/004", "")
    assert found == {
        Key("nvme/004", "nodev_tr_loop"): Outcome("pass"),
        Key("nvme/004", "nodev_tr_tcp"): Outcome("fail", "output", "Running nvme/004\nwrong"),
    }


def test_the_output_of_check_says_why_a_test_did_not_run(tmp_path):
    write(tmp_path, "nodev/loop/010", NOT_RUN)
    printed = (
        "loop/010 (partscan)            \nloop/010 (partscan)       [not run]\n"
        "    runtime    ...  0.7s\n    no partscan in this kernel\n    and more\n"
    )
    (outcome,) = results.collect(tmp_path, "loop/010", printed).values()
    assert outcome == Outcome("not run", "no partscan in this kernel")


def test_a_group_that_cannot_run_leaves_no_file(tmp_path):
    printed = "zbd/***                            [not run]\n    kernel option BLK_DEV_ZONED\n"
    found = results.collect(tmp_path, "zbd/001", printed)
    assert found == {Key("zbd/001", "nodev"): Outcome("not run", "kernel option BLK_DEV_ZONED")}


def test_a_hung_test_is_placed_where_it_was_writing(tmp_path):
    write(tmp_path, "nodev_tr_loop/nvme/004", PASSED)
    write(tmp_path, "nodev_tr_tcp/nvme/004.out", "Running nvme/004\n")
    found = results.collect(tmp_path, "nvme/004", "the stacks of its tasks", 300.0)
    assert found[Key("nvme/004", "nodev_tr_loop")].status == "pass"
    hung = found[Key("nvme/004", "nodev_tr_tcp")]
    assert (hung.status, hung.reason) == ("hung", "not done after 300 s")
    assert "stacks" in hung.detail


def test_equal_outcomes_do_not_differ():
    outcomes = {KEY: Outcome("fail", "output", "one text"), Key("a/001", "nodev"): Outcome("pass")}
    others = {KEY: Outcome("fail", "output", "another"), Key("a/001", "nodev"): Outcome("pass")}
    assert results.differences(outcomes, others) == []


def test_failures_of_different_kinds_differ():
    (found,) = results.differences(
        {KEY: Outcome("fail", "output")}, {KEY: Outcome("fail", "dmesg")}
    )
    assert str(found) == "block/005 disk: fail (output), and with the scheduler: fail (dmesg)"


def test_reasons_not_to_run_are_not_compared():
    one, other = Outcome("not run", "no fio"), Outcome("not run", "no udev")
    assert results.differences({KEY: one}, {KEY: other}) == []


def test_a_complaint_of_one_kernel_alone_differs():
    log = Key("block/005", results.KERNEL_LOG)
    with_complaint = {KEY: Outcome("pass"), log: Outcome("WARNING:")}
    (found,) = results.differences({KEY: Outcome("pass")}, with_complaint)
    assert (found.reference.status, found.ours.status) == ("quiet", "WARNING:")


def test_a_test_that_one_side_has_not_run_is_not_compared():
    assert (
        results.differences({KEY: Outcome("pass")}, {Key("a/001", "nodev"): Outcome("fail")}) == []
    )


def test_a_place_of_one_side_alone_differs():
    more = {KEY: Outcome("pass"), Key("block/005", "nodev"): Outcome("pass")}
    (found,) = results.differences({KEY: Outcome("pass")}, more)
    assert (found.key.place, found.reference.status) == ("nodev", "not run")


EXPECTED = Expected("block/0*", "disk", "pass", "fail", "because")


@pytest.mark.parametrize(
    ("one", "explained"),
    [
        (difference(), True),
        (difference("hung"), False),
        (difference("pass", "fail"), False),
        (difference(key=Key("block/005", "nodev")), False),
        (difference(key=Key("loop/001", "disk")), False),
    ],
)
def test_a_difference_is_explained_only_as_it_is_expected(one, explained):
    judgement = results.judge([one], [EXPECTED], ["block/005"])
    assert bool(judgement.explained) == explained
    assert bool(judgement.unexplained) != explained


def test_an_expected_difference_that_does_not_happen_is_missing():
    assert results.judge([], [EXPECTED], ["block/005"]).missing == [EXPECTED]
    assert results.judge([], [EXPECTED], ["loop/001"]).missing == []
    sometimes = Expected("block/005", "disk", "pass", "fail", "because", sometimes=True)
    assert results.judge([], [sometimes], ["block/005"]).missing == []


def test_an_expectation_may_be_for_some_kernels_and_schedulers():
    one = Expected("a/001", "*", "pass", "fail", "why", kernels=("6.1",), schedulers=("mqfq",))
    assert one.concerns("6.1", "mqfq")
    assert not one.concerns("7.2", "mqfq")
    assert not one.concerns("6.1", "hwabc")
    assert EXPECTED.concerns("7.2", "hwabc")


def test_the_expected_differences_can_be_read_and_are_in_the_document():
    text = (ROOT / "doc/blktests.md").read_text()
    for one in results.read_expected(HERE / "expected.toml"):
        assert one.test in text
        assert one.reason


def test_a_wrong_key_names_its_table(tmp_path):
    write(tmp_path, "expected.toml", '[[difference]]\ntest = "a/001"\nplaces = "x"\n')
    with pytest.raises(ValueError, match="difference 1"):
        results.read_expected(tmp_path / "expected.toml")


def test_counts_are_by_group_and_leave_the_kernel_log_out():
    outcomes = {
        KEY: Outcome("pass"),
        Key("block/006", "nodev"): Outcome("pass"),
        Key("block/006", results.KERNEL_LOG): Outcome("WARNING:"),
        Key("loop/001", "nodev"): Outcome("not run"),
    }
    assert results.counts(outcomes) == {"block": {"pass": 2}, "loop": {"not run": 1}}


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one group."""
    folder = tmp_path / "checkout"
    for name, text in {"001": "", "002": "TIMED=1\n", "003": "QUICK=1\n", "003.out": ""}.items():
        write(folder, f"tests/loop/{name}", text)
    write(folder, "tests/loop/rc", "")
    write(folder, "check", "")
    write(folder, "Makefile", "all:\n\ttouch program\n")
    return folder


def test_quick_tests_come_first(checkout):
    assert command.tests_of(checkout, ["loop"]) == ["loop/003", "loop/002", "loop/001"]


def test_a_test_is_named_once(checkout):
    assert command.tests_of(checkout, ["loop/001", "loop"])[0] == "loop/001"
    assert len(command.tests_of(checkout, ["loop/001", "loop"])) == 3


@pytest.mark.parametrize("word", ["block", "loop/009", "loop/003.out", "../checkout"])
def test_an_unknown_group_or_test_is_named(checkout, word):
    with pytest.raises(command.Wrong, match=word):
        command.tests_of(checkout, [word])


def test_a_missing_checkout_is_told_with_its_source(tmp_path):
    with pytest.raises(command.Wrong, match="git clone https://"):
        command.built(tmp_path / "nothing")


def test_the_checkout_is_built_in_a_copy(checkout, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "FOLDER", tmp_path / "build")
    copy = command.built(checkout)
    assert (copy / "program").exists()
    assert not (checkout / "program").exists()
    assert command.built(checkout) == copy


class Guests:
    """Guests that play records. @deaths names the tests in which the guest itself ends, and
    @outcomes_of returns the status of a test by scheduler and number of its runs."""

    def __init__(self, outcome_of, deaths=()):
        self.outcome_of = outcome_of
        self.deaths = set(deaths)
        self.ran = []

    def run(self, spec, argv, *, sink):
        settings = json.loads(argv[-1])
        scheduler = settings["scheduler"]
        trouble = None
        for test in settings["tests"]:
            sink("stdout", json.dumps({"start": test}).encode() + b"\n")
            self.ran.append((scheduler, test))
            if (scheduler, test) in self.deaths:
                trouble = "guest died after 9 s: Oops; its console from there on:\nline"
                break
            status = self.outcome_of(scheduler, test, self.ran.count((scheduler, test)))
            one = {"place": "nodev", "status": status, "reason": "", "detail": ""}
            line = {"test": test, "seconds": 1, "outcomes": [one], "given": {"given": 2}}
            sink("stdout", json.dumps(line).encode() + b"\n")
        return Result(trouble)


class Result:
    status = 0
    died = timed_out = False
    console = dmesg = ""

    def __init__(self, trouble):
        self._trouble = trouble

    def trouble(self):
        return self._trouble


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """Compares mqfq with the reference in guests that play records; returns the exit status."""

    def one(guests, tests, expected=(), kept=False):
        monkeypatch.setattr(command, "FOLDER", tmp_path)
        monkeypatch.setattr(command.lab, "run", guests.run)
        monkeypatch.setattr(command.module, "build", lambda tree: HERE / "__main__.py")
        monkeypatch.setattr(command.kernel, "ensure", lambda name: None)
        monkeypatch.setattr(command, "config_of", lambda tree: tmp_path)
        monkeypatch.setattr(command.consoles, "keep", lambda path, result: None)
        plan = command.Plan("6.12", tmp_path, 60.0, 5, kept)
        return command.compare(plan, ["mqfq"], tests, list(expected), 1)

    return one


def fails_with_mqfq(scheduler, test, number):
    return "fail" if scheduler == "mqfq" and test == "loop/001" else "pass"


def test_equal_outcomes_end_with_0(compare, capsys):
    assert compare(Guests(lambda *_: "pass"), ["loop/001", "loop/002"]) == 0
    printed = capsys.readouterr().out
    assert "mq-deadline  loop    2 pass" in printed
    assert "mqfq         disks   4 given" in printed


def test_an_unexplained_difference_fails_after_three_runs(compare, capsys):
    guests = Guests(fails_with_mqfq)
    assert compare(guests, ["loop/001", "loop/002"]) == 1
    assert guests.ran.count(("mq-deadline", "loop/001")) == 3
    assert guests.ran.count(("mqfq", "loop/002")) == 1
    assert "UNEXPLAINED: loop/001 nodev: pass, and with" in capsys.readouterr().out


def test_an_explained_difference_is_listed_with_its_reason(compare, capsys):
    reason = Expected("loop/001", "nodev", "pass", "fail", "it has a reason")
    assert compare(Guests(fails_with_mqfq), ["loop/001"], [reason]) == 0
    assert "it has a reason" in capsys.readouterr().out


def test_an_expected_difference_that_does_not_happen_is_told(compare, capsys):
    reason = Expected("loop/001", "nodev", "pass", "fail", "it has a reason")
    assert compare(Guests(lambda *_: "pass"), ["loop/001"], [reason]) == 0
    assert "it did not happen: loop/001 nodev" in capsys.readouterr().out


@pytest.mark.parametrize("runs", [1, 2])
def test_a_difference_that_does_not_last_does_not_count(compare, capsys, runs):
    guests = Guests(lambda scheduler, _, n: "fail" if scheduler == "mqfq" and n <= runs else "pass")
    assert compare(guests, ["loop/001"]) == 0
    assert guests.ran.count(("mqfq", "loop/001")) == runs + 1
    assert "not in each run: loop/001" in capsys.readouterr().out


def test_the_tests_after_a_dead_guest_run_in_another(compare, capsys):
    guests = Guests(lambda *_: "pass", deaths=[("mqfq", "loop/001")])
    assert compare(guests, ["loop/001", "loop/002"]) == 1
    assert ("mqfq", "loop/002") in guests.ran
    printed = capsys.readouterr().out
    assert "hung (guest died after 9 s: Oops" in printed
    assert "the whole console of the guest" in printed


def test_a_test_that_hangs_under_both_fails(compare, capsys):
    assert compare(Guests(lambda *_: "hung"), ["loop/001"]) == 1
    assert "HUNG, as with mq-deadline: loop/001 nodev" in capsys.readouterr().out


def test_kept_outcomes_do_not_run_again(compare):
    compare(Guests(lambda *_: "pass"), ["loop/001"])
    guests = Guests(lambda *_: "pass")
    assert compare(guests, ["loop/001", "loop/002"], kept=True) == 0
    assert guests.ran == [("mq-deadline", "loop/002"), ("mqfq", "loop/002")]


def test_an_unknown_scheduler_is_refused():
    assert command.schedulers_of("mqfq,hwabc") == ["mqfq", "hwabc"]
    assert "wdt" in command.schedulers_of("all")
    with pytest.raises(Exception, match="bfq"):
        command.schedulers_of("bfq")
