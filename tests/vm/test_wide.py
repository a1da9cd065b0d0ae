# SPDX-License-Identifier: GPL-2.0
"""Four processors on one hardware queue and on four: more that meets, and more that moves."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

from fairlib import WIDE_GUEST, Load, mqfq, queues, tenants
from guestlib import NullBlk, TimingError, cases, timed, write

guest = WIDE_GUEST

LOAD = {"rw": "randrw", "bsrange": "512-16k", "numjobs": 4, "iodepth": 16}
TIMED = {"irqmode": 2, "completion_nsec": 2_000_000}


@cases((1, 16), (2, 8), (4, 4))
def test_all_that_changes_under_load(hardware_queues: int, slots: int) -> None:
    options = {**TIMED, "submit_queues": hardware_queues, "hw_queue_depth": slots}
    with (
        NullBlk(**options) as disk,
        tenants(a=100, b=300, c=1000) as groups,
        mqfq(disk, depth=6, threshold_kb=8),
        Load(disk, groups, **LOAD) as load,
    ):
        for name in islice(cycle(["none", "mqfq"]), 20):
            disk.scheduler = name
        for size in (4, 64, 7):
            disk.set_queue("nr_requests", size)
            load.goes_on()
        for cpu in (3, 1, 2):
            online = Path(f"/sys/devices/system/cpu/cpu{cpu}/online")
            write(online, 0)
            load.goes_on()
            write(online, 1)
        load.goes_on()


# A processor that stands still asks for nothing.
@timed
def test_each_processor_has_a_queue_and_gets_its_turn() -> None:
    with (
        NullBlk(irqmode=2, completion_nsec=8_000_000, submit_queues=1, hw_queue_depth=8) as disk,
        tenants(a=100, b=100) as groups,
        mqfq(disk, depth=4),
    ):
        pinned = {"numjobs": 4, "cpus_allowed": "0-3", "cpus_allowed_policy": "split"}
        with Load(disk, groups, iodepth=4, **pinned) as load:
            load.goes_on(400)
        lines = queues(disk)
        print(*lines, sep="\n")
        counts = [dict(pair.split("=") for pair in line.split() if "=" in pair) for line in lines]
        served = [int(count["dispatched"]) for count in counts if int(count["inserted"])]
        assert len(served) == 4, f"{len(served)} processors had I/O"
        if min(served) <= sum(served) / 16:
            raise TimingError(f"a processor was passed over: {served}")
