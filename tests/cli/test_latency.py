# SPDX-License-Identifier: GPL-2.0
import errno

import pytest

FILE = "/sys/fs/cgroup/prod/io.mqfair.latency"
GOAL = "259:0 target=500us pct=99 achieved=430us met=1 loss=4.2%"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    machine.cgroup("prod", subtree="io memory")
    machine.cgroup("prod/db")
    return machine


def test_read(host, run):
    assert run("latency", "prod").out == "prod  no goal\n"
    host.put(FILE, f"{GOAL}\n8:0 target=2ms pct=99.9 loss=0% inherited=1")
    lines = run("latency", "prod").out.splitlines()
    assert lines == [
        "prod  nvme0n1  99 % within 500us  achieved 430us (met)  loss 4.2%",
        "prod  8:0  99.9 % within 2ms  loss 0%  inherited",
    ]
    assert run("latency", "prod", "nvme0n1").out.splitlines() == lines[:1]
    host.put(FILE, GOAL.replace("met=1", "met=0"))
    assert "achieved 430us (missed)" in run("latency", "prod").out
    assert host.stores == []


def test_read_json(host, run):
    host.put(FILE, GOAL)
    assert run("latency", "prod", "nvme0n1", "--json").json == {
        "schema": "mqfair.latency/1",
        "cgroup": "prod",
        "device": "nvme0n1",
        "goals": {
            "259:0": {
                "target": "500us",
                "pct": "99",
                "achieved": "430us",
                "met": "1",
                "loss": "4.2%",
            }
        },
        "dry_run": False,
        "writes": [],
    }


@pytest.mark.parametrize(
    ("argv", "written"),
    [
        (("500us",), "target=500us pct=99"),
        (("1us",), "target=1us pct=99"),
        (("16s", "--pct", "1"), "target=16s pct=1"),
        (("2ms", "--pct", "99.9"), "target=2ms pct=99.9"),
        (("1000ns",), "target=1000ns pct=99"),
        (("none",), "target=none"),
    ],
)
def test_set(host, run, argv, written):
    host.put(FILE, GOAL)
    result = run("latency", "prod", "nvme0n1", *argv)
    assert (result.code, result.err) == (0, "")
    assert host.stores == [f"write '259:0 {written}' to '{FILE}'"]


def test_dry_run(host, run):
    result = run("latency", "prod", "nvme0n1", "500us", "--dry-run")
    assert result.out == f"write '259:0 target=500us pct=99' to '{FILE}'\n"
    assert host.stores == []


WRONG_TARGETS = ("0us", "500", "us", "-5us", "1.5ms", "5m", "999ns", "17s", "9" * 20 + "s", "abc")
WRONG_PERCENT = ("0", "0.9", "100", "99.99", "99.", "x")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        *(
            (("prod", "nvme0n1", "--", one), f"target '{one}' for {FILE}: use 1us..16s")
            for one in WRONG_TARGETS
        ),
        *(
            (("prod", "nvme0n1", "500us", "--pct", one), f"--pct '{one}' for {FILE}: use 1..99.9")
            for one in WRONG_PERCENT
        ),
        (("prod", "--pct", "99"), "--pct needs"),
        (("prod", "nvme0n1", "none", "--pct", "99"), "--pct needs"),
        (("prod", "nvme9n1", "500us"), "unknown device 'nvme9n1'"),
        (("prod", "dm-0", "500us"), "set the goal on the disks below it: nvme0n1"),
        (("/", "nvme0n1", "500us"), "the root cgroup has no latency goal"),
    ],
)
def test_a_wrong_word_changes_nothing(host, run, argv, said):
    host.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1",))
    result = run("latency", *argv)
    assert result.code == 2
    assert said in result.err
    assert host.stores == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        # The device was removed meanwhile.
        (errno.ENODEV, "nvme0n1 takes no goal"),
        (None, "reads back '' after '259:0 target=500us pct=99'"),
    ],
)
def test_a_goal_that_the_kernel_refuses_or_does_not_keep(host, run, code, said):
    if code:
        host.refuse[FILE] = [code]
    else:
        host.ignore.add(FILE)
    result = run("latency", "prod", "nvme0n1", "500us")
    assert result.code == 1
    assert said in result.err


def test_module_not_loaded(machine, run):
    machine.disk()
    machine.cgroup("prod")
    result = run("latency", "prod")
    assert result.code == 1
    assert f"{FILE} does not exist" in result.err
