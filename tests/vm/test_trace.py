# SPDX-License-Identifier: GPL-2.0
"""The tracepoints of the module tell times that have passed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, Load, mqfq, tenants
from guestlib import NullBlk, run, wait_until, write

guest = SMALL_GUEST

TRACING = Path("/sys/kernel/tracing")
EVENT = TRACING / "events/mqfair/mqfair_dispatch"
# One hardware queue: a batch that one CPU sends names the time for a request of the other.
DRIVE = {"irqmode": 2, "completion_nsec": 1_000_000, "submit_queues": 1, "hw_queue_depth": 4}
BATCHES = {
    "rw": "randread", "bs": "4k", "ioengine": "libaio", "iodepth": 16,
    "iodepth_batch_submit": 8, "iodepth_batch_complete_min": 8, "numjobs": 2,
}  # fmt: skip
SECONDS = 10
# A time below 0 is a number near 2^64.
HOUR_NS = 3600 * 10**9


@contextlib.contextmanager
def traced(disk: NullBlk, wanted: str) -> Iterator[None]:
    """Traces the dispatches with @wanted, while there are batches from two CPUs."""
    write(EVENT / "filter", wanted)
    (TRACING / "trace").write_text("")
    write(EVENT / "enable", 1)
    try:
        with tenants(heavy=900, light=100) as groups, Load(disk, groups, **BATCHES):
            yield
    finally:
        write(EVENT / "enable", 0)


def dispatches() -> list[str]:
    text = (TRACING / "trace").read_text()
    return [line for line in text.splitlines() if "mqfair_dispatch:" in line]


def test_no_wait_is_below_zero() -> None:
    """A request's time is that at which it was made. Others may go before it is inserted."""
    if not EVENT.exists():
        run("mount", "-t", "tracefs", "tracefs", TRACING)
    with NullBlk(**DRIVE) as disk, mqfq(disk):
        with traced(disk, f"wait_ns < {HOUR_NS}"):
            wait_until(dispatches, "dispatches are traced")
        with traced(disk, f"wait_ns >= {HOUR_NS}"):
            time.sleep(SECONDS)
        wrong = dispatches()
        assert wrong == [], f"{len(wrong)} dispatches, the first: {wrong[0]}"
