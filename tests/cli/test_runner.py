# SPDX-License-Identifier: GPL-2.0
"""tests/run and the kernels: refusals, and the kernels that take too long to prepare."""

import json
import subprocess
import sys
import threading

import pytest
from conftest import ROOT, loaded

import lab


@pytest.fixture
def runner(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return loaded("tests/run", "tests_run")


def test_an_unknown_kernel_is_refused_with_the_list(runner, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tests/run", "--kernel", "6.1,2.4", "vm"])
    assert runner.main() == 2
    assert capsys.readouterr().err == ("tests/run: no kernel '2.4': choose from 6.1, 6.12, 7.2\n")


def test_a_part_runs_on_all_other_kernels(runner, monkeypatch):
    import host

    found = []
    monkeypatch.setattr(host, "discover", lambda **how: found.append(how["kernel_name"]) or [])
    runner.other_kernels("", pytest.fail)
    assert found == ["6.12", "7.2"]


def test_a_soak_reports_its_last_line(runner, monkeypatch):
    done = subprocess.CompletedProcess([], 1, stdout="switches  5\n1 failures, Linux 7.2\n")
    monkeypatch.setattr(runner, "run", lambda _argv: done)
    outcomes = []
    runner.soak("", outcomes.append)
    assert outcomes[0].result == "failed"
    assert outcomes[0].reason == "1 failures, Linux 7.2"
    assert outcomes[0].output == "switches  5"


def test_a_kernel_that_the_mirror_no_longer_has_is_skipped(runner, monkeypatch):
    import host

    def discover(**_):
        raise lab.GoneError("sid has 7.4 instead")

    monkeypatch.setattr(host, "discover", discover)
    outcomes = []
    runner.other_kernels("", outcomes.append)
    assert {one.result for one in outcomes} == {"skipped"}
    assert "sid has 7.4 instead" in [one.reason for one in outcomes]


def test_the_lab_runs_beside_the_tests_of_the_command(runner, monkeypatch):
    both = threading.Barrier(2, timeout=30)

    def suite(_only, report):
        both.wait()
        report(runner.Outcome("one", "passed"))

    monkeypatch.setattr(runner, "SUITES", {"cli": suite, "lab": suite})
    tally = runner.Tally()
    tally.run_all(["cli", "lab"], "")
    assert tally.count("passed") == 2


@pytest.mark.parametrize(
    ("sizes", "names"),
    [((5,), ["0"]), ((20, 20, 30), ["0+1", "2"]), ((30, 4, 5), ["0+1+2"])],
)
def test_files_with_equal_guests_share_boots(runner, sizes, names):
    """A boot has 30 tests or more, so the last files join the one before."""
    import host

    groups = []
    for number, size in enumerate(sizes):
        tests = (host.Test("a", "a", 1.0),) * size
        host._join(groups, host.Group(str(number), host.Guest(), tests, "6.1"))
    assert [group.name for group in host._without_a_small_rest(groups)] == names


DISCOVER = """
import json, sys
sys.path[:0] = ["tests/vm", "."]
import host
host.kernel.ensure = lambda _name: None
host.schedulers = lambda _name: ["mqfq", "wdt"]
part = host.discover(kernel_name=sys.argv[1], every_kernel=sys.argv[2] == "part")
print(json.dumps([test.name for group in part for test in group.tests]))
"""


def discovered(kernel_name, extent):
    # Files of tests/vm and of tests/cli have the same names, so another process imports the former.
    argv = [sys.executable, "-c", DISCOVER, kernel_name, extent]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_faults_are_injected_on_the_debug_kernel_alone():
    test = "faults.each_allocation_of_a_switch_may_fail[mqfq] on "
    assert f"{test}{lab.UML_DEBUG}" in discovered(lab.UML_DEBUG, "all")
    assert not any(name.startswith("faults.") for name in discovered(lab.UML, "all"))


def test_races_are_watched_on_the_kcsan_kernel_alone():
    name = "races.the_accesses_of_the_module_are_watched on "
    assert f"{name}{lab.KCSAN}" in discovered(lab.KCSAN, "all")
    assert not any(name.startswith("races.") for name in discovered("6.1", "all"))


def test_the_part_for_every_kernel_has_shares_switches_and_weights():
    names = discovered("6.12", "part")
    assert {
        "shares.by_weight[mqfq] on 6.12",
        "life.switching_between_all_schedulers_under_load on 6.12",
        "life.removing_the_device_under_load[wdt] on 6.12",
        "life.the_module_cannot_leave_while_in_use on 6.12",
        "weights.each_way_to_write_a_weight on 6.12",
    } <= set(names)
    assert all(name.endswith(" on 6.12") for name in names)
    assert not any(name.startswith("ssd") for name in names)
    assert "shares.by_weight[wdt] on 6.12" not in names, "a slow case"
