# SPDX-License-Identifier: GPL-2.0
"""Allocations and requests that fail. Each ends in an error or in success, never in a report of the
kernel or a hang. Only the debug kernel of `make test-debug` can inject faults.

An operation of one system call is repeated until each of its allocations has failed once: the
kernel fails the n-th allocation of a task that has written n to fail-nth.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from agent import LEAKS, lockdep_off
from fairlib import MIXED, SMALL_GUEST, TIMED, check_settled, scheduled, tenants
from guestlib import (
    CGROUP_ROOT,
    LOCKDEP,
    NULL_BLK_CONFIG,
    Cgroup,
    Fio,
    NullBlk,
    cases,
    expects_reports,
    fio,
    modprobe,
    of_each_scheduler,
    only_on,
    rmmod,
    run,
    write,
)

guest = SMALL_GUEST

# The kernel's own messages about failing allocations, which no module could avoid. The first is a
# line about the folder queue/iosched of any elevator, and the switch then fails. The second is a
# warning that blkcg_policy_register() could not make the files of a policy. It has no error path
# for that.
KOBJECT = r"kobject_add_internal failed for \S+ \(error: -12 "
POLICY = r"WARNING: block/blk-cgroup\.c:\d+ at blkcg_policy_register\+"

# Faults are injected on the debug kernel alone.
DEBUG = only_on("uml-debug")
DEBUGFS = Path("/sys/kernel/debug")
MODULE = Path(__file__).parents[2] / "build/module" / os.uname().release / "mqfair.ko"
_FAIL_NTH = Path("/proc/thread-self/fail-nth")
# More than any operation allocates.
_NEVER = 1_000_000
# finit_module(2) of x86-64.
_FINIT_MODULE = 313
# The allocations of mqfair's own start and of its undoing are the last ones of a load.
_LAST_OF_LOAD = 250
_PERCENT = 10
# kernel/layout.c allocates for every scheduler in the same way, so two represent all.
ALLOCATING = ("mqfq", "wdt")


@contextlib.contextmanager
def injection(**kinds: dict[str, object]) -> Iterator[None]:
    """Fault attributes in debugfs for the time of a block, without stacks in the kernel log."""
    found = {DEBUGFS / kind: settings for kind, settings in kinds.items()}
    for folder, settings in found.items():
        # The probability comes last: without the filter by task, init would meet failures.
        probability = settings.pop("probability", 0)
        chosen = {"verbose": 0, "times": -1, **settings, "probability": probability}
        for name, value in chosen.items():
            write(folder / name.replace("_", "-"), value)
    try:
        yield
    finally:
        for folder in found:
            write(folder / "probability", 0)
            write(folder / "task-filter", "N")


def of_each_allocation() -> contextlib.AbstractContextManager[None]:
    """Allocations that may sleep or that want single pages may fail, too."""
    waits = {"ignore_gfp_wait": "N"}
    return injection(failslab=waits, fail_page_alloc={**waits, "min_order": 0})


def one_failure(operation: Callable[[], None], nth: int) -> tuple[bool, int]:
    """Calls @operation, in which the @nth allocation fails. Returns whether it succeeded, and how
    many allocations were left to make until the failure."""
    fd = os.open(_FAIL_NTH, os.O_RDWR)
    try:
        os.write(fd, b"%d" % nth)
        succeeded = True
        try:
            operation()
        except (OSError, MemoryError):
            succeeded = False
        left = int(os.pread(fd, 32, 0))
        os.pwrite(fd, b"0", 0)
    finally:
        os.close(fd)
    return succeeded, left


def fail_each(
    operation: Callable[[], None],
    undo: Callable[[], None],
    first: int = 1,
    step: int = 1,
) -> dict[str, int]:
    """Fails each @step-th allocation of @operation from the @first one on. Calls @undo after each
    success."""
    counts = {"failed": 0, "succeeded": 0}
    nth = first
    while True:
        succeeded, left = one_failure(operation, nth)
        if succeeded:
            undo()
        if left:
            assert succeeded, "it failed without a failed allocation"
            print(f"{counts} of {(nth - first) // step} failed allocations")
            return counts
        counts["succeeded" if succeeded else "failed"] += 1
        nth += step


def writer(path: Path, value: object) -> Callable[[], None]:
    """A call that writes @value and allocates little beside."""
    data = str(value).encode()

    def call() -> None:
        fd = os.open(path, os.O_WRONLY)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    return call


@DEBUG
def test_the_checks_are_on() -> None:
    """Each check that doc/kernels.md promises for this kernel is there and active."""
    assert lockdep_off() == [] and LOCKDEP.exists()
    with gzip.open("/proc/config.gz", "rt") as config:
        options = set(config.read().split())
    missing = [name for name in CHECKS if f"CONFIG_{name}=y" not in options]
    assert not missing, missing
    assert "KernelAddressSanitizer initialized" in run("dmesg").stdout
    # kmemleak refuses a scan after it has switched itself off.
    write(LEAKS, "scan")


CHECKS = (
    *("PROVE_LOCKING", "PROVE_RAW_LOCK_NESTING", "PROVE_RCU", "DEBUG_ATOMIC_SLEEP", "KASAN"),
    *("DEBUG_OBJECTS_TIMERS", "DEBUG_OBJECTS_WORK", "DEBUG_OBJECTS_RCU_HEAD", "DEBUG_LIST"),
    *("DEBUG_PREEMPT", "DEBUG_KMEMLEAK", "UBSAN", "FAILSLAB", "FAIL_PAGE_ALLOC"),
    *("FAIL_MAKE_REQUEST", "FAIL_IO_TIMEOUT", "BLK_DEV_NULL_BLK_FAULT_INJECTION"),
)


@DEBUG
@expects_reports(KOBJECT)
@cases(*ALLOCATING)
def test_each_allocation_of_a_switch_may_fail(scheduler: str) -> None:
    with NullBlk(**TIMED) as disk, tenants(a=100, b=1000) as groups:
        for group in groups:
            fio(disk, group, number_ios=64)
        file = disk.sysfs / "queue/scheduler"
        with of_each_allocation():
            counts = fail_each(writer(file, scheduler), lambda: write(file, "none"))
        assert counts["failed"] > 10, counts
        with scheduled(disk, scheduler):
            for group in groups:
                fio(disk, group, number_ios=64)


@DEBUG
@cases(*ALLOCATING)
def test_each_allocation_of_a_change_of_tags_may_fail(scheduler: str) -> None:
    with NullBlk(**TIMED) as disk, Cgroup("a") as group, scheduled(disk, scheduler):
        file = disk.sysfs / "queue/nr_requests"
        with of_each_allocation():
            fail_each(writer(file, 1000), lambda: write(file, 64))
        fio(disk, group, number_ios=64)


@DEBUG
def test_each_allocation_of_a_cgroup_may_fail() -> None:
    with NullBlk(**TIMED) as disk, scheduled(disk, "mqfq"):
        path = CGROUP_ROOT / "brief"
        with of_each_allocation():
            counts = fail_each(path.mkdir, path.rmdir)
            assert counts["failed"] > 3, counts
        with Cgroup("brief"), of_each_allocation():
            for name, value, default in SETTINGS:
                undo = writer(path / name, f"{disk.number} {default}")
                counts = fail_each(writer(path / name, f"{disk.number} {value}"), undo)
                assert counts["failed"], (name, counts)
        fio(disk, number_ios=64)


SETTINGS = (
    ("io.mqfair.weight", "7", "default"),
    ("io.mqfair.latency", "target=500us", "target=none"),
)


@DEBUG
@expects_reports(f"{KOBJECT}|{POLICY}")
def test_allocations_at_the_end_of_a_load_of_the_module_may_fail() -> None:
    """Those before are the kernel's, for any module. Each load takes seconds, so every fifth one
    fails. A failed load leaves nothing behind."""
    rmmod("mqfair")
    libc = ctypes.CDLL(None, use_errno=True)

    def load() -> None:
        file = os.open(MODULE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if libc.syscall(_FINIT_MODULE, file, b"research=1", 0):
                raise OSError(ctypes.get_errno(), "finit_module")
        finally:
            os.close(file)

    try:
        with of_each_allocation():
            succeeded, left = one_failure(load, _NEVER)
            assert succeeded
            rmmod("mqfair")
            first = max(1, _NEVER - left - _LAST_OF_LOAD)
            counts = fail_each(load, lambda: rmmod("mqfair"), first=first, step=5)
        assert counts["failed"] > 10, counts
    finally:
        modprobe("mqfair")


# --- requests that fail ----------------------------------------------------------------------


@DEBUG
@of_each_scheduler
def test_requests_that_the_block_layer_never_ends(scheduler: str) -> None:
    """The completion of a request is lost on its way from the driver, as by a drive's fault."""
    with NullBlk(**TIMED) as disk, injection(fail_io_timeout={"probability": 1}):
        disk.set_queue("io_timeout", 300)
        write(disk.sysfs / "io-timeout-fail", 1)
        run_both(disk, scheduler, continue_on_error="all")
        write(disk.sysfs / "io-timeout-fail", 0)


@DEBUG
@of_each_scheduler
def test_requests_that_the_block_layer_fails(scheduler: str) -> None:
    with (
        NullBlk(**TIMED) as disk,
        tenants(a=100, b=1000) as groups,
        scheduled(disk, scheduler),
        injection(fail_make_request={"probability": _PERCENT}),
    ):
        write(disk.sysfs / "make-it-fail", 1)
        jobs = [
            Fio(disk, group, number_ios=2000, continue_on_error="all", **MIXED) for group in groups
        ]
        errors = sum(job["total_err"] for one in jobs for job in one.result(check=False)["jobs"])
        write(disk.sysfs / "make-it-fail", 0)
        assert errors > 100, f"{errors} of 4000 requests failed"
        check_settled(disk)


@DEBUG
@of_each_scheduler
def test_requests_that_null_blk_requeues(scheduler: str) -> None:
    with faulty_disk(requeue_inject=20) as disk:
        run_both(disk, scheduler)


@DEBUG
@of_each_scheduler
def test_requests_that_null_blk_loses(scheduler: str) -> None:
    """The block layer ends them at their time limit."""
    with faulty_disk(timeout_inject=1) as disk:
        disk.set_queue("io_timeout", 300)
        run_both(disk, scheduler, continue_on_error="all")


@contextlib.contextmanager
def faulty_disk(**percent: int) -> Iterator[NullBlk]:
    """A disk with faults of null_blk for the time of a block."""
    with NullBlk(**TIMED) as disk:
        folders = [NULL_BLK_CONFIG / disk.name / name for name in percent]
        for folder, probability in zip(folders, percent.values(), strict=True):
            for name, value in {"verbose": 0, "times": -1, "probability": probability}.items():
                write(folder / name, value)
        try:
            yield disk
        finally:
            for folder in folders:
                write(folder / "probability", 0)


def run_both(disk: NullBlk, scheduler: str, **options: object) -> None:
    with tenants(a=100, b=1000) as groups, scheduled(disk, scheduler):
        jobs = [Fio(disk, group, number_ios=1000, **MIXED, **options) for group in groups]
        for job in jobs:
            for one in job.result(check=not options)["jobs"]:
                assert sum(one[way]["total_ios"] for way in ("read", "write")), one
