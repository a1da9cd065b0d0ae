# SPDX-License-Identifier: GPL-2.0
"""The soak: its arguments, and its report of a guest's counts."""

import json
from types import SimpleNamespace

import pytest
from conftest import ROOT, loaded

import lab


@pytest.fixture
def soak(monkeypatch, tmp_path):
    module = loaded("tests/soak.py", "soak")
    monkeypatch.setattr(module.kernel, "ensure", lambda _name: SimpleNamespace(is_uml=True))
    monkeypatch.setattr(module.module, "build", lambda *_: ROOT / "README.md")
    monkeypatch.setattr(module.consoles, "FOLDER", tmp_path)
    return module


def guest(stdout, trouble=None):
    result = SimpleNamespace(
        stdout=stdout,
        stderr="",
        console="",
        dmesg="",
        died=False,
        timed_out=False,
        status=1,
        kernel="7.2",
        wall_s=9.0,
        trouble=lambda: trouble,
    )
    return lambda *_, **__: result


@pytest.mark.parametrize("hours", ["0", "-1", "2000"])
def test_hours_out_of_range_are_refused(soak, monkeypatch, capsys, hours):
    monkeypatch.setattr("sys.argv", ["tests/soak.py", "--", hours])
    assert soak.main() == 2
    assert capsys.readouterr().err == (f"tests/soak.py: HOURS {hours}: use more than 0, to 1000\n")


def test_a_kernel_for_user_mode_linux_is_refused(soak, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tests/soak.py", "1", "--kernel", "6.12"])
    assert soak.main() == 2
    assert capsys.readouterr().err == "tests/soak.py: --kernel 6.12: add --on vm\n"


@pytest.mark.parametrize(
    ("options", "chosen", "blocked"),
    [
        ([], lab.UML, False),
        (["--on", "vm"], lab.DEFAULT_KERNEL, False),
        (["--on", "vm", "--kernel", "7.2"], "7.2", False),
        (["--blocked"], lab.UML, True),
    ],
)
def test_the_guest_is_the_chosen_one(soak, monkeypatch, options, chosen, blocked):
    found = []
    monkeypatch.setattr(soak, "soak", lambda *arguments: found.append(arguments) or 0)
    monkeypatch.setattr("sys.argv", ["tests/soak.py", "0.5", "--seed", "7", *options])
    assert soak.main() == 0
    assert found == [(1800.0, 7, chosen, blocked)]


def test_blocked_queues_need_a_build_of_their_own(soak, monkeypatch):
    built = []
    monkeypatch.setattr(
        soak.module, "build", lambda _tree, defines: built.append(defines) or ROOT / "README.md"
    )
    monkeypatch.setattr(lab, "run", guest(json.dumps({"steps": {}, "refused": {}, "failures": []})))
    soak.soak(1.0, 1, lab.UML, True)
    soak.soak(1.0, 1, lab.UML)
    assert built == [("MQFAIR_TEST_WINDOWS",), ()]


def test_counts_and_failures_are_shown(soak, monkeypatch, capsys):
    found = {"steps": {"switches": 5}, "refused": {"switches": 2}, "failures": ["data is wrong"]}
    monkeypatch.setattr(lab, "run", guest("noise\n" + json.dumps(found) + "\n"))
    assert soak.soak(1.0, 1, lab.UML) == 1
    shown = capsys.readouterr().out
    assert "5, 2 refused" in shown
    assert "failed: data is wrong\n1 failures" in shown


def test_a_guest_that_dies_fails_the_soak(soak, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(lab, "run", guest("", "guest died after 3 s"))
    assert soak.soak(1.0, 1, lab.UML) == 1
    (console,) = tmp_path.glob("*.log")
    shown = f"guest died after 3 s\nthe whole console of the guest: {console}\n"
    assert capsys.readouterr().out == shown
