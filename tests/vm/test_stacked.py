# SPDX-License-Identifier: GPL-2.0
"""Weights below device-mapper and md: the disk under it has the scheduler.

A thread of dm-crypt issues all writes, in order of arrival, unless the disk has no_write_workqueue.
With weights of 8 to 1 it gave 1.46 to 1. `mqfair check` warns of it. The time is counted, as in
test_tags.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from fairlib import COUNTED_GUEST, EIGHT_SLOTS, TAGS, Load, check_ratio, scheduled, tenants
from guestlib import Disk, NullBlk, cases, run, slow, write

guest = COUNTED_GUEST

DEVICE = {**EIGHT_SLOTS, "memory_backed": 1, "size": 64}
SECTORS = DEVICE["size"] << 11
GREEDY = {"bs": "4k", "norandommap": 1, "ioengine": "psync", "numjobs": 24}
HEAVY, LIGHT = 800, 100
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
