# SPDX-License-Identifier: GPL-2.0
"""ifq on two processors and a drive with two hardware queues. test_shares.py tests its shares.

The checks count the requests of other tenants that are served for each request of a light tenant.
A count does not depend on the speed of the machine.
"""

from __future__ import annotations

from fairlib import COUNTED_PAIR, Load, done, flows, scheduled, tenants
from guestlib import Cgroup, Disk, NullBlk, cases, slow_for
from sharing import DEMAND, SLOTS, TWO_QUEUES, check_shares, on_a_busy_device, shares

guest = COUNTED_PAIR

SLOW = {"irqmode": 2, "completion_nsec": 32_000_000}
LIGHT = {"rw": "randread", "bs": "4k", "iodepth": 1}


def test_a_deeper_queue_gets_no_greater_share() -> None:
    """Two tenants are always busy; one has eight times as many requests waiting."""

    def measure(disk: NullBlk) -> None:
        with (
            tenants(few=100, many=100) as (few, many),
            scheduled(disk, "ifq", depth=SLOTS),
            Load(disk, [few], **{**DEMAND, "iodepth": SLOTS}),
            Load(disk, [many], **{**DEMAND, "iodepth": 8 * SLOTS}),
        ):
            check_shares(shares(disk, [few, many]), {"few": 100, "many": 100})

    on_a_busy_device(measure, **TWO_QUEUES)


@cases(8, SLOTS)
@slow_for(SLOTS)
def test_a_light_tenant_waits_for_few_requests_of_others(depth: int) -> None:
    """Each slot serves one request of others while the light tenant's request waits for a slot, and
    one while it is served."""
    with (
        NullBlk(**SLOW, **TWO_QUEUES) as disk,
        tenants(light=100, one=100, two=100) as (light, *heavy),
        scheduled(disk, "ifq", depth=depth),
        Load(disk, heavy, **DEMAND),
        Load(disk, [light], **LIGHT) as load,
    ):
        load.goes_on(40)
        own, others = counts(disk, light, heavy)
        load.goes_on(100)
        own_now, others_now = counts(disk, light, heavy)
        each = (others_now - others) / (own_now - own)
        scales = {name: flow["weight_scale_milli"] for name, flow in flows(disk).items()}
        print(f"{each:.1f} requests of others for each of the light tenant's; scales {scales}")
        text = f"{each:.1f} requests of others for each of its own, depth {depth}"
        assert each <= 2 * depth, text
        assert scales["/light"] > max(scales["/one"], scales["/two"]), scales


def counts(disk: Disk, light: Cgroup, heavy: list[Cgroup]) -> tuple[int, int]:
    return done(light, disk), sum(done(group, disk) for group in heavy)
