# SPDX-License-Identifier: GPL-2.0
"""What each cgroup is entitled to, and how near to that a division comes."""

from collections.abc import Collection, Mapping, Sequence


def entitlements(weights: Mapping[str, int], active: Collection[str]) -> dict[str, float]:
    """The part of the device due to each of the @active leaves; the parts add up to 1.

    At every level a cgroup's part is split between its children that are active, or hold one
    that is, by weight: prod 900 {db 500, web 500} beside batch 100 gives 0.45, 0.45 and 0.1, and
    prod/db alone beside batch 0.9 and 0.1.
    """
    return {name: _product(name, weights, active) for name in active}


def _product(name: str, weights: Mapping[str, int], active: Collection[str]) -> float:
    parts = name.split("/")
    due = 1.0
    for depth in range(1, len(parts) + 1):
        siblings = _active_children("/".join(parts[: depth - 1]), active)
        total = sum(weights[sibling] for sibling in siblings)
        due *= weights["/".join(parts[:depth])] / total
    return due


def _active_children(parent: str, active: Collection[str]) -> set[str]:
    prefix = f"{parent}/" if parent else ""
    inside = (name.removeprefix(prefix) for name in active if name.startswith(prefix))
    return {prefix + rest.partition("/")[0] for rest in inside}


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    squares = sum(value * value for value in values)
    if squares == 0:
        return 0.0
    return sum(values) ** 2 / (len(values) * squares)
