# SPDX-License-Identifier: GPL-2.0
"""Tests in counted time. No processor stops there, so bounds hold without exception."""

from __future__ import annotations

import subprocess
import time

from fairlib import COUNTED_GUEST, Load, scheduled, state, tenants
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    NullBlk,
    cases,
    fio,
    kernel_version,
    mean_read_ms,
    modprobe,
    of_each_scheduler,
    read,
    rmmod,
    run,
    skip_if_ended,
    slow,
    wait_until,
    write,
)

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
    """A reader with one request at a time has the window tried for the other tenant.

    Each round of kyber-fair and hwabc ends by a tick.
    """
    seconds, most = 1.0, 2000
    with (
        NullBlk(**DEVICE) as disk,
        tenants(reader=1000, jobs=100) as (reader, jobs),
        scheduled(disk, scheduler),
        Load(disk, [reader], iodepth=1),
        Load(disk, [jobs], iodepth=64) as load,
    ):
        load.goes_on(REQUESTS)
        before, began = state(disk)["ticks"], time.monotonic()
        time.sleep(seconds)
        after = state(disk)
        rate = (after["ticks"] - before) / (time.monotonic() - began)
        print(f"{rate:.0f} ticks/s, {after['window_trials']} trials of the window")
        assert 0 < rate <= most, f"{rate:.0f} ticks/s"


def test_a_stopped_device_does_not_stop_another_one() -> None:
    """null_blk with mbps= stops its queues until its next period. The other device has eight slots,
    so requests wait in its scheduler, and it does 2000 a second, eight times as many."""
    limitless = {"irqmode": 2, "completion_nsec": 4_000_000, "submit_queues": 2}
    with (
        NullBlk("nullb5", mbps=1, hw_queue_depth=16, submit_queues=2) as stops,
        NullBlk("nullb6", **{**limitless, "hw_queue_depth": 4}) as other,
        tenants(a=100, b=1000) as groups,
        scheduled(stops, "mqfq"),
        scheduled(other, "mqfq"),
        Load(stops, groups) as stopped,
        Load(other, groups) as free,
    ):
        before, began = (stopped.done(), free.done()), time.monotonic()
        wait_until(lambda: stopped.done() >= before[0] + 500, "the slow device makes progress")
        seconds = time.monotonic() - began
        limited = (stopped.done() - before[0]) / seconds
        served = (free.done() - before[1]) / seconds
        print(f"{limited:.0f} requests/s on the slow device, {served:.0f} on the other")
        stopped.goes_on()
        assert limited >= 80, f"{limited:.0f}/s of 256: the stopped queues are not run again"
        assert served >= 2 * limited, f"{served:.0f}/s on the device without a limit"


_HELD_BYTES, _HELD_S = 512 << 10, 8
# The first kernel that keeps the data of a removed cgroup in the list of the disk.
_LISTED_UNTIL_FREED = (6, 3)


def test_rmmod_refuses_while_a_cgroup_is_still_referenced() -> None:
    """A bio that io.max throttles references its removed cgroup, and so the module's data of that
    cgroup, which are in no list any more. Since 6.3 they are in the disk's list until the kernel
    frees them. The switch of the scheduler frees them there, and the module may go."""
    with NullBlk(irqmode=2, completion_nsec=300_000) as disk, Cgroup("held") as group:
        disk.scheduler = "mqfq"
        write(group.path / "io.max", f"{disk.number} rbps={_HELD_BYTES // _HELD_S}")
        read_once = ["dd", f"if={disk.path}", "of=/dev/null", f"bs={_HELD_BYTES}", "count=1"]
        began = time.monotonic()
        reader = subprocess.Popen(group.command([*read_once, "iflag=direct", "status=none"]))
        wait_until(lambda: "blkdev_direct" in read(f"/proc/{reader.pid}/stack"), "it is held back")
        write(CGROUP_ROOT / "cgroup.procs", reader.pid)
        group.path.rmdir()
        # Meanwhile the cgroup's data for the disk are removed from the lists.
        skip_if_ended(reader, began, _HELD_S)
        disk.scheduler = "none"
        refusal = run("rmmod", "mqfair", check=False)
        assert reader.poll() is None, "the bio was not held back for so long"
        if kernel_version() < _LISTED_UNTIL_FREED:
            assert refusal.returncode and "in use" in refusal.stderr, refusal
        else:
            assert not refusal.returncode, refusal
            modprobe("mqfair")
        assert reader.wait() == 0
        wait_until(lambda: read("/sys/module/mqfair/refcnt") == "0", "the cgroup's data are gone")
        rmmod("mqfair")
        modprobe("mqfair")
