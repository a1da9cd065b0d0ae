# SPDX-License-Identifier: GPL-2.0
"""The CPU time that a scheduler adds to a request in the simulator: `mqfair sim --priced`.

The instructions were counted on Linux 6.12 with one reader of 32 requests of 4 KiB, beyond those of
`none`: `python3 -m experiments.instructions --kernel 6.12 --workloads qd32`. Each takes as long as
one of `none` does with --request-ns.

BFQ and mq-deadline have one lock for a drive. Their instructions tell how long a CPU holds the lock
that had it before. Another CPU waits for each line of memory that the scheduler writes, and no
count tells for how long. So that time is from published measurements of a 980 PRO with one to 15
readers of 128 requests on ten cores (Ren, Doekemeijer, De Matteis, Pinto, Stoica, Trivedi, ICPE
2024, figure 7). Two or more did 270,000 to 315,000 requests a second under BFQ, 462,000 to 569,000
under mq-deadline, and 726,000 or more under `none`.

The locks of Kyber and of our schedulers are by queue, so CPUs do not wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass

NONE_INSTRUCTIONS = 8758
# The means of the 14 rates, and the time of a request of one reader under `none` there.
_BFQ_RATE, _DEADLINE_RATE, _NONE_NS = 285_000, 486_000, 2624


@dataclass(frozen=True)
class Price:
    """Instructions of a request beyond those of `none`, and the time for which a CPU holds the
    lock that it takes from another one, relative to the time of a request under `none`."""

    instructions: int = 0
    locked: float = 0.0

    def own_ns(self, request_ns: int) -> int:
        """@request_ns is the CPU time of a request under `none`."""
        return round(self.instructions * request_ns / NONE_INSTRUCTIONS)

    def locked_ns(self, request_ns: int) -> int:
        return round(self.locked * request_ns)

    def statements(self, request_ns: int) -> list[str]:
        """The CPU time of a request, in the language of sim/describe.h. Two sevenths of @request_ns
        are those of the completion."""
        complete_ns = request_ns * 2 // 7
        locked_ns = self.locked_ns(request_ns)
        return [
            f"submit_ns {request_ns - complete_ns + self.own_ns(request_ns)}",
            f"complete_ns {complete_ns}",
            *([f"locked_ns {locked_ns}"] if locked_ns else ()),
        ]


FREE = Price()
PRICES = {
    "mqfq": Price(1702),
    "ifq": Price(1914),
    "kyber-fair": Price(1822),
    "wdt": Price(1836),
    "hwabc": Price(1866),
    "bwf2q": Price(4667, 1e9 / _BFQ_RATE / _NONE_NS),
    "mq-deadline": Price(1801, 1e9 / _DEADLINE_RATE / _NONE_NS),
    "kyber": Price(2087),
}


def price(scheduler: str, priced: bool) -> Price:
    """The price of @scheduler; nothing if it was not counted, or without @priced."""
    return PRICES.get(scheduler, FREE) if priced else FREE
