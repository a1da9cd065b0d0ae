# SPDX-License-Identifier: GPL-2.0
"""Latency goals: io.mqfair.latency with the values it refuses, inheritance, and io.stat."""

from __future__ import annotations

import contextlib
import errno
import threading

from fairlib import SMALL_GUEST, flows, mqfq
from guestlib import CGROUP_ROOT, Cgroup, Disk, NullBlk, fio, read, wait_until, write, write_fails

guest = SMALL_GUEST

NO_DEVICE = "240:77"
FILE = "io.mqfair.latency"
FIGURES = {"short_ms", "slowdown_percent", "p50_us", "p99_us", "part_ppm", "cost_inside"}


def goal(group: Cgroup) -> str:
    return read(group.path / FILE)


def set_goal(group: Cgroup, text: str) -> None:
    write(group.path / FILE, text)


def words(group: Cgroup, disk: Disk) -> dict[str, str]:
    """The line of @disk in the group's file, as key and value."""
    for line in goal(group).splitlines():
        number, *pairs = line.split()
        if number == disk.number:
            return dict(pair.split("=") for pair in pairs)
    return {}


def slow_disk() -> NullBlk:
    """A disk that completes each request after 1 ms."""
    return NullBlk(irqmode=2, completion_nsec=1_000_000)


def seconds_of_reads(disk: Disk, group: Cgroup) -> None:
    """Reads for more than a second, so that a half of the histogram ends."""
    fio(disk, group, rw="randread", iodepth=4, time_based=1, runtime=3)


def test_each_way_to_write_a_goal() -> None:
    with NullBlk() as disk, Cgroup("tenant") as group:
        assert goal(group) == ""
        for text, then in [
            ("target=500us", "target=500us pct=99"),
            ("target=500us pct=99", "target=500us pct=99"),
            ("pct=99.9 target=2ms", "target=2ms pct=99.9"),
            ("target=1500us  pct=50\n", "target=1500us pct=50"),
            ("\ttarget=1000ns pct=1", "target=1us pct=1"),
            ("target=1000000us pct=1.0", "target=1s pct=1"),
            ("target=16s", "target=16s pct=99"),
            ("target=1234567ns", "target=1234567ns pct=99"),
        ]:
            set_goal(group, f"{disk.number} {text}")
            assert goal(group) == f"{disk.number} {then}", f"{text!r} gave {goal(group)!r}"
        for _ in range(2):
            set_goal(group, f"{disk.number} target=none")
            assert goal(group) == ""
        set_goal(group, f"{NO_DEVICE} target=none")
        assert goal(group) == ""


def test_bad_goals_change_nothing() -> None:
    with NullBlk() as disk, Cgroup("tenant") as group:
        set_goal(group, f"{disk.number} target=500us pct=95")
        before = goal(group)
        bad_targets = ["", "0us", "500", "us", "-5us", "5 us", "1.5ms", "0x5us", "5m", "5usx"]
        bad_targets += ["999ns", "17s", "16000001us", "99999999999999999999s", "18446744073710s"]
        bad_targets += ["None", "max"]
        bad_parts = ["", "0", "0.9", "100", "99.99", "99.", ".9", "-5", "+5", "5x", "0x5", "99.9.9"]
        refused = {
            "\n": errno.EINVAL,
            disk.number: errno.EINVAL,
            "target=5us": errno.EINVAL,
            "default target=5us": errno.EINVAL,
            f"{disk.number} 500us": errno.EINVAL,
            f"{disk.number} pct=99": errno.EINVAL,
            f"{disk.number} target=5us target=6us": errno.EINVAL,
            f"{disk.number} target=5us pct=9 pct=9": errno.EINVAL,
            f"{disk.number} target=5us more": errno.EINVAL,
            f"{disk.number}x target=5us": errno.EINVAL,
            f"{NO_DEVICE} target=5us": errno.ENODEV,
            f"5000:{disk.number.split(':')[1]} target=5us": errno.ENODEV,
            **{f"{disk.number} target={bad}": errno.EINVAL for bad in bad_targets},
            **{f"{disk.number} target=7us pct={bad}": errno.EINVAL for bad in bad_parts},
        }
        for text, expected in refused.items():
            got = write_fails(group.path / FILE, text)
            assert got == expected, f"{text!r}: {errno.errorcode[got]}"
            assert goal(group) == before, f"{text!r} made it {goal(group)!r}"


def test_the_root_has_no_goal() -> None:
    assert not (CGROUP_ROOT / FILE).exists()


def test_goals_outlive_schedulers() -> None:
    """A goal is set before the scheduler, and changed under none."""
    with NullBlk() as disk, Cgroup("tenant") as group:
        set_goal(group, f"{disk.number} target=10s")
        for target in ("10s", "9s"):
            with mqfq(disk):
                seconds_of_reads(disk, group)
                found = words(group, disk)
                assert (found["target"], found["met"]) == (target, "1"), found
                assert found["achieved"].endswith("us") and found["loss"].endswith("%"), found
            assert goal(group) == f"{disk.number} target={target} pct=99"
            set_goal(group, f"{disk.number} target=9s")


def test_a_goal_that_cannot_be_met_is_reported() -> None:
    with slow_disk() as disk, Cgroup("tenant") as group, mqfq(disk):
        set_goal(group, f"{disk.number} target=1us")
        seconds_of_reads(disk, group)
        found = words(group, disk)
        assert found["met"] == "0", found
        assert int(found["achieved"].removesuffix("us")) >= 1000, found


def test_goals_are_inherited() -> None:
    """A group without a goal has that of its nearest ancestor; its own counts alone."""
    with (
        NullBlk() as disk,
        Cgroup("top") as top,
        Cgroup("top/mid") as mid,
        Cgroup("top/mid/leaf") as leaf,
    ):

        def targets() -> list[str | None]:
            return [words(group, disk).get("target") for group in (top, mid, leaf)]

        set_goal(top, f"{disk.number} target=5s")
        assert targets() == ["5s", "5s", "5s"]
        assert "inherited" not in words(top, disk)
        assert words(leaf, disk)["inherited"] == "1"
        with mqfq(disk):
            seconds_of_reads(disk, leaf)
            assert words(leaf, disk)["met"] == "1"
            # The file shows the goal of the flow: it follows while the flow exists.
            set_goal(mid, f"{disk.number} target=1us pct=50")
            assert targets() == ["5s", "1us", "1us"]
            assert flows(disk)["/top/mid/leaf"]["goal_us"] == 1
            set_goal(leaf, f"{disk.number} target=8s")
            assert targets() == ["5s", "1us", "8s"]
            assert "inherited" not in words(leaf, disk)
            assert flows(disk)["/top/mid/leaf"]["goal_us"] == 8_000_000
            set_goal(leaf, f"{disk.number} target=none")
            set_goal(mid, f"{disk.number} target=none")
            assert targets() == ["5s", "5s", "5s"]
            assert flows(disk)["/top/mid/leaf"]["goal_us"] == 5_000_000
            set_goal(top, f"{disk.number} target=none")
            assert targets() == [None, None, None]
            assert flows(disk)["/top/mid/leaf"]["goal_us"] == 0


def test_a_new_group_has_its_ancestors_goal() -> None:
    with NullBlk() as disk, Cgroup("top") as top, mqfq(disk):
        set_goal(top, f"{disk.number} target=3s")
        with Cgroup("top/new") as new:
            fio(disk, new, number_ios=8, iodepth=1)
            assert flows(disk)["/top/new"]["goal_us"] == 3_000_000


def test_no_group_keeps_an_old_setting() -> None:
    """Settings of two levels change while groups below do their first I/O."""

    def write_often(group: Cgroup, last: str) -> None:
        for n in range(300):
            set_goal(group, f"{disk.number} target={1 + n % 3}s")
            group.weight = 1 + n
        set_goal(group, f"{disk.number} target={last}")

    def add_group(name: str) -> Cgroup:
        group = stack.enter_context(Cgroup(name))
        fio(disk, group, number_ios=8, iodepth=1)
        return group

    with NullBlk() as disk, contextlib.ExitStack() as stack, mqfq(disk):
        top, mid = add_group("top"), add_group("top/mid")
        writers = [
            threading.Thread(target=write_often, args=args) for args in ((top, "7s"), (mid, "none"))
        ]
        for writer in writers:
            writer.start()
        for n in range(6):
            add_group(f"top/mid/leaf{n}")
        for writer in writers:
            writer.join()
        found = {path: flow for path, flow in flows(disk).items() if path.startswith("/top")}
        assert len(found) == 8, found
        assert {flow["goal_us"] for flow in found.values()} == {7_000_000}, found
        assert {found[path]["weight"] for path in ("/top", "/top/mid")} == {300}, found


def test_io_stat_has_latencies() -> None:
    with slow_disk() as disk, Cgroup("tenant") as group, mqfq(disk):
        seconds_of_reads(disk, group)
        stat = group.io_stat(disk)
        assert {f"mqfair.{name}" for name in FIGURES} <= stat.keys(), stat
        assert stat["mqfair.p50_us"] >= 1000
        assert stat["mqfair.p99_us"] >= stat["mqfair.p50_us"]
        found = flows(disk)["/tenant"]
        assert found.keys() >= FIGURES
        # Nothing is in the device, and after the grace period the flow uses nothing.
        assert stat["mqfair.cost_inside"] == 0
        wait_until(lambda: flows(disk)["/tenant"]["part_ppm"] == 0, "the flow is idle")
