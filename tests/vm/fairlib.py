# SPDX-License-Identifier: GPL-2.0
"""Common parts of mqfair's guest tests: state in debugfs, load from cgroups, the final check.

Standard library only: it runs on the guest's Python.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from guestlib import PATIENCE_S, Cgroup, Disk, Fio, Guest, read, run, wait_until

_ROOT = Path(__file__).resolve().parents[2]
# The third drive: slow for an emulated processor, so that the drive is the bottleneck.
SLOW_IOPS = 500
# One guest for as many files as possible. The first two drives are large enough for xfs.
SMALL_GUEST = Guest(
    cpus=2,
    memory_mb=1536,
    nvme=("size=512M,queues=2", "size=512M,queues=2", f"size=128M,queues=2,iops={SLOW_IOPS}"),
    needs_module=True,
    needs_simulator=True,
)
# Its time is counted in instructions, so a busy host does not slow its processor.
COUNTED_GUEST = Guest(cpus=1, memory_mb=1024, icount=True, needs_module=True)
# The same with two processors, which take turns, and with the drives of SMALL_GUEST.
COUNTED_PAIR = dataclasses.replace(SMALL_GUEST, icount=True)
WIDE_GUEST = Guest(cpus=4, sockets=2, memory_mb=1024, needs_module=True)

# The runtime of a fio that is stopped by its test; longer than every test.
_RUNTIME_S = 3600
OF_THE_KERNEL = {"none", "mq-deadline", "kyber", "bfq"}
# The device completes by a timer, so that some requests are always in flight, waiting or throttled.
TIMED = {"irqmode": 2, "completion_nsec": 1_000_000, "hw_queue_depth": 16, "submit_queues": 2}
MIXED = {"rw": "randrw", "bsrange": "512-32k"}

# A null_blk with 1000 requests a second, and the number of tags that `mqfair enable` sets for it.
SLOTS = 8
TAGS = 4 * SLOTS
EIGHT_SLOTS = {
    "irqmode": 2,
    "completion_nsec": 8_000_000,
    "submit_queues": 1,
    "hw_queue_depth": SLOTS,
}

_PART_IN_VAIN = 0.01


# --- state in debugfs ------------------------------------------------------------------------


def mqfair(*argv: str, check: bool = True) -> str:
    """The output of the command of this checkout."""
    os.chdir(_ROOT)
    return run(sys.executable, "-m", "mqfair", *argv, check=check).stdout


def state(disk: Disk) -> dict[str, int]:
    """The numbers of sched/state; ``slots_free`` is the sum over the token tree."""
    found: dict[str, int] = {}
    for line in disk.debugfs("sched/state").splitlines():
        name, _, text = line.partition(" ")
        found[name] = sum(int(number) for number in re.findall(r"-?\d+", text))
    return found


def flows(disk: Disk) -> dict[str, dict[str, int]]:
    """The numbers of sched/flows by cgroup; "/" is the root."""
    found = {}
    for line in disk.debugfs("sched/flows").splitlines():
        path, *pairs = line.split()
        found[path] = {key: int(value) for key, _, value in (p.partition("=") for p in pairs)}
    return found


def queues(disk: Disk) -> list[str]:
    """The lines of sched/queues, one for each CPU's queue."""
    return [line for line in disk.debugfs("sched/queues").splitlines() if "cpu=" in line]


def all_slots_are_free(found: dict[str, int]) -> bool:
    """Of a state(). A window below D is the number of slots. Not every scheduler tells how many
    are free."""
    slots = min(found["depth"], found["window_tried"])
    return found.get("slots_free", slots) == slots


def check_settled(disk: Disk) -> dict[str, int]:
    """Waits until @disk is idle, then checks that no request waits, that every slot is free, and
    that the watchdog found no forgotten queue. Returns state()."""
    wait_until(lambda: disk.in_flight() == 0, f"{disk.name} is idle")
    found = state(disk)
    print(f"{disk.name}: {found}")
    assert all_slots_are_free(found), f"slots lost or invented: {found}"
    assert found["watchdog"] == 0, f"queues were forgotten: {found}"
    assert found["tag_waiters"] == 0, f"tasks wait for tags of an idle disk: {found}"
    for path, flow in flows(disk).items():
        assert flow["queued"] == 0 and flow["outstanding"] == 0, f"{path} is not idle: {flow}"
    return found


def check_little_in_vain(disk: Disk) -> None:
    """Checks that few dispatches found no request. After such a dispatch the block layer retries
    3 ms later, which hides lost wake-ups.

    A few are legitimate: a processor may be stopped between has_work() and the dispatch.
    """
    found = state(disk)
    served = sum(flow["ios"] for flow in flows(disk).values())
    most = _PART_IN_VAIN * served
    assert found["null_dispatches"] <= most, f"of {served} requests: {found}"


def ours(disk: Disk) -> list[str]:
    """The schedulers of the loaded module."""
    names = disk.queue("scheduler").replace("[", " ").replace("]", " ").split()
    return [name for name in names if name not in OF_THE_KERNEL]


def own_values(disk: Disk) -> dict[str, str]:
    """The value of each tunable, in the form in which it can be written back."""
    files = sorted((disk.sysfs / "queue/iosched").iterdir())
    return {file.name: "auto" if "auto" in read(file) else read(file) for file in files}


@contextlib.contextmanager
def scheduled(disk: Disk, scheduler: str, **tunables: object) -> Iterator[None]:
    """@scheduler with @tunables on @disk for the time of a block. All I/O must end in the block."""
    disk.scheduler = scheduler
    for name, value in tunables.items():
        disk.set_tunable(name, value)
    yield
    check_settled(disk)
    disk.scheduler = "none"


def mqfq(disk: Disk, **tunables: object) -> contextlib.AbstractContextManager[None]:
    return scheduled(disk, "mqfq", **tunables)


# --- load ------------------------------------------------------------------------------------


class Load:
    """fio in each of @groups on @target during a block; all its requests must complete.

    @target is a disk, or a file on @device. @disk_leaves means that the device is removed in the
    block, so that errors are expected.
    """

    def __init__(
        self,
        target: Disk | Path,
        groups: Sequence[Cgroup],
        *,
        device: Disk | None = None,
        disk_leaves: bool = False,
        **options: object,
    ) -> None:
        found = target if isinstance(target, Disk) else device
        assert found, f"{target}: the device of a file must be named"
        self.disk = found
        self._target = target
        self.groups = groups
        self._disk_leaves = disk_leaves
        self._options = {"thread": 1, "runtime": _RUNTIME_S, **options}
        self.jobs: list[Fio] = []
        self.results: list[dict[str, Any]] = []

    def __enter__(self) -> Load:
        self.jobs = [Fio(self._target, group, **self._options) for group in self.groups]
        try:
            self.goes_on()
        except AssertionError:
            self.print_state()
            raise
        return self

    def print_state(self) -> None:
        """Prints the state of groups, jobs and scheduler, to explain a failure. Objects that no
        longer exist are left out."""
        for group, job in zip(self.groups, self.jobs, strict=True):
            print(group.name, group.io_stat(self.disk), sep="\n")
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{job.process.pid}/task").iterdir():
                    print(read(task / "stack"))
        with contextlib.suppress(OSError):
            for path in Path("/sys/kernel/debug/block", self.disk.name).rglob("sched/*"):
                print(path, read(path), sep="\n")

    def done(self) -> int:
        """The requests that all groups have completed so far."""
        return sum(done(group, self.disk) for group in self.groups)

    def goes_on(self, requests: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Waits until every group has completed @requests more."""
        before = [done(group, self.disk) for group in self.groups]
        for group, was in zip(self.groups, before, strict=True):
            wait_until(
                lambda group=group, was=was: done(group, self.disk) >= was + requests,
                f"{group.name} does {requests} more requests",
                timeout_s,
            )

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind:
            # The tasks that hang are killed later, so their state is printed now.
            self.print_state()
        # Without its disk fio ends by itself. A signal at that time would spoil its JSON.
        ended = self._disk_leaves and kind is None
        self.results = [job.result(check=False) if ended else job.stop() for job in self.jobs]
        if not kind:
            for group, result in zip(self.groups, self.results, strict=True):
                self._check(group, result)

    def _check(self, group: Cgroup, result: dict[str, Any]) -> None:
        for job in result["jobs"]:
            ios = sum(job[way]["total_ios"] for way in ("read", "write", "trim"))
            assert ios, f"{group.name} did no I/O"
            assert self._disk_leaves or not job["error"], f"{group.name}: error {job['error']}"


def done(group: Cgroup, disk: Disk) -> int:
    """Requests of @group on @disk so far, as the kernel counts them, not we."""
    counts = group.io_stat(disk)
    return sum(counts.get(key, 0) for key in ("rios", "wios", "dios"))


def served_bytes(group: Cgroup, disk: Disk) -> int:
    """Bytes of @group that went to the device; the kernel's own count has those that wait too."""
    return group.io_stat(disk).get("mqfair.bytes", 0)


def sent_bytes(group: Cgroup, disk: Disk) -> int:
    """Bytes that @group has asked for, as the kernel counts them."""
    counts = group.io_stat(disk)
    return sum(counts.get(key, 0) for key in ("rbytes", "wbytes"))


def for_seconds(seconds: float, step: Callable[[], object], pause_s: float = 0.0) -> int:
    """Calls @step repeatedly for @seconds; returns the number of calls."""
    deadline = time.monotonic() + seconds
    times = 0
    while time.monotonic() < deadline:
        step()
        times += 1
        if pause_s:
            time.sleep(pause_s)
    return times


def check_ratio(disk: Disk, heavy: Cgroup, light: Cgroup, due: float) -> None:
    """Checks that @heavy is served @due times as many requests as @light, within 10 %."""
    wait_until(lambda: done(light, disk) > 40, "the first requests are served")
    before = done(heavy, disk), done(light, disk)
    wait_until(lambda: done(light, disk) >= before[1] + 200, "more requests are served")
    ratio = (done(heavy, disk) - before[0]) / (done(light, disk) - before[1])
    print(f"{ratio:.2f} : 1")
    assert abs(ratio / due - 1) < 0.1, f"{ratio:.2f} : 1"


@contextlib.contextmanager
def mounted(drive: Disk, kind: str) -> Iterator[Path]:
    """Mounts a new file system, ext4 or xfs, for the time of a block.

    ext4 clears its tables of inodes at once. By default a kernel thread does that after the mount,
    and journals wait for its writes, which have the same cgroup, the root.
    """
    mount = Path("/run/mounted")
    mount.mkdir(exist_ok=True)
    at_once = "lazy_itable_init=0,lazy_journal_init=0"
    options = ("-F", "-b", 4096, "-E", at_once) if kind == "ext4" else ("-f",)
    run(f"mkfs.{kind}", "-q", *options, drive.path)
    run("mount", "-t", kind, drive.path, mount)
    try:
        yield mount
    finally:
        run("umount", mount)


@contextlib.contextmanager
def tenants(**weights: int) -> Iterator[list[Cgroup]]:
    """Makes cgroups below the root, by name and weight, for the time of a block."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Cgroup(name, weight)) for name, weight in weights.items()]
