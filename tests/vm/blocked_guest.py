# SPDX-License-Identifier: GPL-2.0
"""The race of blocked queues in the guest, in a build that holds its window open, until a time is
over: see tests/vm/test_windows.py.

usage: blocked_guest.py SECONDS

In this build each look at a queue that holds virtual time back is out of date: it is blocked,
although it can run. It has one request at a time, so no later insert finds a forgotten one.
On the second disk a writer also calls fsync. Each of its flushes really blocks the queue. The last
line of the output is JSON: counts, and the failures.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import agent
from fairlib import Load, mqfq, state, tenants
from guestlib import Cgroup, KernelLog, NullBlk, rmmod, splats

DEVICE = {"irqmode": 2, "completion_nsec": 100_000, "submit_queues": 2, "hw_queue_depth": 8}
CACHED = {**DEVICE, "memory_backed": 1, "size": 64, "cache_size": 4}
PINNED = {"cpus_allowed_policy": "shared"}
# A stall is for ever. The guest itself may stand still for seconds on a busy host.
STALL_S = 60.0
LOOK_S = 5.0


def watch(seconds: float, loads: list[Load]) -> list[str]:
    """Looks at each group of @loads until @seconds are over. Returns a group that stands still."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for load in loads:
            try:
                load.goes_on(1, STALL_S)
            except AssertionError as error:
                load.print_state()
                return [f"{load.disk.name}: {error}"]
        time.sleep(LOOK_S)
    return []


def race(seconds: float, groups: list[Cgroup]) -> tuple[dict[str, int], list[str]]:
    many, alone, sync = groups
    two = {**PINNED, "iodepth": 16, "cpus_allowed": 1, "runtime": 2 * int(seconds) + 600}
    one = {**PINNED, "ioengine": "psync", "cpus_allowed": 0, "runtime": two["runtime"]}
    counts = {}
    with (
        NullBlk(**DEVICE) as first,
        NullBlk("nullb8", **CACHED) as second,
        mqfq(first, depth=2, threshold_kb=4),
        mqfq(second, depth=2, threshold_kb=4),
        Load(first, [many], **two) as a,
        Load(first, [alone], **one) as b,
        Load(second, [many], **two) as c,
        Load(second, [alone], **one) as d,
        Load(second, [sync], **one, rw="randwrite", fsync=1) as e,
    ):
        failures = watch(seconds, [a, b, c, d, e])
        for load, name in ((b, "first"), (d, "second")):
            found = state(load.disk)
            counts[f"{name} disk: requests of the lone reader"] = load.done()
            counts[f"{name} disk: blocks"] = found["blocks"]
            counts[f"{name} disk: throttles"] = found["throttles"]
        counts["second disk: requests of the writer that calls fsync"] = e.done()
    return counts, failures


def main() -> int:
    agent.be_patient()
    log = KernelLog(whole=True)
    with tenants(many=100, alone=100, sync=100) as groups:
        counts, failures = race(float(sys.argv[1]), groups)
    rmmod("mqfair")
    failures += [f"the kernel complained: {line}" for line in splats(log.read())]
    print(json.dumps({"steps": counts, "refused": {}, "failures": failures}))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
