# SPDX-License-Identifier: GPL-2.0
import errno
import re

import pytest
from conftest import NEW_TUNABLES, ROOT

from mqfair.tune import enable

QUEUE = "/sys/block/nvme0n1/queue"
SWITCH = f"write 'mqfq' to '{QUEUE}/scheduler'"
BACK = f"write 'none' to '{QUEUE}/scheduler'"


def write(name, value):
    return f"write '{value}' to '{QUEUE}/{name}'"


@pytest.fixture
def host(machine):
    """Two queues of 64 slots with nr_requests 128; a depth of 128 needs 4 * 128 / 2 = 256."""
    machine.install_module()
    machine.disk()
    return machine


def test_switches_and_raises_nr_requests(host, run):
    result = run("enable", "nvme0n1")
    assert (result.code, result.err) == (0, "")
    assert host.stores == [SWITCH, write("nr_requests", 256)]
    assert "[mqfq]" in host.get(f"{QUEUE}/scheduler")
    assert result.out.startswith("nvme0n1: mqfq (was none)")
    assert "note: nr_requests 128 -> 256: depth 128 on 2 queues" in result.out


def test_all_tunables_in_order(host, run):
    result = run(
        *("enable", "/dev/nvme0n1", "--depth", "32", "--threshold-kb", "64", "--cost", "linear"),
        *("--linear-read", "100", "4", "--linear-write", "200", "8", "--nr-requests", "64"),
        "--json",
    )
    assert result.code == 0
    assert host.stores == [
        SWITCH,
        write("iosched/cost", "linear 100 4 200 8"),
        write("iosched/depth", 32),
        write("iosched/threshold_kb", 64),
        write("nr_requests", 64),
    ]
    report = result.json
    assert report["schema"] == "mqfair.enable/1"
    assert report["previous"] == "none"
    assert report["scheduler"] == "mqfq"
    assert report["nr_requests"] == 64
    assert report["tunables"]["cost"] == "linear 100 4 200 8"
    assert [f"write '{w['value']}' to '{w['path']}'" for w in report["writes"]] == host.stores


def test_enough_tags_are_left_alone(host, run):
    result = run("enable", "nvme0n1", "--depth", "64")
    assert result.code == 0
    assert host.stores == [SWITCH, write("iosched/depth", 64)]


def test_poll_queues_do_not_count(host, run):
    """null_blk's poll queue serves the same CPUs as the other queues and gets no ordinary I/O."""
    host.disk("nullb0", "254:0", queues=12)
    host.queue("nullb0", 12, cpus="0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11")
    result = run("enable", "nullb0", "--depth", "390")
    assert result.code == 0
    assert host.stores[-1] == "write '130' to '/sys/block/nullb0/queue/nr_requests'"


def test_scheduler_without_depth_keeps_its_tags(host, run):
    run("enable", "nvme0n1", "--nr-requests", "4")
    host.host(f"{QUEUE}/iosched/depth").unlink()
    host.stores.clear()
    assert run("enable", "nvme0n1").code == 0
    assert host.stores == []


def test_tags_stop_at_the_kernels_limit(host, run):
    host.disk("nvme1n1", "259:5", tags=1023)
    result = run("enable", "nvme1n1", "--depth", "2046")
    assert result.code == 0
    assert host.stores[-1] == "write '2048' to '/sys/block/nvme1n1/queue/nr_requests'"
    assert "the kernel's limit, below 4092" in result.out


FOUR = ("--linear-read", "1", "2", "--linear-write", "3", "4")


@pytest.mark.parametrize(
    ("before", "argv", "stores"),
    [
        (("--depth", "16"), ("--depth", "16"), []),
        (("--depth", "16"), ("--depth", "8", "--cost", "bytes"), [write("iosched/depth", 8)]),
        ((), ("--cost", "learned"), [write("iosched/cost", "learned")]),
        ((), ("--cost", "linear"), [write("iosched/cost", "linear")]),
        # The coefficients stay.
        (("--cost", "linear"), ("--cost", "linear"), []),
        # Coefficients alone mean the linear cost.
        ((), FOUR, [write("iosched/cost", "linear 1 2 3 4")]),
        (FOUR, FOUR, []),
    ],
)
def test_an_enabled_disk_gets_only_the_differences(host, run, before, argv, stores):
    run("enable", "nvme0n1", *before)
    host.stores.clear()
    assert run("enable", "nvme0n1", *argv).code == 0
    assert host.stores == stores


WRONG_DEPTH = "1..65536, or auto"
ZEROS = "0 0: each such request would cost 512"
LINEAR = ("--cost", "linear")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--depth", "0"), WRONG_DEPTH),
        (("--depth", "99999999"), WRONG_DEPTH),
        (("--depth", "-1"), "--depth"),
        (("--depth", "many"), WRONG_DEPTH),
        (("--depth", "0 auto"), WRONG_DEPTH),
        (("--depth", "auto 8"), WRONG_DEPTH),
        (("--depth", "8 auto 8"), WRONG_DEPTH),
        (("--threshold-kb", "1.5"), "0..1048576, or auto"),
        (("--threshold-kb", "1048577"), "0..1048576, or auto"),
        (("--nr-requests", "3"), "4..2048"),
        (("--nr-requests", "2049"), "4..2048"),
        (("--cost", "free"), "--cost"),
        (("--scheduler", "bfq"), "--scheduler"),
        (("--linear-read", "1", "x", "--linear-write", "1", "1"), "--linear-read"),
        (("--linear-read", "-1", "4", "--linear-write", "1", "1"), "--linear-read"),
        (("--linear-read", "67108865", "0", "--linear-write", "1", "1"), "--linear-read"),
        ((*LINEAR, "--linear-read", "1", "2"), "--linear-read needs --linear-write: give all four"),
        ((*LINEAR, "--linear-write", "1", "2"), "--linear-write needs --linear-read: give all fou"),
        # A request of 1 MiB would cost as much as one of 512 bytes.
        ((*LINEAR, "--linear-read", "0", "0", "--linear-write", "0", "1024"), f"read {ZEROS}"),
        ((*LINEAR, "--linear-write", "0", "0", "--linear-read", "0", "1024"), f"write {ZEROS}"),
        (("--cost", "iops", "--linear-read", "1", "2"), "--cost linear"),
    ],
)
def test_bad_values_change_nothing(host, run, argv, said):
    before = host.snapshot()
    result = run("enable", "nvme0n1", *argv)
    assert result.code == 2
    assert said in result.err
    assert host.stores == []
    assert host.snapshot() == before


@pytest.mark.parametrize(
    ("files", "argv", "said"),
    [
        ({"scheduler": "[none] mq-deadline mqfq"}, ("--scheduler", "wdt"), "does not offer wdt"),
        ({"scheduler": "[none] mq-deadline", "zoned": "host-managed"}, (), "zoned"),
    ],
)
def test_a_scheduler_that_the_disk_does_not_offer(host, run, files, argv, said):
    """A kernel of the second row is old."""
    for name, text in files.items():
        host.put(f"{QUEUE}/{name}", text)
    result = run("enable", "nvme0n1", *argv)
    assert (result.code, host.stores) == (1, [])
    assert said in result.err


def test_module_missing(machine, run):
    machine.disk()
    result = run("enable", "nvme0n1")
    assert (result.code, machine.stores, result.err.count("\n")) == (1, [], 1)
    assert "neither loaded nor installed in /lib/modules/6.1.0-56-amd64" in result.err
    assert "install the package mqfair-dkms, or run `make install`" in result.err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dm-0", "nvme0n1 nvme1n1\n"),
        ("md0", "nvme0n1 nvme1n1\n"),
        *((name, f"unknown device '{name}'") for name in ("sdz", "/dev/sdz", "8:99", "", "..")),
        ("/etc", "unknown device '/etc'"),
    ],
)
def test_a_device_without_a_queue_names_those_below_it_or_here(host, run, name, said):
    """Of a bio-based device, Linux 6.1 says none without brackets."""
    host.disk("nvme1n1", "259:5")
    host.partition("nvme1n1", "nvme1n1p1", "259:6")
    host.stacked("dm-0", "253:0", "dm", slaves=("nvme0n1", "nvme1n1p1"))
    host.put("/sys/block/dm-0/queue/scheduler", "none")
    host.stacked("md0", "9:0", "md", slaves=("dm-0",))
    result = run("enable", name)
    assert (result.code, host.stores) == (2, [])
    if "unknown" in said:
        assert said in result.err and "nvme0n1" in result.err
    else:
        assert result.err.endswith(said)


@pytest.fixture
def without_threshold(host, monkeypatch):
    """Two disks without the tunable threshold_kb: nvme1n1 runs none, nvme2n1 runs mqfq."""
    monkeypatch.delitem(NEW_TUNABLES, "threshold_kb")
    host.disk("nvme1n1", "259:5", active="none")
    host.disk("nvme2n1", "259:6", active="mqfq")
    return host


@pytest.mark.parametrize(("disk", "active"), [("nvme1n1", "none"), ("nvme2n1", "mqfq")])
def test_a_missing_tunable_changes_nothing(without_threshold, run, disk, active):
    result = run("enable", disk, "--threshold-kb", "64")
    assert result.code == 1
    assert f"mqfq has no tunable threshold_kb on {disk}: use cost, depth" in result.err
    assert "research" not in result.err
    assert f"[{active}]" in without_threshold.get(f"/sys/block/{disk}/queue/scheduler")


@pytest.mark.parametrize(("research", "hinted"), [("N", True), ("Y", False)])
def test_a_missing_tunable_may_be_one_for_research(without_threshold, run, research, hinted):
    without_threshold.put("/sys/module/mqfair/parameters/research", research)
    result = run("enable", "nvme2n1", "--threshold-kb", "64")
    assert ("modprobe -r mqfair; modprobe mqfair research=1" in result.err) == hinted


def test_auto_shows_the_number_it_chose(host, run):
    run("enable", "nvme0n1", "--nr-requests", "4")
    host.put(f"{QUEUE}/iosched/depth", "32 auto")
    host.stores.clear()
    assert run("enable", "nvme0n1", "--depth", "auto").code == 0
    # It is 32 now, and grows.
    assert host.stores == [write("nr_requests", 256)]
    assert run("enable", "nvme0n1", "--depth", "32").code == 0
    assert host.stores[1:] == [write("iosched/depth", 32)]
    assert run("enable", "nvme0n1", "--depth", "auto", "--nr-requests", "256").code == 0
    assert host.stores[2:] == [write("iosched/depth", "auto")]


def test_writing_the_name_loads_the_module(machine, run):
    machine.install_module(loaded=False)
    machine.disk()
    assert run("enable", "nvme0n1", "--depth", "8").code == 0
    assert machine.stores == [SWITCH, write("iosched/depth", 8)]


def test_a_partition_stands_for_its_disk(host, run):
    host.partition("nvme0n1", "nvme0n1p2", "259:2")
    for name in ("nvme0n1p2", "/dev/nvme0n1p2", "259:2"):
        result = run("enable", name, "--json")
        assert result.code == 0
        assert result.json["device"] == "nvme0n1"
        assert "nvme0n1p2 is a partition" in result.json["notes"][0]


def test_dry_run_prints_the_writes_and_does_none(host, run):
    before = host.snapshot()
    result = run("enable", "nvme0n1", "--depth", "100", "--dry-run")
    assert result.code == 0
    assert host.stores == []
    assert host.snapshot() == before
    assert result.out.splitlines()[:3] == [
        SWITCH,
        write("iosched/depth", 100),
        write("nr_requests", 200),
    ]


def test_depth_that_is_found_begins_with_a_number(host, run):
    run("enable", "nvme0n1", "--depth", "8")
    host.stores.clear()
    assert run("enable", "nvme0n1", "--depth", "16 auto").code == 0
    assert run("enable", "nvme0n1", "--depth", "16 auto").code == 0
    # It grows: 4 tags for each of 128 slots.
    assert host.stores == [write("iosched/depth", "16 auto"), write("nr_requests", 256)]
    # A failure later puts back what was there, with the depth that was found.
    host.put(f"{QUEUE}/iosched/depth", "32 auto")
    host.refuse[f"{QUEUE}/iosched/threshold_kb"] = [errno.EINVAL]
    result = run("enable", "nvme0n1", "--depth", "64 auto", "--threshold-kb", "9")
    assert (result.code, host.get(f"{QUEUE}/iosched/depth")) == (1, "32 auto")


def test_depth_that_does_not_become_automatic_is_a_failure(host, run):
    run("enable", "nvme0n1", "--depth", "8")
    host.ignore.add(f"{QUEUE}/iosched/depth")
    result = run("enable", "nvme0n1", "--depth", "16 auto")
    assert result.code == 1
    assert "iosched/depth reads back '8' after '16 auto' was written" in result.err


def test_dry_run_does_not_know_the_choice_of_auto(host, run):
    result = run("enable", "nvme0n1", "--dry-run")
    assert result.out.splitlines()[0] == SWITCH
    assert "nr_requests will be raised if" in result.out
    assert len(result.out.splitlines()) == 2


@pytest.mark.parametrize("pair", [("0", "1"), ("1", "0")])
def test_one_zero_is_a_cost(host, run, pair):
    words = ("--linear-read", *pair, "--linear-write", *pair)
    assert run("enable", "nvme0n1", *words).code == 0


def test_the_ranges_are_those_of_the_scheduler():
    """The limits of this command against the tables of sched/."""
    sched = ROOT / "sched"
    text = text_of(sched, "core/sched.h") + text_of(sched, "core/cost.h")
    limits = dict(re.findall(r"^\t([A-Z]\w+)\s*= (\d[\d< ]*),", text, re.MULTILINE))
    assert int(limits["DEPTH_MAX"]) == enable.DEPTH_MOST
    assert int(limits["COST_LEAST"]) == enable.COST_LEAST
    assert limits["COST_MOST"] == "1 << 26" and enable.COST_MOST == 1 << 26
    usual = re.search(r"AUTO_DEPTH_USUAL\s*= (\d+),", text_of(sched, "core/tunable.c"))
    assert usual and int(usual[1]) == enable.AUTO_SLOTS
    manual = text_of(ROOT, "doc/mqfq.md")
    assert f"| 0..{enable.THRESHOLD_KB_MOST}, `auto` |" in manual


def text_of(folder, name):
    return (folder / name).read_text()


def test_a_disk_that_stays_busy_is_left_unchanged(host, run):
    before = host.snapshot()
    host.refuse[f"{QUEUE}/scheduler"] = [errno.EBUSY] * 6
    result = run("enable", "nvme0n1")
    assert result.code == 1
    assert "try again later" in result.err
    assert "all settings are as before" in result.err
    assert host.stores == [SWITCH] * 6
    assert host.snapshot() == before


def test_scheduler_not_kept(host, run):
    before = host.snapshot()
    host.ignore.add(f"{QUEUE}/scheduler")
    result = run("enable", "nvme0n1")
    assert result.code == 1
    assert "reads back 'none' after 'mqfq'" in result.err
    assert host.snapshot() == before


def test_tunable_not_kept_rolls_the_scheduler_back(host, run):
    host.put(f"{QUEUE}/nr_requests", "77")
    host.ignore.add(f"{QUEUE}/iosched/depth")
    result = run("enable", "nvme0n1", "--threshold-kb", "1", "--depth", "8")
    assert result.code == 1
    assert "iosched/depth reads back 'auto' after '8'" in result.err
    assert host.stores == [
        SWITCH,
        write("iosched/depth", 8),
        BACK,
        write("nr_requests", 77),
    ]
    assert "[none]" in host.get(f"{QUEUE}/scheduler")


def test_refused_tunable_restores_the_others(host, run):
    run("enable", "nvme0n1", "--depth", "16")
    host.stores.clear()
    before = host.snapshot()
    host.refuse[f"{QUEUE}/iosched/threshold_kb"] = [errno.EINVAL]
    result = run("enable", "nvme0n1", "--depth", "8", "--threshold-kb", "99999")
    assert result.code == 1
    assert "cannot write '99999'" in result.err
    assert host.stores == [
        write("iosched/depth", 8),
        write("iosched/threshold_kb", 99999),
        write("iosched/depth", 16),
    ]
    assert host.snapshot() == before


def test_a_failing_undo_is_reported(host, run):
    host.ignore.add(f"{QUEUE}/iosched/depth")
    host.refuse[f"{QUEUE}/nr_requests"] = [errno.EINVAL]
    host.put(f"{QUEUE}/nr_requests", "77")
    result = run("enable", "nvme0n1", "--depth", "8")
    assert result.code == 1
    assert "undoing failed too" in result.err


def test_a_tunable_that_the_scheduler_does_not_have(host, run):
    run("enable", "nvme0n1")
    host.stores.clear()
    host.host(f"{QUEUE}/iosched/threshold_kb").unlink()
    result = run("enable", "nvme0n1", "--depth", "4", "--threshold-kb", "4")
    assert result.code == 1
    assert "no tunable threshold_kb" in result.err
    assert host.stores == []


def test_several_devices_by_a_pattern(host, run):
    host.disk("nvme1n1", "259:1")
    host.disk("sda", "8:0")
    result = run("enable", "nvme*n1", "/dev/nvme0n1", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["schema"] == "mqfair.enable-several/1"
    assert [one["device"] for one in result.json["devices"]] == ["nvme0n1", "nvme1n1"]
    for disk, active in (("nvme0n1", "mqfq"), ("nvme1n1", "mqfq"), ("sda", "none")):
        assert f"[{active}]" in host.get(f"/sys/block/{disk}/queue/scheduler")
    result = run("disable", "nvme*n1")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("nvme0n1: none (was mqfq)\nnvme1n1: none (was mqfq)\n")


def test_one_of_several_devices_without_the_scheduler_changes_none(host, run):
    host.disk("nvme1n1", "259:1")
    result = run("enable", "nvme*n1", "--depth", "x")
    assert (result.code, host.stores) == (2, [])
    result = run("enable", "nvme0n1", "nvme9n1")
    assert (result.code, host.stores) == (2, [])
    assert "unknown device 'nvme9n1'" in result.err


def test_a_failure_names_the_devices_that_were_enabled_before(host, run):
    host.disk("nvme1n1", "259:1")
    host.refuse["/sys/block/nvme1n1/queue/scheduler"] = [errno.EBUSY] * 6
    result = run("enable", "nvme0n1", "nvme1n1")
    assert result.code == 1
    assert result.err.endswith("; devices that were enabled before: nvme0n1\n")
    assert result.err.count("\n") == 1
