# SPDX-License-Identifier: GPL-2.0
"""Samples of a machine made of files, the rates between two of them, and the tree of cgroups."""

import pytest

from mqfair.machine.blockdev import find_disk
from mqfair.machine.fs import Fs
from mqfair.watch.sample import (
    OWN,
    DiskSample,
    Figures,
    Sampler,
    Use,
    dues,
    grown,
    parse_figures,
    parse_io_stat,
    total,
    tree,
    uses,
)


def stat(number="259:0", **figures):
    pairs = " ".join(f"mqfair.{name}={value}" for name, value in figures.items())
    return f"{number} rbytes=4096 wbytes=0 rios=1 wios=0 {pairs}"


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    machine.put("/sys/block/nvme0n1/stat", "10 0 80 5 2 0 16 5 3 9 9 1 0 8 0 0 0")
    machine.put(
        "/sys/kernel/debug/block/nvme0n1/sched/state",
        "threshold 65536\nslots_free machine=3 cpu=1\nwindow 40\nmin_tag -5",
    )
    machine.cgroup("prod", subtree="io", weight="default 900\n259:0 700")
    machine.cgroup("prod/db", stat=stat(weight=500, ios=10, bytes=40960))
    return machine


def sampler(*names):
    fs = Fs()
    return Sampler(fs, [find_disk(fs, name) for name in names or ("nvme0n1",)])


def test_figures_of_several_drives():
    text = f"8:0 rbytes=1\n{stat(ios=7, share_ppm=250000)}\n{stat('259:1', ios=8)}\n259:2\n"
    found = parse_io_stat(text.encode())
    assert set(found) == {"259:0", "259:1"}
    assert (found["259:0"].ios, found["259:0"].share_ppm) == (7, 250000)
    assert found["259:1"].share_ppm is None


def test_a_negative_figure_is_no_number_of_ours():
    assert parse_figures(b"mqfair.ahead=-7 mqfair.ios=3").ios == 3


def test_a_sample_of_a_drive(host):
    disk = sampler().sample().disks["nvme0n1"]
    assert (disk.number, disk.scheduler, disk.ours) == ("259:0", "mqfq", True)
    assert disk.tunables["depth"] == "128 auto"
    assert disk.state == {"threshold": 65536, "window": 40, "min_tag": -5}
    assert (disk.ios, disk.bytes, disk.in_flight) == (13, 512 * (80 + 16 + 8), 3)
    assert set(disk.flows) == {"prod/db"}
    assert disk.flows["prod/db"].bytes == 40960


def test_without_debugfs_and_without_cgroups_a_sample_has_the_rest(host):
    host.host("/sys/kernel/debug/block/nvme0n1/sched/state").unlink()
    host.put("/proc/self/mounts", "cgroup /sys/fs/cgroup/blkio cgroup rw,blkio 0 0")
    disk = sampler().sample().disks["nvme0n1"]
    assert disk.state is None
    assert disk.of_state("window") is None
    assert disk.flows == {}
    assert disk.ios == 13


def test_cgroups_come_and_go(host):
    watching = sampler()
    watching.sample()
    host.cgroup("prod/web", stat=stat(ios=1))
    host.cgroup("prod/web/deep", stat=stat(ios=2))
    assert set(watching.sample().disks["nvme0n1"].flows) == {"prod/db", "prod/web", "prod/web/deep"}
    for file in host.host("/sys/fs/cgroup/prod/db").iterdir():
        file.unlink()
    host.host("/sys/fs/cgroup/prod/db").rmdir()
    assert set(watching.sample().disks["nvme0n1"].flows) == {"prod/web", "prod/web/deep"}


def test_a_scheduler_that_is_switched_away_leaves_no_flows(host):
    watching = sampler()
    watching.sample()
    host.put("/sys/block/nvme0n1/queue/scheduler", "mqfq [none]")
    disk = watching.sample().disks["nvme0n1"]
    assert (disk.scheduler, disk.ours, disk.tunables, disk.flows) == ("none", False, {}, {})


def test_the_weight_of_a_cgroup_without_figures(host):
    watching = sampler()
    assert watching.weight("prod", "259:0") == 700
    host.put("/sys/fs/cgroup/prod/io.mqfair.weight", "default 5")
    assert watching.weight("prod", "259:0") == 700
    watching.forget_weights()
    assert watching.weight("prod", "259:0") == 5
    assert watching.weight("nosuch", "259:0") == 100


# --- two samples


def flows(**figures):
    return DiskSample("d", "259:0", "mqfq", flows=figures)


def test_shares_are_parts_of_the_work_between_the_samples():
    """The cost of a request may differ from its bytes, and costs count."""
    before = flows(a=Figures(bytes=0, ios=0, cost=1000), b=Figures(bytes=0, ios=0, cost=5000))
    after = flows(
        a=Figures(bytes=100, ios=10, cost=4000, share_ppm=750000, waiting_x100=90),
        b=Figures(bytes=900, ios=20, cost=6000, share_ppm=250000, waiting_x100=800),
    )
    found = uses(before, after, 2.0)
    assert [found[name].achieved_ppm for name in "ab"] == [750000, 250000]
    assert [found[name].due_ppm for name in "ab"] == [750000, 250000]
    assert [found[name].iops for name in "ab"] == [5, 10]


def flow(share_ppm, waiting_x100=0):
    return Figures(ios=1, share_ppm=share_ppm, waiting_x100=waiting_x100)


def test_a_lone_reader_is_due_what_it_gets():
    """One request at a time, of a weight of ten elevenths."""
    found = dues({"reader": flow(909091), "others": flow(90909, 6000)}, {"reader": 5, "others": 95})
    assert found == {"reader": 5, "others": 95}


def test_a_cgroup_above_its_share_is_due_less_where_others_wait():
    """All its requests are in the drive, and those of b wait outside."""
    found = dues({"a": flow(100000), "b": flow(900000, 500)}, {"a": 500, "b": 500})
    assert found == {"a": 100, "b": 900}


def test_a_sibling_without_a_backlog_leaves_the_rest_to_its_siblings_first():
    """prod has 900 and batch 100; prod/db and prod/web have equal weights."""
    flows = {"prod/db": flow(450000, 500), "prod/web": flow(450000), "batch": flow(100000, 500)}
    found = dues(flows, {"prod/db": 600, "prod/web": 100, "batch": 300})
    assert found == {"prod/db": 800, "prod/web": 100, "batch": 100}
    flows["prod/db"], flows["prod/web"] = flows["prod/web"], flows["prod/db"]
    found = dues(flows, {"prod/db": 600, "prod/web": 100, "batch": 300})
    assert found == {"prod/db": 450, "prod/web": 450, "batch": 100}


def test_a_cgroups_own_processes_and_the_roots_are_children():
    """prod's own processes have 100 beside prod/db with 300, and the root 100 beside prod's 400."""
    flows = {"prod": flow(200000, 900), "prod/db": flow(600000, 900), "/": flow(200000, 900)}
    assert dues(flows, {"prod": 0, "prod/db": 0, "/": 1000}) == {
        "prod": 200,
        "prod/db": 600,
        "/": 200,
    }
    flows["prod/db"] = flow(600000)
    assert dues(flows, {"prod": 0, "prod/db": 0, "/": 1000}) == {
        "prod": 800,
        "prod/db": 0,
        "/": 200,
    }


def test_a_cgroup_that_has_become_idle_is_due_what_it_got():
    found = dues({"a": flow(0), "b": flow(1000000, 900), "c": Figures()}, {"a": 3, "b": 7, "c": 0})
    assert found == {"a": 3, "b": 7, "c": 0}
    assert dues({}, {}) == {}


@pytest.mark.parametrize(("waiting_x100", "due"), [(89, 0), (90, 500000)])
def test_a_starved_cgroup_with_a_single_request_is_backlogged(waiting_x100, due):
    flows = {"a": flow(500000, waiting_x100), "b": flow(500000, 500)}
    assert dues(flows, {"a": 0, "b": 1000000})["a"] == due


def test_a_module_that_tells_no_cost_counts_bytes():
    after = flows(a=Figures(bytes=300, ios=1), b=Figures(bytes=100, ios=1))
    assert uses(flows(), after, 1.0)["a"].achieved_ppm == 750000


def test_mean_times_are_those_of_the_interval():
    before = flows(a=Figures(ios=100, wait_us=90000, done=90, drive_us=500000))
    after = flows(a=Figures(ios=110, wait_us=91000, done=110, drive_us=504000, service_us=77))
    use = uses(before, after, 1.0)["a"]
    assert (use.wait_us, use.service_us) == (100, 200)
    idle = uses(after, after, 1.0)["a"]
    assert (idle.wait_us, idle.service_us, idle.idle) == (None, None, True)


def test_short_counts_within_the_interval():
    before, after = flows(a=Figures(ios=1, short_ms=70)), flows(a=Figures(ios=2, short_ms=95))
    assert uses(before, after, 1.0)["a"].short_ms == 25


def test_a_counter_that_fell_began_again():
    assert grown(1000, 30) == 30
    assert grown(None, 30) == 30
    assert grown(10, None) == 0


def test_totals_are_the_kernels_own():
    before = DiskSample("d", None, "mqfq", ios=10, bytes=0)
    after = DiskSample("d", None, "mqfq", ios=30, bytes=8192, in_flight=4)
    found = total(before, after, 2.0)
    assert (found.iops, found.bytes_per_s, found.in_flight) == (10, 4096, 4)
    assert total(before, DiskSample("d", None, "mqfq"), 2.0) is None


# --- the tree


def use(name, achieved, **more):
    figures = {"weight": 100, "due_ppm": 0, "iops": achieved, "bytes_per_s": 0.0}
    figures |= {"waiting_x100": 0, "inside_x100": 0, **more}
    return Use(cgroup=name, achieved_ppm=achieved, **figures)


def lines(*found, keep=lambda _: True):
    by_name = {one.cgroup: one for one in found}
    return [
        (one.depth, one.label, one.use.achieved_ppm)
        for one in tree(by_name, lambda _: 900, lambda use: -use.achieved_ppm, keep)
    ]


def test_a_parent_has_the_sums_of_its_children():
    found = lines(use("prod/db", 30), use("prod/web", 50), use("batch", 70), use("/", 5))
    assert found == [
        (0, "prod", 80),
        (1, "web", 50),
        (1, "db", 30),
        (0, "batch", 70),
        (0, "/", 5),
    ]


def test_a_parents_own_processes_have_a_line():
    found = lines(use("prod", 7), use("prod/db", 30))
    assert found == [(0, "prod", 37), (1, OWN, 7), (1, "db", 30)]


def test_a_parent_is_shown_for_a_child_that_is_kept():
    def keep(use):
        return "db" in use.cgroup

    found = lines(use("prod", 7), use("prod/db", 30), use("batch", 70), use("/", 5), keep=keep)
    assert found == [(0, "prod", 30), (1, "db", 30)]


def test_a_sum_has_means_by_requests_and_percentiles_of_a_lone_child():
    pair = [use("p/a", 30, wait_us=100.0, p99_us=5), use("p/b", 10, wait_us=500.0, p99_us=6)]
    (parent, *_) = tree({one.cgroup: one for one in pair}, lambda _: 900, lambda use: use.cgroup)
    assert (parent.use.weight, parent.use.wait_us, parent.use.p99_us) == (900, 200, None)
    (parent, *_) = tree({"p/a": pair[0]}, lambda _: 900, lambda use: use.cgroup)
    assert (parent.use.wait_us, parent.use.p99_us) == (100, 5)
