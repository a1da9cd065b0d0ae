# SPDX-License-Identifier: GPL-2.0
"""Entitlements of cgroups by weight, and Jain's index of fairness."""

from collections.abc import Collection, Mapping, Sequence


def entitlements(weights: Mapping[str, int], active: Collection[str]) -> dict[str, float]:
    """The part of the device due to each of the @active leaves. The parts add up to 1.

    On every level a cgroup's part is divided by weight between its active children. A child is
    active if it is an active leaf or contains one. Example: prod 900 {db 500, web 500} beside
    batch 100 gives 0.45, 0.45 and 0.1. If only prod/db and batch are active, it gives 0.9 and 0.1.
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
    """Jain's index: 1 if all values are equal, 1/n if one of n values has everything, 0 if all are
    0."""
    squares = sum(value * value for value in values)
    if squares == 0:
        return 0.0
    return sum(values) ** 2 / (len(values) * squares)
