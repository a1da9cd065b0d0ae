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
from collections.abc import Iterator
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
from guestlib import Disk, NullBlk, cases, every_kernel, run, slow, slow_for, write

guest = COUNTED_GUEST

ROOT = Path(__file__).resolve().parents[2]
DEVICE = {**EIGHT_SLOTS, "memory_backed": 1, "size": 64}
SECTORS = DEVICE["size"] << 11
GREEDY = {"bs": "4k", "norandommap": 1, "ioengine": "psync", "numjobs": 24}
HEAVY, LIGHT = 800, 100
SETTLED = 300
KEY = "00" * 64

CRYPT = f"crypt aes-xts-plain64 {KEY} 0 {{under}} 0"
TABLES = {
    "linear": "linear {under} 0",
    "crypt": CRYPT,
    "crypt without a thread for writes": f"{CRYPT} 1 no_write_workqueue",
}


@contextlib.contextmanager
def mapped(under: Disk, kind: str) -> Iterator[Disk]:
    """A device-mapper disk over @under."""
    table = f"0 {SECTORS} " + TABLES[kind].format(under=under.path)
    run("dmsetup", "create", "--noudevsync", "stacked", "--table", table)
    try:
        yield Disk("dm-0")
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "stacked")


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
        mapped(disk, kind) as top,
    ):
        disk.set_queue("nr_requests", TAGS)
        with Load(top.path, [heavy, light], device=disk, rw=way, **GREEDY):
            check_ratio(disk, heavy, light, HEAVY / LIGHT)


@contextlib.contextmanager
def multipath(paths: list[NullBlk]) -> Iterator[Disk]:
    """A disk of request-based dm-multipath that uses @paths in turn."""
    for name in ("dm-multipath", "dm-round-robin"):
        run("modprobe", name)
    each = " ".join(f"{path.path} 1" for path in paths)
    table = f"0 {SECTORS} multipath 0 0 1 1 round-robin 0 {len(paths)} 1 {each}"
    run("dmsetup", "create", "--noudevsync", "stacked", "--table", table)
    try:
        yield Disk("dm-0")
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "stacked")


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


@contextlib.contextmanager
def raid0(under: Disk) -> Iterator[Disk]:
    """An array of md with one member, which its files in sysfs assemble."""
    run("modprobe", "raid0")
    write("/sys/module/md_mod/parameters/new_array", "md_stacked")
    md = Path("/sys/block/md_stacked/md")
    try:
        for name, value in (
            ("metadata_version", "none"),
            ("level", "raid0"),
            ("raid_disks", 1),
            ("chunk_size", 65536),
            ("new_dev", under.number),
            (f"dev-{under.name}/size", SECTORS // 2),
            (f"dev-{under.name}/slot", 0),
            ("array_state", "active"),
        ):
            write(md / name, value)
        yield Disk("md_stacked")
    finally:
        write(md / "array_state", "clear")


@cases("randread", "randwrite")
@slow
def test_weights_below_md(way: str) -> None:
    with (
        NullBlk(**DEVICE) as disk,
        tenants(heavy=HEAVY, light=LIGHT) as (heavy, light),
        scheduled(disk, "mqfq"),
        raid0(disk) as top,
    ):
        disk.set_queue("nr_requests", TAGS)
        with Load(top.path, [heavy, light], device=disk, rw=way, **GREEDY):
            check_ratio(disk, heavy, light, HEAVY / LIGHT)
