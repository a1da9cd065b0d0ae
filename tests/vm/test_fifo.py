# SPDX-License-Identifier: GPL-2.0
"""A check of the check: a build that serves requests in order of arrival must fail check_shares."""

from __future__ import annotations

import dataclasses

from fairlib import COUNTED_PAIR, Load, mqfq, sent_bytes, tenants
from guestlib import NullBlk, slow
from sharing import DEMAND, SLOTS, WEIGHTS, check_shares, on_a_busy_device, shares

guest = dataclasses.replace(COUNTED_PAIR, defines=("MQFAIR_TEST_FIFO",))


@slow
def test_order_of_arrival_is_not_by_weight() -> None:
    def measure(disk: NullBlk) -> None:
        with tenants(**WEIGHTS) as groups, mqfq(disk), Load(disk, groups, **DEMAND):
            got = shares(disk, groups, sent_bytes)
        try:
            check_shares(got, WEIGHTS)
        except AssertionError as error:
            print(f"as expected: {error}")
        else:
            raise AssertionError(f"shares by weight without any scheduling: {got}")

    on_a_busy_device(measure, submit_queues=1, hw_queue_depth=SLOTS)
