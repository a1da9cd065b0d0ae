# SPDX-License-Identifier: GPL-2.0
"""How a device was shared: measured by io.stat, judged against the weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from fairlib import served_bytes
from guestlib import Cgroup, Disk, NullBlk

TOLERANCE = 0.10
JAIN_LEAST = 0.98
PAGE = 4096

WEIGHTS = {"w100": 100, "w250": 250, "w500": 500, "w1000": 1000}
SLOTS = 32
# From each, on each processor, as much as would fill the device twice: who is late still waits.
DEMAND = {
    "rw": "randread",
    "bs": "4k",
    "iodepth": 2 * SLOTS,
    "norandommap": 1,
    "numjobs": 2,
    "cpus_allowed": "0-1",
    "cpus_allowed_policy": "split",
}
TAGS = 16 * SLOTS

# Service times to try: 1000 requests a second are little for an emulated processor, unless
# others use the real one.
_COMPLETION_NS = (32_000_000, 64_000_000, 160_000_000)
_BUSY_LEAST = 0.85
_SETTLE_S = 1.0
_REQUESTS = 4000


class NotTheLimitError(Exception):
    """The device was not busy: what was measured says nothing of how it is shared."""


def on_a_busy_device(measure: Callable[[NullBlk, int], None], **attributes: object) -> None:
    """@measure(disk, completion_nsec) on a device of SLOTS slots that is the limit."""
    for completion_ns in _COMPLETION_NS:
        timed = {"irqmode": 2, "completion_nsec": completion_ns, **attributes}
        try:
            with NullBlk(**timed) as disk:
                return measure(disk, completion_ns)
        except NotTheLimitError as error:
            print(error)
    raise AssertionError("no device was slow enough to be the limit, or it is left idle")


def shares(
    disk: Disk,
    groups: Sequence[Cgroup],
    completion_ns: int,
    count: Callable[[Cgroup, Disk], int] = served_bytes,
) -> dict[str, float]:
    """The part of all bytes, by @count, that each group gets, from a second on."""
    time.sleep(_SETTLE_S)
    most = SLOTS * 1e9 / completion_ns
    seconds = min(max(_REQUESTS / most, 3.0), 6.0)
    before, began = [count(group, disk) for group in groups], time.monotonic()
    time.sleep(seconds)
    moved = [count(group, disk) - was for group, was in zip(groups, before, strict=True)]
    rate = sum(moved) / PAGE / (time.monotonic() - began)
    print(f"bytes: {moved}, {rate:.0f} requests/s of {most:.0f}")
    if rate < _BUSY_LEAST * most:
        raise NotTheLimitError(f"{rate:.0f} of {most:.0f} requests/s: a slower device is needed")
    return {group.name: part / sum(moved) for group, part in zip(groups, moved, strict=True)}


def check_shares(got: Mapping[str, float], weights: Mapping[str, float]) -> None:
    """Each within TOLERANCE of its weight's part, all together by Jain's index."""
    total = sum(weights.values())
    ratio = {name: got[name] / (weight / total) for name, weight in weights.items()}
    jain = sum(ratio.values()) ** 2 / (len(ratio) * sum(x * x for x in ratio.values()))
    told = ", ".join(f"{name} {got[name]:.1%} ({x - 1:+.1%})" for name, x in ratio.items())
    print(f"{told}; Jain {jain:.4f}")
    assert max(abs(x - 1) for x in ratio.values()) <= TOLERANCE, told
    assert jain >= JAIN_LEAST, f"Jain {jain:.4f}: {told}"
