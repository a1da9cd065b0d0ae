# SPDX-License-Identifier: GPL-2.0
"""The cgroup to which a disk below charges the requests of a tenant, by the kind of the device
above. doc/common.md has these kinds in a table."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from fairlib import COUNTED_GUEST, flows, scheduled, tenants
from guestlib import (
    Cgroup,
    Disk,
    Fio,
    NullBlk,
    cases,
    every_kernel,
    read,
    run,
    write,
    write_fails,
)
from lio import loopback
from stacks import CRYPT, WITH_PARITY, array, loop, mapped, nvme_target

guest = COUNTED_GUEST

MEMBERS = 4
ARRAYS = ("raid1", "raid10", *WITH_PARITY)
DEVICE = {"memory_backed": 1, "size": 64, "submit_queues": 1, "hw_queue_depth": 8}
SECTORS = DEVICE["size"] << 11
LOAD = {"bs": "4k", "iodepth": 8, "ioengine": "libaio", "size": "8m", "thread": 1}
NEARLY_ALL = 0.9


@contextlib.contextmanager
def over(kind: str, disks: list[NullBlk]) -> Iterator[Disk]:
    made = {
        "loop, direct": lambda: loop(disks[0], direct=True),
        "loop, buffered": lambda: loop(disks[0], direct=False),
        "dm-crypt": lambda: mapped(CRYPT.format(under=disks[0].path), SECTORS),
        "nvmet": lambda: nvme_target(disks[0]),
        "LIO": lambda: loopback(disks[0]),
    }
    with array(kind, disks, SECTORS // 2) if kind in ARRAYS else made[kind]() as top:
        yield top


def served(disks: list[NullBlk]) -> dict[str, int]:
    """The bytes that each cgroup had on all @disks."""
    total: dict[str, int] = {}
    for disk in disks:
        for name, flow in flows(disk).items():
            total[name] = total.get(name, 0) + flow["bytes"]
    return total


def parts(kind: str, way: str, tenant: Cgroup, thread: Cgroup | None = None) -> dict[str, float]:
    """The part of each cgroup of the bytes below, while @tenant reads or writes. The thread of the
    array is moved into @thread."""
    with contextlib.ExitStack() as stack:
        count = MEMBERS if kind in ARRAYS else 1
        disks = [stack.enter_context(NullBlk(f"nullb{n}", **DEVICE)) for n in range(1, count + 1)]
        for disk in disks:
            stack.enter_context(scheduled(disk, "mqfq"))
        top = stack.enter_context(over(kind, disks))
        if thread is not None:
            write(thread.path / "cgroup.procs", thread_of(top))
        before = served(disks)
        Fio(top, tenant, rw=way, end_fsync=int("write" in way), **LOAD).result()
        run("sync")
        after = served(disks)
    grown = {name: now - before.get(name, 0) for name, now in after.items()}
    print(kind, way, grown)
    return {name: one / sum(grown.values()) for name, one in grown.items()}


def thread_of(array: Disk) -> str:
    """The process that issues the array's writes."""
    wanted = f"{array.name}_raid5"[:15]
    found = [one.parent.name for one in Path("/proc").glob("[0-9]*/comm") if read(one) == wanted]
    assert len(found) == 1, f"{wanted}: {found}"
    return found[0]


@every_kernel
@cases(
    ("loop, direct", "randread", "/tenant"),
    ("loop, direct", "randwrite", "/tenant"),
    ("loop, buffered", "randwrite", "/"),
    ("dm-crypt", "randread", "/tenant"),
    ("dm-crypt", "randwrite", "/tenant"),
    ("raid5", "randread", "/tenant"),
    *((level, "randwrite", "/") for level in WITH_PARITY),
    ("raid1", "randwrite", "/tenant"),
    ("raid10", "randwrite", "/tenant"),
    ("nvmet", "randread", "/"),
    ("nvmet", "randwrite", "/"),
    ("LIO", "randread", "/"),
    ("LIO", "randwrite", "/"),
)
def test_the_cgroup_of_the_requests_below(kind: str, way: str, owner: str) -> None:
    with tenants(tenant=100) as (tenant,):
        assert parts(kind, way, tenant).get(owner, 0) >= NEARLY_ALL


@every_kernel
def test_the_thread_of_an_array_takes_its_writes_into_a_cgroup() -> None:
    with tenants(tenant=100, array=100) as (tenant, array):
        found = parts("raid5", "randwrite", tenant, array)
        assert found.get("/array", 0) >= NEARLY_ALL


@every_kernel
def test_workers_stay_with_the_root() -> None:
    """So requests that they issue for a target, as nvmet's, can have no cgroup."""
    workers = [
        one.parent.name for one in Path("/proc").glob("[0-9]*/comm") if read(one)[:8] == "kworker/"
    ]
    with tenants(tenant=100) as (tenant,):
        assert write_fails(tenant.path / "cgroup.procs", workers[0]) == errno.EINVAL
