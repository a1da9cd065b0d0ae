# SPDX-License-Identifier: GPL-2.0
"""The first kernel, and those on which the tests run. The module can be built for others of the
same shapes."""

from __future__ import annotations

import re

from errors import GenerateError

# The first kernel with the hooks that the module fills in.
OLDEST = "6.1"
TESTED = ("6.1", "6.12", "7.2")


def is_tested(release: str) -> bool:
    """Returns whether RELEASE, as uname -r prints it, belongs to a tested series."""
    return release.startswith(tuple(f"{series}{end}" for series in TESTED for end in ".-+"))


def check_age(release: str) -> None:
    """Raises an error for a kernel before OLDEST."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if found and tuple(map(int, found.groups())) < tuple(map(int, OLDEST.split("."))):
        raise GenerateError(f"Linux {release} is too old: {OLDEST} or later")
