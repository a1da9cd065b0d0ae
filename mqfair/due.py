# SPDX-License-Identifier: GPL-2.0
"""What each tenant is due: the hierarchical weighted max-min of what the tenants ask for.

A water level rises in each group of siblings, by weight. A tenant is full at its demand, and what
it leaves goes to its siblings first, then upwards. Example: with 100 to divide, a of weight 100
asks for 5, and b of weight 100 and c of weight 300 ask for all. Then a is due 5, b 23.75 and c
71.25.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A tenant, or a group of them. @demand is that of a tenant: what it gets alone."""

    name: str
    weight: float
    parent: str = ""
    demand: float = 0.0


def due(nodes: Sequence[Node], amount: float) -> dict[str, float]:
    """The part of @amount that each tenant is due."""
    children: dict[str, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    wants: dict[str, float] = {}
    found: dict[str, float] = {}

    def want(node: Node) -> float:
        below = children.get(node.name)
        wants[node.name] = sum(map(want, below)) if below else node.demand
        return wants[node.name]

    def give(parent: str, amount: float) -> None:
        for node, part in _fill(children.get(parent, ()), wants, amount):
            if node.name in children:
                give(node.name, part)
            else:
                found[node.name] = part

    for node in children.get("", ()):
        want(node)
    give("", amount)
    return found


def due_of_cgroups(
    weights: Mapping[str, int], demands: Mapping[str, float], amount: float = 1.0
) -> dict[str, float]:
    """The part of @amount that each cgroup in @demands is due. @weights has those of all levels, by
    path."""
    nodes = [
        Node(path, weight, path.rpartition("/")[0], demands.get(path, 0.0))
        for path, weight in weights.items()
    ]
    found = due(nodes, amount)
    return {path: found[path] for path in demands}


def _fill(
    group: Sequence[Node], wants: Mapping[str, float], amount: float
) -> list[tuple[Node, float]]:
    """@amount among siblings by weight, none above what it wants."""
    weights = sum(node.weight for node in group)
    found = []
    for node in sorted(group, key=lambda node: wants[node.name] / node.weight):
        part = min(wants[node.name], amount * node.weight / weights)
        found.append((node, part))
        amount -= part
        weights -= node.weight
    return found
