# SPDX-License-Identifier: GPL-2.0
import errno

import pytest

FILE = "/sys/fs/cgroup/prod/io.mqfair.weight"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    machine.cgroup("prod", subtree="io memory", weight="default 900\n259:0 500")
    machine.cgroup("prod/db")
    return machine


def test_read(host, run):
    result = run("weight", "prod")
    assert result.code == 0
    assert result.out.splitlines() == ["prod  default  900", "prod  nvme0n1  500"]
    assert run("weight", "prod", "nvme0n1").out == "prod  nvme0n1  500\n"
    assert run("weight", "prod/db", "nvme0n1").out == "prod/db  nvme0n1  100  (the default)\n"
    assert host.stores == []


def test_read_json(host, run):
    assert run("weight", "prod", "259:0", "--json").json == {
        "schema": "mqfair.weight/1",
        "cgroup": "prod",
        "device": "nvme0n1",
        "weight": 500,
        "default": 900,
        "devices": {"259:0": 500},
        "dry_run": False,
        "writes": [],
    }


def test_a_removed_device_is_shown_by_number(host, run):
    host.put(FILE, "default 900\n8:0 7")
    assert run("weight", "prod").out.splitlines()[1] == "prod  8:0  7"


@pytest.mark.parametrize("name", ["prod", "/prod", "prod/", "/sys/fs/cgroup/prod"])
def test_cgroup_names(host, run, name):
    assert run("weight", name, "--json").json["cgroup"] == "prod"


@pytest.mark.parametrize(
    ("argv", "written", "weight"),
    [
        (("250",), "default 250", 250),
        (("900",), "default 900", 900),
        (("1",), "default 1", 1),
        (("10000",), "default 10000", 10000),
        (("default",), "default 100", 100),
        (("nvme0n1", "250"), "259:0 250", 250),
        (("nvme0n1", "500"), "259:0 500", 500),
        (("nvme0n1", "default"), "259:0 default", 900),
        (("/dev/nvme0n1", "0042"), "259:0 42", 42),
    ],
)
def test_set(host, run, argv, written, weight):
    result = run("weight", "prod", *argv, "--json")
    assert (result.code, result.err) == (0, "")
    assert host.stores == [f"write '{written}' to '{FILE}'"]
    assert result.json["weight"] == weight
    assert result.json["writes"] == [{"path": FILE, "value": written}]


@pytest.mark.parametrize(
    "value",
    ["0", "-1", "10001", "1.5", "9" * 20, "1e3", "0x10", " 900 ", "", "9OO", "+900", "٣", "100%"],
)
def test_a_word_that_is_no_weight(host, run, value):
    """A number in another form is no unknown device."""
    for device in ((), ("nvme0n1",)):
        result = run("weight", "prod", *device, value)
        assert result.code == 2
        assert f"weight '{value}' for {FILE}: use a whole number in 1..10000" in result.err
        assert "device" not in result.err
    assert host.stores == []
    assert host.get(FILE) == "default 900\n259:0 500"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("prod", "abc"), ("'abc'", "1..10000")),
        (("prod", "nvme0n1", "abc"), ("'abc'",)),
        (("prod", "nvme9n1", "100"), ("unknown device 'nvme9n1'",)),
        (("prod", "dm-0", "7"), ("nvme0n1",)),
        (("prod", "nvme2c0n1", "7"), ("default weight",)),
        *(((name, "100"), (f"'{name}'",)) for name in ("nowhere", "../prod", "", "prod/../..")),
    ],
)
def test_a_wrong_name_changes_nothing(host, run, argv, said):
    """A path of NVMe multipath has no number, and dm-0 no scheduler."""
    host.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1",))
    host.disk("nvme2c0n1", None)
    result = run("weight", *argv)
    assert (result.code, host.stores) == (2, [])
    assert all(words in result.err for words in said)


@pytest.mark.parametrize(
    ("installed", "said"), [(True, "modprobe mqfair"), (False, "neither loaded nor installed")]
)
def test_module_not_loaded(machine, run, installed, said):
    if installed:
        machine.install_module(loaded=False)
    machine.cgroup("prod")
    result = run("weight", "prod", "100")
    assert result.code == 1
    assert said in result.err


def test_no_weight_to_read(host, run):
    host.cgroup("prod/db/deep", controllers="")
    result = run("weight", "prod/db/deep")
    assert result.code == 1
    assert "echo +io > /sys/fs/cgroup/prod/db/cgroup.subtree_control" in result.err
    host.put("/proc/self/mounts", "tmpfs /sys/fs/cgroup tmpfs rw 0 0")
    result = run("weight", "prod")
    assert result.code == 1
    assert "no cgroup v2 hierarchy" in result.err


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (None, "reads back 500 for nvme0n1 after '259:0 3'"),
        (errno.EACCES, "run as root"),
        (errno.ENODEV, "is no whole disk"),
    ],
)
def test_a_write_that_the_kernel_refuses_or_does_not_keep(host, run, code, said):
    if code:
        host.refuse[FILE] = [code]
    else:
        host.ignore.add(FILE)
    result = run("weight", "prod", "nvme0n1", "3")
    assert result.code == 1
    assert said in result.err
    assert host.get(FILE) == "default 900\n259:0 500"


@pytest.mark.parametrize("device", [(), ("nvme0n1",)])
def test_a_service_takes_a_cgroup_back_before_the_command_reads(host, run, monkeypatch, device):
    """`mqfair follow` writes its own weight at once. The command shows that one."""
    weigh = host._weigh

    def taken(path, value):
        weigh(path, value)
        host.put(path, "default 50\n259:0 50")

    monkeypatch.setattr(host, "_weigh", taken)
    result = run("weight", "prod", *device, "default")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1] == "prod  nvme0n1  50"


@pytest.mark.parametrize("device", ["nvme0n1", "/dev/nvme0n1", "259:0"])
def test_value_and_device_in_the_wrong_order(host, run, device):
    for value in ("500", "default"):
        result = run("weight", "prod", value, device)
        assert result.code == 2
        assert f"in the wrong order: mqfair weight prod {device} {value}\n" in result.err
    assert host.stores == []


def test_root_has_no_weight(host, run):
    for name in ("/", "/sys/fs/cgroup"):
        result = run("weight", name)
        assert result.code == 2
        assert "root cgroup" in result.err


def test_a_partition_stands_for_its_disk(host, run):
    host.partition("nvme0n1", "nvme0n1p1", "259:1")
    assert run("weight", "prod", "nvme0n1p1", "7").code == 0
    assert host.stores == [f"write '259:0 7' to '{FILE}'"]


def test_mount_point_with_a_space(host, run):
    host.put("/proc/self/mounts", "cgroup2 /mnt/c\\040g cgroup2 rw 0 0")
    host.put("/mnt/c g/prod/io.mqfair.weight", "default 5")
    assert run("weight", "prod").out == "prod  default  5\n"


def test_dry_run(host, run):
    before = host.snapshot()
    result = run("weight", "prod", "nvme0n1", "3", "--dry-run")
    assert result.out == f"write '259:0 3' to '{FILE}'\n"
    assert host.snapshot() == before
