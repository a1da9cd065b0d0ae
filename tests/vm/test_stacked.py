# SPDX-License-Identifier: GPL-2.0
"""Weights on request-based dm-multipath, with the depth that `mqfair enable` chooses.

test_table.py has the other stacked devices. The time is counted, as in test_tags.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from fairlib import (
    COUNTED_GUEST,
    EIGHT_SLOTS,
    SLOTS,
    Load,
    check_ratio,
    check_settled,
    tenants,
)
from guestlib import NullBlk, cases, every_kernel, run, slow_for
from stacks import multipath

guest = COUNTED_GUEST

ROOT = Path(__file__).resolve().parents[2]
DEVICE = {**EIGHT_SLOTS, "memory_backed": 1, "size": 64}
SECTORS = DEVICE["size"] << 11
GREEDY = {"bs": "4k", "norandommap": 1, "ioengine": "psync", "numjobs": 24}
HEAVY, LIGHT = 800, 100
SETTLED = 300


@every_kernel
@slow_for(1, 3)
@cases(1, 2, 3)
def test_weights_on_request_based_multipath(count: int) -> None:
    """The scheduler of the upper disk orders. `mqfair enable` has its depth begin with the slots of
    the paths, since it has 2048 slots of its own."""
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(NullBlk(f"nullb{n}", **DEVICE)) for n in range(1, count + 1)]
        heavy, light = stack.enter_context(tenants(heavy=HEAVY, light=LIGHT))
        top = stack.enter_context(multipath(paths, SECTORS))
        os.chdir(ROOT)
        said = run(sys.executable, "-m", "mqfair", "enable", top.name).stdout
        print(said)
        assert f"depth {SLOTS * count} auto" in said
        crowd = {**GREEDY, "numjobs": GREEDY["numjobs"] * count}
        with Load(top, [heavy, light], rw="randread", **crowd) as load:
            # An automatic depth tries greater windows at first.
            load.goes_on(SETTLED * count)
            check_ratio(top, heavy, light, HEAVY / LIGHT)
        check_settled(top)
        top.scheduler = "none"
