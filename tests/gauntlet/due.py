# SPDX-License-Identifier: GPL-2.0
"""What each tenant is due if the units of the tenants cost different drive time.

The rule is that of mqfair/due.py. The water level stops when the drive's time is spent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from mqfair import due as rule

# The last step of the level leaves this part of the budget unspent, at most.
_PRECISION = 1e-9


@dataclasses.dataclass(frozen=True)
class Node(rule.Node):
    """A tenant, or a group of them. @demand is in units per second, @price drive time per unit."""

    price: float = 1.0


def due(nodes: Sequence[Node], budget: float) -> dict[str, float]:
    """The units per second that each tenant is due, if all together spend @budget of drive time per
    second. Shares between siblings are by weight, in units."""
    prices = {node.name: node.price for node in nodes}

    def spent(units: Mapping[str, float]) -> float:
        return sum(part * prices[name] for name, part in units.items())

    low, high = 0.0, sum(node.demand for node in nodes)
    most = rule.due(nodes, high)
    if spent(most) <= budget:
        return most
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if spent(rule.due(nodes, middle)) <= budget:
            low = middle
        else:
            high = middle
    return rule.due(nodes, low)
