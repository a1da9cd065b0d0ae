# SPDX-License-Identifier: GPL-2.0
"""The KCSAN kernel reports data races of the module. A report fails the test that is running."""

from __future__ import annotations

from pathlib import Path

from fairlib import MIXED, SMALL_GUEST, TIMED, Load, mqfq, tenants
from guestlib import NullBlk, only_on, read

guest = SMALL_GUEST

KCSAN = Path("/sys/kernel/debug/kcsan")


def watched() -> int:
    """The number of accesses that KCSAN has watched. Only the module's are compiled for it."""
    counts = dict(line.split(": ") for line in read(KCSAN).splitlines() if ": " in line)
    return int(counts["setup_watchpoints"])


@only_on("kcsan")
def test_the_accesses_of_the_module_are_watched() -> None:
    with (
        NullBlk(**TIMED) as disk,
        tenants(a=100, b=1000) as groups,
        mqfq(disk),
        Load(disk, groups, **MIXED) as load,
    ):
        before = watched()
        load.goes_on(200)
        assert watched() > before + 50
