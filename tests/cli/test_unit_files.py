# SPDX-License-Identifier: GPL-2.0
"""IODeviceWeight= of systemd: it is read from the files of units, since the kernel refuses it."""

import re

import pytest
from test_config import CONF
from test_follow import becomes, following, weight

from mqfair.follow.unit_files import UnitFiles
from mqfair.machine.fs import Fs

SERVICE = "system.slice/nginx.service"
UNIT = "/usr/lib/systemd/system/nginx.service"
CONTROL = "/etc/systemd/system.control/nginx.service.d/50-IODeviceWeight.conf"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    machine.partition("nvme0n1", "nvme0n1p2", "259:2")
    machine.disk("sda", "8:0")
    machine.host("/run").mkdir()
    machine.cgroup("system.slice", subtree="io", io_weight="default 100")
    machine.cgroup(SERVICE, io_weight="default 100")
    return machine


def unit(*lines):
    return "\n".join(("[Unit]", "Description=x", "[Service]", *lines))


def on(place, number):
    return f"IODeviceWeight={place} {number}"


NVME, SDA = "/dev/nvme0n1", "/dev/sda"
ADMIN = "/etc/systemd/system/nginx.service"


def test_a_weight_for_one_device_arrives(host, run):
    host.put(UNIT, unit("IODeviceWeight=/dev/nvme0n1 900"))
    result = run("follow", "--once")
    assert f"{SERVICE} on 259:0: default -> 900 (IODeviceWeight=)" in result.out
    assert weight(host, SERVICE) == "default 100\n259:0 900"
    assert run("follow", "--once").out.startswith("cgroups: ")
    host.put(UNIT, unit())
    assert f"{SERVICE} on 259:0: 900 -> default (" in run("follow", "--once").out
    assert weight(host, SERVICE) == "default 100"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({UNIT: unit(on(NVME, 900), on(SDA, 50))}, {"259:0": 900, "8:0": 50}),
        ({UNIT: unit('IODeviceWeight="/dev/nvme0n1" 900')}, {"259:0": 900}),
        ({UNIT: unit(on("/dev/nvme0n1p2", 900))}, {"259:0": 900}),
        ({UNIT: unit(on("/var/lib/mysql", 900))}, {"8:0": 900}),
        ({UNIT: unit(on("/dev/nosuch", 900))}, {}),
        ({UNIT: unit(on(NVME, 0))}, {}),
        ({UNIT: unit(f"#{on(NVME, 900)}")}, {}),
        ({UNIT: unit(on(NVME, 900), "IODeviceWeight=")}, {}),
        ({UNIT: unit(on(NVME, 9)), CONTROL: unit(on(NVME, 7))}, {"259:0": 7}),
        ({UNIT: unit(on(NVME, 9)), CONTROL: unit("IODeviceWeight=")}, {}),
        ({UNIT: unit(on(NVME, 9)), ADMIN: unit()}, {}),
        ({"/etc/systemd/system/service.d/a.conf": unit(on(SDA, 3))}, {"8:0": 3}),
        ({"/etc/systemd/system/slice.d/a.conf": unit(on(SDA, 3))}, {}),
        ({f"{UNIT}.d/a.conf": unit(on(SDA, 3)), f"{ADMIN}.d/a.conf": unit()}, {}),
    ],
)
def test_files_are_read_as_systemd_does(host, files, expected):
    host.put("/proc/self/mountinfo", "28 1 8:0 / /var/lib/mysql rw - xfs /dev/sda rw")
    host.host("/var/lib/mysql").mkdir(parents=True)
    for path, text in files.items():
        host.put(path, text)
    units = UnitFiles(Fs())
    units.read()
    assert units.weights(SERVICE) == expected
    assert units.weights("prod/nginx") == {}


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("system.slice/getty@tty1.service", "getty@.service"),
        ("system.slice/getty@tty1.service", "getty@.service.d/x.conf"),
        ("system.slice/getty@tty1.service", "getty@tty1.service.d/x.conf"),
        ("system.slice/app-web-1.service", "app-.service.d/x.conf"),
        ("system.slice/app-web-1.service", "app-web-.service.d/x.conf"),
        ("a.slice/a-b.slice", "a-b.slice"),
    ],
)
def test_templates_and_prefixes(host, path, file):
    host.put(f"/etc/systemd/system/{file}", unit("IODeviceWeight=/dev/sda 3"))
    units = UnitFiles(Fs())
    units.read()
    assert units.weights(path) == {"8:0": 3}
    assert units.weights("system.slice/another.service") == {}


def test_a_line_of_the_kernel_and_a_rule_come_before_a_unit(host, run):
    host.put(UNIT, unit("IODeviceWeight=/dev/nvme0n1 900", "IODeviceWeight=/dev/sda 50"))
    host.put(f"/sys/fs/cgroup/{SERVICE}/io.weight", "default 300\n259:0 400")
    run("follow", "--once")
    assert weight(host, SERVICE) == "default 300\n259:0 400\n8:0 50"
    host.put(CONF, "[[weight]]\nunit = 'nginx.service'\nweight = 7\ndevice = 'sda'")
    run("follow", "--once")
    assert weight(host, SERVICE) == "default 300\n259:0 400\n8:0 7"


def test_without_the_mirror_no_unit_is_read(host, run):
    host.put(UNIT, unit("IODeviceWeight=/dev/nvme0n1 900"))
    host.put(CONF, "mirror = false")
    run("follow", "--once")
    assert weight(host, SERVICE) == "default 100"


def test_check_says_that_the_kernel_refuses_it_and_gives_the_lines(host, run):
    host.put("/sys/block/nvme0n1/queue/scheduler", "none [mqfq]")
    host.put(UNIT, unit("IODeviceWeight=/dev/nvme0n1 900"))
    findings = run("check", "nvme0n1", "--json").json["findings"]
    (finding,) = [one for one in findings if one["topic"] == "IODeviceWeight="]
    assert finding["severity"] == "warn"
    assert finding["seen"] == f"{SERVICE}: IODeviceWeight= says 900, mqfair uses 100 on nvme0n1"
    assert finding["mend"].startswith("the kernel refuses it in io.weight while iocost is off: ")
    # The advised lines do it, and so does the advised command.
    lines = re.search(r"the lines (\[\[weight\]\].*); mqfair follow", finding["mend"])[1]
    host.put(CONF, lines.replace(", ", "\n"))
    assert run("follow", "--once").code == 0
    assert weight(host, SERVICE) == "default 100\n259:0 900"
    assert not [
        one
        for one in run("check", "nvme0n1", "--json").json["findings"]
        if one["topic"] == "IODeviceWeight="
    ]
    host.put(f"/sys/fs/cgroup/{SERVICE}/io.mqfair.weight", "default 100")
    command = re.search(r"mqfair (weight \S+ \S+ \d+)", finding["mend"])[1]
    assert run(*command.split()).code == 0
    assert weight(host, SERVICE) == "default 100\n259:0 900"


@pytest.fixture
def service(host):
    """The service on a tree of plain files: a written line replaces the whole file."""
    with following(host.root) as program:
        yield program


def test_the_service_reads_a_new_drop_in_at_the_next_event_of_the_cgroup(host, service):
    """`systemctl set-property` writes the file, and then io.weight, which the kernel refuses."""
    host.put(CONTROL, unit("IODeviceWeight=/dev/nvme0n1 900"))
    host.put(f"/sys/fs/cgroup/{SERVICE}/io.weight", "default 100")
    becomes(lambda: weight(host, SERVICE) == "259:0 900")
