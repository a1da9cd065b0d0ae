# SPDX-License-Identifier: GPL-2.0
"""tests/run counts correctly, with programs that report their tests and with those that do not."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import loaded


@pytest.fixture(scope="module")
def driver():
    return loaded("tests/run", "driver")


def results(driver, **test):
    record = {"name": "mqfair:unit / heap", "result": "OK", "returncode": 0, **test}
    return [(o.name, o.result, o.reason) for o in driver.meson_outcomes(record)]


def test_points_are_counted_one_by_one(driver):
    tap = "1..3\nok 1 - pops in order\nnot ok 2 - merges\nok 3 - later # SKIP no time\n"
    assert results(driver, stdout=tap, result="FAIL", returncode=1) == [
        ("heap: pops in order", "passed", ""),
        ("heap: merges", "failed", "not ok"),
        ("heap: later", "skipped", "no time"),
    ]


def test_program_without_points_is_one_test(driver):
    assert results(driver, stdout="fine\n") == [("heap", "passed", "")]
    assert results(driver, result="TIMEOUT")[0][:2] == ("heap", "failed")
    assert results(driver, result="SKIP", stdout="no such device\n") == [
        ("heap", "skipped", "no such device")
    ]


def test_a_crash_after_good_points_is_a_failure(driver):
    found = results(driver, stdout="ok 1 - one\n", result="FAIL", returncode=-11)
    assert found == [("heap: one", "passed", ""), ("heap", "failed", "FAIL, exit status -11")]


def run_suites(driver, monkeypatch, capsys, suites):
    monkeypatch.setattr(driver, "SUITES", suites)
    monkeypatch.setattr(sys, "argv", ["tests/run"])
    status = driver.main()
    return status, capsys.readouterr().out.splitlines()


def outcome(driver, result):
    return lambda _, report: report(driver.Outcome("it", result, "because"))


def test_last_line_and_status(driver, monkeypatch, capsys):
    suites = {result: outcome(driver, result) for result in ("passed", "failed", "skipped")}
    status, lines = run_suites(driver, monkeypatch, capsys, suites)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed, 1 skipped")
    assert any("skipped" in line and "because" in line for line in lines[:-1])
    status, lines = run_suites(driver, monkeypatch, capsys, {"a": outcome(driver, "passed")})
    assert (status, lines[-1]) == (0, "1 passed, 0 failed, 0 skipped")


def test_suite_that_breaks_or_is_empty_fails(driver, monkeypatch, capsys):
    def breaks(_, report):
        raise driver.SuiteError("no compiler\nsaid the shell")

    suites = {"breaks": breaks, "empty": lambda _, report: None, "good": outcome(driver, "passed")}
    status, lines = run_suites(driver, monkeypatch, capsys, suites)
    assert (status, lines[-1]) == (1, "1 passed, 2 failed, 0 skipped")
    assert any("no compiler" in line for line in lines)


def test_unknown_suite_is_refused(driver, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tests/run", "units"])
    assert driver.main() == 2
    assert "choose from unit" in capsys.readouterr().err


def test_figures_of_pytest_are_shown(driver, monkeypatch, capsys, tmp_path):
    """pytest's own output is shown for failures alone."""

    def run(argv, *, limit_s):
        (junit,) = (word.partition("=")[2] for word in argv if word.startswith("--junit-xml="))
        Path(junit).write_text('<x><testcase classname="a.b" name="c" /></x>')
        assert limit_s == 60.0
        return subprocess.CompletedProcess(argv, 0, stdout="..\nfigure: a start: 3 ms\n.\nend\n")

    monkeypatch.setattr(driver, "run", run)
    monkeypatch.setattr(driver, "BUILD", tmp_path)
    found = []
    driver.pytest("people", "", found.append, 60.0)
    assert capsys.readouterr().out == "people: figure: a start: 3 ms\n"
    assert [(one.name, one.result) for one in found] == [("b: c", "passed")]
