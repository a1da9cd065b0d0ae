# SPDX-License-Identifier: GPL-2.0
"""The rows of the table of devices that stand on null_blk: see table.py.

The time is counted, as in test_tags.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fairlib import COUNTED_GUEST, EIGHT_SLOTS
from guestlib import Disk, NullBlk, cases, slow, time_limit
from lio import loopback
from nvmet import connected
from stacks import CRYPT, CRYPT_DIRECT, array, loop, mapped, multipath, nvme_target
from table import WAYS, Device, Maker, check_reason, check_removal, check_share

guest = COUNTED_GUEST

NULL = {**EIGHT_SLOTS, "memory_backed": 1, "size": 64}
# `mqfair check` reads many files of the host, and counted time runs ahead while it waits for them.
_CHECK_S = 3600.0
SECTORS = NULL["size"] << 11


@contextlib.contextmanager
def nulls(count: int) -> Iterator[list[NullBlk]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(NullBlk(f"nullb{n}", **NULL)) for n in range(1, count + 1)]


@contextlib.contextmanager
def initiator() -> Iterator[Device]:
    with nulls(1) as (disk,), connected(disk, 1) as (controller,):
        yield Device({controller.head: [controller.path]}, [controller.disconnect])


@contextlib.contextmanager
def over(
    count: int,
    make: Callable[[list[NullBlk]], contextlib.AbstractContextManager[Disk]],
    copies: int = 0,
) -> Iterator[Device]:
    """The disk that @make makes over @count disks with the scheduler. It needs all of them but
    @copies."""
    with nulls(count) as disks, make(disks) as top:
        yield Device({top: disks}, [disk.remove for disk in disks[: copies + 1]])


@contextlib.contextmanager
def two_paths() -> Iterator[Device]:
    with nulls(2) as disks, multipath(disks, SECTORS) as top:
        yield Device({top: [top]}, [disk.remove for disk in disks])


def mapping(table: str) -> Callable[[list[NullBlk]], contextlib.AbstractContextManager[Disk]]:
    return lambda disks: mapped(table.format(under=disks[0].path), SECTORS)


KINDS: dict[str, Maker] = {
    "NVMe-TCP": initiator,
    "NVMe-TCP target": lambda: over(1, lambda disks: nvme_target(disks[0])),
    "LIO target": lambda: over(1, lambda disks: loopback(disks[0])),
    "dm-linear": lambda: over(1, mapping("linear {under} 0")),
    "dm-crypt": lambda: over(1, mapping(CRYPT)),
    "dm-crypt, no_write_workqueue": lambda: over(1, mapping(CRYPT_DIRECT)),
    "raid0": lambda: over(1, lambda disks: array("raid0", disks, SECTORS // 2)),
    "raid1": lambda: over(2, lambda disks: array("raid1", disks, SECTORS // 2), 1),
    "raid5": lambda: over(3, lambda disks: array("raid5", disks, SECTORS // 2), 1),
    "dm-multipath": two_paths,
    "loop, direct": lambda: over(1, lambda disks: loop(disks[0], direct=True)),
}

# The devices that are not shared by weight: whether `mqfair check` is asked about the disk below,
# and its words.
UNSHARED = {
    ("NVMe-TCP target", "randread"): (True, "its kernel threads issue the requests to"),
    ("NVMe-TCP target", "randwrite"): (True, "its kernel threads issue the requests to"),
    ("LIO target", "randread"): (True, "its kernel threads issue the requests to"),
    ("LIO target", "randwrite"): (True, "its kernel threads issue the requests to"),
    ("dm-crypt", "randwrite"): (False, "its thread issues writes, and cgroups share half"),
    ("raid1", "randread"): (False, "the reads of a cgroup may all wait at one copy"),
    ("raid5", "randwrite"): (False, "its thread issues writes, which are charged to the root"),
}
# Its shares depend on the copy at which the reads of each tenant wait.
AT_TIMES = {("raid1", "randread")}
# Another scheduler than mqfq.
OTHERS = (("NVMe-TCP", "randread", "hwabc"), ("dm-multipath", "randread", "hwabc"))


@slow
@cases(
    *((kind, way, "mqfq") for kind in KINDS for way in WAYS if (kind, way) not in UNSHARED),
    *OTHERS,
)
def test_the_share(kind: str, way: str, scheduler: str) -> None:
    check_share(KINDS[kind], way, scheduler)


@slow
@time_limit(_CHECK_S)
@cases(*UNSHARED)
def test_check_says_why_the_weights_do_not_hold(kind: str, way: str) -> None:
    below, line = UNSHARED[kind, way]
    check_reason(KINDS[kind], way, line, below=below, always=(kind, way) not in AT_TIMES)


@slow
@cases(*KINDS)
def test_removal_under_load(kind: str) -> None:
    check_removal(KINDS[kind])
