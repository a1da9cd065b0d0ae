# SPDX-License-Identifier: GPL-2.0
"""Where the limit of a simulated run is: the drive, the slots of the scheduler, a CPU or the load.

The simulator measures the part of the time for which each resource works. A resource of the drive
that works for FULL of the time is the limit, whatever else is full: more slots would bring no more
requests. Then come CPUs, then the slots: the requests inside are as many as the window lets in.
Otherwise the load is the limit, because it submits no more.

Planes are less than full at the limit of a drive. Requests are placed at random, so a few planes
wait while others have a queue.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

# In the order in which a command meets them. "slots" are those of a drive of fixed times.
OF_DRIVES = ("controller", "link", "channels", "planes", "slots")
BUSIEST = "busiest_cpu"
FULL = 0.8
FULL_CPU = 0.95
FULL_WINDOW = 0.95


def used_window(depth: Mapping[str, Any]) -> tuple[float, int | None]:
    """The mean number of requests inside in the second half of the run, and the window at its
    end."""
    inside = depth["inside"][len(depth["inside"]) // 2 :]
    return statistics.fmean(inside), depth["window"][-1] if "window" in depth else None


def limit(pressure: Mapping[str, float], depth: Mapping[str, Any]) -> str:
    """The name of the limit of one run."""
    drive = {name: pressure[name] for name in OF_DRIVES if name in pressure}
    most = max(drive, key=lambda name: drive[name])
    if drive[most] >= FULL:
        return f"drive: {most}"
    if pressure[BUSIEST] >= FULL_CPU:
        return "CPU"
    inside, window = used_window(depth)
    if window is not None and inside >= window * FULL_WINDOW:
        return "slots"
    return "load"


def names(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The resources of the drive in the details of @runs."""
    return [name for name in OF_DRIVES if any(name in one["pressure"] for one in runs)]
