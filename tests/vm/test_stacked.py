# SPDX-License-Identifier: GPL-2.0
"""Weights below device-mapper and md: the disk under it has the scheduler.

A thread of dm-crypt issues all writes, in order of arrival, unless the disk has no_write_workqueue.
With weights of 8 to 1 it gave 1.46 to 1. `mqfair check` warns of it. The time is counted, as in
test_tags.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from fairlib import (
    COUNTED_GUEST,
    EIGHT_SLOTS,
    SLOTS,
    TAGS,
    Load,
    check_ratio,
    check_settled,
    scheduled,
    tenants,
)
from guestlib import Disk, NullBlk, cases, every_kernel, run, slow, slow_for
from stacks import CRYPT, array, mapped

guest = COUNTED_GUEST

ROOT = Path(__file__).resolve().parents[2]
DEVICE = {**EIGHT_SLOTS, "memory_backed": 1, "size": 64}
SECTORS = DEVICE["size"] << 11
GREEDY = {"bs": "4k", "norandommap": 1, "ioengine": "psync", "numjobs": 24}
HEAVY, LIGHT = 800, 100
SETTLED = 300
TABLES = {
    "linear": "linear {under} 0",
    "crypt": CRYPT,
    "crypt without a thread for writes": f"{CRYPT} 1 no_write_workqueue",
}


@cases(
    ("linear", "randread"),
    ("linear", "randwrite"),
    ("crypt", "randread"),
    ("crypt without a thread for writes", "randwrite"),
)
@slow
def test_weights_below_device_mapper(kind: str, way: str) -> None:
    with (
        NullBlk(**DEVICE) as disk,
        tenants(heavy=HEAVY, light=LIGHT) as (heavy, light),
        scheduled(disk, "mqfq"),
        mapped(TABLES[kind].format(under=disk.path), SECTORS) as top,
    ):
        disk.set_queue("nr_requests", TAGS)
        with Load(top.path, [heavy, light], device=disk, rw=way, **GREEDY):
            check_ratio(disk, heavy, light, HEAVY / LIGHT)


def multipath(paths: list[NullBlk]) -> contextlib.AbstractContextManager[Disk]:
    """A disk of request-based dm-multipath that uses @paths in turn."""
    for name in ("dm-multipath", "dm-round-robin"):
        run("modprobe", name)
    each = " ".join(f"{path.path} 1" for path in paths)
    return mapped(f"multipath 0 0 1 1 round-robin 0 {len(paths)} 1 {each}", SECTORS)


@every_kernel
@slow_for(1, 3)
@cases(1, 2, 3)
def test_weights_on_request_based_multipath(count: int) -> None:
    """The scheduler of the upper disk orders. `mqfair enable` has its depth begin with the slots of
    the paths, since it has 2048 slots of its own."""
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(NullBlk(f"nullb{n}", **DEVICE)) for n in range(1, count + 1)]
        heavy, light = stack.enter_context(tenants(heavy=HEAVY, light=LIGHT))
        top = stack.enter_context(multipath(paths))
        os.chdir(ROOT)
        said = run(sys.executable, "-m", "mqfair", "enable", top.name).stdout
        print(said)
        assert f"depth {SLOTS * count} auto" in said
        crowd = {**GREEDY, "numjobs": GREEDY["numjobs"] * count}
        with Load(top, [heavy, light], rw="randread", **crowd) as load:
            # An automatic depth tries greater windows at first.
            load.goes_on(SETTLED * count)
            check_ratio(top, heavy, light, HEAVY / LIGHT)
        check_settled(top)
        top.scheduler = "none"


@cases("randread", "randwrite")
@slow
def test_weights_below_md(way: str) -> None:
    with (
        NullBlk(**DEVICE) as disk,
        tenants(heavy=HEAVY, light=LIGHT) as (heavy, light),
        scheduled(disk, "mqfq"),
        array("raid0", [disk], SECTORS // 2) as top,
    ):
        disk.set_queue("nr_requests", TAGS)
        with Load(top.path, [heavy, light], device=disk, rw=way, **GREEDY):
            check_ratio(disk, heavy, light, HEAVY / LIGHT)
