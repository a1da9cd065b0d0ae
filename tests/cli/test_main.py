# SPDX-License-Identifier: GPL-2.0
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mqfair.__main__ as front
from mqfair import packages
from mqfair.text.errors import Failure, UsageError

CHECKOUT = Path(front.__file__).parents[1]


def python(*argv, **kwargs):
    return subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, timeout=60, check=False, **kwargs
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "VERB"),
        (["frobnicate"], "frobnicate"),
        (["enable"], "DEVICE"),
        (["enable", "x", "--scheduler", "bfq"], "bfq"),
        (["statsu"], "did you mean status?"),
        (["enable", "x", "--scheduler", "mqfqq"], "did you mean mqfq?"),
        (["enable", "nvem*", "b"], "no device matches 'nvem*': disks here: "),
        (["disable", "b"], "unknown device 'b': not in /sys/class/block; disks here: "),
        (["enable", "a", "--jsn"], "unrecognized arguments: --jsn (see mqfair enable --help)"),
        (["weight", "a", "b", "1", "2"], "mqfair weight takes no '2': see mqfair weight --help"),
    ],
)
def test_bad_command_line_is_one_line_and_status_2(run, argv, said):
    """A word that is like no choice gets no guess."""
    result = run(*argv)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("mqfair: ")
    assert said in result.err
    assert "did you mean" in said or "did you mean" not in result.err


def test_table_names_each_verb_once():
    names = [command.name for command in front.SUBCOMMANDS]
    assert names == [
        "status", "top", "check", "enable", "disable", "weight", "follow", "latency", "bench",
        "sim", "qualify", "fit", "compare", "record", "trace", "report", "metrics", "lab",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UsageError("bad word"), 2, "mqfair: bad word\n"),
        (Failure("refused"), 1, "mqfair: refused\n"),
        (KeyboardInterrupt(), 130, "mqfair: interrupted\n"),
        (KeyboardInterrupt("all is as before"), 130, "mqfair: interrupted; all is as before\n"),
        (
            OSError(28, "No space left on device"),
            1,
            "mqfair: cannot write to standard output: No space left on device: the output is"
            " incomplete\n",
        ),
        (FileNotFoundError(2, "No such file", "/a"), 1, "mqfair: /a: No such file\n"),
    ],
)
def test_exit_statuses(run, monkeypatch, raised, status, said):
    def fail(_args):
        raise raised

    monkeypatch.setattr("mqfair.watch.status.main", fail)
    result = run("status")
    assert (result.code, result.out, result.err) == (status, "", said)


def test_missing_package_is_named(run, monkeypatch):
    monkeypatch.setattr(
        front, "SUBCOMMANDS", (front.SubCommand("draw", "tests_cli_needs_absent", "draw"),)
    )
    result = run("draw")
    assert result.code == 1
    assert "tests_cli_needs_absent" in result.err


@pytest.mark.parametrize("argv", [["status"], ["--help"]])
def test_broken_pipe_is_quiet(machine, tmp_path, argv):
    """`mqfair status | true`: the reader ends before the first byte, which is buffered."""
    machine.disk()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "mqfair", *argv],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=CHECKOUT,
        env={**env, "MQFAIR_ROOT": str(tmp_path)},
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert process.returncode == 141
    assert process.stderr == b""


def output_to(path, tmp_path, *argv):
    """The command with its output in the file @path; without one if @path is None."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    shell = f'exec "$@" >{path or "&-"}'
    return subprocess.run(
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-m", "mqfair", *argv],
        stderr=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env={**env, "MQFAIR_ROOT": str(tmp_path)},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("argv", [["status"], ["status", "--json"], ["--help"], ["--version"]])
def test_a_full_disk_is_one_line(machine, tmp_path, argv):
    machine.disk()
    done = output_to("/dev/full", tmp_path, *argv)
    assert done.returncode == 1
    assert done.stderr == (
        "mqfair: cannot write to standard output: No space left on device: the output is"
        " incomplete\n"
    )


def test_more_output_than_a_buffer_on_a_full_disk(machine, tmp_path):
    """The error comes from print() and not from the flush at the end."""
    for number in range(300):
        machine.disk(f"nvme{number}n1", f"259:{number}")
    done = output_to("/dev/full", tmp_path, "status", "--json")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize("argv", [["status"], ["weight", "prod"]])
def test_a_closed_output_is_no_error(machine, tmp_path, argv):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.cgroup("prod", weight="default 900")
    done = output_to(None, tmp_path, *argv)
    assert (done.returncode, done.stderr) == (0, "")


def without_packages(*argv, **kwargs):
    """Runs the command with the standard library alone."""
    script = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from mqfair.__main__ import main;"
        f" sys.exit(main({list(argv)!r}))"
    )
    return python("-I", "-S", "-c", script, **kwargs)


def test_runs_from_a_checkout_with_the_standard_library_alone(machine, tmp_path):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.cgroup("prod", weight="default 900")
    for argv in (["status"], ["check", "nvme0n1", "prod"], ["weight", "prod"]):
        process = without_packages(*argv, env={**os.environ, "MQFAIR_ROOT": str(tmp_path)})
        assert process.stderr == ""
        assert process.returncode == 0, process.stdout
        assert "prod" in process.stdout or "nvme0n1" in process.stdout
    assert python("-m", "mqfair", "--help", cwd=CHECKOUT).returncode == 0


def test_help_of_each_verb_needs_the_standard_library_alone():
    for command in front.SUBCOMMANDS:
        process = without_packages(command.name, "--help")
        assert (process.returncode, process.stderr) == (0, ""), command.name
        assert f"mqfair {command.name}" in process.stdout


def test_bench_names_the_package_that_it_lacks():
    process = without_packages("bench", "examples/four-cgroups.fio")
    assert process.returncode == 1
    assert process.stdout == ""
    assert process.stderr.startswith(
        "mqfair: bench: Python packages rich, numpy missing: apt install python3-rich"
        " python3-numpy (Debian, Ubuntu), dnf install python3-rich python3-numpy"
    )


def test_one_missing_package_is_named_alone(monkeypatch):
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: name)
    assert packages.lacking("numpy", packages.NEEDED["bench"]).startswith(
        "Python package numpy missing: apt install python3-n"
    )


@pytest.mark.parametrize("verb", ["lab", "bench"])
def test_pip_is_not_advised_for_the_package_lab(verb, monkeypatch, capsys):
    """`pip install lab` would install the package of another project."""
    for name in ("mqfair.lab", "mqfair.bench.options", "lab.kernel", "lab.debian"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "lab", None)
    assert front.main([verb, "--help"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"mqfair: {verb}: this installation lacks lab")
    assert said.endswith(": reinstall mqfair\n")


def test_bench_imports_no_other_package():
    """The packages that the message can name are those that bench needs."""
    script = "import sys, mqfair.bench.command; print(*sorted(sys.modules))"
    loaded = python("-c", script, cwd=CHECKOUT).stdout.split()
    outside = {name.partition(".")[0] for name in loaded} & set(packages_of_bench())
    assert outside == set(packages.NEEDED["bench"])


def packages_of_bench():
    text = (CHECKOUT / "pyproject.toml").read_text()
    return re.findall(r'"([a-z]+)>=', re.search(r"^bench = .*$", text, re.MULTILINE)[0])
