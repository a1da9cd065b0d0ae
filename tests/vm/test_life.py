# SPDX-License-Identifier: GPL-2.0
"""Everything that may change changes under load, and every request comes back.

A request that is lost hangs fio, which fails the test by its time limit; a slot or a count that is
lost is found by check_settled(), a bad life time by the kernel log.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
import time
import traceback
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import NoReturn

from fairlib import SMALL_GUEST, Load, check_settled, for_seconds, mqfq, state, tenants
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    Disk,
    NullBlk,
    cases,
    fio,
    modprobe,
    read,
    rmmod,
    run,
    time_limit,
    wait_until,
    write,
)

guest = SMALL_GUEST

# A timer in the device, so that requests are in flight, waiting and throttled at any moment.
TIMED = {"irqmode": 2, "completion_nsec": 1_000_000, "hw_queue_depth": 16, "submit_queues": 2}
MIXED = {"rw": "randrw", "bsrange": "512-32k"}


@contextlib.contextmanager
def loaded_disk(**tunables: object) -> Iterator[tuple[NullBlk, Load]]:
    """A disk that two cgroups load for the block."""
    with (
        NullBlk(**TIMED) as disk,
        tenants(a=100, b=1000) as groups,
        mqfq(disk, **tunables),
        Load(disk, groups, **MIXED) as load,
    ):
        yield disk, load
        load.goes_on()


def read_everything(disk: Disk) -> None:
    """What debugfs and io.stat show may be read at any time."""
    for path in Path(f"/sys/kernel/debug/block/{disk.name}").rglob("sched/*"):
        # A file that goes while it is open answers EIO.
        with contextlib.suppress(OSError):
            read(path)
    read(CGROUP_ROOT / "io.stat")


@time_limit(150)
def test_switching_schedulers_200_times_under_load() -> None:
    modprobe("bfq")
    modprobe("kyber-iosched")
    names = cycle(["mqfq", "none", "mqfq", "kyber", "mqfq", "mq-deadline", "mqfq", "bfq"])
    with loaded_disk() as (disk, _):
        for name in islice(names, 200):
            disk.scheduler = name
        disk.scheduler = "mqfq"


@time_limit(90)
def test_reading_debugfs_while_schedulers_switch() -> None:
    with loaded_disk() as (disk, _):
        over = threading.Event()

        def reader() -> None:
            while not over.is_set():
                read_everything(disk)

        thread = threading.Thread(target=reader, daemon=True)
        thread.start()
        for name in islice(cycle(["none", "mqfq"]), 40):
            disk.scheduler = name
        over.set()
        thread.join()
        assert state(disk)["depth"]


@time_limit(90)
def test_removing_cgroups_under_load() -> None:
    """fio is moved away and its group removed while requests of the group wait for slots."""
    with loaded_disk(depth=2) as (_, load):
        home, pid = load.groups[0], load.jobs[0].process.pid
        for number in range(60):
            gone = CGROUP_ROOT / f"gone{number}"
            gone.mkdir()
            write(gone / "io.mqfair.weight", 1 + number * 100)
            write(gone / "cgroup.procs", pid)
            wait_until(lambda gone=gone: "rios" in read(gone / "io.stat"), f"{gone} does I/O")
            write(home.path / "cgroup.procs", pid)
            gone.rmdir()


@cases("power", "rmdir")
@time_limit(90)
def test_removing_the_device_under_load(how: str) -> None:
    with tenants(a=100, b=1000) as groups:
        for depth in ("auto", 1):
            with NullBlk(**TIMED) as disk:
                disk.scheduler = "mqfq"
                disk.set_tunable("depth", depth)
                with Load(disk, groups, disk_leaves=True, **MIXED):
                    if how == "power":
                        disk.set("power", 0)
                    else:
                        disk.remove()
                    assert not disk.sysfs.exists()


@time_limit(90)
def test_the_module_cannot_leave_while_in_use() -> None:
    with NullBlk(**TIMED) as disk, Cgroup("tenant") as group:
        group.weight = f"{disk.number} 5"
        disk.scheduler = "mqfq"
        for _ in range(3):
            refusal = run("rmmod", "mqfair", check=False)
            assert refusal.returncode, "rmmod took the module away under its device"
            fio(disk, group, number_ios=64)
            check_settled(disk)
            disk.scheduler = "none"
            rmmod("mqfair")
            assert not (group.path / "io.mqfair.weight").exists()
            assert "mqfq" not in disk.queue("scheduler")
            modprobe("mqfair")
            assert group.weight == "default 100"
            disk.scheduler = "mqfq"


def test_nr_requests_under_load() -> None:
    sizes = cycle([4, 2048, 5, 64, 17, 256])
    with loaded_disk() as (disk, _):
        for_seconds(3, lambda: disk.set_queue("nr_requests", next(sizes)))
        assert disk.queue("nr_requests") in {"4", "2048", "5", "64", "17", "256"}


def test_tunables_under_load() -> None:
    changes = cycle(
        [
            ("depth", 1),
            ("threshold_kb", 0),
            ("cost", "iops"),
            ("depth", 3),
            ("linear_read", "100000 1024"),
            ("threshold_kb", 4),
            ("cost", "linear"),
            ("depth", 65536),
            ("threshold_kb", 1048576),
            ("depth", "auto"),
            ("cost", "bytes"),
            ("threshold_kb", "auto"),
        ]
    )
    with loaded_disk() as (disk, _):
        for_seconds(3, lambda: disk.set_tunable(*next(changes)), pause_s=0.005)


def test_weights_under_load() -> None:
    weights = cycle([1, 10000, 100])
    with loaded_disk() as (_, load):
        light, heavy = load.groups

        def swap() -> None:
            light.weight, heavy.weight = next(weights), next(weights)

        for_seconds(3, swap, pause_s=0.002)


@cases((1, "auto"), ("auto", 0), (1, 0), (2, 4))
def test_small_depth_and_threshold(depth: object, threshold_kb: object) -> None:
    """All of it holds with D = 1 and T = 0, and D is what the device sees."""
    with loaded_disk(depth=depth, threshold_kb=threshold_kb) as (disk, load):
        began = time.monotonic()
        before = load.done()
        time.sleep(1.5)
        served = (load.done() - before) / (time.monotonic() - began)
        print(f"{served:.0f} requests/s")
        slots = int(disk.tunable("depth").split()[0])
        most = slots * 1e9 / TIMED["completion_nsec"]
        assert served < 1.1 * most, f"{served:.0f}/s: more than {slots} were in the device"
        # An emulated CPU may get a fraction of a real one, but nothing waits for a re-run.
        assert served > 20, f"{served:.0f}/s: the device stands idle"
        assert state(disk)["null_dispatches"] == 0, state(disk)


def test_number_of_hardware_queues_under_load() -> None:
    counts = cycle([1, 2])
    with loaded_disk() as (disk, _):
        for_seconds(3, lambda: disk.set("submit_queues", next(counts)), pause_s=0.02)
        assert disk.scheduler == "mqfq"


@time_limit(90)
def test_cpus_leave_and_come_back_under_load() -> None:
    online = Path("/sys/devices/system/cpu/cpu1/online")
    with loaded_disk(depth=4) as (_, load):
        for _ in range(5):
            write(online, 0)
            load.goes_on()
            write(online, 1)
            load.goes_on()


@time_limit(120)
def test_1000_cgroups_coming_and_going() -> None:
    """A process goes from one new group to the next and reads in each, beside other load."""
    # Else each move waits for a grace period of RCU.
    run("mount", "-o", "remount,favordynmods", CGROUP_ROOT)
    with loaded_disk(depth=8) as (disk, _), Cgroup("brief"):
        child = os.fork()
        if not child:
            wander(disk, 1000)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"exit status {status}"
        (CGROUP_ROOT / "brief/999").rmdir()


def wander(disk: Disk, steps: int) -> NoReturn:
    status = 1
    try:
        write(CGROUP_ROOT / "brief/cgroup.subtree_control", "+io")
        drive = os.open(disk.path, os.O_RDONLY | os.O_DIRECT)
        page = mmap.mmap(-1, mmap.PAGESIZE)
        left: Path | None = None
        for step in range(steps):
            group = CGROUP_ROOT / f"brief/{step}"
            group.mkdir()
            write(group / "cgroup.procs", 0)
            assert os.preadv(drive, [page], step * mmap.PAGESIZE) == mmap.PAGESIZE
            assert "mqfair.ios=1" in read(group / "io.stat")
            if left:
                left.rmdir()
            left = group
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
