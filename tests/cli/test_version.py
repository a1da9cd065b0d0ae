# SPDX-License-Identifier: GPL-2.0
"""The version: `mqfair --version`, and every file that states one."""

import re

import pytest
from conftest import ROOT, loaded

import mqfair.__main__ as front
from mqfair import __version__

STATEMENTS = {
    "kernel/main.c": r'^MODULE_VERSION\("(.*)"\);$',
    "kernel/ssd/main.c": r'^MODULE_VERSION\("(.*)"\);$',
    "kernel/dkms.conf": r'^PACKAGE_VERSION="(.*)"$',
    "kernel/ssd/dkms.conf": r'^PACKAGE_VERSION="(.*)"$',
    "CITATION.cff": r'^version: "(.*)"$',
}


@pytest.mark.parametrize("file", STATEMENTS)
def test_every_file_states_the_version_of_the_command(file):
    text = (ROOT / file).read_text()
    found = {"".join(match.groups("")) for match in re.finditer(STATEMENTS[file], text, re.M)}
    assert found == {__version__}


def test_the_newest_release_of_the_changelog_is_the_version():
    releases = re.findall(r"^## (\d[\d.]*)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert releases[0] == __version__


def test_a_debian_package_of_another_version_states_it_everywhere():
    """`packaging/deb --version` changes the same files in its copy."""
    module = loaded("packaging/deb", "packaging_deb")
    assert set(module.STATEMENTS) == {*STATEMENTS, "mqfair/__init__.py"}
    assert module.version_of(ROOT) == __version__


def test_the_package_takes_its_version_from_the_command():
    assert 'version = { attr = "mqfair.__version__" }' in (ROOT / "pyproject.toml").read_text()


def said(capsys):
    with pytest.raises(SystemExit) as end:
        front.main(["--version"])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_version_of_the_command(machine, capsys):
    assert said(capsys) == f"mqfair {__version__}\n"


def test_version_of_the_loaded_module(machine, capsys):
    machine.put("/sys/module/mqfair/version", "0.1.9")
    assert said(capsys) == f"mqfair {__version__}\nmodule mqfair 0.1.9 (loaded)\n"


def test_a_loaded_module_without_a_version(machine, capsys):
    machine.put("/sys/module/mqfair/srcversion", "ABCD")
    assert said(capsys) == f"mqfair {__version__}\n"
