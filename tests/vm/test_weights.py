# SPDX-License-Identifier: GPL-2.0
"""The files for users: io.mqfair.weight, io.stat and the tunables, with the values they refuse."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, flows, mqfq, scheduled, tenants
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    Disk,
    NullBlk,
    cases,
    every_kernel,
    fio,
    modprobe,
    read,
    rmmod,
    write,
    write_fails,
)

guest = SMALL_GUEST

NO_DEVICE = "240:77"


@contextlib.contextmanager
def disk_and_group() -> Iterator[tuple[Disk, Cgroup]]:
    with NullBlk() as disk, Cgroup("tenant") as group:
        yield disk, group


def touch(disk: Disk, group: Cgroup) -> None:
    """A few reads, so that the group is known on @disk."""
    fio(disk, group, number_ios=8, iodepth=1)


@every_kernel
def test_each_way_to_write_a_weight() -> None:
    with disk_and_group() as (disk, group):
        assert group.weight == "default 100"
        for text, then in [
            ("500", "default 500"),
            ("default 1", "default 1"),
            ("default\t10000\n", "default 10000"),
            (f"{disk.number} 300", f"default 10000\n{disk.number} 300"),
            (f"{disk.number}   1  ", f"default 10000\n{disk.number} 1"),
            ("7", f"default 7\n{disk.number} 1"),
            (f"{disk.number} default", "default 7"),
            # Without a weight of the device's own this has no effect.
            (f"{disk.number} default", "default 7"),
            (f"{NO_DEVICE} default", "default 7"),
        ]:
            group.weight = text
            assert group.weight == then, f"{text!r} gave {group.weight!r}"


def test_bad_weights_change_nothing() -> None:
    with disk_and_group() as (disk, group):
        group.weight = "400"
        group.weight = f"{disk.number} 30"
        before = group.weight
        bad_numbers = ["0", "-1", "10001", "abc", "5x", "1.5", "0x10", "99999999999999999999"]
        refused = {
            "\n": errno.EINVAL,
            "8:0": errno.EINVAL,
            "x:y 5": errno.EINVAL,
            "default": errno.EINVAL,
            "default default": errno.EINVAL,
            "default 5 6": errno.EINVAL,
            "5 6": errno.EINVAL,
            "8: 5": errno.EINVAL,
            f"{disk.number}x 5": errno.EINVAL,
            f"-{disk.number} 5": errno.EINVAL,
            f"{NO_DEVICE} 5": errno.ENODEV,
            **dict.fromkeys(bad_numbers, errno.EINVAL),
            **{f"default {bad}": errno.EINVAL for bad in bad_numbers},
            **{f"{disk.number} {bad}": errno.EINVAL for bad in bad_numbers},
        }
        for text, expected in refused.items():
            got = write_fails(group.path / "io.mqfair.weight", text)
            assert got == expected, f"{text!r}: {errno.errorcode[got]}"
            assert group.weight == before, f"{text!r} made it {group.weight!r}"


def test_a_device_number_that_is_too_large_is_no_other_device() -> None:
    with disk_and_group() as (disk, group):
        major, minor = map(int, disk.number.split(":"))
        for number in (
            f"{major + (1 << 12)}:{minor}",
            f"{major}:{minor + (1 << 20)}",
            f"{major + (1 << 32)}:{minor}",
            f"{major}:{minor + (1 << 32)}",
        ):
            got = write_fails(group.path / "io.mqfair.weight", f"{number} 5")
            assert got in (errno.EINVAL, errno.ENODEV), errno.errorcode[got]
        assert group.weight == "default 100"


def test_the_root_has_no_weight() -> None:
    assert not (CGROUP_ROOT / "io.mqfair.weight").exists()


@every_kernel
def test_weights_outlive_schedulers() -> None:
    """Weights can be set before the scheduler, stay over a switch to none and back, and can change
    under none."""
    with disk_and_group() as (disk, group):
        group.weight = "200"
        group.weight = f"{disk.number} 900"
        disk.scheduler = "mqfq"
        touch(disk, group)
        assert flows(disk)["/tenant"]["weight"] == 900
        group.weight = f"{disk.number} 800"
        assert flows(disk)["/tenant"]["weight"] == 800
        disk.scheduler = "none"
        assert group.weight == f"default 200\n{disk.number} 800"
        group.weight = "300"
        disk.scheduler = "mqfq"
        touch(disk, group)
        assert flows(disk)["/tenant"]["weight"] == 800
        group.weight = f"{disk.number} default"
        assert flows(disk)["/tenant"]["weight"] == 300


def test_weights_and_goals_leave_with_their_disk() -> None:
    """The next disk gets the same number, and is another disk."""
    with Cgroup("tenant", 50) as group:
        with NullBlk("nullb5") as gone:
            number = gone.number
            group.weight = f"{number} 700"
            write(group.path / "io.mqfair.latency", f"{number} target=5ms")
        assert group.weight == "default 50"
        with NullBlk("nullb5") as disk, mqfq(disk):
            assert disk.number == number
            assert group.weight == "default 50"
            assert read(group.path / "io.mqfair.latency") == ""
            touch(disk, group)
            assert flows(disk)["/tenant"]["weight"] == 50
            group.weight = f"{number} 800"
            assert group.weight == f"default 50\n{number} 800"


@every_kernel
def test_a_weight_is_of_one_device() -> None:
    with NullBlk("nullb5") as one, NullBlk("nullb6") as two, Cgroup("tenant", 50) as group:
        group.weight = f"{one.number} 700"
        with mqfq(one), mqfq(two):
            touch(one, group)
            touch(two, group)
            assert flows(one)["/tenant"]["weight"] == 700
            assert flows(two)["/tenant"]["weight"] == 50


def test_io_stat_speaks_of_groups_that_did_io() -> None:
    with NullBlk() as disk, tenants(busy=300, idle=100) as (busy, idle), mqfq(disk):
        touch(disk, busy)
        stat = busy.io_stat(disk)
        assert stat["mqfair.weight"] == 300
        assert stat["mqfair.ios"] == stat["rios"] == 8
        assert stat["mqfair.bytes"] == stat["rbytes"] == 8 * 4096
        assert {"mqfair.share_ppm", "mqfair.wait_us"} <= stat.keys()
        assert "mqfair" not in read(idle.path / "io.stat")
        idle.weight = f"{disk.number} 200"
        assert "mqfair" not in read(idle.path / "io.stat")
    assert "mqfair" not in read("/sys/fs/cgroup/io.stat")


TUNABLES = {
    "depth": (["1", "65536", "7"], ["0", "-1", "65537", "4294967297", "abc", "", "5 6"]),
    "threshold_kb": (["0", "1048576", "24"], ["-1", "1048577", "4294967296", "abc", "", "1 2"]),
    "isolation": (["0", "90", "6"], ["91", "-1", "4294967296", "abc", "", "1 2"]),
    "cost": (
        ["iops", "learned", "linear 0 0 0 0", "linear 4096 1024 9000 2048", "bytes"],
        [
            *("", "byte", "bytes iops", "0", "linear 1 2 3", "linear 1 2 3 4 5"),
            *("linear -1 5 1 1", "linear 5 -1 1 1", "linear a b c d", "linear 1 67108865 1 1"),
            *("linear 4294967297 0 0 0", "linear 0 0 0 4294967297"),
            *("linear 1 1 67108865 1", "linear 1 1 1 67108865", "linear1 2 3 4"),
        ],
    ),
}

# Good values, of which the last one stays, and bad values.
BUDGET_TUNABLES = {
    "kyber-fair": {
        "period_ms": (["1", "4000", "100"], ["0", "4001"]),
        "work_conserving": (["0", "1"], ["2"]),
        "predict": (["per-flow", "total"], ["flow", "total per-flow", "0"]),
        "read_lat_us": (["0", "10000000", "2000"], ["-1", "10000001"]),
        "write_lat_us": (["0", "10000000", "10000"], ["-1", "10000001"]),
    },
    "wdt": {
        "interval_ms": (["1", "4000", "100"], ["0", "4001"]),
        "history": (["1", "64", "16"], ["0", "65"]),
        "total": (["meet", "sum"], ["all", "sum meet", "1"]),
        "work_conserving": (["0", "1"], ["2"]),
        "caps_mbps": (["1000000", "0"], ["1000001"]),
        "single_lock": (["1", "0"], ["2"]),
    },
}


def take_and_refuse(disk: Disk, name: str, good: list[str], bad: list[str]) -> None:
    for value in good:
        disk.set_tunable(name, value)
        assert disk.tunable(name) == value
    for value in bad:
        got = write_fails(disk.sysfs / "queue/iosched" / name, value + "\n")
        assert got == errno.EINVAL, f"{name}: {value!r}: {errno.errorcode[got]}"
        assert disk.tunable(name) == good[-1], f"{value!r} made it {disk.tunable(name)!r}"


@cases(*TUNABLES)
def test_tunable(name: str) -> None:
    with NullBlk(hw_queue_depth=32) as disk, mqfq(disk):
        take_and_refuse(disk, name, *TUNABLES[name])


@cases(*BUDGET_TUNABLES)
def test_tunables_of(scheduler: str) -> None:
    with NullBlk(hw_queue_depth=32) as disk, scheduled(disk, scheduler):
        for name, (good, bad) in BUDGET_TUNABLES[scheduler].items():
            take_and_refuse(disk, name, good, bad)


def test_auto_tunables_show_the_chosen_number() -> None:
    with NullBlk(hw_queue_depth=32, submit_queues=1) as disk, mqfq(disk):
        assert disk.tunable("depth") == "16 auto"
        assert disk.tunable("threshold_kb") == "16 auto"
        assert disk.tunable("isolation") == "6 auto"
        disk.set_tunable("depth", 8)
        assert (disk.tunable("depth"), disk.tunable("threshold_kb")) == ("8", "4 auto")
        disk.set_tunable("threshold_kb", 100)
        disk.set_tunable("depth", "auto")
        assert (disk.tunable("depth"), disk.tunable("threshold_kb")) == ("16 auto", "100")
        write_fails(disk.sysfs / "queue/iosched/depth", "0")
        assert disk.tunable("depth") == "16 auto"


def test_automatic_depth_takes_a_start() -> None:
    """N is lowered to the tags of the device, and another tunable does not touch D."""
    with NullBlk(hw_queue_depth=32, submit_queues=1) as disk, mqfq(disk):
        for start, depth in (("8", "8"), ("64", "32"), ("1", "1"), ("16", "16")):
            disk.set_tunable("depth", f"{start} auto")
            assert disk.tunable("depth") == f"{depth} auto"
        disk.set_tunable("threshold_kb", 100)
        for bad in ("0 auto", "65537 auto", "-8 auto", "8auto", "8 auto 8", "auto 8", "x auto"):
            got = write_fails(disk.sysfs / "queue/iosched/depth", bad)
            assert got == errno.EINVAL, f"{bad!r}: {errno.errorcode[got]}"
            assert disk.tunable("depth") == "16 auto", bad
        assert write_fails(disk.sysfs / "queue/iosched/threshold_kb", "8 auto") == errno.EINVAL
        assert disk.tunable("threshold_kb") == "100"
        disk.set_tunable("depth", 8)
        disk.set_tunable("depth", "4 auto")
        assert disk.tunable("depth") == "4 auto"


def test_linear_alone_takes_the_coefficients_in_force() -> None:
    with NullBlk() as disk, mqfq(disk):
        disk.set_tunable("cost", "linear")
        assert disk.tunable("cost") == "linear 0 1024 0 1024"
        disk.set_tunable("cost", "linear 1 2 3 4")
        disk.set_tunable("cost", "bytes")
        disk.set_tunable("cost", "linear")
        assert disk.tunable("cost") == "linear 1 2 3 4"


USER_TUNABLES = {
    "mqfq": {"depth", "threshold_kb", "cost", "isolation"},
    "ifq": {"depth", "window_ms", "floor_kb", "isolation"},
    "kyber-fair": {"period_ms", "read_lat_us", "write_lat_us", "isolation"},
    "wdt": {"depth", "interval_ms", "cost", "isolation"},
    "hwabc": {"depth", "budget_ms", "cost", "isolation"},
}


def test_a_user_meets_no_research_tunable() -> None:
    # The drives of another file of this guest may have loaded it.
    if Path("/sys/module/mqfair_ssd").exists():
        rmmod("mqfair_ssd")
    rmmod("mqfair")
    try:
        modprobe("mqfair", research=0)
        with NullBlk() as disk:
            for scheduler, names in USER_TUNABLES.items():
                with scheduled(disk, scheduler):
                    found = {path.name for path in (disk.sysfs / "queue/iosched").iterdir()}
                    assert found == names, scheduler
    finally:
        rmmod("mqfair")
        modprobe("mqfair")


def test_tunables_are_there_with_the_scheduler_alone() -> None:
    with NullBlk() as disk:
        with mqfq(disk):
            names = {path.name for path in (disk.sysfs / "queue/iosched").iterdir()}
            assert names == set(TUNABLES)
            write(disk.sysfs / "queue/iosched/depth", 5)
        assert not (disk.sysfs / "queue/iosched/depth").exists()
