# SPDX-License-Identifier: GPL-2.0
"""iocost's model of a simulated drive: the six rates that the bench measures in a guest."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqfair.bench import iocost
from mqfair.bench.variant import NONE

# The time of each probe. A probe of fio in a guest takes 1.3 s, and its rate is the same.
_RAMP_MS = 50
_RUN_MS = 200
_BYTES = {"4k": 4 << 10, "1m": 1 << 20}


def rates(
    head: Sequence[str], load: Callable[[int, str], str], flow: str, play: Callable[[str], Any]
) -> dict[str, int]:
    """The rates of the drive under none. @head are the statements of sim-run for host, drive and
    flows. load() makes one for a job of @flow from its number and its words. play() runs a
    description."""
    found = {}
    for probe in iocost.PROBES:
        order = "random" if probe.rw.startswith("rand") else "sequential"
        words = f"depth {probe.depth} bytes {_BYTES[probe.bs]} order {order} reaped 1"
        words += f" write {1000 if probe.direction == 'write' else 0}"
        lines = [
            f"scheduler {NONE}",
            *head,
            f"warm_ms {_RAMP_MS}",
            f"run_ms {_RUN_MS}",
            "audit end",
            *(load(number, words) for number in range(iocost.PROBE_JOBS)),
        ]
        figures = play("\n".join(lines) + "\n")["flows"][flow]
        name = "iops" if probe.figure == "iops" else "bytes_per_s"
        found[probe.coefficient] = max(1, round(figures[name]))
    return found


def settings(model: Mapping[str, int]) -> list[str]:
    """The tunables of sim/iocost.c for @model. It has bandwidths in KiB per second."""
    return [
        f"set {name}_kib {max(1, rate >> 10)}" if name.endswith("bps") else f"set {name} {rate}"
        for name, rate in model.items()
    ]
