# SPDX-License-Identifier: GPL-2.0
"""The completions: bash completes verbs, options, values and arguments, and fish does as well."""

import re
import shutil
import subprocess

import pytest

from mqfair.__main__ import SUBCOMMANDS
from mqfair.manual import completion

FILES = completion.files()
VERBS = [command.name for command in SUBCOMMANDS]
# The words, the last of which is completed, and all completions. `+` allows others beside them.
CASES = [
    (["en"], "enable"),
    ([""], " ".join(VERBS)),
    (["--v"], "--version"),
    (["enable", "--calibrate-"], "--calibrate-time"),
    (["enable", "--scheduler", "k"], "kyber-fair"),
    (["enable", "nvme0n1", "--cost", "l"], "linear learned"),
    (["top", "--once", "--view", ""], "past rates times"),
    (["lab", ""], "exec shell"),
    (["lab", "exec", "--cpus", "2", "--accel", ""], "auto kvm tcg"),
    (["bench", "--seed", "LICE"], ""),
    (["bench", "LICE"], "LICENSE"),
    (["compare", "LICENSE", "READM"], "README.md"),
    (["report", "one", "two", "LICE"], "LICENSE"),
]
# bash calls compopt only within a completion.
PROGRAM = """
source "$1"; shift
compopt() { :; }
COMP_WORDS=(mqfair "$@"); COMP_CWORD=$#
_mqfair
echo "${COMPREPLY[*]}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("completion")
    assert completion.main([str(place)]) == 0
    return place


def in_bash(folder, words):
    argv = ["bash", "--norc", "-c", PROGRAM, "bash", folder / "mqfair", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(done.stdout.split())


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(one[0]) for one in CASES])
def test_bash_completes(folder, words, expected):
    assert in_bash(folder, words) == sorted(expected.split())


def test_bash_completes_disks_and_cgroups(folder):
    script = FILES["mqfair"].replace("/sys/", f"{folder}/sys/")
    for name in ("block/nvme0n1", "block/loop0", "fs/cgroup/prod/web", "fs/cgroup/batch"):
        (folder / "sys" / name).mkdir(parents=True, exist_ok=True)
    moved = folder / "moved"
    moved.mkdir(exist_ok=True)
    (moved / "mqfair").write_text(script)
    assert in_bash(moved, ["enable", ""]) == ["nvme0n1"]
    assert in_bash(moved, ["weight", ""]) == ["batch", "prod"]
    assert in_bash(moved, ["weight", "prod/"]) == ["prod/web"]
    assert in_bash(moved, ["weight", "prod", "nv"]) == ["nvme0n1"]


@pytest.mark.parametrize("name", FILES)
def test_each_file_has_each_verb_and_each_long_option(name):
    for one in completion.verbs():
        for word in one.words:
            assert re.search(rf"\b{word}\b", FILES[name])
        for option in one.options:
            bare = option.names[-1].lstrip("-")
            assert re.search(rf"(--|-l ){bare}\b", FILES[name]), f"{one.words} {bare}"


@pytest.mark.parametrize(
    ("shell", "name"), [("bash", "mqfair"), ("zsh", "_mqfair"), ("fish", "mqfair.fish")]
)
def test_the_shell_can_parse_its_file(folder, shell, name):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", folder / name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
