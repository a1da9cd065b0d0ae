# SPDX-License-Identifier: GPL-2.0
import shlex

import pytest
from conftest import RELEASE

from mqfair.machine.fs import Fs

CGROUPS = "/sys/fs/cgroup"
PROC = "/proc/sys/kernel"
QUEUE = "/sys/block/nvme0n1/queue"
FLUSH_DATA = "/sys/module/mqfair/parameters/schedules_flush_data"
UNTESTED = "mqfair was never tested on Linux 6.18.2-1-generic, only on 6.1, 6.12, 7.2 @"
TAGS = "128 tags x 2 queues for depth 128: tasks often sleep for a tag @"
PRESSURE = (
    "some avg10=46.80 avg60=31.29 avg300=9.52 total=32201422\n"
    "full avg10=43.51 avg60=28.72 avg300=8.72 total=29547030\n"
)
SHARE = "259:0 mqfair.bytes=1048576 mqfair.share_ppm=450000"
IOCOST = "8:0 enable=1\n259:0 enable=1 ctrl=auto"


@pytest.fixture
def host(machine):
    """A machine without problems: prod/db and prod/web beside batch, on nvme0n1 under mqfq."""
    machine.install_module()
    machine.disk(active="mqfq")
    machine.cgroup("prod", subtree="io memory", weight="default 900")
    machine.cgroup("prod/db", weight="default 500")
    machine.cgroup("prod/web", weight="default 500")
    machine.cgroup("batch", weight="default 100")
    return machine


@pytest.fixture
def check(run):
    """Runs check --json; returns the exit status and the findings by topic, which must agree."""

    def call(*argv):
        result = run("check", *argv, "--json")
        report = result.json
        assert report["schema"] == "mqfair.check/1"
        problems = [f for f in report["findings"] if f["severity"] == "problem"]
        assert report["in_force"] is (not problems)
        assert result.code == (1 if problems else 0)
        for finding in report["findings"]:
            assert set(finding) == {"severity", "topic", "seen", "where", "mend"}
            assert finding["where"].startswith("/")
            assert finding["mend"] or finding["severity"] in ("ok", "note", "warn")
        topics = {}
        for finding in report["findings"]:
            topics.setdefault(finding["topic"], []).append(finding)
        return result.code, topics

    return call


def one(topics, topic, severity):
    (finding,) = [f for f in topics[topic] if f["severity"] == severity]
    return finding


def test_in_force(host, check):
    code, topics = check("nvme0n1", "prod/db")
    assert code == 0
    for topic in ("scheduler", "hierarchy", "io controller", "weight", "siblings", "writeback"):
        assert [f["severity"] for f in topics[topic]] == ["ok"], topic
    assert "500 on nvme0n1" in topics["weight"][0]["seen"]
    assert "45.0 %" in topics["siblings"][0]["seen"]
    assert topics["passthrough"][0]["severity"] == "note"


def test_text(host, run):
    result = run("check", "nvme0n1", "prod/db")
    assert result.code == 0
    assert result.out.endswith("\nweight of prod/db on nvme0n1: in force\n")
    host.put("/sys/block/nvme0n1/queue/scheduler", "[none] mqfq")
    lines = run("check", "nvme0n1").out.splitlines()
    assert lines[0].startswith("problem  scheduler")
    assert lines[1].strip() == "in /sys/block/nvme0n1/queue/scheduler"
    assert lines[2].strip().startswith("-> mqfair enable nvme0n1")
    assert lines[-1] == "weights on nvme0n1: not in force, 1 problem"


@pytest.mark.parametrize(
    "case",
    [
        (f"{PROC}/osrelease", "6.18.2-1-generic", "warn kernel", UNTESTED),
        ("prod/db/io.stat", SHARE, "ok activity", "1.0 MiB scheduled, share now 45.0 % @"),
        ("prod/cgroup.subtree_control", "memory", "problem io controller", "@ FILE -> "),
        ("prod/cgroup.subtree_control", "memory", "problem io controller", "-> echo +io > FILE$"),
        ("prod/cgroup.subtree_control", "io", "warn writeback", "charged to the root"),
        ("prod/cgroup.subtree_control", "io", "warn writeback", "-> echo +memory > FILE$"),
        ("cgroup.controllers", "cpu memory", "problem hierarchy", "CONFIG_BLK_CGROUP"),
        ("io.cost.qos", IOCOST, "problem iocost", "-> echo '259:0 enable=0' > FILE$"),
        ("prod/db/cgroup.events", "populated 0\nfrozen 0", "warn processes", ""),
        ("prod/db/cgroup.type", "threaded", "problem threads", "domain cgroup"),
        (f"{QUEUE}/iosched/depth", "128", "warn tags", TAGS),
        (f"{QUEUE}/iosched/depth", "16 auto", "warn tags", TAGS),
        (f"{QUEUE}/iosched/depth", "256", "warn tags", "all requests are inside the drive"),
    ],
    ids=lambda case: f"{case[2]}: {case[0]}",
)
def test_a_file_is_the_reason_of_a_finding(host, check, case):
    """No finding but this one is a problem. FILE stands for the file in what is said."""
    file, text, found, said = case
    place = file if file[0] == "/" else f"{CGROUPS}/{file}"
    host.put(place, text)
    severity, _, topic = found.partition(" ")
    code, topics = check("nvme0n1", "prod/db")
    assert code == (severity == "problem")
    finding = one(topics, topic, severity)
    shown = f"{finding['seen']} @ {finding['where']} -> {finding['mend']}$"
    assert said in shown.replace(place, "FILE")


@pytest.mark.parametrize(
    ("topic", "files"),
    [
        ("kernel", {}),
        ("weight", {}),
        ("iocost", {f"{CGROUPS}/io.cost.qos": "8:0 enable=1\n259:0 enable=0"}),
        ("tags", {f"{QUEUE}/iosched/depth": "128", f"{QUEUE}/nr_requests": "256"}),
        ("write cache", {f"{QUEUE}/write_cache": "write back"}),
        ("write cache", {f"{QUEUE}/write_cache": "write through", FLUSH_DATA: "N"}),
        ("write cache", {f"{QUEUE}/write_cache": "write back", FLUSH_DATA: "Y"}),
    ],
)
def test_a_topic_without_a_finding(host, check, topic, files):
    for place, text in files.items():
        host.put(place, text)
    assert topic not in check("nvme0n1")[1]
    assert topic == "weight" or topic not in check("nvme0n1", "prod/db")[1]


def test_writes_that_no_scheduler_sees(host, check):
    host.put(f"{QUEUE}/write_cache", "write back")
    host.put(FLUSH_DATA, "N")
    code, topics = check("nvme0n1")
    assert code == 0
    finding = one(topics, "write cache", "warn")
    assert "weights do not bind such writers" in finding["seen"]
    assert "io.max" in finding["mend"]


@pytest.mark.parametrize(
    ("cost", "warned"),
    [
        ("linear 0 0 0 0", ["reads", "writes"]),
        ("linear 0 0 0 1024", ["reads"]),
        ("linear 0 1024 0 0", ["writes"]),
        ("linear 0 1024 0 1024", []),
        ("bytes", []),
    ],
)
def test_a_cost_of_zeros(host, check, cost, warned):
    host.put("/sys/block/nvme0n1/queue/iosched/cost", cost)
    code, topics = check("nvme0n1", "prod/db")
    assert code == 0
    findings = topics.get("cost", [])
    assert [finding["seen"].split()[0] for finding in findings] == warned
    assert all("of every size cost 512" in finding["seen"] for finding in findings)


def test_two_copies_of_the_module(host, check):
    """DKMS does not ask whether `make install` was there before."""
    folder = f"/lib/modules/{RELEASE}"
    host.put(f"{folder}/updates/mqfair.ko", "")
    host.put(f"{folder}/updates/mqfair-ssd.ko", "")
    host.put(f"{folder}/modules.dep", "updates/dkms/mqfair.ko.xz:")
    assert "module" not in check("nvme0n1")[1]
    host.put(f"{folder}/updates/dkms/mqfair.ko.xz", "")
    finding = one(check("nvme0n1")[1], "module", "warn")
    assert finding["seen"].startswith("2 copies are installed: ")
    chosen, other = f"{folder}/updates/dkms/mqfair.ko.xz", f"{folder}/updates/mqfair.ko"
    assert finding["mend"] == f"modprobe loads {chosen}: remove {other}"


def test_scheduler_not_ours(host, check):
    host.disk("vda", "254:0", active="mq-deadline")
    code, topics = check("vda", "prod/db")
    assert code == 1
    finding = one(topics, "scheduler", "problem")
    assert "vda runs mq-deadline" in finding["seen"]
    assert finding["mend"].startswith("mqfair enable vda")
    assert "busy" in finding["mend"]


def test_module_missing(machine, check):
    machine.disk()
    machine.cgroup("prod")
    code, topics = check("nvme0n1", "prod")
    assert code == 1
    assert "make install" in one(topics, "scheduler", "problem")["mend"]
    assert "make install" in one(topics, "weight", "problem")["mend"]


def test_weight_file_missing_under_a_loaded_module(host, check):
    host.host(f"{CGROUPS}/prod/db/io.mqfair.weight").unlink()
    code, topics = check("nvme0n1", "prod/db")
    assert code == 1
    assert "although module mqfair is loaded" in one(topics, "weight", "problem")["seen"]


def test_controller_off_at_every_level_with_processes_in_between(host, check):
    host.put(f"{CGROUPS}/cgroup.subtree_control", "memory")
    host.put(f"{CGROUPS}/prod/cgroup.subtree_control", "memory")
    host.put(f"{CGROUPS}/prod/cgroup.procs", "33")
    code, topics = check("nvme0n1", "prod/db")
    assert code == 1
    first, second = topics["io controller"]
    assert first["where"] == f"{CGROUPS}/cgroup.subtree_control"
    assert not first["mend"].startswith("move")
    assert second["mend"].startswith("move its processes into a child, then echo +io")


def test_cgroup_v1_has_the_controller(host, check):
    host.put(
        "/proc/self/mounts",
        "cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
    )
    host.put(f"{CGROUPS}/cgroup.controllers", "cpu")
    host.put(f"{CGROUPS}/cgroup.subtree_control", "")
    code, topics = check("nvme0n1", "prod/db")
    assert code == 1
    assert "/sys/fs/cgroup/blkio" in one(topics, "hierarchy", "problem")["seen"]
    assert "io controller" not in topics
    assert "boot with cgroup v2 alone" in one(topics, "writeback", "warn")["mend"]


def test_level_without_siblings(host, check):
    host.cgroup("batch", subtree="io memory")
    host.cgroup("batch/only", weight="default 5000")
    code, topics = check("nvme0n1", "batch/only")
    assert code == 1
    finding = one(topics, "siblings", "problem")
    assert "batch/only has no siblings" in finding["seen"]
    assert finding["mend"] == "mqfair weight batch N"


def test_an_ancestors_weight_without_effect(host, check):
    host.cgroup("batch", subtree="io memory")
    host.cgroup("batch/slice", subtree="io memory", weight="default 777")
    host.cgroup("batch/slice/a")
    host.cgroup("batch/slice/b")
    code, topics = check("nvme0n1", "batch/slice/a")
    assert code == 0
    assert "batch/slice has no siblings: its weight 777" in one(topics, "siblings", "warn")["seen"]
    # 100/1000 of the root, all of batch, half of batch/slice
    assert "5.0 %" in one(topics, "siblings", "ok")["seen"]


def test_only_cgroup_of_the_root_competes_with_the_root(machine, check):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.cgroup("prod")
    code, topics = check("nvme0n1", "prod")
    assert code == 0
    assert "root's own I/O, which has weight 100" in one(topics, "siblings", "warn")["seen"]


def test_limits_of_an_ancestor(host, check):
    host.put(f"{CGROUPS}/prod/io.max", "259:0 rbps=max wbps=1048576 riops=max wiops=max")
    host.put(f"{CGROUPS}/io.max", "259:0 rbps=max wbps=max riops=max wiops=max")
    host.put(f"{CGROUPS}/prod/db/io.latency", "259:0 target=75")
    host.put(f"{CGROUPS}/prod/db/io.max", "8:0 rbps=1 wbps=max riops=max wiops=max")
    code, topics = check("nvme0n1", "prod/db")
    assert code == 0
    (limit,) = topics["io.max"]
    assert limit["severity"] == "warn"
    assert limit["where"] == f"{CGROUPS}/prod/io.max"
    assert "wbps=1048576" in limit["seen"]
    assert "259:0 rbps=max" in limit["mend"]
    assert one(topics, "io.latency", "warn")["where"] == f"{CGROUPS}/prod/db/io.latency"


def test_processes_in_an_inner_node(host, check):
    host.put(f"{CGROUPS}/prod/cgroup.procs", "17\n18")
    code, topics = check("nvme0n1", "prod")
    assert code == 0
    assert "prod has 2 processes" in one(topics, "inner node", "warn")["seen"]


def test_partition(host, check):
    host.partition("nvme0n1", "nvme0n1p3", "259:3")
    code, topics = check("/dev/nvme0n1p3", "prod/db")
    assert code == 0
    assert "nvme0n1p3 is a partition" in one(topics, "partition", "note")["seen"]


def test_mapper_link(host, check):
    host.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1",))
    host.link("/dev/mapper/data", "/dev/dm-0")
    code, topics = check("/dev/mapper/data", "prod/db")
    assert code == 0
    assert one(topics, "stacking", "note")["seen"] == (
        "dm-0 (device-mapper) has no queue of its own: weights act on nvme0n1"
    )


def test_stack_over_a_disk_that_is_not_ours(host, check):
    host.disk("nvme1n1", "259:5", active="none")
    host.stacked("md0", "9:0", "md", slaves=("nvme0n1", "nvme1n1"))
    host.put("/sys/block/md0/md/level", "raid5")
    host.stacked("dm-0", "253:0", "dm", slaves=("md0",))
    code, topics = check("dm-0", "prod/db")
    assert code == 1
    assert one(topics, "scheduler", "ok")["seen"] == "mqfq is active on nvme0n1"
    assert one(topics, "scheduler", "problem")["mend"].startswith("mqfair enable nvme1n1")
    assert "raid5" in one(topics, "attribution", "warn")["seen"]


def test_encrypted_disk(host, check):
    host.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1",))
    host.put("/sys/block/dm-0/dm/uuid", "CRYPT-LUKS2-0123456789abcdef-data")
    code, topics = check("dm-0", "prod/db")
    assert code == 0
    finding = one(topics, "attribution", "warn")
    assert "no_write_workqueue" in finding["seen"]
    assert finding["mend"] == "cryptsetup refresh --perf-no_write_workqueue NAME"


def test_bcache(host, check):
    host.stacked("bcache0", "252:0", "bcache", slaves=("nvme0n1",))
    code, topics = check("bcache0")
    assert code == 0
    assert "bcache" in one(topics, "stacking", "note")["seen"]
    assert "own thread" in one(topics, "attribution", "warn")["seen"]


@pytest.mark.parametrize("place", ["b259:0", "b259:3"])
def test_members_of_a_zfs_pool(host, check, place):
    host.partition("nvme0n1", "nvme0n1p3", "259:3")
    assert "attribution" not in check("nvme0n1", "prod/db")[1]
    host.put(f"/run/udev/data/{place}", "E:ID_FS_TYPE=zfs_member")
    code, topics = check("nvme0n1", "prod/db")
    assert code == 0
    name = "nvme0n1p3" if place == "b259:3" else "nvme0n1"
    assert f"{name} belongs to ZFS" in one(topics, "attribution", "warn")["seen"]


def test_loop_names_the_disk_behind_it(host, check, monkeypatch):
    host.disk("loop0", "7:0", active="mqfq")
    host.put("/sys/block/loop0/loop/backing_file", "/srv/image")
    monkeypatch.setattr(
        Fs, "backing_number", lambda self, path: "259:0" if path == "/srv/image" else None
    )
    code, topics = check("loop0", "prod/db")
    assert code == 0
    finding = one(topics, "stacking", "warn")
    assert "over /srv/image" in finding["seen"]
    assert finding["mend"].startswith("mqfair enable nvme0n1")


def test_a_request_based_mapper_has_its_own_scheduler(host, check):
    host.disk("dm-1", "253:1", active="mqfq")
    host.link("/sys/devices/virtual/block/dm-1/slaves/nvme0n1", "/sys/class/block/nvme0n1")
    host.put("/sys/devices/virtual/block/dm-1/dm/name", "mpath")
    code, topics = check("dm-1", "prod/db")
    assert code == 0
    assert "bypasses those of nvme0n1" in one(topics, "stacking", "note")["seen"]


def test_nvme_multipath(host, check):
    host.stacked("nvme2n1", "259:9", "")
    host.disk("nvme2c0n1", None, active="mqfq")
    host.disk("nvme2c1n1", None, active="none")
    code, topics = check("nvme2n1", "prod/db")
    assert code == 1
    assert "NVMe multipath" in one(topics, "stacking", "note")["seen"]
    assert one(topics, "scheduler", "problem")["mend"].startswith("mqfair enable nvme2c1n1")


@pytest.mark.parametrize(("policy", "warned"), [("round-robin", True), ("numa", False)])
def test_the_policy_of_nvme_multipath(host, check, policy, warned):
    host.stacked("nvme2n1", "259:9", "")
    for path in ("nvme2c0n1", "nvme2c1n1"):
        host.disk(path, None, active="mqfq")
    host.put("/sys/block/nvme2n1/device/iopolicy", policy)
    topics = check("nvme2n1", "prod/db")[1]
    assert ("shares" in topics) is warned


def test_bio_based_device_over_nothing(host, check):
    host.stacked("zram0", "251:0", "")
    code, topics = check("zram0", "prod/db")
    assert code == 1
    assert "takes no scheduler" in one(topics, "scheduler", "problem")["seen"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("sdz",), "unknown device 'sdz'"),
        (("nvme0n1", "nowhere"), "no cgroup 'nowhere'"),
        (("nvme0n1", "/"), "root cgroup"),
    ],
)
def test_bad_input(host, run, argv, said):
    result = run("check", *argv)
    assert result.code == 2
    assert said in result.err
    assert result.out == ""


STATE = "/sys/kernel/debug/block/nvme0n1/sched/state"


def usage(host, group, share_ppm, part_ppm, **figures):
    """Gives @group figures in io.stat; all others are 0. @group "" is the root."""
    names = ("inside_x100", "waiting_x100", "cost_inside", "slowdown_percent")
    values = {"bytes": 4096, "ios": 1, "service_us": 90} | dict.fromkeys(names, 0)
    values |= {"share_ppm": share_ppm, "part_ppm": part_ppm, **figures}
    pairs = " ".join(f"mqfair.{name}={value}" for name, value in values.items())
    host.put(f"{CGROUPS}/{group}/io.stat", f"259:0 rbytes=4096 {pairs}")


@pytest.fixture
def keeps(check):
    """Runs check; returns the severity of what keeps prod/db from its due, the text, the hint."""

    def call():
        _, topics = check("nvme0n1", "prod/db")
        (found,) = topics.get("due", [None])
        return found and (found["severity"], found["seen"], found["mend"])

    return call


LONE = {"inside_x100": 100, "slowdown_percent": 120, "cost_inside": 4096}
ASKS = "prod/db gets what it asks for (2.0 % of the work), and nothing of it waits for a turn: "


def test_its_own_tasks_limit_a_lone_reader(host, keeps):
    usage(host, "prod/db", 900000, 20000, **LONE)
    usage(host, "batch", 100000, 980000, inside_x100=900, waiting_x100=5000, cost_inside=1 << 20)
    assert keeps() == (
        "note",
        f"{ASKS}its own tasks limit it, with 1.0 requests at a time",
        "let the application have more requests outstanding, if it wants more",
    )


def test_a_limit_may_hold_a_cgroup_back(host, keeps):
    usage(host, "prod/db", 900000, 20000, **LONE)
    usage(host, "batch", 100000, 980000, inside_x100=900, waiting_x100=5000, cost_inside=1 << 20)
    host.put(f"{CGROUPS}/prod/io.max", "259:0 rbps=max wbps=1048576 riops=max wiops=max")
    severity, seen, mend = keeps()
    limit = "io.max of prod (rbps=max wbps=1048576 riops=max wiops=max)"
    assert (severity, seen, mend) == ("note", f"{ASKS}{limit} may hold it back", "raise that limit")


def test_tasks_that_wait_for_tags(host, keeps):
    usage(host, "prod/db", 900000, 20000, **LONE)
    usage(host, "batch", 100000, 980000, inside_x100=900, waiting_x100=5000, cost_inside=1 << 20)
    host.put(STATE, "window 16\ntag_waiters 7")
    assert keeps() == (
        "note",
        f"{ASKS}tasks that may be its own wait for a scheduler tag, 7 of all",
        "mqfair enable nvme0n1, which raises nr_requests",
    )


INSIDE = "9.0 of the 10.0 requests in the drive are those of batch, with 95 % of the cost"
GOAL = "mqfair latency prod/db nvme0n1 TARGET, or a greater tunable isolation"


@pytest.mark.parametrize(
    ("settings", "more", "mend"),
    [
        ((16, "6 auto"), "", GOAL),
        ((16, "0"), "", "echo auto > /sys/block/nvme0n1/queue/iosched/isolation"),
        (
            (1, "6 auto"),
            ", although the window is at its least, 1",
            "limit it by io.max",
        ),
    ],
)
def test_another_cgroup_slows_it_in_the_drive(host, keeps, settings, more, mend):
    window, isolation = settings
    usage(host, "prod/db", 900000, 20000, **LONE | {"slowdown_percent": 1780})
    usage(host, "batch", 100000, 980000, inside_x100=900, waiting_x100=900, cost_inside=19 * 4096)
    host.put(f"{QUEUE}/iosched/isolation", isolation)
    host.put(STATE, f"window {window}\ntag_waiters 0")
    slowed = ", and a request takes 17.8 times as long there as it must"
    assert keeps() == ("note", f"{ASKS}{INSIDE}{slowed}{more}", mend)


def test_another_cgroup_has_the_drive_before_it(host, keeps):
    """Its requests wait outside, below its due."""
    own = LONE | {"waiting_x100": 3000}
    usage(host, "prod/db", 900000, 558000, **own)
    usage(host, "batch", 100000, 442000, inside_x100=900, waiting_x100=900, cost_inside=19 * 4096)
    seen = f"prod/db gets 0.62 of its due (55.8 % of the work): {INSIDE}"
    assert keeps() == ("warn", seen, GOAL)


def test_a_cgroup_that_goes_first(host, keeps):
    """None has most of the cost in the drive: metadata of the root passes."""
    own = {"inside_x100": 400, "waiting_x100": 3000, "cost_inside": 4 * 4096}
    usage(host, "prod/db", 450000, 270000, **own)
    usage(host, "prod/web", 450000, 450000, **own)
    usage(host, "", 100000, 280000, **own)
    severity, seen, mend = keeps()
    assert (severity, seen) == (
        "warn",
        "prod/db gets 0.60 of its due (27.0 % of the work): the root gets 28.0 % of the work, with"
        " 10.0 % due",
    )
    assert mend.startswith("look again: urgent requests go first for moments.")


@pytest.mark.parametrize(
    ("shares", "limiting", "mend"),
    [
        ((450000, 450000, 100000), "its weight is 50.0 %", "prod/db"),
        ((90000, 10000, 900000), "the weight of prod is 10.0 %", "prod"),
        ((100000, 0, 900000), "the weight of prod is 10.0 %", "prod"),
    ],
)
def test_a_weight_limits_it(host, keeps, shares, limiting, mend):
    """Its own, or that of its parent."""
    queue = {"inside_x100": 400, "waiting_x100": 6000}
    for group, share in zip(("prod/db", "prod/web", "batch"), shares, strict=True):
        usage(host, group, share, share, **queue)
    assert keeps() == (
        "note",
        f"prod/db gets its due ({shares[0] / 10000:.1f} % of the work), and its other requests wait"
        f" for their turn: {limiting} of those that are active on its level",
        f"mqfair weight {mend} nvme0n1 N, with a greater N",
    )


def test_a_cgroup_that_is_alone_has_the_drive(host, keeps):
    usage(host, "prod/db", 1000000, 1000000, inside_x100=400, waiting_x100=6000)
    seen = (
        "prod/db gets its due (100.0 % of the work), and its other requests wait for their turn: it"
        " has the disk for itself, and the drive does no more"
    )
    assert keeps() == ("note", seen, None)


@pytest.mark.parametrize(
    ("inside", "slowdown", "slow"),
    [(100, 900, ", 9.0 times as long as it must"), (6400, 100, "")],
)
def test_the_drive_limits_it(host, keeps, inside, slowdown, slow):
    """It has become slower without a rival, or it is as fast as with many requests."""
    figures = {"inside_x100": inside, "slowdown_percent": slowdown, "service_us": 8200}
    usage(host, "prod/db", 900000, 20000, **figures, cost_inside=1 << 20)
    usage(host, "batch", 100000, 980000, inside_x100=10, waiting_x100=500, cost_inside=4096)
    seen = f"{ASKS}the drive itself limits it, where a request takes 8.2 ms{slow}"
    assert keeps() == ("note", seen, None)


def test_nothing_keeps_an_idle_cgroup(host, keeps):
    assert keeps() is None
    usage(host, "prod/db", 0, 0)
    assert keeps() is None
    host.put(f"{CGROUPS}/prod/db/io.stat", "259:0 mqfair.bytes=4096 mqfair.share_ppm=0")
    assert keeps() is None


@pytest.mark.parametrize(("met", "severity"), [("met=1 ", "ok"), ("met=0 ", "warn"), ("", None)])
def test_goal(host, check, met, severity):
    """Without figures the goal is not judged."""
    usage(host, "prod/db", 0, 0)
    figures = f"achieved=430us {met}loss=4.2%" if met else "loss=0%"
    goals = f"8:0 target=1s pct=1\n259:0 target=500us pct=99 {figures}"
    host.put(f"{CGROUPS}/prod/db/io.mqfair.latency", goals)
    code, topics = check("nvme0n1", "prod/db")
    assert code == 0
    said = (
        "99 % of the requests take at most 430us, the goal is 500us, and 4.2% of the throughput is"
        " given up"
    )
    found = [(one["severity"], one["seen"]) for one in topics.get("goal", [])]
    assert found == ([(severity, said)] if severity else [])


def test_a_file_of_a_cgroup_is_no_cgroup(host, run):
    for verb in (("check", "nvme0n1"), ("weight",)):
        result = run(*verb, "prod/cgroup.procs")
        assert result.code == 2
        said = f"{CGROUPS}/prod/cgroup.procs is a file: name its folder, {CGROUPS}/prod\n"
        assert said in result.err
        assert "mkdir" not in result.err


def test_a_remedy_can_be_pasted_into_a_shell(host, check, run):
    """Each path in a remedy is one word of a shell, as in a cgroup with a space in its name."""
    host.cgroup("my app", subtree="io memory", weight="default 900")
    host.cgroup("my app/it's", weight="default 500", cgroup_events="populated 0")
    host.put(f"{CGROUPS}/my app/it's/io.max", "259:0 rbps=1048576 wbps=max")
    host.put(f"{CGROUPS}/my app/cgroup.subtree_control", "")
    _, topics = check("nvme0n1", "my app/it's")
    hints = [f["mend"] for findings in topics.values() for f in findings if f["mend"]]
    places = []
    for hint in hints:
        for command in hint.split(" && "):
            if "echo" in command:
                words = shlex.split(command[command.index("echo") :])
                places += words[words.index(">") + 1 :]
            if command.startswith("mqfair weight"):
                places.append(f"{CGROUPS}/{shlex.split(command)[2]}")
    assert f"{CGROUPS}/my app/it's/cgroup.procs" in places
    assert f"{CGROUPS}/my app/it's/io.max" in places
    assert f"{CGROUPS}/my app/cgroup.subtree_control" in places
    assert f"{CGROUPS}/my app" in places
    assert [place for place in places if not host.host(place).exists()] == []


@pytest.mark.parametrize(("text", "said"), [(PRESSURE, True), ("", False)])
def test_the_pressure_of_a_cgroup_is_told(host, check, text, said):
    host.put(f"{CGROUPS}/prod/db/io.stat", SHARE)
    host.put(f"{CGROUPS}/prod/db/io.pressure", text)
    _, topics = check("nvme0n1", "prod/db")
    if not said:
        assert "pressure" not in topics
        return
    assert one(topics, "pressure", "note")["seen"] == (
        "in the last 10 s some task of prod/db waited for I/O of any drive for 46.8 % of the time,"
        " and all its tasks at once for 43.5 %"
    )


@pytest.mark.parametrize("path", ["/dev/nvme0n1", "/dev/dm-3"])
def test_a_target_that_exports_the_disk_or_a_device_on_it(host, check, path):
    host.stacked("dm-3", "253:3", "dm", slaves=("nvme0n1",))
    space = "/sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
    host.put(f"{space}/device_path", path)
    found = one(check("nvme0n1", "prod/db")[1], "attribution", "warn")
    assert f"the NVMe target nqn.x exports {path}" in found["seen"]
    assert (found["where"], "initiators" in found["mend"]) == (f"{space}/device_path", True)


@pytest.mark.parametrize(("device", "warned"), [("nvme0n1", True), ("vda", False)])
@pytest.mark.parametrize(
    "info",
    [
        "        iBlock device: x  UDEV PATH: /dev/{}  readonly: 0\n  exclusive: 1\n",
        "        TCM FILEIO ID: 0        File: /dev/{}  Size: 512  Mode: O_DSYNC\n",
    ],
)
def test_a_store_of_lio_on_the_disk(host, check, device, warned, info):
    host.disk("vda", "254:0")
    stores = "/sys/kernel/config/target/core"
    host.put(f"{stores}/iblock_0/hba_info", "HBA Index: 1")
    host.put(f"{stores}/iblock_0/data/info", f"Status: ACTIVATED\n{info.format(device)}")
    topics = check("nvme0n1", "prod/db")[1]
    assert ("attribution" in topics) is warned
    if warned:
        found = one(topics, "attribution", "warn")
        assert f"the LIO store iblock_0/data exports /dev/{device}" in found["seen"]
        assert found["where"] == f"{stores}/iblock_0/data/info"


@pytest.mark.parametrize("path", ["/dev/vda", "/dev/nosuch", ""])
def test_a_target_that_exports_another_disk(host, check, path):
    host.disk("vda", "254:0")
    host.put("/sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path", path)
    assert "attribution" not in check("nvme0n1", "prod/db")[1]


@pytest.mark.parametrize(("direct", "warned"), [("0", True), ("1", False)])
def test_a_loop_device_that_buffers_its_file(host, check, direct, warned):
    host.stacked("loop0", "7:0", "loop")
    host.put("/sys/devices/virtual/block/loop0/loop/backing_file", "/srv/image")
    host.put("/sys/devices/virtual/block/loop0/loop/dio", direct)
    topics = check("loop0", "prod/db")[1]
    assert ("attribution" in topics) is warned


@pytest.mark.parametrize(("level", "warned"), [("raid1", True), ("raid0", False)])
def test_the_reads_of_a_raid_with_copies(host, check, level, warned):
    host.stacked("md127", "9:127", "md", slaves=("nvme0n1",))
    host.put("/sys/devices/virtual/block/md127/md/level", level)
    topics = check("md127", "prod/db")[1]
    assert ("shares" in topics) is warned
    if warned:
        assert "writemostly" in one(topics, "shares", "warn")["mend"]


def test_a_raid_with_parity_names_the_thread_for_a_cgroup(host, check):
    host.stacked("md127", "9:127", "md", slaves=("nvme0n1",))
    host.put("/sys/devices/virtual/block/md127/md/level", "raid5")
    found = one(check("md127", "prod/db")[1], "attribution", "warn")
    assert "pgrep -x md127_raid5 > /sys/fs/cgroup/ARRAY/cgroup.procs" in found["mend"]


def test_a_process_that_serves_a_disk(host, check):
    host.disk("ublkb0", "259:7", active="mqfq")
    assert "a process serves ublkb0" in one(check("ublkb0")[1], "attribution", "note")["seen"]
