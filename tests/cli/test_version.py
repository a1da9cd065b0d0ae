# SPDX-License-Identifier: GPL-2.0
"""The version: `mqfair --version`, and every file that states one."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

import mqfair.__main__ as front
from mqfair import __version__

CHECKOUT = Path(front.__file__).parents[1]
STATEMENTS = {
    "kernel/main.c": r'^MODULE_VERSION\("(.*)"\);$',
    "kernel/ssd/main.c": r'^MODULE_VERSION\("(.*)"\);$',
    "kernel/dkms.conf": r'^PACKAGE_VERSION="(.*)"$',
    "kernel/ssd/dkms.conf": r'^PACKAGE_VERSION="(.*)"$',
}


@pytest.mark.parametrize("file", STATEMENTS)
def test_every_file_states_the_version_of_the_command(file):
    text = (CHECKOUT / file).read_text()
    found = {"".join(match.groups("")) for match in re.finditer(STATEMENTS[file], text, re.M)}
    assert found == {__version__}


def test_the_newest_release_of_the_changelog_is_the_version():
    releases = re.findall(r"^## (\d[\d.]*)", (CHECKOUT / "CHANGELOG.md").read_text(), re.M)
    assert releases[0] == __version__


def test_a_debian_package_of_another_version_states_it_everywhere():
    """`packaging/deb --version` changes the same files in its copy."""
    loader = SourceFileLoader("packaging_deb", str(CHECKOUT / "packaging/deb"))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    assert set(module.STATEMENTS) == {*STATEMENTS, "mqfair/__init__.py"}
    assert module.version_of(CHECKOUT) == __version__


def test_the_package_takes_its_version_from_the_command():
    assert 'version = { attr = "mqfair.__version__" }' in (CHECKOUT / "pyproject.toml").read_text()


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
