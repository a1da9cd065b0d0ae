# SPDX-License-Identifier: GPL-2.0
"""The table of measurements: each entry can be run as `make experiments` does."""

import sys
from pathlib import Path

import pytest
from conftest import program

from experiments.__main__ import MEASUREMENTS, main


def help_of(name, capsys, monkeypatch):
    one = MEASUREMENTS[name]
    module = program(f"experiments.{one.module}")
    verb = one.arguments.split()[:1] if one.module.startswith("papers.") else []
    monkeypatch.setattr(sys, "argv", [name, *verb, "--help"])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_each_measurement_takes_the_options_it_is_given(name, capsys, monkeypatch):
    one = MEASUREMENTS[name]
    text = help_of(name, capsys, monkeypatch)
    given = [word for word in one.argv(name, Path("build"), ["--icount"]) if word.startswith("--")]
    assert "--json" in given
    for option in given:
        assert option in text


def test_the_list_names_a_document_and_a_command(capsys):
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(MEASUREMENTS)
    assert any(line.endswith("experiments.papers.ifq.interference weights") for line in lines)


def test_an_unknown_measurement_is_refused(capsys):
    assert main(["shares", "nope"]) == 2
    assert "no measurement 'nope': use shares, light" in capsys.readouterr().err
