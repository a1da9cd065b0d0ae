# SPDX-License-Identifier: GPL-2.0
"""A device that is the limit is shared by weight; whoever waits is woken."""

from __future__ import annotations

import os
import signal
import time

from fairlib import SMALL_GUEST, Load, flows, mqfq, served_bytes, state, tenants
from guestlib import Cgroup, NullBlk, cases, time_limit
from sharing import DEMAND, PAGE, SLOTS, TAGS, WEIGHTS, check_shares, on_a_busy_device, shares

guest = SMALL_GUEST

ONE_QUEUE = {"submit_queues": 1, "hw_queue_depth": SLOTS}
TWO_QUEUES = {"submit_queues": 2, "hw_queue_depth": SLOTS // 2}
SHARED_TAGS = {"submit_queues": 2, "hw_queue_depth": SLOTS, "shared_tag_bitmap": 1}


# By name: the device, its scheduler tags (no more than twice the slots, or plenty), the load.
BUSY = {
    "one queue, few tags": (ONE_QUEUE, 2 * SLOTS, "randread"),
    "two queues": (TWO_QUEUES, TAGS, "randread"),
    "shared tags": (SHARED_TAGS, TAGS, "randrw"),
}


@cases(*BUSY)
@time_limit(120)
def test_by_weight(name: str) -> None:
    device, tags, rw = BUSY[name]

    def measure(disk: NullBlk, completion_ns: int) -> None:
        with tenants(**WEIGHTS) as groups, mqfq(disk, depth=SLOTS):
            disk.set_queue("nr_requests", tags)
            with Load(disk, groups, **{**DEMAND, "rw": rw}):
                got = shares(disk, groups, completion_ns)
                print(state(disk), flows(disk))
            check_shares(got, WEIGHTS)
            # One CPU to each hardware queue: nobody else can take what it was promised. Only one
            # that is blocked has to be asked by the core, in vain perhaps.
            found = state(disk)
            assert device["submit_queues"] == 1 or found["null_dispatches"] <= found["blocks"]

    on_a_busy_device(measure, **device)


@time_limit(120)
def test_nested_and_what_a_leaver_leaves() -> None:
    def measure(disk: NullBlk, completion_ns: int) -> None:
        with (
            Cgroup("prod", 900),
            Cgroup("prod/db", 500) as db,
            Cgroup("prod/web", 500) as web,
            Cgroup("batch", 100) as batch,
            mqfq(disk),
            Load(disk, [db, batch], **DEMAND),
        ):
            with Load(disk, [web], **DEMAND):
                got = shares(disk, [db, web, batch], completion_ns)
                check_shares(got, {"prod/db": 45, "prod/web": 45, "batch": 10})
            got = shares(disk, [db, batch], completion_ns)
            check_shares(got, {"prod/db": 90, "batch": 10})

    on_a_busy_device(measure, **SHARED_TAGS)


@time_limit(120)
def test_changed_weights_hold_within_a_second() -> None:
    def measure(disk: NullBlk, completion_ns: int) -> None:
        with tenants(a=100, b=1000) as (a, b), mqfq(disk), Load(disk, [a, b], **DEMAND):
            a.weight, b.weight = 10000, 1
            a.weight, b.weight = 300, 100
            check_shares(shares(disk, [a, b], completion_ns), {"a": 300, "b": 100})
            b.weight = f"{disk.number} 900"
            check_shares(shares(disk, [a, b], completion_ns), {"a": 300, "b": 900})

    on_a_busy_device(measure, **SHARED_TAGS)


@time_limit(120)
def test_who_was_away_claims_nothing_for_it() -> None:
    """In each 200 ms after its return a tenant gets its share and T + D requests at most."""

    def measure(disk: NullBlk, completion_ns: int) -> None:
        with (
            tenants(stays=500, comes=500) as (stays, comes),
            mqfq(disk),
            Load(disk, [stays, comes], **DEMAND) as load,
        ):
            shares(disk, [stays, comes], completion_ns)
            bound = int(disk.tunable("threshold_kb").split()[0]) * 1024 + SLOTS * PAGE
            os.kill(load.jobs[1].process.pid, signal.SIGSTOP)
            time.sleep(2.0)
            os.kill(load.jobs[1].process.pid, signal.SIGCONT)
            for _ in range(10):
                before = [served_bytes(group, disk) for group in (stays, comes)]
                time.sleep(0.2)
                after = [served_bytes(group, disk) for group in (stays, comes)]
                other, own = (now - was for was, now in zip(before, after, strict=True))
                print(f"{own} of {own + other}")
                assert own <= (own + other) / 2 + bound, f"{own} of {own + other}, bound {bound}"

    on_a_busy_device(measure, **SHARED_TAGS)


@cases((1, 0), (1, 4), (2, "auto"))
def test_who_waits_is_woken(depth: int, threshold_kb: object) -> None:
    """With one request each nobody else comes by to wake a forgotten one.

    The second is for the emulation, which can stop a processor for a tenth of one; a request
    that is forgotten waits until the end.
    """
    with (
        NullBlk(irqmode=2, completion_nsec=1_000_000, hw_queue_depth=16, submit_queues=2) as disk,
        tenants(a=100, b=200, c=1000) as groups,
        mqfq(disk, depth=depth, threshold_kb=threshold_kb),
    ):
        with Load(disk, groups, iodepth=1, numjobs=2) as load:
            time.sleep(2.0)
        for result in load.results:
            longest = max(job["read"]["clat_ns"]["max"] for job in result["jobs"])
            assert longest < 1e9, f"a request took {longest / 1e9:.1f} s"
        assert state(disk)["null_dispatches"] == 0, state(disk)
