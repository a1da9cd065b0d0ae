# SPDX-License-Identifier: GPL-2.0
"""NVMe multipath: the head nvme2n1 has the number, and its paths nvme2cYn1 the schedulers.

Request-based dm-multipath: dm-5 has the number and the scheduler, and its paths sdX have neither.
"""

import json
import time

import pytest

from mqfair.follow import config, follow
from mqfair.follow.follow import Follower
from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs
from mqfair.text.errors import UsageError

HEAD = "nvme2n1"
NUMBER = "259:9"
DEBUGFS = "/sys/kernel/debug/block"
FLOW = (
    "{} weight={} share_ppm={} part_ppm={} goal_us=0 waiting_x100=400 inside_x100=100"
    " queued=4 outstanding=1 ios={} bytes={} wait_us=1500"
)
FLOWS = "\n".join(
    (
        FLOW.format("/", 100, 1000, 0, 0, 0),
        FLOW.format("/prod", 900, 900000, 900000, 90, 368640),
        FLOW.format("/two words", 100, 100000, 100000, 10, 40960),
    )
)
CONF = config.PATH


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.host("/run").mkdir()
    machine.cgroup("prod", **{"io_pressure": "some avg10=1.00 total=1\nfull avg10=0.50 total=1"})
    machine.cgroup("two words")
    machine.stacked(HEAD, NUMBER, "")
    # Of another namespace.
    machine.stacked("nvme2n2", "259:10", "")
    machine.disk("nvme2c0n2", None)
    return machine


def connect(host, count, active="none"):
    """Gives the disk @count paths; returns their names."""
    names = [f"nvme2c{controller}n1" for controller in range(count)]
    for name in names:
        host.disk(name, None, active=active)
        host.put(f"{DEBUGFS}/{name}/sched/flows", FLOWS)
    return names


def scheduler(host, name):
    return host.get(f"/sys/block/{name}/queue/scheduler").split("[")[1].split("]")[0]


def each(count):
    return pytest.mark.parametrize("count", count)


@each([1, 2, 3])
def test_the_head_stands_for_its_paths(host, run, count):
    names = connect(host, count)
    assert run("enable", HEAD).code == 0
    assert [scheduler(host, name) for name in names] == ["mqfq"] * count
    assert scheduler(host, "nvme2c0n2") == "none"
    assert run("disable", "nvme2n[1]").code == 0
    assert [scheduler(host, name) for name in names] == ["none"] * count


@each([1, 2, 3])
def test_a_pattern_for_heads_and_paths_names_each_path_once(host, run, count):
    names = connect(host, count)
    report = run("disable", "nvme2*n1", "--json").json
    devices = report.get("devices", [report])
    assert [one["device"] for one in devices] == names


@pytest.mark.parametrize("verb", ["enable", "disable", "top", "metrics"])
def test_a_head_without_a_path_says_so(host, run, verb):
    result = run(verb, HEAD, *(["--once"] if verb == "top" else []))
    assert result.code in (1, 2) and host.stores == []
    assert result.err.startswith(f"mqfair: {HEAD} is a head of NVMe multipath")
    assert "nvme list-subsys" in result.err and result.err.count("\n") == 1


def test_a_verb_for_one_queue_refuses_a_head(host):
    connect(host, 2)
    with pytest.raises(UsageError, match="paths nvme2c0n1 nvme2c1n1 have none: use another drive"):
        Disk(Fs(), HEAD).require_selector()


@pytest.mark.parametrize("name", [HEAD, "nvme2c0n1", "nvme2c1n1"])
def test_a_weight_is_by_the_number_of_the_head(host, run, name):
    connect(host, 2)
    result = run("weight", "prod", name, "500")
    assert (result.code, result.out) == (0, f"prod  {HEAD}  500\n")
    assert host.stores == [f"write '{NUMBER} 500' to '/sys/fs/cgroup/prod/io.mqfair.weight'"]
    assert run("latency", "prod", name, "5ms").code == 0
    assert host.stores[1].startswith(f"write '{NUMBER} target=5ms")
    assert run("latency", "prod", name).out.startswith(f"prod  {HEAD}")


@pytest.mark.parametrize("named", [(), (HEAD,), ("nvme2c0n1", "nvme2c1n1")])
def test_status_has_the_figures_of_each_path(host, run, named):
    names = connect(host, 2, active="mqfq")
    found = run("status", *named, "--json").json["devices"]
    shown = {one["device"]: one for one in found if one["ours"]}
    assert list(shown) == names
    for one in shown.values():
        rows = {row["cgroup"]: row for row in one["cgroups"]}
        assert set(rows) == {"prod", "two words"}
        assert one["number"] == NUMBER
        assert (rows["prod"]["ios"], rows["prod"]["bytes"]) == (90, 368640)
        assert (rows["two words"]["wait_us"], rows["two words"]["share_ppm"]) == (1500, 100000)


def test_top_and_metrics_have_the_figures_of_each_path(host, run):
    names = connect(host, 2, active="mqfq")
    top = run("top", HEAD, "--once", "--interval", "0.1", "--json")
    assert top.code == 0
    drives = json.loads(top.out.splitlines()[-1])["disks"]
    assert [one["device"] for one in drives] == names
    for one in drives:
        assert {"prod", "two words"} <= {row["cgroup"] for row in one["cgroups"]}
    text = run("metrics", HEAD).out
    for name in names:
        assert f'mqfair_cgroup_bytes_total{{cgroup="prod",disk="{name}"}} 368640.0\n' in text
    assert 'mqfair_cgroup_pressure_seconds_total{cgroup="prod"' in text


@pytest.mark.parametrize("name", [HEAD, "nvme2c0n1"])
def test_check_reads_the_figures_of_the_path(host, run, name):
    connect(host, 1, active="mqfq")
    host.put("/sys/fs/cgroup/prod/io.mqfair.weight", f"default 100\n{NUMBER} 900")
    report = run("check", name, "prod", "--json").json
    seen = {one["topic"]: one for one in report["findings"]}
    assert seen["activity"]["where"] == f"{DEBUGFS}/nvme2c0n1/sched/flows"
    assert seen["activity"]["seen"] == "360.0 KiB scheduled, share now 90.0 %"
    assert "prod has weight 900" in seen["weight"]["seen"]
    assert report["in_force"]


@each([0, 1, 2, 3])
def test_follow_keeps_the_paths_that_are_here(host, run, count):
    names = connect(host, count)
    host.put(CONF, f'[[device]]\nmatch = "{HEAD}"\nscheduler = "mqfq"\n'
             f'[[weight]]\ncgroup = "prod"\nweight = 700\ndevice = "{HEAD}"')  # fmt: skip
    assert run("follow", "--once").code == 0
    assert [scheduler(host, name) for name in names] == ["mqfq"] * count
    assert f"{NUMBER} 700" in host.get("/sys/fs/cgroup/prod/io.mqfair.weight")


@pytest.mark.parametrize("by_hand", [None, "none"])
def test_a_path_that_returns_gets_its_scheduler(host, run, by_hand):
    """It has another controller's number. A choice by hand counts for it, too."""
    host.put(CONF, f'[[device]]\nmatch = "{HEAD}"\nscheduler = "mqfq"')
    connect(host, 2)
    follower = Follower.create(Fs(), None, watches=False)
    follower.everything()
    assert follower.keeper.has_heads
    if by_hand:
        run("disable", HEAD)
    host.host("/sys/block/nvme2c1n1").unlink()
    host.disk("nvme2c7n1", None)
    follower.keeper.keep()
    assert scheduler(host, "nvme2c7n1") == (by_hand or "mqfq")
    assert follower.keeper.errors == []


def test_the_service_looks_for_paths_without_an_event(host, monkeypatch):
    """It waits for the time of the look, and no event ends the wait."""
    monkeypatch.setattr(follow, "SCAN_EVERY_S", 0.2)
    host.put(CONF, f'[[device]]\nmatch = "{HEAD}"\nscheduler = "mqfq"')
    connect(host, 1)
    service = follow.Service(Fs())
    service.follower.everything()
    service.keeper.handle()
    host.disk("nvme2c7n1", None)
    monkeypatch.setattr(service.keeper, "handle", lambda: False)
    begin = service._scanned_at
    while service._scanned_at == begin and time.monotonic() < begin + 10:
        assert scheduler(host, "nvme2c7n1") == "none"
        assert service._timeout_ms() is not None
        service._wait()
    assert scheduler(host, "nvme2c7n1") == "mqfq"
    assert service._scanned_at >= begin + follow.SCAN_EVERY_S


def test_udev_names_a_head_and_all_paths_get_the_scheduler(host, run):
    host.put(CONF, '[[device]]\nmatch = "nvme*n1"\nscheduler = "mqfq"')
    names = connect(host, 2)
    assert run("follow", "--device", HEAD).code == 0
    assert [scheduler(host, name) for name in names] == ["mqfq"] * 2


def test_a_rule_without_a_head_needs_no_scans(host, run):
    host.put(CONF, '[[device]]\nmatch = "sd*"\nscheduler = "mqfq"')
    follower = Follower.create(Fs(), None, watches=False)
    follower.everything()
    assert not follower.keeper.has_heads


# -- dm-multipath


def stack(host, count, *, partition=False, active="none"):
    """dm-5 over @count paths of 32 slots in two queues each, or over their partitions."""
    host.disk("dm-5", "253:5", active=active, tags=2048)
    host.put("/sys/devices/virtual/block/dm-5/dm/uuid", "mpath-1")
    names = [f"sd{letter}" for letter in "abc"[:count]]
    for number, name in enumerate(names):
        host.disk(name, f"8:{16 * number}", tags=16, active=active)
        under = name
        if partition:
            under = f"{name}1"
            host.partition(name, under, f"8:{16 * number + 1}")
        host.link(f"/sys/class/block/dm-5/slaves/{under}", f"/sys/class/block/{under}")
        host.link(f"/sys/class/block/{under}/holders/dm-5", "/sys/class/block/dm-5")
    return names


@pytest.mark.parametrize("partition", [False, True])
@each([1, 2, 3])
def test_check_of_a_path_names_the_device_above(host, run, count, partition):
    (name, *_) = stack(host, count, partition=partition, active="mqfq")
    report = run("check", name, "prod", "--json").json
    (found,) = [one for one in report["findings"] if one["severity"] == "problem"]
    assert "dm-5 (device-mapper) sends its requests to sda past the scheduler" in found["seen"]
    assert found["mend"].startswith("mqfair enable dm-5")
    assert not report["in_force"]
    assert run("check", "dm-5", "prod").code == 0


def test_a_mapper_without_a_queue_hides_no_scheduler(host, run):
    host.disk("sda", "8:0", active="mqfq")
    host.stacked("dm-6", "253:6", "dm", slaves=("sda",))
    host.link("/sys/class/block/sda/holders/dm-6", "/sys/class/block/dm-6")
    assert run("check", "sda", "prod").code == 0


@each([1, 2, 3])
def test_depth_begins_with_the_slots_of_the_paths(host, run, count):
    """dm-5 itself has 2048 slots for each queue. A depth by hand stays."""
    stack(host, count)
    assert run("enable", "dm-5").code == 0
    assert host.get("/sys/block/dm-5/queue/iosched/depth") == f"{32 * count} auto"
    assert run("enable", "dm-5", "--depth", "7").code == 0
    assert host.get("/sys/block/dm-5/queue/iosched/depth") == "7"


def test_enable_of_a_path_says_that_the_scheduler_has_no_effect(host, run):
    stack(host, 2)
    result = run("enable", "sda")
    assert "note: dm-5 sends its requests to sda past this scheduler" in result.out
