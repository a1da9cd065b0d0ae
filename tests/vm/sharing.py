# SPDX-License-Identifier: GPL-2.0
"""Measures shares of a device by io.stat, and checks them against the weights."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

from fairlib import served_bytes
from guestlib import PATIENCE_S, Cgroup, Disk, NullBlk

PAGE = 4096


@dataclasses.dataclass(frozen=True)
class Promise:
    """The precision of a scheduler's shares on a busy device with equal requests.

    @tolerance is the greatest relative error of a share, @jain_least the least Jain's index.
    """

    tolerance: float = 0.10
    jain_least: float = 0.98


# The budget schedulers divide an estimate of a period's throughput, so their shares are as precise
# as the estimate. Jain's index was 0.979 to 0.9999 on a busy machine.
_BY_BUDGET = Promise(tolerance=0.25, jain_least=0.97)
PROMISES = {"wdt": _BY_BUDGET, "kyber-fair": _BY_BUDGET, "hwabc": _BY_BUDGET}

WEIGHTS = {"w100": 100, "w250": 250, "w500": 500, "w1000": 1000}
SLOTS = 32
TWO_QUEUES = {"submit_queues": 2, "hw_queue_depth": SLOTS // 2}
# Each tenant keeps enough requests on each processor to fill the device three times. So a tenant
# has requests waiting even if its processor stops for half a second.
DEMAND = {
    "rw": "randread",
    "bs": "4k",
    "iodepth": 3 * SLOTS,
    "norandommap": 1,
    "numjobs": 2,
    "cpus_allowed": "0-1",
    "cpus_allowed_policy": "split",
}
TAGS = 16 * SLOTS

# The service times to try. An emulated processor may be too slow to keep the first device busy.
_COMPLETION_NS = (64_000_000, 256_000_000)
_BUSY_LEAST = 0.85
# ifq settles within seven windows of 500 ms after the last tenant has come.
_SETTLE_S = 4.0
# The requests to count, in slices. Slices in which the device was not busy are left out.
_REQUESTS = 3000
_SLICE_REQUESTS = 300
_IDLE_SLICES_MOST = 4
# A slice takes 0.6 s or longer. A look costs an emulated processor as much as 50 requests.
_LOOK_S = 0.1


class NotTheLimitError(Exception):
    """The device was not busy, so the measured shares mean nothing."""


def on_a_busy_device(measure: Callable[[NullBlk], None], **attributes: object) -> None:
    """Calls @measure with a device of SLOTS slots that is slow enough to be the bottleneck."""
    for completion_ns in _COMPLETION_NS:
        timed = {"irqmode": 2, "completion_nsec": completion_ns, **attributes}
        try:
            with NullBlk(**timed) as disk:
                return measure(disk)
        except NotTheLimitError as error:
            print(error)
    raise AssertionError("no device was slow enough to be busy, or the scheduler left it idle")


def shares(
    disk: Disk,
    groups: Sequence[Cgroup],
    count: Callable[[Cgroup, Disk], int] = served_bytes,
    requests: int = _REQUESTS,
) -> dict[str, float]:
    """Each group's part of the bytes of @requests, by @count, after some seconds to settle.

    The device counts as busy while SLOTS requests are in it, however slow it is.
    """
    time.sleep(_SETTLE_S)
    total = dict.fromkeys(groups, 0)
    idle = 0
    while sum(total.values()) < requests * PAGE:
        served, in_device = _slice(disk, groups, min(requests, _SLICE_REQUESTS), count)
        if in_device >= _BUSY_LEAST * SLOTS:
            total = {group: total[group] + served[group] for group in groups}
            continue
        idle += 1
        if idle > _IDLE_SLICES_MOST:
            raise NotTheLimitError(f"{in_device:.1f} requests in the device, of {SLOTS}")
    print(f"bytes: {list(total.values())}, {idle} slices left out, {in_device:.1f} in the device")
    return {group.name: part / sum(total.values()) for group, part in total.items()}


def _slice(
    disk: Disk, groups: Sequence[Cgroup], requests: int, count: Callable[[Cgroup, Disk], int]
) -> tuple[dict[Cgroup, int], float]:
    """The bytes of each group while all together had @requests served, and the mean number of
    requests in the device meanwhile."""
    before = {group: count(group, disk) for group in groups}
    deadline = time.monotonic() + PATIENCE_S
    looks = []
    while True:
        looks.append(disk.in_flight())
        served = {group: count(group, disk) - was for group, was in before.items()}
        if sum(served.values()) >= requests * PAGE:
            return served, sum(looks) / len(looks)
        assert time.monotonic() < deadline, f"{disk.name} makes no progress: {served}"
        time.sleep(_LOOK_S)


def check_shares(
    got: Mapping[str, float], weights: Mapping[str, float], scheduler: str = "mqfq"
) -> None:
    """Checks that the shares @got are as near to @weights as @scheduler promises."""
    promise = PROMISES.get(scheduler, Promise())
    total = sum(weights.values())
    ratio = {name: got[name] / (weight / total) for name, weight in weights.items()}
    jain = sum(ratio.values()) ** 2 / (len(ratio) * sum(x * x for x in ratio.values()))
    text = ", ".join(f"{name} {got[name]:.1%} ({x - 1:+.1%})" for name, x in ratio.items())
    print(f"{text}; Jain {jain:.4f}")
    farthest = max(abs(x - 1) for x in ratio.values())
    near = farthest <= promise.tolerance and jain >= promise.jain_least
    assert near, f"Jain {jain:.4f}: {text}"
