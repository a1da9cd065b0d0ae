# SPDX-License-Identifier: GPL-2.0
"""What each tenant is due: the hierarchical weighted max-min of what the tenants ask for.

A water level rises in each group of siblings, by weight. A tenant is full at its demand, and what
it leaves goes to its siblings first, then upwards. The level stops when the drive's time is spent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

# The last step of the level leaves this part of the budget unspent, at most.
_PRECISION = 1e-9


@dataclasses.dataclass(frozen=True)
class Node:
    """A tenant, or a group of them. @demand and @price are those of a tenant: units per second that
    it gets alone, and drive time per unit."""

    name: str
    weight: float
    parent: str = ""
    demand: float = 0.0
    price: float = 1.0


def due(nodes: Sequence[Node], budget: float) -> dict[str, float]:
    """The units per second that each tenant is due, if all together spend @budget of drive time per
    second. Shares between siblings are by weight, in units."""
    children: dict[str, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    tenants = {node.name: node for node in nodes if node.name not in children}

    def spent(units: Mapping[str, float]) -> float:
        return sum(units[name] * tenant.price for name, tenant in tenants.items())

    most = {name: tenant.demand for name, tenant in tenants.items()}
    if spent(most) <= budget:
        return most
    low, high = 0.0, sum(most.values())
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if spent(_split(children, tenants, middle)) <= budget:
            low = middle
        else:
            high = middle
    return _split(children, tenants, low)


def _split(
    children: Mapping[str, Sequence[Node]], tenants: Mapping[str, Node], units: float
) -> dict[str, float]:
    """@units among all tenants: each group gives its children parts by weight, up to their demands,
    and what a child leaves is divided among its siblings."""
    wants: dict[str, float] = {}

    def want(node: Node) -> float:
        if node.name in tenants:
            wants[node.name] = node.demand
        else:
            wants[node.name] = sum(want(child) for child in children[node.name])
        return wants[node.name]

    for node in children.get("", []):
        want(node)
    given: dict[str, float] = {}

    def give(group: Sequence[Node], amount: float) -> None:
        for node, part in zip(group, _fill(group, wants, amount), strict=True):
            if node.name in tenants:
                given[node.name] = part
            else:
                give(children[node.name], part)

    give(children.get("", []), units)
    return given


def _fill(group: Sequence[Node], wants: Mapping[str, float], amount: float) -> list[float]:
    """@amount among siblings by weight, none above what it wants."""
    order = sorted(group, key=lambda node: wants[node.name] / node.weight)
    weights = sum(node.weight for node in group)
    got: dict[str, float] = {}
    for node in order:
        part = min(wants[node.name], amount * node.weight / weights)
        got[node.name] = part
        amount -= part
        weights -= node.weight
    return [got[node.name] for node in group]
