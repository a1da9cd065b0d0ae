# SPDX-License-Identifier: GPL-2.0
"""The kernels on which the tests run. The module can be built for others of the same shapes."""

from __future__ import annotations

TESTED = ("6.1", "6.12", "7.2")


def is_tested(release: str) -> bool:
    """Returns whether RELEASE, as uname -r prints it, belongs to a tested series."""
    return release.startswith(tuple(f"{series}{end}" for series in TESTED for end in ".-+"))
