# SPDX-License-Identifier: GPL-2.0
"""Disks by the file systems on them: mount points, files, and tags such as LABEL=data."""

import pytest

from mqfair.machine.blockdev import find_disk, find_disks
from mqfair.machine.fs import Fs

MOUNTINFO = """\
22 28 0:20 / /sys rw,nosuid - sysfs sysfs rw
28 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw
40 28 253:0 / /var/lib/mysql rw - xfs /dev/mapper/vg-db rw
41 28 0:44 / /srv/with\\040blank rw - btrfs /dev/sda1 rw
42 28 0:45 / /tank rw - zfs tank rw
43 28 9:0 / /raid rw - ext4 /dev/md0 rw
44 28 0:50 / /nfs rw - nfs4 host:/x rw"""


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk("nvme0n1", "259:0")
    machine.partition("nvme0n1", "nvme0n1p2", "259:2")
    machine.disk("nvme1n1", "259:5")
    for name, number in (("sda", "8:0"), ("sdb", "8:16")):
        machine.disk(name, number)
    machine.partition("sda", "sda1", "8:1")
    machine.partition("sdb", "sdb1", "8:17")
    machine.stacked("dm-0", "253:0", "dm", slaves=("nvme1n1",))
    machine.stacked("md0", "9:0", "md", slaves=("sda", "sdb"))
    for folder in ("/var/lib/mysql", "/srv/with blank", "/tank", "/raid", "/nfs", "/root"):
        machine.host(folder).mkdir(parents=True)
    machine.put("/var/lib/mysql/ibdata1", "")
    machine.put("/proc/self/mountinfo", MOUNTINFO)
    machine.cgroup("prod")
    machine.link("/dev/disk/by-label/data", "/dev/nvme0n1p2")
    machine.link("/dev/disk/by-label/my\\x20disk", "/dev/sdb1")
    machine.link("/dev/disk/by-uuid/2f9e-11", "/dev/dm-0")
    return machine


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("/", ["nvme0n1"]),
        ("/root", ["nvme0n1"]),
        ("/var/lib/mysql", ["nvme1n1"]),
        ("/var/lib/mysql/ibdata1", ["nvme1n1"]),
        ("/srv/with blank", ["sda"]),
        ("/raid", ["sda", "sdb"]),
        ("LABEL=data", ["nvme0n1"]),
        ("LABEL=my disk", ["sdb"]),
        ("UUID=2f9e-11", ["nvme1n1"]),
        ("/dev/nvme0n1p2", ["nvme0n1"]),
    ],
)
def test_a_file_system_means_the_disks_below(host, run, text, names):
    fs = Fs()
    assert [disk.name for disk in find_disks(fs, [text])] == names
    if len(names) == 1:
        assert find_disk(fs, text).name == names[0]
    assert run("enable", text, "--dry-run").code == 0
    enabled = run("enable", text, "--json")
    assert enabled.code == 0
    for name in names:
        assert "[mqfq]" in host.get(f"/sys/block/{name}/queue/scheduler")


def test_all_devices_of_a_btrfs_are_meant(host):
    for name in ("sda1", "sdb1"):
        host.put(f"/sys/fs/btrfs/0a/devices/{name}/x", "")
    assert [disk.name for disk in find_disks(Fs(), ["/srv/with blank"])] == ["sda", "sdb"]


def test_the_table_of_mounts_does_where_there_is_no_mountinfo(host):
    host.host("/proc/self/mountinfo").unlink()
    host.put("/proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n/dev/nvme0n1p2 /raid ext4 rw 0 0")
    assert find_disk(Fs(), "/root").name == "sda"
    assert find_disk(Fs(), "/raid").name == "nvme0n1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/tank", "'/tank' is on no block device that is visible from here (zfs of tank): name a"),
        ("/nfs", "'/nfs' is on no block device that is visible from here (nfs4 of host:/x)"),
        ("LABEL=nosuch", "no /dev/disk/by-label/nosuch: see lsblk -o NAME,LABEL"),
        ("/nosuch", "unknown device '/nosuch': not in /sys/class/block"),
    ],
)
def test_a_path_without_a_disk_is_refused_with_the_reason(host, run, text, said):
    for argv in (["enable", text], ["weight", "prod", text, "500"], ["check", text]):
        result = run(*argv)
        assert result.code == 2
        assert said in result.err
    assert host.stores == []


def test_weights_of_a_mount_point(host, run):
    assert run("weight", "prod", "/", "500").code == 0
    assert host.get("/sys/fs/cgroup/prod/io.mqfair.weight").splitlines()[1] == "259:0 500"
    result = run("weight", "prod", "/raid", "500")
    assert result.code == 2
    assert "'/raid' is on 2 disks: name one of sda sdb" in result.err


def test_check_of_a_mount_point_looks_at_the_stack(host, run):
    host.put("/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123456789abcdef-data")
    found = run("check", "/var/lib/mysql", "--json").json
    assert found["device"] == "dm-0"
    assert "attribution" in {one["topic"] for one in found["findings"]}
