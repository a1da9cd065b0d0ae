# SPDX-License-Identifier: GPL-2.0
"""A mistake of a newcomer gets one line with a mend, and changes nothing."""

import pytest

CONF = "/etc/mqfair.conf"


@pytest.fixture
def host(machine):
    machine.disk()
    machine.install_module()
    machine.cgroup("prod", subtree="cpu io memory")
    machine.cgroup("prod/db")
    return machine


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        (["enable", "nvme0n1", "--scheduler", "bfq"], "mqfair disable DEVICE --to bfq"),
        (["enable", "nvme0n1", "--scheduler", "none"], "mqfair disable DEVICE --to none"),
        (
            ["enable", "nvme0n1", "--scheduler", "mqfqq"],
            "unknown --scheduler 'mqfqq': did you mean",
        ),
        (["enable", "nvme0n1", "--scheduler", "x"], "'x': use mqfq, ifq, kyber-fair, wdt, hwabc"),
        (["enabel"], "mqfair: unknown VERB 'enabel': did you mean enable? (see mqfair --help)"),
        (["report", "/nosuch", "--out", "x.html"], "`mqfair bench JOB --json FILE` makes one"),
        (["compare", "/nosuch", "/nosuch"], "`mqfair bench JOB --json FILE` makes one"),
        (["follow", "--config", "/nosuch"], f"leave --config out for {CONF}"),
        (["weight", "mysql", "500"], "mysql does not exist: mkdir /sys/fs/cgroup/mysql, or name"),
        (["weight", "mysql", "500"], "name a unit in full: mysql.service"),
        (["latency", "prod", "5ms"], "a goal is for one device: mqfair latency prod DEVICE 5ms"),
        (["latency", "prod", "none"], "mqfair latency prod DEVICE none"),
        (["latency", "prod", "5"], "mqfair latency prod DEVICE 5"),
    ],
)
def test_the_line_has_a_mend(host, run, words, mend):
    result = run(*words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert mend in result.err
    assert host.stores == []


def test_a_cgroup_in_a_folder_is_no_unit(host, run):
    assert run("weight", "prod/web9/x", "5").err.endswith("mkdir /sys/fs/cgroup/prod/web9/x\n")


def test_a_disk_may_have_a_name_like_a_target(host, run):
    assert run("latency", "prod", "259:0").code == 0


RULE = '[[device]]\nmatch = "nvme*n1"\ntunables = {{ {name} = 64 }}'


def test_check_finds_a_misspelt_tunable(host, run):
    """The tunables are known as soon as a disk of the rule has the scheduler."""
    host.put(CONF, RULE.format(name="dept"))
    assert run("follow", "--check").code == 0
    run("enable", "nvme0n1")
    result = run("follow", "--check")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        f"mqfair: {CONF}:1: mqfq has no tunable dept on nvme0n1: did you mean depth?\n"
    )
    host.put(CONF, RULE.format(name="depth"))
    assert run("follow", "--check").code == 0
