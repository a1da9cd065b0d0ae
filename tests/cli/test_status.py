# SPDX-License-Identifier: GPL-2.0
import pytest

STAT = (
    "259:0 rbytes=4096 wbytes=0 rios=1 wios=0 mqfair.weight={} mqfair.share_ppm={}"
    " mqfair.bytes={} mqfair.ios={} mqfair.wait_us={}"
    " mqfair.part_ppm={} mqfair.waiting_x100=400 mqfair.short_ms=5 mqfair.slowdown_percent=210"
    " mqfair.p50_us={} mqfair.p99_us=2500 mqfair.cost_inside=4096"
)


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.disk("vda", "254:0", active="mq-deadline", queues=1)
    machine.device("loop0", "7:0", size=0)
    machine.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1",))
    machine.cgroup(
        "prod",
        subtree="io",
        weight="default 900",
        stat=STAT.format(900, 300000, 0, 0, 0, 0, 0),
    )
    machine.cgroup(
        "prod/db",
        weight="default 500",
        stat=STAT.format(500, 450000, 3 << 29, 77, 1500, 610000, 640),
    )
    machine.cgroup("prod/idle", stat="8:0 rbytes=1\n259:0")
    machine.cgroup("set", weight="default 100\n259:0 7")
    return machine


def test_text(host, run):
    result = run("status")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "DEVICE   NUMBER  SCHEDULER    QUEUES  NR_REQUESTS",
        "dm-0     253:0   -                 -            -",
        "nvme0n1  259:0   mqfq              2          128",
        "vda      254:0   mq-deadline       1          128",
        "",
        "nvme0n1  cost bytes  depth 128 auto  threshold_kb 64 auto",
        "  CGROUP   WEIGHT     DUE     GOT     DONE  REQUESTS  WAITED     P50     P99",
        "  prod        900  24.4 %   0.0 %      0 B         0    0 us       -  2.5 ms",
        "  prod/db     500  36.6 %  61.0 %  1.5 GiB        77  1.5 ms  640 us  2.5 ms",
        "  set           7       -       -        -         -       -       -       -",
    ]


def test_json(host, run):
    report = run("status", "nvme0n1", "--json").json
    assert report["schema"] == "mqfair.status/1"
    (device,) = report["devices"]
    assert device.pop("tunables")["depth"] == "128 auto"
    assert device.pop("cgroups") == [
        {
            "cgroup": name,
            "weight": weight,
            "share_ppm": share,
            "due_ppm": due,
            "part_ppm": part,
            "bytes": done,
            "ios": ios,
            "wait_us": wait,
            "p50_us": p50,
            "p99_us": None if p50 is None else 2500,
            "short_ms": None if p50 is None else 5,
            "slowdown_percent": None if p50 is None else 210,
            "cost_inside": None if p50 is None else 4096,
        }
        for name, weight, share, due, part, done, ios, wait, p50 in (
            ("prod", 900, 300000, 244000, 0, 0, 0, 0, 0),
            ("prod/db", 500, 450000, 366000, 610000, 3 << 29, 77, 1500, 640),
            ("set", 7, None, None, None, None, None, None, None),
        )
    ]
    available = device.pop("available")
    assert {"mqfq", "none"} <= set(available)
    assert device == {
        "device": "nvme0n1",
        "number": "259:0",
        "scheduler": "mqfq",
        "ours": True,
        "queues": 2,
        "nr_requests": 128,
    }


@pytest.mark.parametrize("selection", ["mq-deadline [mqfq] none", "none mq-deadline [mqfq]"])
def test_the_active_scheduler_is_the_one_in_brackets(host, run, selection):
    host.put("/sys/block/nvme0n1/queue/scheduler", selection)
    (device,) = run("status", "nvme0n1", "--json").json["devices"]
    assert device["scheduler"] == "mqfq"
    assert sorted(device["available"]) == ["mq-deadline", "mqfq", "none"]


def test_a_device_named_twice_is_shown_once(host, run):
    host.partition("nvme0n1", "nvme0n1p1", "259:1")
    report = run("status", "nvme0n1", "259:0", "/dev/nvme0n1p1", "--json").json
    assert [device["device"] for device in report["devices"]] == ["nvme0n1"]


def test_no_devices(machine, run):
    assert run("status").out == "no block devices\n"


def test_no_io_yet(machine, run):
    machine.install_module()
    machine.disk(active="mqfq")
    assert "no cgroup has done I/O" in run("status").out


def test_without_cgroup_v2_devices_are_still_shown(host, run):
    host.put("/proc/self/mounts", "cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0")
    (device,) = run("status", "nvme0n1", "--json").json["devices"]
    assert device["scheduler"] == "mqfq"
    assert device["cgroups"] == []


def test_unknown_device(host, run):
    result = run("status", "nvme0n1", "sdz")
    assert result.code == 2
    assert "unknown device 'sdz'" in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        (False, "install the package mqfair-dkms, or run `make install`"),
        (True, "mqfair enable DEVICE"),
    ],
)
def test_no_device_of_ours(machine, run, installed, said):
    """Without a module the advice to enable a device would fail."""
    machine.disk()
    if installed:
        machine.install_module(loaded=False)
    last = run("status").out.splitlines()[-1]
    assert last.startswith("no device runs an mqfair scheduler: ")
    assert said in last
