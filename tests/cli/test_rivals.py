# SPDX-License-Identifier: GPL-2.0
"""Findings of check about other programs that set the scheduler of a disk."""

import random

import pytest
from test_check import check, host  # noqa: F401

from mqfair.check.rival import names_file, written
from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs

# ruff: noqa: F811 -- the fixtures of test_check

RULES = "/etc/udev/rules.d/60-x.rules"
DATABASE = "/run/udev/data/b259:0"
QUEUE = "/sys/block/nvme0n1/queue"
WRITE = 'ATTR{queue/scheduler}="none"'


@pytest.fixture
def found(host, check):
    """Severity, scheduler and line of each finding of a program, after @files were written."""

    def call(program, files):
        for path, text in files.items():
            host.put(path, text)
        findings = check("nvme0n1")[1].get(program, [])
        return [
            (one["severity"], *scheduler_of(one["seen"]), int(one["where"].rpartition(":")[2]))
            for one in findings
        ]

    return call


def scheduler_of(seen):
    words = seen.split()
    return (words[words.index("sets" if "sets" in words else "set") + 1],)


# -- udev

GOTO = """\
ACTION!="add|change", GOTO="io_end"
SUBSYSTEM!="block", GOTO="io_end"
KERNEL=="nvme*", GOTO="io_end"
ATTR{queue/scheduler}="bfq"
LABEL="io_end"
"""
OLD_AND_NEW = """\
# jumps, an exception for a disk that has it already, the old block layer and the new one
SUBSYSTEM!="block", GOTO="iosched_out"
ENV{DEVTYPE}!="disk", GOTO="iosched_out"
ATTR{queue/scheduler}=="mqfq*|*[mqfq]*", GOTO="iosched_out"
TEST=="%S%p/mq", ENV{.NEW}="1"
ENV{.NEW}=="1", ATTR{queue/rotational}=="0", ATTR{queue/scheduler}="none"
ENV{.NEW}!="1", ATTR{queue/rotational}=="0", ATTR{queue/scheduler}="deadline"
LABEL="iosched_out"
"""
OF_PARTITIONS = """\
ACTION=="add|change", KERNEL=="nvme[0-9]n[0-9]p[0-9]*", ATTR{../queue/scheduler}="kyber"
SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ATTRS{model}=="Amazon EC2 NVMe*", ATTR{queue/scheduler}="none"
"""  # noqa: E501


def test_jumps_are_followed(found):
    assert found("udev", {RULES: GOTO}) == []
    assert found("udev", {RULES: GOTO.replace("nvme*", "sd*")}) == [("warn", "bfq", 4)]
    no_label = GOTO.replace('LABEL="io_end"', "")
    assert found("udev", {RULES: no_label}) == [("warn", "bfq", 4)]


@pytest.mark.parametrize(
    ("cmdline", "expected"), [("quiet", [("warn", "bfq", 3)]), ("elevator=x", [])]
)
def test_an_option_of_the_kernel_may_end_a_file_of_rules(host, found, cmdline, expected):
    host.put("/proc/cmdline", cmdline)
    rules = (
        'IMPORT{cmdline}="elevator"\nENV{elevator}=="?*", GOTO="end"\nATTR{queue/scheduler}="bfq"\n'
    )
    assert found("udev", {RULES: f'{rules}LABEL="end"'}) == expected


def test_properties_of_rules_count_for_those_after_them(host, found):
    host.put(f"{QUEUE}/rotational", "0")
    assert found("udev", {RULES: OLD_AND_NEW}) == []
    no_exception = OLD_AND_NEW.replace("mqfq*|*[mqfq]*", "nothing")
    assert found("udev", {RULES: no_exception}) == [("warn", "none", 6)]
    host.put(f"{QUEUE}/scheduler", "mq-deadline mqfq [none]")
    assert found("udev", {RULES: OLD_AND_NEW}) == [("note", "none", 6)]


def test_events_of_partitions_reach_the_disk(host, found):
    assert found("udev", {RULES: OF_PARTITIONS}) == [("note", "none", 2)]
    host.partition("nvme0n1", "nvme0n1p1", "259:1")
    assert found("udev", {RULES: OF_PARTITIONS}) == [("warn", "kyber", 1), ("note", "none", 2)]
    host.put("/sys/block/nvme0n1/device/model", "Amazon EC2 NVMe Storage")
    folder = "/sys/devices/virtual/block/nvme0n1"
    host.put(f"{folder}/model", "Amazon EC2 NVMe Storage")
    assert found("udev", {RULES: OF_PARTITIONS}) == [("warn", "kyber", 1), ("warn", "none", 2)]
    host.put(f"{folder}/model", "another")
    assert found("udev", {RULES: OF_PARTITIONS}) == [("warn", "kyber", 1)]


@pytest.mark.parametrize(
    ("rule", "severity"),
    [
        (f'ENV{{ID_MODEL}}=="A*", {WRITE}', "note"),
        (f'PROGRAM=="/bin/true", {WRITE}', "note"),
        (f'RESULT=="a", {WRITE}', "note"),
        (f'TAG=="x", {WRITE}', "note"),
        (f'ATTR{{queue/nosuch}}!="1", {WRITE}', "note"),
        (f'ATTR{{queue/nosuch}}=="1", {WRITE}', None),
        (f'KERNEL=="sd*", PROGRAM=="/bin/true", {WRITE}', None),
        (f'KERNEL==i"NVME*", {WRITE}', "warn"),
        (f'KERNEL=="nvme\\*", {WRITE}', None),
        (f'KERNEL=="nvme[^a]n1", {WRITE}', "warn"),
        (f'DEVPATH=="*/nvme0n1", {WRITE}', "warn"),
        (f'TEST=="queue/scheduler", {WRITE}', "warn"),
        (f'TEST!="/sys/block/nvme*/queue", {WRITE}', None),
        (f'SYSCTL{{kernel.osrelease}}=="6.1*", {WRITE}', "warn"),
        (f'SYSCTL{{kernel.osrelease}}=="5.*", {WRITE}', None),
        (f'ENV{{X}}="2"\nENV{{X}}=="1", {WRITE}', None),
        (f'ENV{{X}}="%k"\nENV{{X}}=="nvme0n1", {WRITE}', "warn"),
        (f'PROGRAM=="a", ENV{{X}}="1"\nENV{{X}}=="1", {WRITE}', "note"),
        (f'ENV{{ID_BUS}}=="scsi", GOTO="e"\n{WRITE}\nLABEL="e"', "note"),
        (f'ENV{{ID_BUS}}=="scsi", GOTO="e"\nLABEL="e"\n{WRITE}', "warn"),
        (f'IMPORT{{cmdline}}="elevator", {WRITE}', None),
        (f'IMPORT{{cmdline}}!="elevator", {WRITE}', "warn"),
        (f"ATTR{{queue/scheduler}}!=\"x\"\n# {WRITE}", None),
        (f'KERNEL=="nvme*", \\\n# a remark\n  {WRITE}', "warn"),
        ('ATTR{queue/scheduler}="$env{SCHED}"', "note"),
        ('ENV{SCHED}="bfq"\nATTR{queue/scheduler}="$env{SCHED}"', "warn"),
        ('ATTR{device/../queue/scheduler}="none"', "warn"),
    ],
)  # fmt: skip
def test_a_rule_is_judged_or_told_with_may(found, rule, severity):
    got = [one[0] for one in found("udev", {RULES: rule})]
    assert got == ([severity] if severity else [])


def test_a_doubt_names_its_condition(host, check):
    host.put(RULES, f'ENV{{ID_MODEL}}=="A*", {WRITE}')
    (finding,) = check("nvme0n1")[1]["udev"]
    assert finding["seen"] == (
        "a udev rule may set none on nvme0n1 at each event of the disk: it depends on ENV{ID_MODEL}"
    )


@pytest.mark.parametrize(("model", "severity"), [("A1", "warn"), ("B1", None)])
def test_the_database_of_udev_ends_doubts(found, model, severity):
    files = {RULES: f'ENV{{ID_MODEL}}=="A*", {WRITE}', DATABASE: f"I:1\nE:ID_MODEL={model}"}
    assert [one[0] for one in found("udev", files)] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("command", "severity"),
    [
        ("/bin/sh -c 'echo none > /sys/block/%k/queue/scheduler'", "warn"),
        ("/bin/sh -c 'echo none > /sys/block/$kernel/queue/scheduler'", "warn"),
        ("/bin/sh -c 'echo -n none >/sys$devpath/queue/scheduler'", "warn"),
        ("/bin/sh -c 'echo none | tee %S%p/queue/scheduler'", "warn"),
        ("/bin/sh -c 'echo none > /sys/block/sda/queue/scheduler'", None),
        ("/bin/sh -c 'cat /sys/block/%k/queue/scheduler > /run/x'", None),
        ("/bin/sh -c 'echo none > /sys/block/$env{NAME}/queue/scheduler'", "warn"),
        ("set-scheduler %k", "note"),
        ("/usr/bin/true", None),
    ],
)
@pytest.mark.parametrize("key", ["RUN+=", "PROGRAM=", "IMPORT{program}="])
def test_commands_of_rules(host, found, command, severity, key):
    host.put("/usr/lib/udev/set-scheduler", "#!/bin/sh\necho none > /sys/block/$1/queue/scheduler")
    rule = f'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="nvme*n1", {key}"{command}"'
    got = found("udev", {RULES: rule})
    if key.startswith("IMPORT") and severity == "warn":
        severity = "note"
    assert [one[:2] for one in got] == ([(severity, "none")] if severity else [])


def test_a_builtin_of_udev_runs_no_command(found):
    assert found("udev", {RULES: 'RUN{builtin}+="kmod load bfq scheduler"'}) == []


# -- files of boot


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("w /sys/block/nvme0n1/queue/scheduler - - - - none", "warn"),
        ("w+! /sys/block/nvme*/queue/scheduler - - - - none\\n", "warn"),
        ('w "/sys/class/block/nvme0n1/queue/scheduler" - - - - none', "warn"),
        ("w /sys/block/sd*/queue/scheduler - - - - none", None),
        ("w /sys/block/*/queue/rotational - - - - 0", None),
        ("r /sys/block/nvme0n1/queue/scheduler", None),
        ("# w /sys/block/nvme0n1/queue/scheduler - - - - none", None),
        ("w /sys/block/nvme0n1/queue/scheduler - - - - mqfq", None),
    ],
)
def test_tmpfiles(host, check, line, severity):
    host.put("/usr/lib/tmpfiles.d/io.conf", f"# comment\n{line}")
    got = check("nvme0n1")[1].get("tmpfiles.d", [])
    assert [one["severity"] for one in got] == ([severity] if severity else [])
    if severity:
        assert got[0]["seen"].startswith("a line of tmpfiles.d sets none on nvme0n1 at boot")
        assert got[0]["where"] == "/usr/lib/tmpfiles.d/io.conf:2"
        assert got[0]["mend"] == "ln -s /dev/null /etc/tmpfiles.d/io.conf"
        host.put("/etc/tmpfiles.d/io.conf", "")
        assert "tmpfiles.d" not in check("nvme0n1")[1]


@pytest.mark.parametrize(
    ("text", "scheduler"),
    [
        ('DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="mq-deadline bfq"', "mq-deadline"),
        ('DISK_DEVICES="sda nvme0n1"\nDISK_IOSCHED="mq-deadline bfq"', "bfq"),
        ('DISK_DEVICES="sda nvme0n1"\nDISK_IOSCHED="none"', "none"),
        ('DISK_IOSCHED="none"', "none"),
        ('DISK_DEVICES="nvme-Samsung_1"\nDISK_IOSCHED="none"', "none"),
        ('DISK_DEVICES="sda"\nDISK_IOSCHED="none"', None),
        ('DISK_IOSCHED="keep none"', None),
        ('#DISK_IOSCHED="none"', None),
        ('TLP_ENABLE=0\nDISK_IOSCHED="none"', None),
    ],
)
def test_tlp(host, found, text, scheduler):
    host.link("/dev/disk/by-id/nvme-Samsung_1", "/dev/nvme0n1")
    want = [("warn", scheduler)] if scheduler else []
    assert [one[:2] for one in found("TLP", {"/etc/tlp.d/01-custom.conf": text})] == want
    # The main file has the last word, and a machine on which TLP does not start is left alone.
    host.put("/run/systemd/system/x", "")
    assert found("TLP", {}) == []
    host.link("/etc/systemd/system/multi-user.target.wants/tlp.service", "/usr/lib/x")
    assert [one[:2] for one in found("TLP", {})] == want
    assert found("TLP", {"/etc/tlp.conf": "DISK_IOSCHED=keep"}) == []


SURE, MAY = ("warn", "bfq", 2), ("note", "bfq", 2)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo none > /sys/block/nvme0n1/queue/scheduler", ("warn", "none", 2)),
        ("echo none > /sys/block/sda/queue/scheduler", None),
        ("for d in /sys/block/nvme*/queue/scheduler; do\necho bfq > $d\ndone", ("warn", "bfq", 3)),
        ("for d in sda nvme0n1; do echo bfq > /sys/block/$d/queue/scheduler; done", SURE),
        ('D=nvme0n1\necho bfq >"/sys/block/${D}/queue/scheduler"', ("warn", "bfq", 3)),
        ("for d in $(ls); do echo bfq > /sys/block/$d/queue/scheduler; done", MAY),
        ("[ -e /x ] && echo bfq > /sys/block/nvme0n1/queue/scheduler", MAY),
        ("if true; then echo bfq > /sys/block/nvme0n1/queue/scheduler; fi", MAY),
        ("if false; then x; fi; echo bfq > /sys/block/nvme0n1/queue/scheduler", SURE),
        ("for d in /sys/block/sd*; do echo bfq > $d/queue/scheduler; done", None),
        ("# echo none > /sys/block/nvme0n1/queue/scheduler", None),
        ("cat /sys/block/nvme0n1/queue/scheduler", None),
        ("echo mqfq > /sys/block/nvme0n1/queue/scheduler", None),
    ],
)  # fmt: skip
def test_scripts_of_boot(host, found, script, expected):
    host.put("/etc/rc.local", f"#!/bin/sh\n{script}\nexit 0").chmod(0o755)
    assert found("script", {}) == ([expected] if expected else [])
    host.host("/etc/rc.local").chmod(0o644)
    assert found("script", {}) == ([("note", *expected[1:])] if expected else [])


def test_units_of_systemd(host, found):
    line = "ExecStart=/bin/sh -c 'echo bfq > /sys/block/nvme0n1/queue/scheduler'"
    unit = {"/etc/systemd/system/io.service": f"[Service]\nType=oneshot\n{line}"}
    assert found("unit", unit) == [("note", "bfq", 3)]
    host.link("/etc/systemd/system/multi-user.target.wants/io.service", "/etc/systemd/system/x")
    assert found("unit", unit) == [("warn", "bfq", 3)]
    script = "#!/bin/sh\necho none > /sys/block/nvme0n1/queue/scheduler"
    host.put("/usr/local/bin/io-tune", script)
    unit = {"/etc/systemd/system/io.service": "[Service]\nExecStart=-/usr/local/bin/io-tune -q"}
    assert found("unit", unit) == [("note", "none", 2)]


def test_units_that_set_no_scheduler_cost_no_search(host, found, monkeypatch):
    """A machine has hundreds of units, and systemd dozens of folders with links to them."""
    for number in range(100):
        host.put(f"/etc/systemd/system/{number}.service", "[Service]\nExecStart=/bin/true")
        host.put(f"/etc/systemd/system/{number}.target.wants/{number}.service", "")
    listed = []
    names = Fs.names
    monkeypatch.setattr(Fs, "names", lambda fs, path: listed.append(path) or names(fs, path))
    assert found("unit", {}) == []
    assert "/etc/systemd/system" in listed
    assert not [path for path in listed if path.endswith(".wants")]


def test_other_files_of_boot(host, found):
    files = {"/etc/sysfs.d/io.conf": "# x\nblock/nvme0n1/queue/scheduler = kyber"}
    assert found("sysfs.conf", files) == [("warn", "kyber", 2)]
    job = "@reboot root echo none | tee /sys/block/nvme0n1/queue/scheduler"
    assert found("cron", {"/etc/cron.d/io": job}) == [("warn", "none", 1)]
    files = {"/etc/sysconfig/sapconf": 'IO_SCHEDULER="noop none"'}
    assert found("sapconf", files) == [("note", "none", 1)]


# -- TuneD

BY_REGEX = """\
[main]
include=balanced
[disk]
devices_udev_regex=(ID_SERIAL=36d0946606d79f9002)|(ID_SERIAL=0QEMU_HARDDISK_1)
elevator=noop
"""
ACTIVE = "/etc/tuned/active_profile"
MINE = "/etc/tuned/mine/tuned.conf"


@pytest.mark.parametrize(
    ("serial", "severity"), [(None, "note"), ("another", None), ("0QEMU_HARDDISK_1", "warn")]
)
def test_a_regular_expression_of_tuned_needs_the_database_of_udev(host, found, serial, severity):
    if serial:
        host.put(DATABASE, f"E:ID_SERIAL={serial}")
    got = found("tuned", {MINE: BY_REGEX, ACTIVE: "mine"})
    assert got == ([(severity, "noop", 5)] if severity else [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[disk]\nenabled=false\nelevator=none", []),
        ("[main]\ninclude=base\n[disk]\nreadahead=8", [("warn", "bfq", 2)]),
        ("[main]\ninclude=base\n[disk]\nelevator=none", [("warn", "none", 4)]),
        ("[main]\ninclude=base\n[disk]\ndevices=sd*", []),
        ("[main]\ninclude=base\n[disk]\nreplace=1\nreadahead=8", []),
        ("[disk]\nelevator=${io_sched}", [("note", "another", 2)]),
        ("[s]\ntype=sysfs\n/sys/block/nvme*/queue/scheduler=none", [("warn", "none", 3)]),
        ("[sysfs]\n/sys/block/sd*/queue/scheduler=none", []),
    ],
)
def test_sections_of_profiles_are_merged(host, found, text, expected):
    host.put("/usr/lib/tuned/base/tuned.conf", "[disk]\nelevator=bfq")
    assert found("tuned", {MINE: text, ACTIVE: "mine"}) == expected


def test_a_profile_that_is_not_in_force_is_no_rival(host, found):
    files = {MINE: "[disk]\nelevator=none", ACTIVE: "mine"}
    assert found("tuned", files) == [("warn", "none", 2)]
    host.put("/run/systemd/system/x", "")
    assert found("tuned", files) == []
    host.put("/run/tuned/tuned.pid", "1")
    assert found("tuned", files) == [("warn", "none", 2)]


# -- names of the file


@pytest.mark.parametrize(
    ("path", "judged"),
    [
        ("/sys/block/nvme0n1/queue/scheduler", True),
        ("/sys/block/nvme[0-9]n?/queue/scheduler", True),
        ("/sys/dev/block/259:0/queue/scheduler", True),
        ("/sys/devices/virtual/block/nvme0n1/queue/scheduler", True),
        ("/sys/block/sda/../nvme0n1/queue/scheduler", True),
        ("/sys/block/*/queue/scheduler", True),
        ("/sys/block/{sda,nvme0n1}/queue/scheduler", None),
        ("/sys/block/$(basename $1)/queue/scheduler", None),
        ("/sys/block/sda/queue/scheduler", False),
        ("/sys/*/queue/scheduler", False),
    ],
)
def test_names_of_the_file_of_the_scheduler(host, path, judged):
    assert names_file(Disk(Fs(), "nvme0n1"), path) is judged


def test_a_command_without_a_word_to_write_writes_none(host):
    assert written(Disk(Fs(), "nvme0n1"), "rm /sys/block/nvme0n1/queue/scheduler") is None


DAMAGED = {
    RULES: OLD_AND_NEW + OF_PARTITIONS + "RUN+=\"/bin/sh -c 'echo none > /sys$devpath/%E{X}'\"",
    MINE: BY_REGEX,
    "/etc/tmpfiles.d/a.conf": "w /sys/block/nvme*/queue/scheduler - - - - none",
    "/etc/tlp.conf": 'DISK_DEVICES="nvme0n1 sda"\nDISK_IOSCHED="none bfq"',
    "/etc/rc.local": "for d in /sys/block/*; do if x; then echo none > $d/queue/scheduler; fi",
    "/etc/systemd/system/a.service": "[Service]\nExecStart=/bin/sh -c 'echo none > /sys/x'",
}


def test_no_damage_of_a_file_ends_check(host, run):
    rng = random.Random(38)
    host.put(ACTIVE, "mine")
    for _ in range(60):
        for path, text in DAMAGED.items():
            damaged = list(text)
            for _ in range(rng.randrange(1, 6)):
                damaged[rng.randrange(len(damaged))] = rng.choice("\"\\{}[]*?|=!$%'`;&()\n\0/ é")
            host.put(path, "".join(damaged))
        assert run("check", "nvme0n1").err == ""
