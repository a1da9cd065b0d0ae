# SPDX-License-Identifier: GPL-2.0
"""Findings of check about io.weight, /etc/mqfair.conf, udev rules and profiles of TuneD."""

import pytest
from test_check import check, host, one  # noqa: F401 -- fixtures

RULE = 'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="nvme*", ATTR{queue/scheduler}="none"'
UDEV = "/usr/lib/udev/rules.d/60-ioschedulers.rules"


def test_a_machine_without_rivals(host, check):  # noqa: F811
    code, topics = check("nvme0n1", "prod/db")
    assert code == 0
    assert not {"udev", "tuned", "configuration", "io.weight"} & set(topics)


# -- io.weight


def test_every_disagreement_is_found(host, check):  # noqa: F811
    host.cgroup("a", io_weight="default 900")
    host.cgroup("a b", io_weight="default 200", weight="default 300")
    host.cgroup("agrees", io_weight="default 70", weight="default 70")
    host.cgroup("by hand", io_weight="default 100", weight="default 300")
    host.cgroup("device", io_weight="default 100\n259:0 50", weight="default 100\n259:0 60")
    code, topics = check("nvme0n1")
    assert code == 0
    found = {one["seen"]: one["mend"].partition(";")[0] for one in topics["io.weight"]}
    assert found == {
        "a: io.weight says 900, mqfair uses 100 on nvme0n1": "mqfair weight a 900",
        "a b: io.weight says 200, mqfair uses 300 on nvme0n1": "mqfair weight 'a b' 200",
        "device: io.weight says 50, mqfair uses 60 on nvme0n1": "mqfair weight device nvme0n1 50",
    }
    finding = topics["io.weight"][0]
    assert finding["where"] == "/sys/fs/cgroup/a/io.mqfair.weight"
    assert "mqfair follow --once" in finding["mend"]


def test_the_mend_of_a_disagreement_helps(host, check, run):  # noqa: F811
    host.cgroup("a", io_weight="default 900")
    _, topics = check("nvme0n1", "a")
    argv = one(topics, "io.weight", "warn")["mend"].partition(";")[0].split()
    assert run(*argv[1:]).code == 0
    assert "io.weight" not in check("nvme0n1", "a")[1]
    assert "io.weight" not in check("nvme0n1", "prod")[1]


def test_a_rule_is_no_disagreement(host, check, run):  # noqa: F811
    host.cgroup("a", io_weight="default 900")
    host.put("/etc/mqfair.conf", '[[weight]]\ncgroup = "a"\nweight = 50')
    assert "a: io.weight says 900, mqfair uses 100" in check("nvme0n1")[1]["io.weight"][0]["seen"]
    run("follow", "--once")
    assert "io.weight" not in check("nvme0n1")[1]


# -- the configuration


def test_a_rule_that_is_not_in_force(host, check, run):  # noqa: F811
    host.host("/run").mkdir()
    host.put("/etc/mqfair.conf", '\n[[device]]\nmatch = "nvme*"\nscheduler = "wdt"')
    finding = one(check("nvme0n1")[1], "configuration", "warn")
    assert finding["seen"] == "the rule asks for wdt, and mqfq is active"
    assert finding["where"] == "/etc/mqfair.conf:2"
    assert finding["mend"].startswith("mqfair enable nvme0n1 --scheduler wdt")
    assert run("enable", "nvme0n1", "--scheduler", "ifq").code == 0
    finding = one(check("nvme0n1")[1], "configuration", "warn")
    assert finding["seen"].endswith("and ifq is active, because ifq was chosen by hand")
    assert run("enable", "nvme0n1", "--scheduler", "wdt").code == 0
    assert "configuration" not in check("nvme0n1")[1]


def test_a_configuration_with_a_mistake(host, check):  # noqa: F811
    host.put("/etc/mqfair.conf", "banana = 1")
    finding = one(check("nvme0n1")[1], "configuration", "warn")
    assert finding["seen"].startswith("/etc/mqfair.conf:1: 'banana' is no key")


# -- udev


def test_a_udev_rule_that_sets_the_scheduler(host, check):  # noqa: F811
    host.put(UDEV, f"# {RULE}\n{RULE}")
    code, topics = check("nvme0n1")
    assert code == 0
    finding = one(topics, "udev", "warn")
    assert finding["seen"] == "a udev rule sets none on nvme0n1 at each event of the disk"
    assert finding["where"] == f"{UDEV}:2"
    assert finding["mend"].startswith("ln -s /dev/null /etc/udev/rules.d/60-ioschedulers.rules; ")
    override = "/etc/udev/rules.d/60-ioschedulers.rules"
    host.put(override, "")
    assert "udev" not in check("nvme0n1")[1]
    host.put(override, RULE)
    assert "remove that line" in one(check("nvme0n1")[1], "udev", "warn")["mend"]


@pytest.mark.parametrize(
    ("rule", "warns"),
    [
        (RULE, True),
        (RULE.replace("nvme*", "sd*|nvme?n*"), True),
        (RULE.replace("nvme*", "sd*"), False),
        (RULE.replace('KERNEL=="nvme*"', 'KERNEL!="nvme*"'), False),
        (RULE.replace('KERNEL=="nvme*"', 'KERNEL!="sd*"'), True),
        (RULE.replace(', ATTR{queue', ', ATTR{queue/rotational}=="0", ATTR{queue'), True),
        (RULE.replace(', ATTR{queue', ', ATTR{queue/rotational}=="1", ATTR{queue'), False),
        (RULE.replace(', ATTR{queue', ', ATTR{queue/nosuch}=="1", ATTR{queue'), False),
        (RULE.replace(', ATTR{queue', ', ATTR{queue/scheduler}!="none", ATTR{queue'), True),
        (RULE.replace(', ATTR{queue', ', \\\n  ATTR{queue'), True),
        (RULE.replace('="none"', '="mqfq"'), False),
        (RULE.replace('="none"', '=="none"'), False),
        (RULE.replace('SUBSYSTEM=="block"', 'SUBSYSTEM=="net"'), False),
        (RULE.replace('KERNEL=="nvme*"', 'ENV{DEVTYPE}=="partition"'), False),
    ],
)  # fmt: skip
def test_conditions_of_udev_rules(host, check, rule, warns):  # noqa: F811
    host.put("/sys/block/nvme0n1/queue/rotational", "0")
    host.put(UDEV, rule)
    assert ("udev" in check("nvme0n1")[1]) == warns


# -- TuneD


def profile(host, name, text, folder="/usr/lib/tuned"):  # noqa: F811
    host.put(f"{folder}/{name}/tuned.conf", text)


def test_the_active_profile_of_tuned(host, check):  # noqa: F811
    profile(host, "mine", "[main]\ninclude=throughput\n[sysctl]\nvm.swappiness=10")
    profile(host, "throughput", "[main]\nsummary=x\n\n[disk]\nreadahead=>4096\nelevator=kyber")
    host.put("/etc/tuned/active_profile", "mine")
    finding = one(check("nvme0n1")[1], "tuned", "warn")
    assert finding["seen"] == "TuneD's active profile sets kyber on nvme0n1 when it is applied"
    assert finding["where"] == "/usr/lib/tuned/throughput/tuned.conf:6"
    assert "tuned-adm off" in finding["mend"]
    profile(host, "mine", "[main]\ninclude=throughput\n[disk]\nelevator=mqfq")
    assert "tuned" not in check("nvme0n1")[1]


@pytest.mark.parametrize(
    ("text", "warns"),
    [
        ("[disk]\nelevator=none", True),
        ("[disk_nvme]\ntype=disk\ndevices=nvme*\nelevator=none", True),
        ("[disk_sd]\ntype=disk\ndevices=sd*\nelevator=none", False),
        ("[disk]\ndevices=!nvme*\nelevator=none", False),
        ("[disk]\nreadahead=4096", False),
        ("[main]\ninclude=self", False),
        ("no section", False),
    ],
)
def test_profiles_of_tuned(host, check, text, warns):  # noqa: F811
    profile(host, "self", text)
    host.put("/etc/tuned/active_profile", "self")
    assert ("tuned" in check("nvme0n1")[1]) == warns
    host.put("/etc/tuned/active_profile", "../self")
    assert "tuned" not in check("nvme0n1")[1]
