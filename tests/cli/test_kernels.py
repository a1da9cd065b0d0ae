# SPDX-License-Identifier: GPL-2.0
"""A module that the running kernel has not, or may not load: each message has the reason."""

import re
import subprocess

import pytest
from conftest import OURS, RELEASE, ROOT

from mqfair.machine import dkms, kmod

CONFIGURATION = (ROOT / "kernel" / "dkms.conf").read_text()
VERBS = (
    ("enable", "nvme0n1"),
    ("check", "nvme0n1"),
    ("status",),
    ("weight", "prod", "900"),
    ("follow", "--once"),
)
PATIENCE_S = 60
BEYOND = "99.1.2-1-amd64"


@pytest.fixture
def host(machine):
    machine.disk()
    machine.cgroup("prod")
    return machine


def boot(host, release):
    host.put(kmod.RELEASE_FILE, release)


def install_sources(host, version="0.3.0"):
    host.put(f"{dkms.SOURCES}/mqfair-{version}/dkms.conf", CONFIGURATION)


def said(result):
    return result.out + result.err


@pytest.mark.parametrize("argv", VERBS)
def test_a_kernel_that_dkms_skipped_is_named_with_two_ways_out(host, run, argv):
    boot(host, BEYOND)
    install_sources(host)
    words = said(run(*argv))
    assert f"DKMS skipped Linux {BEYOND}: mqfair 0.3.0 is for {dkms.OLDEST} to" in words
    assert "boot a kernel of these" in words
    assert f'write BUILD_EXCLUSIVE_KERNEL="" to {dkms.SETTINGS}' in words
    assert f"`dkms install mqfair/0.3.0 -k {BEYOND}`" in words
    assert "install the package mqfair-dkms" not in words


def test_the_kernel_to_boot_has_the_module(host, run):
    boot(host, BEYOND)
    install_sources(host)
    for release, module in (
        ("6.9.1-amd64", "updates/dkms/mqfair.ko.xz:"),
        ("6.12.95-amd64", "updates/dkms/mqfair.ko:"),
        ("7.2.1-amd64", "updates/dkms/other.ko:"),
    ):
        host.put(f"{dkms.MODULES}/{release}/modules.dep", module)
    assert "boot Linux 6.12.95-amd64, which has the module, or" in run("enable", "nvme0n1").err


@pytest.mark.parametrize("line", ['BUILD_EXCLUSIVE_KERNEL=""', "BUILD_EXCLUSIVE_KERNEL="])
def test_a_kernel_that_the_settings_allow_was_not_skipped(host, run, line):
    boot(host, BEYOND)
    install_sources(host)
    host.put(dkms.SETTINGS, line)
    words = run("enable", "nvme0n1").err
    assert f"DKMS has not built mqfair 0.3.0 for Linux {BEYOND}: install its headers" in words
    assert f"the log is {dkms.TREE}/0.3.0/build/make.log" in words


def test_a_kernel_inside_the_range_was_not_skipped(host, run):
    install_sources(host)
    words = run("enable", "nvme0n1").err
    assert f"DKMS has not built mqfair 0.3.0 for Linux {RELEASE}" in words
    assert f"`dkms install mqfair/0.3.0 -k {RELEASE}`" in words


def test_the_newest_of_several_sources_is_meant(host, run):
    for version in ("0.9.0", "0.10.0"):
        install_sources(host, version)
    host.put(f"{dkms.SOURCES}/mqfair-ssd-0.11.0/dkms.conf", CONFIGURATION)
    host.put(f"{dkms.SOURCES}/mqfair-0.12.0/README", "removed but for this file")
    assert "mqfair/0.10.0 -k" in run("enable", "nvme0n1").err


@pytest.mark.parametrize("argv", VERBS)
def test_an_old_kernel_is_named_before_any_package(host, run, argv):
    boot(host, "5.15.0-91-generic")
    install_sources(host)
    assert "Linux 5.15.0-91-generic is too old: 6.1 or later" in said(run(*argv))


@pytest.mark.parametrize(
    "setting",
    [
        ("/etc/modprobe.d/a.conf", "blacklist mqfair", "/etc/modprobe.d/a.conf has 'blacklist"),
        ("/usr/lib/modprobe.d/a.conf", "  blacklist  mqfair", "has 'blacklist mqfair'"),
        ("/run/modprobe.d/a.conf", "install mqfair /bin/false", "'install mqfair /bin/false'"),
        ("/proc/cmdline", "quiet modprobe.blacklist=nouveau,mqfair", "modprobe.blacklist=nouveau,"),
        ("/proc/cmdline", "module_blacklist=mqfair", "module_blacklist=mqfair, so the kernel"),
        (kmod.MODULES_DISABLED, "1", "(kernel.modules_disabled=1)"),
    ],
)
@pytest.mark.parametrize("argv", VERBS[:2])
def test_a_module_that_may_not_be_loaded_has_the_reason(host, run, argv, setting):
    path, line, reason = setting
    host.install_module(loaded=False)
    host.put(path, line)
    assert reason in said(run(*argv))
    host.load_module()
    assert reason not in said(run(*argv))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/etc/modprobe.d/a.conf", "blacklist mqfair-ssd"),
        ("/etc/modprobe.d/a.conf", "# blacklist mqfair"),
        ("/etc/modprobe.d/a.conf.old", "blacklist mqfair"),
        ("/etc/modprobe.d/a.conf", "install mqfair /sbin/modprobe --ignore-install mqfair"),
        ("/proc/cmdline", "module_blacklist=nouveau"),
        (kmod.MODULES_DISABLED, "0"),
    ],
)
def test_other_settings_of_modules_change_nothing(host, run, path, line):
    host.install_module(loaded=False)
    host.put(path, line)
    assert run("enable", "nvme0n1").code == 0
    assert host.get("/sys/block/nvme0n1/queue/scheduler").split("[")[1].split("]")[0] in OURS


RULES = {
    "a disk": '[[device]]\nmatch = "nvme0n1"\nscheduler = "mqfq"',
    "a weight": '[[weight]]\ncgroup = "prod"\nweight = 300',
}


@pytest.mark.parametrize("rule", RULES)
def test_the_service_says_that_no_rule_can_be_met_after_an_upgrade(host, systemd_service, rule):
    """In the journal as a warning or an error, and in `systemctl status`."""
    boot(host, BEYOND)
    install_sources(host)
    host.put("/etc/mqfair.conf", RULES[rule])
    skipped = f"DKMS skipped Linux {BEYOND}"
    with systemd_service(PATIENCE_S, subprocess.PIPE) as (program, sock):
        assert sock.recv(100) == b"READY=1"
        state = sock.recv(1000).decode()
        assert state.startswith("STATUS=not met: /etc/mqfair.conf:") and skipped in state
        program.terminate()
        assert sock.recv(100) == b"STOPPING=1"
        told = [line for line in program.stdout if skipped in line]
    assert {line.partition(":")[0] for line in told} >= {"warning"}


def test_the_metrics_tell_which_rules_are_met(host, run):
    host.disk("nvme1n1", "259:1")
    host.disk("nvme2n1", "259:2")
    host.host("/run").mkdir(exist_ok=True)
    host.install_module()
    host.put("/etc/mqfair.conf", RULES["a disk"].replace('"nvme0n1"', '"nvme[01]n1"'))

    def met():
        found = run("metrics", "--json").json["metrics"]
        return {
            one["labels"]["disk"]: one["value"]
            for one in found
            if one["name"] == "mqfair_disk_rule_met"
        }

    assert met() == {"nvme0n1": 0.0, "nvme1n1": 0.0}
    assert run("enable", "nvme0n1").code == 0
    assert met() == {"nvme0n1": 1.0, "nvme1n1": 0.0}
    assert run("disable", "nvme0n1").code == 0
    assert met() == {"nvme1n1": 0.0}, "a disk that was switched by hand has no rule"
    host.put("/etc/mqfair.conf", "[[device]")
    assert met() == {}, "the service tells about mistakes"


def test_the_range_in_messages_is_that_of_dkms():
    (pattern,) = re.findall('^BUILD_EXCLUSIVE_KERNEL="(.*)"$', CONFIGURATION, re.MULTILINE)
    last = ".".join((*dkms.NEWEST.split(".")[:1], str(int(dkms.NEWEST.split(".")[1]) + 1)))
    for release, matches in ((dkms.OLDEST, 0), (dkms.NEWEST, 0), ("6.0", 1), (last, 1)):
        script = '[[ "$1.0-1-amd64" =~ $2 ]]'
        argv = ["bash", "-c", script, "bash", release, pattern]
        assert subprocess.run(argv, check=False).returncode == matches, release
