# SPDX-License-Identifier: GPL-2.0
"""Pythons that are too old: one line, or a newer one of the machine, and what packages need."""

import ast
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

from mqfair import old_python

# Run as `python3.9 -m mqfair WORDS`: sys.argv is ["-m", WORDS] while the package is imported.
OLD = (
    "import sys; sys.hexversion = 0x03090000; sys.version_info = (3, 9, 18);"
    " sys.argv[0] = {name!r}; import mqfair"
)


def started(path, *words, name="-m"):
    argv = [sys.executable, "-c", OLD.format(name=name), *words]
    env = {**os.environ, "PATH": str(path), "PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def test_one_line_says_what_to_install(tmp_path):
    done = started(tmp_path, "status")
    said = "mqfair: Python 3.9 is too old: install Python 3.11 or later, such as the package"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{said} python3.11\n"


def newer(tmp_path, text, minor=12):
    program = tmp_path / f"python3.{minor}"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def test_a_newer_python_of_the_machine_takes_over(tmp_path):
    newer(tmp_path, 'echo "$@"')
    done = started(tmp_path, "weight", "prod", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "-m mqfair weight prod a b\n", "")


def test_a_newer_python_that_is_none_ends_too(tmp_path):
    newer(tmp_path, f'exec {sys.executable} -c "{OLD.format(name="-m")}"')
    done = started(tmp_path, "status")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "is too old" in done.stderr


def test_another_program_that_imports_the_package_gets_an_error(tmp_path):
    newer(tmp_path, "echo never")
    done = started(tmp_path, name="other.py")
    assert done.returncode == 1
    assert "ImportError: mqfair: Python 3.9 is too old" in done.stderr
    assert "never" not in done.stdout


@pytest.mark.parametrize("name", ["mqfair/__init__.py", "mqfair/old_python.py"])
def test_an_old_python_can_read_the_refusal(name):
    ast.parse((ROOT / name).read_text(), feature_version=(3, 6))


def test_the_build_of_the_module_has_no_grammar_of_a_later_python():
    files = [ROOT / "kernel" / "build", *(ROOT / "kernel" / "btf").glob("*.py")]
    for file in files:
        ast.parse(file.read_text(), str(file), feature_version=(3, 9))


def test_the_build_of_the_module_refuses_in_one_line():
    text = (ROOT / "kernel" / "build").read_text()
    start = text[: text.index("import argparse")]
    old = "import sys; sys.hexversion = 0x03080000; sys.version = '3.8.1 (main)'\n"
    done = subprocess.run(
        [sys.executable, "-c", old + start.replace("from __future__ import annotations", "")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = "kernel/build: Python 3.8.1 is too old: 3.9 or later\n"
    assert (done.returncode, done.stderr) == (1, said)


def paragraph(text, start):
    return text[text.index(start) :].partition("\n\n")[0]


def test_packages_depend_on_what_the_command_and_the_build_need():
    least = f"3.{old_python.LEAST}"
    assert f'requires-python = ">={least}"' in (ROOT / "pyproject.toml").read_text()
    control = (ROOT / "packaging/debian/control").read_text()
    spec = (ROOT / "packaging/rpm/mqfair.spec").read_text()
    assert f"python3 (>= {least})" in paragraph(control, "Package: mqfair\n")
    for package in ("mqfair-dkms", "mqfair-ssd-dkms"):
        assert "python3 (>= 3.9)" in paragraph(control, f"Package: {package}\n")
    assert re.findall(r"^Requires: +(.*python3.*)$", spec, re.MULTILINE) == [
        f"(python3 >= {least} or python{least} or python3.12)",
        "python3 >= 3.9",
    ]
