# SPDX-License-Identifier: GPL-2.0
"""The documents name files, links, targets, modules and verbs that exist."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from functools import cache
from unittest import mock

import pytest
from conftest import ROOT, program

from mqfair.__main__ import SUBCOMMANDS

DOCUMENTS = sorted(
    subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
)
ROOMS = (
    "contrib",
    "doc",
    "examples",
    "experiments",
    "flash",
    "kernel",
    "lab",
    "mqfair",
    "packaging",
    "sched",
    "sim",
    "tests",
)
IN_DEBUGFS = ("sched/state", "sched/flows", "sched/queues")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(rf"`((?:{'|'.join(ROOMS)}|\.ci|\.github)/[\w./-]*[\w/])`")


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text()


def anchors(name: str) -> set[str]:
    """The names that the headings of a document get."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text_of(name), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.replace(" ", "-"))
    return found


def commands(name: str, pattern: str) -> list[str]:
    # A command may be broken over two lines.
    return re.findall(pattern, re.sub(r"\s+", " ", text_of(name)))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
    dead = []
    for target in LINK.findall(text_of(name)):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        place = (ROOT / name).parent / path if path else ROOT / name
        name_of_place = str(place.resolve().relative_to(ROOT))
        if not place.exists() or (anchor and anchor not in anchors(name_of_place)):
            dead.append(target)
    assert dead == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_exist(name):
    named = {path for path in PATH.findall(text_of(name)) if "NAME" not in path} - set(IN_DEBUGFS)
    missing = [path for path in sorted(named) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_modules_exist(name):
    modules = set(commands(name, r"python3 -m ((?:experiments|lab|mqfair)[\w.]*\w)"))
    missing = [
        module
        for module in sorted(modules)
        if not (ROOT / f"{module.replace('.', '/')}.py").is_file()
        and not (ROOT / module.replace(".", "/") / "__main__.py").is_file()
    ]
    assert missing == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_make_targets_exist(name):
    targets = set(re.findall(r"^([a-z0-9-]+):", text_of("Makefile"), re.MULTILINE))
    named = set(commands(name, r"[`\n]make ([a-z0-9-]+)")) | set(
        re.findall(r"^ {4}make ([a-z0-9-]+)", text_of(name), re.MULTILINE)
    )
    assert sorted(named - targets) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_verbs_exist(name):
    verbs = {command.name for command in SUBCOMMANDS}
    named = set(re.findall(r"^ {4}mqfair ([a-z]+)\b", text_of(name), re.MULTILINE))
    named |= set(commands(name, r"`mqfair ([a-z]+)\b"))
    assert sorted(named - verbs) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_job_files_exist(name):
    named = set(commands(name, r"\b(examples/[\w-]+\.fio)"))
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


@cache
def help_of(name: str, *verb: str) -> str:
    module = program(name)
    text = io.StringIO()
    argv = [name, *verb, "--help"]
    with (
        mock.patch("sys.argv", argv),
        contextlib.redirect_stdout(text),
        pytest.raises(SystemExit),
    ):
        module.main()
    return text.getvalue()


def command_lines(name: str) -> list[list[str]]:
    """The commands of the project in indented code: module (and verb) first."""
    found = []
    for line in re.findall(r"^ {4}((?:python3 -m|mqfair) .*)$", text_of(name), re.MULTILINE):
        words = line.split(" #")[0].removeprefix("python3 -m ").split()
        # The experiments of a paper and the command itself take a verb.
        has_verb = words[0] == "mqfair" or (".papers." in words[0] and words[1][0] != "-")
        verb = 2 if has_verb else 1
        found.append([*words[:verb], *(word for word in words[verb:] if word.startswith("--"))])
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_options_exist(name):
    unknown = []
    for line in command_lines(name):
        command = [word for word in line if not word.startswith("--")]
        if "lab" in command or "..." in line:
            continue
        text = help_of(*command)
        unknown += [
            f"{' '.join(command)} {option}"
            for option in line[len(command) :]
            if not re.search(rf"(?<![\w-]){re.escape(option.split('=')[0])}(?![\w-])", text)
        ]
    assert unknown == []


MEASURED = [one for one in DOCUMENTS if one.startswith("doc/measurements/")]
MEASURED += ["doc/figures.md", "doc/study.md"]
TABLE = re.compile(r"^\|[-: |]+\|$", re.MULTILINE)
BLOCK = re.compile(r"^ {4}\S", re.MULTILINE)
COMMAND = re.compile(
    r"^ {4}\S|`(?:python3 -m|mqfair bench|mqfair sim|make|build/)[^`]*`", re.MULTILINE
)


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_table_has_its_command(name):
    """In its section, or at the head of the page."""
    head, *sections = re.split(r"^(?=##+ )", (ROOT / name).read_text(), flags=re.MULTILINE)
    without = [
        one.splitlines()[0] for one in sections if TABLE.search(one) and not COMMAND.search(one)
    ]
    assert not without or BLOCK.search(head), f"{name}: tables without a command: {without}"
