# SPDX-License-Identifier: GPL-2.0
"""Tests in counted time. No processor stops there, so bounds hold without exception."""

from __future__ import annotations

import time

from fairlib import COUNTED_GUEST, Load, scheduled, state, tenants
from guestlib import NullBlk, cases, fio, mean_read_ms, of_each_scheduler, slow, wait_until

guest = COUNTED_GUEST

SERVICE_NS = 1_000_000
DEVICE = {"irqmode": 2, "completion_nsec": SERVICE_NS, "submit_queues": 1, "hw_queue_depth": 16}
# With one request per job, no other request of the job would wake a forgotten one.
ONE_EACH = {"iodepth": 1, "numjobs": 2}
REQUESTS = 400


@cases((1, 0), (1, 4), (2, "auto"))
@slow
def test_the_device_is_never_left_idle(depth: int, threshold_kb: object) -> None:
    """Also, no dispatch finds no request, and no request waits longer than its weight implies.

    With isolation the drive may wait for the tenant that keeps few requests.
    """
    with (
        NullBlk(**DEVICE) as disk,
        tenants(a=100, b=200, c=1000) as groups,
        scheduled(disk, "mqfq", depth=depth, threshold_kb=threshold_kb, isolation=0),
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
def test_no_dispatch_finds_no_request(scheduler: str) -> None:
    """After such a dispatch the block layer retries 3 ms later, which hides a lost wake-up."""
    with (
        NullBlk(**DEVICE) as disk,
        tenants(a=100, b=1000) as groups,
        scheduled(disk, scheduler),
    ):
        with Load(disk, groups, iodepth=32) as load:
            load.goes_on(REQUESTS)
        assert state(disk)["null_dispatches"] == 0, state(disk)


# The heavy tenants fill the device, and it completes a request every quarter of a millisecond.
LARGE = {"irqmode": 2, "completion_nsec": 16_000_000, "submit_queues": 1, "hw_queue_depth": 64}
LIGHT = {"rw": "randread", "iodepth": 1, "number_ios": 200}
HEAVY = {"iodepth": 64}
# The least rate of the light tenant, relative to its rate alone.
LIGHT_LEAST = 0.85


@slow
def test_a_light_tenant_is_not_delayed() -> None:
    """A tenant with one request at a time runs beside three with 64 requests, at equal weights."""
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
        assert alone / beside >= LIGHT_LEAST, f"{alone / beside:.3f} of its rate alone"


@cases("mqfq", "ifq", "wdt", "drr")
def test_ticks_do_not_follow_the_rate_of_requests(scheduler: str) -> None:
    """A reader with one request at a time keeps the drive paced for the other tenant.

    Each round of kyber-fair and hwabc ends by a tick.
    """
    seconds, most = 2.0, 2000
    with (
        NullBlk(**DEVICE) as disk,
        tenants(reader=1000, jobs=100) as (reader, jobs),
        scheduled(disk, scheduler),
        Load(disk, [reader], iodepth=1),
        Load(disk, [jobs], iodepth=64) as load,
    ):
        load.goes_on(REQUESTS)
        before, began = state(disk)["ticks"], time.monotonic()
        paced = 0
        while time.monotonic() < began + seconds:
            time.sleep(0.05)
            paced += state(disk)["isolation_paced"]
        rate = (state(disk)["ticks"] - before) / (time.monotonic() - began)
        print(f"{rate:.0f} ticks/s, paced at {paced} looks")
        assert 0 < rate <= most, f"{rate:.0f} ticks/s"
