# SPDX-License-Identifier: GPL-2.0
import pytest

from mqfair.__main__ import main

SCHEDULER = "/sys/block/nvme0n1/queue/scheduler"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    return machine


def test_disable_to_none(host, run):
    result = run("disable", "nvme0n1")
    assert (result.code, result.out) == (0, "nvme0n1: none (was mqfq)\n")
    assert host.stores == [f"write 'none' to '{SCHEDULER}'"]


def test_disable_to_a_named_scheduler(host, run):
    result = run("disable", "259:0", "--to", "mq-deadline", "--json")
    assert result.code == 0
    assert result.json == {
        "schema": "mqfair.disable/1",
        "device": "nvme0n1",
        "scheduler": "mq-deadline",
        "previous": "mqfq",
        "dry_run": False,
        "writes": [{"path": SCHEDULER, "value": "mq-deadline"}],
        "notes": [],
    }


def test_the_last_disk_tells_that_weights_end_with_the_module(host, run):
    host.disk("nvme1n1", "259:5", active="ifq")
    host.cgroup("prod", weight="default 900")
    host.cgroup("batch", weight="default 100")
    host.cgroup("web", weight="default 100\n259:0 7")
    assert "note" not in run("disable", "nvme1n1").out
    said = run("disable", "nvme0n1").out.splitlines()[1]
    assert said.startswith("note: 2 cgroups have weights or goals in the module: `modprobe -r mqfa")
    assert run("disable", "nvme0n1", "--json").json["notes"] == [said.removeprefix("note: ")]


def test_goals_count_as_well_and_inherited_ones_do_not(host, run):
    host.cgroup("prod")
    host.put("/sys/fs/cgroup/prod/io.mqfair.latency", "259:0 target=500us pct=99 inherited=1")
    assert "note" not in run("disable", "nvme0n1").out
    host.put("/sys/fs/cgroup/prod/io.mqfair.latency", "259:0 target=500us pct=99")
    assert "note: 1 cgroup has weights or goals" in run("disable", "nvme0n1").out


def test_the_help_tells_when_weights_end(capsys):
    with pytest.raises(SystemExit):
        main(["disable", "--help"])
    assert "with the module (`modprobe -r mqfair`)" in capsys.readouterr().out


def test_unknown_target(host, run):
    result = run("disable", "nvme0n1", "--to", "cfq")
    assert result.code == 2
    assert "'cfq'" in result.err
    assert "mq-deadline" in result.err
    assert host.stores == []


def test_a_scheduler_of_the_kernel_is_left_alone(host, run):
    host.disk("sda", "8:0", active="mq-deadline")
    result = run("disable", "sda")
    assert (result.code, result.out) == (0, "sda: mq-deadline, unchanged\n")
    assert host.stores == []


def test_without_none_the_first_other_scheduler_is_chosen(host, run):
    host.schedulers.remove("none")
    host.put(SCHEDULER, "[mqfq] ifq mq-deadline")
    assert run("disable", "nvme0n1").code == 0
    assert host.stores == [f"write 'mq-deadline' to '{SCHEDULER}'"]


def test_without_another_scheduler_it_fails(host, run):
    host.put(SCHEDULER, "[mqfq] ifq")
    result = run("disable", "nvme0n1")
    assert result.code == 1
    assert host.stores == []


def test_dry_run(host, run):
    before = host.snapshot()
    result = run("disable", "nvme0n1", "--dry-run")
    assert result.out == f"write 'none' to '{SCHEDULER}'\n"
    assert host.snapshot() == before


def test_a_value_that_does_not_stay_is_an_error(host, run):
    host.ignore.add(SCHEDULER)
    result = run("disable", "nvme0n1")
    assert result.code == 1
    assert "reads back 'mqfq' after 'none'" in result.err
