# SPDX-License-Identifier: GPL-2.0
"""Changes of every kind under load: every request must complete.

A lost request hangs fio, so that the test fails at its time limit. check_settled() finds lost slots
and wrong counters. The kernel log shows objects that are used after they were freed.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import NoReturn

from fairlib import (
    MIXED,
    SMALL_GUEST,
    TIMED,
    Load,
    check_little_in_vain,
    check_settled,
    for_seconds,
    ours,
    own_values,
    scheduled,
    tenants,
)
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    Disk,
    KernelLog,
    NullBlk,
    cases,
    every_kernel,
    fio,
    is_user_mode,
    modprobe,
    of_each_scheduler,
    read,
    rmmod,
    run,
    slow,
    slow_for,
    wait_until,
    write,
    write_fails,
    write_when_free,
)

guest = SMALL_GUEST

_BETWEEN_READINGS_S = 0.05
# The files of our schedulers in debugfs.
OUR_FILES = {"state", "flows", "queues"}
_RACE_S = 60


@contextlib.contextmanager
def loaded_disk(scheduler: str, **tunables: object) -> Iterator[tuple[NullBlk, Load]]:
    """A disk under load from two cgroups for the time of a block."""
    with (
        NullBlk(**TIMED) as disk,
        tenants(a=100, b=1000) as groups,
        scheduled(disk, scheduler, **tunables),
        Load(disk, groups, **MIXED) as load,
    ):
        yield disk, load
        load.goes_on()


@every_kernel
def test_switching_between_all_schedulers_under_load() -> None:
    """Switches from each scheduler to each other one, the kernel's included, while another task
    reads debugfs and io.stat."""
    modprobe("bfq")
    modprobe("kyber-iosched")
    with loaded_disk("mqfq") as (disk, _), reading_everything(disk):
        left = disk.queue("scheduler").replace("[", " ").replace("]", " ").split()
        for one in ours(disk):
            disk.scheduler = one
            # The others have switched to those before, and back.
            left.remove(one)
            for other in left:
                disk.scheduler = other
                disk.scheduler = one
        disk.scheduler = "mqfq"


def test_cgroups_and_the_scheduler_are_removed_at_once() -> None:
    """A removed cgroup may be freed after the scheduler, and must not need it then."""
    reads = "echo 0 >{}/cgroup.procs && exec dd if={} of=/dev/null bs=4k count=20 iflag=direct"
    with NullBlk(irqmode=2, completion_nsec=300_000, hw_queue_depth=32) as disk:
        for scheduler in 3 * ours(disk):
            disk.scheduler = scheduler
            with tenants(a=100, b=1000) as groups:
                for group in groups:
                    run("sh", "-c", reads.format(group.path, disk.path))
            disk.scheduler = "none"
            read(CGROUP_ROOT / "io.stat")


@contextlib.contextmanager
def repeated(change: Callable[[], object]) -> Iterator[None]:
    """Makes @change again and again in a thread, for the time of a block."""
    over = threading.Event()
    errors: list[BaseException] = []

    def repeat() -> None:
        try:
            while not over.is_set():
                change()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not errors, errors


@contextlib.contextmanager
def reading_everything(disk: Disk) -> Iterator[None]:
    """Reads our files in debugfs, and io.stat, repeatedly during the block.

    Linux 7.2 removes the files of a scheduler after it has switched, and those of Kyber then read
    the data of its successor as their own. The guest panics in them, without our schedulers too.
    """
    rounds = 0

    def read_all() -> None:
        nonlocal rounds
        # Folders are removed with the scheduler; a file removed while it is open gives EIO.
        with contextlib.suppress(OSError):
            for path in Path(f"/sys/kernel/debug/block/{disk.name}").rglob("sched/*"):
                if path.name not in OUR_FILES:
                    continue
                with contextlib.suppress(OSError):
                    read(path)
        read(CGROUP_ROOT / "io.stat")
        rounds += 1
        time.sleep(_BETWEEN_READINGS_S)

    with repeated(read_all):
        yield
        last = rounds
        wait_until(lambda: rounds > last, "the reader makes progress")


# --- changes while a scheduler is active -----------------------------------------------------

Change = Callable[[NullBlk, Load], None]

# Values for any tunable. Each tunable must accept a value or refuse it with EINVAL.
VALUES = ["1", "2", "3", "7", "64", "1000", "65536", "auto", "iops", "linear 4096 9 8192 7", "0"]


def weights(_: NullBlk, load: Load) -> None:
    light, heavy = load.groups
    numbers = cycle([1, 10000, 100])
    for _ in range(50):
        light.weight, heavy.weight = next(numbers), next(numbers)
        time.sleep(0.002)


def tunables(disk: NullBlk, load: Load) -> None:
    for name, initial in own_values(disk).items():
        for value in VALUES:
            try:
                disk.set_tunable(name, value)
            except OSError as error:
                assert error.errno == errno.EINVAL, f"{name} {value!r}: {error}"
            time.sleep(0.002)
        load.goes_on()
        disk.set_tunable(name, initial)


def tags(disk: NullBlk, load: Load) -> None:
    for size in [4, 2048, 5, 64, 17, 256, 4, 256]:
        disk.set_queue("nr_requests", size)
    load.goes_on()


def hardware_queues(disk: NullBlk, _: Load) -> None:
    scheduler = disk.scheduler
    for count in islice(cycle([1, 2]), 8):
        disk.set("submit_queues", count)
        time.sleep(0.01)
    assert disk.scheduler == scheduler


def processors(_: NullBlk, load: Load) -> None:
    online = Path("/sys/devices/system/cpu/cpu1/online")
    if is_user_mode():
        # Its processors cannot go offline.
        assert not online.exists()
        return
    write(online, 0)
    load.goes_on()
    write(online, 1)


def cgroups(_: NullBlk, load: Load) -> None:
    """Moves fio to another group, and removes its old group while requests of that group wait."""
    home, pid = load.groups[0], load.jobs[0].process.pid
    for number in range(10):
        gone = CGROUP_ROOT / f"gone{number}"
        gone.mkdir()
        write(gone / "io.mqfair.weight", 1 + number * 100)
        write(gone / "cgroup.procs", pid)
        wait_until(lambda gone=gone: "rios" in read(gone / "io.stat"), f"{gone} does I/O")
        write(home.path / "cgroup.procs", pid)
        gone.rmdir()


CHANGES: tuple[Change, ...] = (weights, tunables, tags, hardware_queues, processors, cgroups)


@of_each_scheduler
@slow_for("kyber-fair", "wdt", "drr", "sfq")
def test_all_changes_under_load(scheduler: str) -> None:
    with loaded_disk(scheduler) as (disk, load), reading_everything(disk):
        for change in CHANGES:
            began = time.monotonic()
            change(disk, load)
            load.goes_on()
            print(f"{change.__name__}: {time.monotonic() - began:.1f} s")


@every_kernel
def test_a_hardware_queue_has_no_file_of_the_scheduler() -> None:
    """Linux 6.1 crashes if it creates one while the number of hardware queues changes."""
    with NullBlk(**TIMED) as disk:
        disk.scheduler = "mqfq"
        folder = Path("/sys/kernel/debug/block") / disk.name
        assert {path.name for path in folder.glob("sched/*")} == OUR_FILES
        assert list(folder.glob("hctx*")) and not list(folder.glob("hctx*/sched"))
        numbers = [line.split()[0] for line in disk.debugfs("sched/queues").splitlines()]
        assert "hctx=0" in numbers and "cpu=0" in numbers, numbers


@slow
def test_the_scheduler_is_switched_while_hardware_queues_change() -> None:
    """The block layer detaches the scheduler, and makes the queues. Another task may attach one in
    between. The new queues are not known to it, and yet nr_requests runs them."""
    counts, schedulers, sizes = cycle([1, 2]), cycle(["mqfq", "none"]), cycle([8, 16])
    with NullBlk(**TIMED) as disk:
        with (
            repeated(lambda: write_when_free(disk.sysfs / "queue/scheduler", next(schedulers))),
            repeated(lambda: disk.set_queue("nr_requests", next(sizes))),
        ):
            for_seconds(_RACE_S, lambda: disk.set("submit_queues", next(counts)))
        disk.scheduler = "mqfq"
        fio(disk, size="4m")


@every_kernel
@of_each_scheduler
def test_removing_the_device_under_load(scheduler: str) -> None:
    with tenants(a=100, b=1000) as groups:
        for remove in (lambda disk: disk.set("power", 0), NullBlk.remove):
            with NullBlk(**TIMED) as disk:
                disk.scheduler = scheduler
                with Load(disk, groups, disk_leaves=True, **MIXED):
                    remove(disk)
                    assert not disk.sysfs.exists()


@every_kernel
def test_the_module_cannot_leave_while_in_use() -> None:
    """Unloading fails while a scheduler is active. Afterwards the kernel loads the module again for
    each of its schedulers."""
    with NullBlk(**TIMED) as disk, Cgroup("tenant") as group:
        group.weight = f"{disk.number} 5"
        names = ours(disk)
        try:
            for name in names:
                disk.scheduler = name
                leave_and_come_back(disk, group)
            assert ours(disk) == names
        finally:
            modprobe("mqfair")
            disk.scheduler = "none"


def leave_and_come_back(disk: Disk, group: Cgroup) -> None:
    name = disk.scheduler
    refusal = run("rmmod", "mqfair", check=False)
    assert refusal.returncode, "rmmod removed the module in spite of an active scheduler"
    fio(disk, group, number_ios=64)
    check_settled(disk)
    disk.scheduler = "none"
    rmmod("mqfair")
    assert not (group.path / "io.mqfair.weight").exists()
    assert not ours(disk)
    disk.scheduler = name
    assert group.weight == "default 100"


@every_kernel
def test_the_load_line_says_that_the_kernel_was_tested() -> None:
    log = KernelLog()
    rmmod("mqfair")
    modprobe("mqfair")
    (line,) = (line for line in log.read() if line.startswith("mqfair: version"))
    assert "never" not in line and re.search(r"tested on Linux .*\d", line), line


# --- tunables --------------------------------------------------------------------------------

GARBAGE = ["", "abc", "-1", "1x", "1.5", "4294967296", "1 2 3", "auto auto", "\0"]


@of_each_scheduler
def test_tunables_take_their_own_value_and_refuse_garbage(scheduler: str) -> None:
    with NullBlk(hw_queue_depth=32) as disk, scheduled(disk, scheduler):
        values = own_values(disk)
        assert values, f"{scheduler} has no tunables"
        shown = {name: disk.tunable(name) for name in values}
        for name, value in values.items():
            disk.set_tunable(name, value)
            assert disk.tunable(name) == shown[name], f"{name}: {value!r} changed it"
            for text in GARBAGE:
                got = write_fails(disk.sysfs / "queue/iosched" / name, text + "\n")
                assert got == errno.EINVAL, f"{name}: {text!r}: {errno.errorcode[got]}"
                assert disk.tunable(name) == shown[name], f"{name}: {text!r} changed it"


def test_alpha_is_at_most_100_percent() -> None:
    with NullBlk(hw_queue_depth=32) as disk, scheduled(disk, "hwabc"):
        for text in ("1.5", "101", "150"):
            assert write_fails(disk.sysfs / "queue/iosched/alpha_pct", text) == errno.EINVAL, text
        assert disk.tunable("alpha_pct") == "10"
        disk.set_tunable("alpha_pct", 100)


@cases((1, "auto"), ("auto", 0), (1, 0), (2, 4))
def test_small_depth_and_threshold(depth: object, threshold_kb: object) -> None:
    """Everything works with D = 1 and T = 0, and at most D requests are in the device."""
    with loaded_disk("mqfq", depth=depth, threshold_kb=threshold_kb) as (disk, load):
        began = time.monotonic()
        before = load.done()
        depths = set()

        def done_and_note_depth() -> bool:
            depths.add(int(disk.tunable("depth").split()[0]))
            return load.done() >= before + 500

        wait_until(done_and_note_depth, "500 requests are done")
        served = (load.done() - before) / (time.monotonic() - began)
        print(f"{served:.0f} requests/s with D of {sorted(depths)}")
        # A trial plays the double of a depth that is found, or less than the one before.
        slots = max(depths) * (2 if depth == "auto" else 1)
        most = slots * 1e9 / TIMED["completion_nsec"]
        # A stopped processor only makes the device slower, so this bound holds on any machine.
        assert served < 1.1 * most, f"{served:.0f}/s: more than {slots} were in the device"
        check_little_in_vain(disk)


# --- many cgroups ----------------------------------------------------------------------------


@slow
def test_1000_cgroups_coming_and_going() -> None:
    """A process moves from one new group to the next and reads in each, beside other load."""
    # Without this option each move waits for a grace period of RCU.
    run("mount", "-o", "remount,favordynmods", CGROUP_ROOT)
    with loaded_disk("mqfq", depth=8) as (disk, _), Cgroup("brief"):
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
