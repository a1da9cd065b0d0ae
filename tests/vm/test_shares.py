# SPDX-License-Identifier: GPL-2.0
"""A busy device is shared by weight, and every waiting request is woken.

While fio stands still, its tenant gets less than its share, so these tests run in counted time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping

from fairlib import (
    COUNTED_PAIR,
    Load,
    check_little_in_vain,
    check_settled,
    flows,
    mqfq,
    own_values,
    scheduled,
    served_bytes,
    state,
    tenants,
)
from guestlib import (
    MIB,
    Cgroup,
    Disk,
    Fio,
    NullBlk,
    cases,
    every_kernel,
    fio,
    mean_read_ms,
    of_each_scheduler,
    read,
    run,
    slow_for,
    wait_until,
)
from sharing import (
    DEMAND,
    PAGE,
    SLOTS,
    TAGS,
    TWO_QUEUES,
    WEIGHTS,
    check_shares,
    on_a_busy_device,
    shares,
)
from ssdlib import Ssd

guest = COUNTED_PAIR

ONE_QUEUE = {"submit_queues": 1, "hw_queue_depth": SLOTS}
_WOKEN_REQUESTS = 100
# The least rate of a tenant with one request at a time beside others, relative to its rate alone.
LIGHT_LEAST = 0.6
SHARED_TAGS = {"submit_queues": 2, "hw_queue_depth": SLOTS, "shared_tag_bitmap": 1}


@every_kernel
@of_each_scheduler
@slow_for("ifq", "wdt", "hwabc", "drr", "sfq")
def test_by_weight(scheduler: str) -> None:
    on_a_busy_device(lambda disk: share_by_weight(disk, scheduler, TAGS), **TWO_QUEUES)


# By name: the device, its scheduler tags (twice the slots, or many), and the load.
OTHERS = {
    "one queue, few tags": (ONE_QUEUE, 2 * SLOTS, "randread"),
    "two queues, few tags": (TWO_QUEUES, 2 * SLOTS, "randread"),
    "shared tags": (SHARED_TAGS, TAGS, "randrw"),
}


@cases(*OTHERS)
@slow_for("two queues, few tags", "shared tags")
def test_by_weight_on_other_devices(name: str) -> None:
    device, tags, rw = OTHERS[name]
    on_a_busy_device(lambda disk: share_by_weight(disk, "mqfq", tags, rw=rw), **device)


@contextlib.contextmanager
def sharers(
    disk: Disk, scheduler: str, weights: Mapping[str, int], tags: int
) -> Iterator[list[Cgroup]]:
    """Tenants of @weights on @disk under @scheduler, with all slots of the device."""
    with tenants(**weights) as groups, scheduled(disk, scheduler):
        if "depth" in own_values(disk):
            disk.set_tunable("depth", SLOTS)
        disk.set_queue("nr_requests", tags)
        yield groups


def share_by_weight(disk: Disk, scheduler: str, tags: int, **options: object) -> None:
    """Checks the shares of four tenants under @scheduler."""
    with sharers(disk, scheduler, WEIGHTS, tags) as groups:
        with Load(disk, groups, **{**DEMAND, **options}):
            got = shares(disk, groups)
            print(state(disk), flows(disk))
        check_settled(disk)
        # If processors share a hardware queue, one may take the request another was promised.
        if read(disk.sysfs / "mq/0/cpu_list") == "0":
            check_little_in_vain(disk)
        check_shares(got, WEIGHTS, scheduler)


# By name: the device, and its scheduler tags.
QUEUES_BEHIND_OTHERS = {
    "few driver tags": ({"submit_queues": 1, "hw_queue_depth": 4}, 32),
    "as many driver tags as others": ({"submit_queues": 1, "hw_queue_depth": 32}, 64),
    "two hardware queues": ({"submit_queues": 2, "hw_queue_depth": 4}, 32),
}


@cases("mqfq", "ifq", "kyber-fair", "wdt", "hwabc")
@slow_for("ifq", "kyber-fair", "wdt", "hwabc")
def test_discards_by_weight(scheduler: str) -> None:
    """Each tenant discards two partitions of its own, because the kernel lets one task at a time
    discard a block device. While one discard ends, the other has requests waiting. The kernel does
    not count the parts of a discard in io.stat, so the scheduler's count is used."""
    device = {**ONE_QUEUE, "memory_backed": 1, "discard": 1, "size": 192}
    weights = {"light": 100, "heavy": 300}
    load = {"rw": "trim", "bs": 8 * MIB, "iodepth": 1, "thread": 1}

    def served(group: Cgroup, disk: Disk) -> int:
        return PAGE * flows(disk).get(f"/{group.name}", {"ios": 0})["ios"]

    def share(disk: Disk) -> None:
        disk.set_queue("discard_max_bytes", PAGE)
        with sharers(disk, scheduler, weights, TAGS) as groups:
            jobs = []
            try:
                for n, group in enumerate([*groups, *groups]):
                    run("addpart", disk.path, n + 1, n * 48 * MIB // 512, 48 * MIB // 512)
                    part = disk.path.with_name(f"{disk.name}p{n + 1}")
                    jobs.append(Fio(part, group, runtime=600, **load))
                wait_until(lambda: all(served(group, disk) for group in groups), "both discard")
                got = shares(disk, groups, served)
            finally:
                for job in jobs:
                    job.stop()
            check_shares(got, weights, scheduler)

    on_a_busy_device(share, **device)


@cases(*QUEUES_BEHIND_OTHERS)
@slow_for("few driver tags", "two hardware queues")
def test_queues_behind_others_are_not_forgotten(name: str) -> None:
    """A queue that was woken waits for longer than the watchdog, because another queue of its
    hardware queue is first, or because the drive has no tag for it."""
    device, tags = QUEUES_BEHIND_OTHERS[name]
    with (
        NullBlk(irqmode=2, completion_nsec=1_200_000_000, **device) as disk,
        tenants(light=100, heavy=1000) as groups,
        mqfq(disk),
    ):
        disk.set_queue("nr_requests", tags)
        with Load(disk, groups, numjobs=4, iodepth=tags // 8, rw="randread", bs="4k"):
            time.sleep(12)


def test_nested_weights_before_and_after_a_tenant_ends() -> None:
    def measure(disk: NullBlk) -> None:
        with (
            Cgroup("prod", 900),
            Cgroup("prod/db", 500) as db,
            Cgroup("prod/web", 500) as web,
            Cgroup("batch", 100) as batch,
            mqfq(disk),
            Load(disk, [db, batch], **DEMAND),
        ):
            with Load(disk, [web], **DEMAND):
                got = shares(disk, [db, web, batch])
                check_shares(got, {"prod/db": 45, "prod/web": 45, "batch": 10})
            got = shares(disk, [db, batch])
            check_shares(got, {"prod/db": 90, "batch": 10})

    on_a_busy_device(measure, **SHARED_TAGS)


def test_changed_weights_hold_within_a_second() -> None:
    def measure(disk: NullBlk) -> None:
        with tenants(a=100, b=1000) as (a, b), mqfq(disk), Load(disk, [a, b], **DEMAND):
            a.weight, b.weight = 10000, 1
            a.weight, b.weight = 300, 100
            check_shares(shares(disk, [a, b]), {"a": 300, "b": 100})
            b.weight = f"{disk.number} 900"
            check_shares(shares(disk, [a, b]), {"a": 300, "b": 900})

    on_a_busy_device(measure, **SHARED_TAGS)


def test_a_tenant_gets_no_credit_for_being_idle() -> None:
    """In each 200 ms after its return a tenant gets at most its share plus T + D requests."""

    def measure(disk: NullBlk) -> None:
        with (
            tenants(stays=500, comes=500) as (stays, comes),
            mqfq(disk),
            Load(disk, [stays, comes], **DEMAND) as load,
        ):
            shares(disk, [stays, comes])
            bound = int(disk.tunable("threshold_kb").split()[0]) * 1024 + SLOTS * PAGE
            os.kill(load.jobs[1].process.pid, signal.SIGSTOP)
            time.sleep(5.0)
            os.kill(load.jobs[1].process.pid, signal.SIGCONT)
            for _ in range(10):
                # Its own bytes are read within the interval of the other's. So a processor that
                # stops in between adds to the other's.
                others, owns = [served_bytes(stays, disk)], [served_bytes(comes, disk)]
                time.sleep(0.2)
                owns.append(served_bytes(comes, disk))
                others.append(served_bytes(stays, disk))
                own, other = owns[1] - owns[0], others[1] - others[0]
                print(f"{own} of {own + other}")
                assert own <= (own + other) / 2 + bound, f"{own} of {own + other}, bound {bound}"

    on_a_busy_device(measure, **SHARED_TAGS)


LIGHT = {"rw": "randread", "iodepth": 1, "number_ios": 60}


def test_a_light_tenant_beside_three_heavy_ones() -> None:
    """A request of the light tenant waits for the device, and only shortly for other requests."""

    def measure(disk: NullBlk) -> None:
        weights = {"light": 100, "one": 100, "two": 100, "three": 100}
        with tenants(**weights) as (light, *heavy), mqfq(disk):
            alone = mean_read_ms(fio(disk, light, **LIGHT))
            with Load(disk, heavy, **DEMAND):
                beside = mean_read_ms(fio(disk, light, **LIGHT))
                shares(disk, heavy, requests=300)
            print(f"{alone:.1f} ms alone, {beside:.1f} ms beside three")
            assert alone / beside >= LIGHT_LEAST, f"{alone / beside:.2f} of its rate alone"

    on_a_busy_device(measure, **SHARED_TAGS)


@cases((1, 0), (1, 4), (2, "auto"))
def test_a_waiting_request_is_woken(depth: int, threshold_kb: object) -> None:
    """With one request per job, no other request of the job would wake a forgotten one.

    A forgotten request waits until the end.
    """
    with (
        NullBlk(irqmode=2, completion_nsec=1_000_000, hw_queue_depth=16, submit_queues=2) as disk,
        tenants(a=100, b=200, c=1000) as groups,
        mqfq(disk, depth=depth, threshold_kb=threshold_kb),
    ):
        with Load(disk, groups, iodepth=1, numjobs=2) as load:
            load.goes_on(_WOKEN_REQUESTS)
        check_little_in_vain(disk)
        for result in load.results:
            longest = max(job["read"]["clat_ns"]["max"] for job in result["jobs"])
            assert longest < 1e9, f"a request took {longest / 1e9:.1f} s"


def test_a_virtual_ssd_is_shared_by_weight() -> None:
    full = {"fill": 100, "fill_pattern": "sequential"}
    with (
        Ssd(model="p4500", size_mb=256, time_scale=400, queues=2, hw_depth=SLOTS, **full) as drive,
        tenants(**WEIGHTS) as groups,
        mqfq(drive, depth=SLOTS),
    ):
        drive.set_queue("nr_requests", TAGS)
        with Load(drive, groups, **DEMAND):
            got = shares(drive, groups)
        check_shares(got, WEIGHTS)
