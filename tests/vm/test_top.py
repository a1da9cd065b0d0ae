# SPDX-License-Identifier: GPL-2.0
"""`mqfair top` tells the shares that the cgroups of a busy device really get."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlib import COUNTED_PAIR, Load, mqfq, served_bytes, tenants
from guestlib import Cgroup, NullBlk, run, slow
from sharing import DEMAND, SLOTS, TAGS, TWO_QUEUES, WEIGHTS, check_shares, on_a_busy_device

guest = COUNTED_PAIR

ROOT = Path(__file__).resolve().parents[2]
INTERVAL_S = 6
PPM = 1_000_000
# The counters are read twice, here and in the command, at times that differ a little.
NEAR = 0.02


def top(disk: NullBlk) -> dict[str, Any]:
    """The one drive in the report."""
    os.chdir(ROOT)
    argv = [sys.executable, "-m", "mqfair", "top", disk.name]
    done = run(*argv, "--once", "--json", "--interval", str(INTERVAL_S))
    (found,) = json.loads(done.stdout)["disks"]
    return found


def watch(disk: NullBlk, groups: Sequence[Cgroup]) -> tuple[dict[str, Any], dict[str, int]]:
    """The report under load, and the bytes that each cgroup was served meanwhile."""
    with Load(disk, groups, **DEMAND) as load:
        load.goes_on(100)
        before = {group.name: served_bytes(group, disk) for group in groups}
        found = top(disk)
        return found, {g.name: served_bytes(g, disk) - before[g.name] for g in groups}


@slow
def test_it_tells_due_and_achieved_shares_under_load() -> None:
    def check(disk: NullBlk) -> None:
        with tenants(**WEIGHTS) as groups, mqfq(disk, depth=SLOTS):
            disk.set_queue("nr_requests", TAGS)
            found, served = watch(disk, groups)
        lines = {line["cgroup"]: line for line in found["cgroups"]}
        print(json.dumps(found, indent=1))
        total = sum(WEIGHTS.values())
        for name, weight in WEIGHTS.items():
            line = lines[name]
            assert line["weight"] == weight
            assert abs(line["due_ppm"] / PPM - weight / total) < 0.001, line
            real = served[name] / sum(served.values())
            assert abs(line["achieved_ppm"] / PPM - real) < NEAR, f"{real:.3f}: {line}"
            assert line["waiting_x100"] > 100 and line["inside_x100"] > 0, line
            assert line["wait_us"] > 0 and line["service_us"] > 0 and line["p99_us"] > 0, line
        assert found["iops"] > 0 and found["in_flight"] > 0, found
        check_shares({name: line["achieved_ppm"] / PPM for name, line in lines.items()}, WEIGHTS)

    on_a_busy_device(check, **TWO_QUEUES)
