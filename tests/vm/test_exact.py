# SPDX-License-Identifier: GPL-2.0
"""In counted time no processor stands still: what may happen now and then elsewhere never does."""

from __future__ import annotations

import time

from fairlib import Load, scheduled, state, tenants
from guestlib import Guest, NullBlk, cases, fio, mean_read_ms, of_each_scheduler, slow, wait_until

guest = Guest(cpus=1, memory_mb=1024, icount=True, needs_module=True)

SERVICE_NS = 1_000_000
DEVICE = {"irqmode": 2, "completion_nsec": SERVICE_NS, "submit_queues": 1, "hw_queue_depth": 16}
# One request each: nobody else comes by to wake a forgotten one.
ONE_EACH = {"iodepth": 1, "numjobs": 2}
REQUESTS = 400


@cases((1, 0), (1, 4), (2, "auto"))
@slow
def test_the_device_is_never_left_idle(depth: int, threshold_kb: object) -> None:
    """Nor is the core asked to look in vain, nor does anyone wait longer than its weight says."""
    with (
        NullBlk(**DEVICE) as disk,
        tenants(a=100, b=200, c=1000) as groups,
        scheduled(disk, "mqfq", depth=depth, threshold_kb=threshold_kb),
    ):
        with Load(disk, groups, **ONE_EACH) as load:
            began, before = time.monotonic(), load.done()
            wait_until(lambda: load.done() >= before + REQUESTS, "the requests are done")
            rate = (load.done() - before) / (time.monotonic() - began)
        longest = max(
            job["read"]["clat_ns"]["max"] for result in load.results for job in result["jobs"]
        )
        print(f"{rate:.0f} requests/s, the longest {longest / 1e6:.1f} ms")
        assert rate > 0.9 * depth * 1e9 / SERVICE_NS, f"{rate:.0f} requests/s"
        assert longest < 100 * SERVICE_NS, f"a request took {longest / 1e6:.1f} ms"
        assert state(disk)["null_dispatches"] == 0, state(disk)


@of_each_scheduler
@slow
def test_the_core_never_looks_in_vain(scheduler: str) -> None:
    """Else it looks again 3 ms later, which hides a wake-up that was lost."""
    with (
        NullBlk(**DEVICE) as disk,
        tenants(a=100, b=1000) as groups,
        scheduled(disk, scheduler),
    ):
        with Load(disk, groups, iodepth=32) as load:
            load.goes_on(REQUESTS)
        assert state(disk)["null_dispatches"] == 0, state(disk)


# The heavy ones fill it, and it ends a request every quarter of a millisecond.
LARGE = {"irqmode": 2, "completion_nsec": 16_000_000, "submit_queues": 1, "hw_queue_depth": 64}
LIGHT = {"rw": "randread", "iodepth": 1, "number_ios": 200}
HEAVY = {"iodepth": 64}
# Of its requests alone.
LIGHT_LEAST = 0.85


@slow
def test_a_light_tenant_is_not_delayed() -> None:
    """One request at a time beside three that keep 64 waiting, with equal weights."""
    weights = {"light": 100, "one": 100, "two": 100, "three": 100}
    with (
        NullBlk(**LARGE) as disk,
        tenants(**weights) as (light, *heavy),
        scheduled(disk, "mqfq"),
    ):
        alone = mean_read_ms(fio(disk, light, **LIGHT))
        with Load(disk, heavy, **HEAVY) as load:
            load.goes_on(REQUESTS)
            beside = mean_read_ms(fio(disk, light, **LIGHT))
        print(f"{alone:.2f} ms alone, {beside:.2f} ms beside three")
        assert alone / beside >= LIGHT_LEAST, f"{alone / beside:.3f} of its requests alone"
