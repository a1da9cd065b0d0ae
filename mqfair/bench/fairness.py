# SPDX-License-Identifier: GPL-2.0
"""Jain's index of fairness."""

from collections.abc import Sequence


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 if all values are equal, 1/n if one of n values has everything, 0 if all are
    0."""
    squares = sum(value * value for value in values)
    if squares == 0:
        return 0.0
    return sum(values) ** 2 / (len(values) * squares)
