# SPDX-License-Identifier: GPL-2.0
"""What tests of mqfair share: its state in debugfs, load from several cgroups, the final check.

Standard library only: it runs on the guest's Python.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from guestlib import Cgroup, Disk, Fio, Guest, read, wait_until

# One boot for as many files as possible. The drives are large enough for xfs.
SMALL_GUEST = Guest(
    cpus=2,
    memory_mb=1536,
    nvme=("size=512M,queues=2", "size=512M,queues=2"),
    needs_module=True,
)
WIDE_GUEST = Guest(cpus=4, memory_mb=1024, needs_module=True)

_LOADED_S = 30.0


# --- what debugfs says -----------------------------------------------------------------------


def state(disk: Disk) -> dict[str, int]:
    """The numbers of sched/state; ``slots_free`` is the sum over the levels of the tree."""
    found: dict[str, int] = {}
    for line in disk.debugfs("sched/state").splitlines():
        name, _, text = line.partition(" ")
        found[name] = sum(int(number) for number in re.findall(r"-?\d+", text))
    return found


def flows(disk: Disk) -> dict[str, dict[str, int]]:
    """The lines of sched/flows by cgroup, "/" for the root."""
    found = {}
    for line in disk.debugfs("sched/flows").splitlines():
        path, *pairs = line.split()
        found[path] = {key: int(value) for key, _, value in (p.partition("=") for p in pairs)}
    return found


def queues(disk: Disk) -> list[str]:
    """The line of each CPU's queue."""
    folder = Path("/sys/kernel/debug/block") / disk.name
    files = sorted(folder.glob("hctx*/sched/queues"))
    return [line for file in files for line in read(file).splitlines() if "cpu=" in line]


def check_settled(disk: Disk) -> dict[str, int]:
    """Nobody does I/O on @disk: nothing is held, every slot is back, nothing was forgotten."""
    wait_until(lambda: disk.in_flight() == 0, f"{disk.name} is idle")
    found = state(disk)
    print(f"{disk.name}: {found}")
    assert found["slots_free"] == found["depth"], f"slots lost or invented: {found}"
    assert found["watchdog"] == 0, f"queues were forgotten: {found}"
    for path, flow in flows(disk).items():
        assert flow["queued"] == 0 and flow["outstanding"] == 0, f"{path} is not idle: {flow}"
    return found


@contextlib.contextmanager
def mqfq(disk: Disk, **tunables: object) -> Iterator[None]:
    """mqfq on @disk with @tunables; the I/O of the block has ended by its end."""
    disk.scheduler = "mqfq"
    for name, value in tunables.items():
        disk.set_tunable(name, value)
    yield
    check_settled(disk)
    disk.scheduler = "none"


# --- load ------------------------------------------------------------------------------------


class Load:
    """fio in each of @groups on @target during a block; all that was issued must come back.

    @target is a disk, or a file on @device.
    @disk_leaves: the device is taken away in the block, so errors are expected.
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
        self._options = {"thread": 1, "runtime": 120, **options}
        self.jobs: list[Fio] = []
        self.results: list[dict[str, Any]] = []

    def __enter__(self) -> Load:
        self.jobs = [Fio(self._target, group, **self._options) for group in self.groups]
        try:
            self.goes_on(_LOADED_S)
        except AssertionError:
            self.tell()
            raise
        return self

    def tell(self) -> None:
        """For whoever looks into a failure."""
        for group, job in zip(self.groups, self.jobs, strict=True):
            tasks = Path(f"/proc/{job.process.pid}/task")
            where = [read(task / "stack") for task in tasks.iterdir()]
            print(group.name, group.io_stat(self.disk), *where, sep="\n")
        for path in Path("/sys/kernel/debug/block", self.disk.name).rglob("sched/*"):
            print(path, read(path), sep="\n")

    def done(self) -> int:
        """Requests of all groups so far."""
        return sum(done(group, self.disk) for group in self.groups)

    def goes_on(self, timeout_s: float = 10.0) -> None:
        """Every group gets more done."""
        before = [done(group, self.disk) for group in self.groups]
        for group, was in zip(self.groups, before, strict=True):
            wait_until(
                lambda group=group, was=was: done(group, self.disk) > was,
                f"{group.name} does I/O",
                timeout_s,
            )

    def __exit__(self, kind: object, *_: object) -> None:
        self.results = [job.stop() for job in self.jobs]
        if kind is None:
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
    """Call @step again and again for @seconds; returns how often."""
    deadline = time.monotonic() + seconds
    times = 0
    while time.monotonic() < deadline:
        step()
        times += 1
        if pause_s:
            time.sleep(pause_s)
    return times


@contextlib.contextmanager
def tenants(**weights: int) -> Iterator[list[Cgroup]]:
    """Cgroups below the root, by name and weight."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Cgroup(name, weight)) for name, weight in weights.items()]
