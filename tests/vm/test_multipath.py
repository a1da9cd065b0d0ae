# SPDX-License-Identifier: GPL-2.0
"""NVMe multipath: the head of several paths takes no scheduler, and its paths are hidden disks.

A weight or goal for the head's number counts on each path. The time is counted, as in
test_tags.py.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from fairlib import COUNTED_GUEST, Load, check_settled, flows, mqfair, state, tenants
from guestlib import PATIENCE_S, Cgroup, Disk, NullBlk, cases, every_kernel, read, slow_for
from nvmet import Controller, connected

guest = COUNTED_GUEST

# Each path sends four requests at most, so all wait in its scheduler and none in the drive.
DEPTH = 4
DRIVE = {"irqmode": 2, "completion_nsec": 8_000_000, "submit_queues": 1, "hw_queue_depth": 16}
GREEDY = {"rw": "randread", "bs": "4k", "norandommap": 1, "ioengine": "libaio", "iodepth": 48}
HEAVY, LIGHT = 900, 100
DUE = LIGHT / (HEAVY + LIGHT)
POINTS = 0.01
REQUESTS = 1500
# A path serves ten requests between two looks.
LOOK_S = 0.02
BACKLOG = 10
GOAL = "16s"


def served(group: Cgroup, paths: list[Disk]) -> int:
    """The requests of @group on all @paths; io.stat has only the head's own count."""
    found = (flows(path).get(f"/{group.name}", {}) for path in paths)
    return sum(flow.get("ios", 0) for flow in found)


def part(group: Cgroup, groups: list[Cgroup], paths: list[Disk]) -> float:
    """The part of @group in REQUESTS that @paths serve while all @groups wait there.

    The head chooses a path without regard to cgroups, so for a while a cgroup may have few requests
    at a path, and is due less there. A time between two looks counts for a path if each of @groups
    had BACKLOG requests in its scheduler at both.
    """
    done = {one.name: 0 for one in groups}
    looks = [_look(path, groups) for path in paths]
    deadline = time.monotonic() + PATIENCE_S
    left_out = 0
    while sum(done.values()) < REQUESTS:
        assert time.monotonic() < deadline, f"{done}, {left_out} looks left out"
        time.sleep(LOOK_S)
        before, looks = looks, [_look(path, groups) for path in paths]
        for old, new in zip(before, looks, strict=True):
            if any(one["queued"] < BACKLOG for one in (*old.values(), *new.values())):
                left_out += 1
                continue
            for name in done:
                done[name] += new[name]["ios"] - old[name]["ios"]
    print(done, f"{left_out} looks left out")
    return done[group.name] / sum(done.values())


def _look(path: Disk, groups: list[Cgroup]) -> dict[str, dict[str, int]]:
    found = flows(path)
    nothing = {"ios": 0, "queued": 0}
    return {one.name: found.get(f"/{one.name}", nothing) for one in groups}


def check_part(light: Cgroup, groups: list[Cgroup], paths: list[Disk]) -> None:
    found = part(light, groups, paths)
    assert abs(found - DUE) <= POINTS, f"{found:.1%} of all, with {DUE:.0%} due"


@every_kernel
@slow_for(1, 3)
@cases(1, 2, 3)
def test_the_weight_of_the_head_counts_on_each_path(count: int) -> None:
    """The cgroups have their weights by the head's number alone."""
    with (
        NullBlk(**DRIVE) as drive,
        tenants(heavy=100, light=100) as groups,
        connected(drive, count) as controllers,
    ):
        heavy, light = groups
        head = controllers[0].head
        paths = [one.path for one in controllers]
        mqfair("enable", head.name, "--depth", str(DEPTH))
        mqfair("weight", "heavy", head.name, str(HEAVY))
        assert f"{head.number} {HEAVY}" in heavy.weight
        with Load(head, groups, **GREEDY):
            check_part(light, groups, paths)
            devices = json.loads(mqfair("status", head.name, "--json"))["devices"]
            shown = {one["device"]: one["cgroups"] for one in devices}
        assert sorted(shown) == sorted(path.name for path in paths)
        for rows in shown.values():
            found = {row["cgroup"]: row["ios"] for row in rows}
            assert found["heavy"] > found["light"] > 0, rows
        for path in paths:
            check_settled(path)


@every_kernel
def test_a_goal_of_the_head_counts_on_each_path() -> None:
    """Its line has the worst figures of the paths, once."""
    with (
        NullBlk(**DRIVE) as drive,
        tenants(heavy=HEAVY, light=LIGHT) as groups,
        connected(drive, 2) as controllers,
    ):
        head = controllers[0].head
        mqfair("enable", head.name, "--depth", str(DEPTH))
        mqfair("latency", "light", head.name, GOAL)
        with Load(head, groups, **GREEDY) as load:
            load.goes_on(REQUESTS // 10)
            (line,) = read(groups[1].path / "io.mqfair.latency").splitlines()
            for one in controllers:
                assert "goal_us=16000000" in one.path.debugfs("sched/flows")
        assert line.startswith(f"{head.number} target={GOAL}") and line.count("achieved=") == 1


@every_kernel
def test_a_path_that_goes_and_returns_has_the_weights() -> None:
    """The other path goes on alone. The path has its scheduler again by `mqfair follow`."""
    conf = Path("/run/multipath.conf")
    with (
        NullBlk(**DRIVE) as drive,
        tenants(heavy=HEAVY, light=LIGHT) as groups,
        connected(drive, 2) as controllers,
    ):
        first, second = controllers
        head = first.head
        conf.write_text(
            f'[[device]]\nmatch = "{head.name}"\nscheduler = "mqfq"\n'
            f'tunables = {{ depth = "{DEPTH}" }}\n'
        )
        keep = ("follow", "--once", "--config", str(conf))
        print(mqfair(*keep))
        with Load(head, groups, **GREEDY):
            check_part(groups[1], groups, [first.path, second.path])
            second.disconnect()
            check_part(groups[1], groups, [first.path])
            returned = Controller(1)
            assert returned.path.scheduler != "mqfq"
            said = mqfair(*keep)
            assert returned.path.name in said and returned.path.scheduler == "mqfq", said
            check_part(groups[1], groups, [first.path, returned.path])
            assert served(groups[1], [returned.path]) > 0
            returned.disconnect()
        assert state(first.path)["watchdog"] == 0
        conf.unlink()
