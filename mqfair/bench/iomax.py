# SPDX-License-Identifier: GPL-2.0
"""Static throttling: the scheduler none, with a limit in io.max for each cgroup with jobs.

The label and the rule are those of sim/throttle.c: kib_per_weight * weight KiB per second, whatever
the others do. Here the kernel counts reads and writes apart, and each kind has the whole rate.
"""

from collections.abc import Mapping

from mqfair.machine.cgroup import Cgroup
from mqfair.text.errors import Failure

FILE = "io.max"
TUNABLE = "kib_per_weight"
# The default and the bounds of sim/throttle.c.
DEFAULT = 1000
MOST = 10_000_000


def kib_per_weight(tunables: Mapping[str, str]) -> int:
    """The rate in the tunables of a label; raises Failure for others."""
    for name in tunables:
        if name != TUNABLE:
            raise Failure(f"no tunable '{name}': use {TUNABLE}")
    text = tunables.get(TUNABLE, str(DEFAULT))
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise Failure(f"{TUNABLE} '{text}': use a number from 1 to {MOST}")
    return int(text)


def limit(group: Cgroup, number: str, weight: int, tunables: Mapping[str, str]) -> None:
    """Limits @group on the drive @number. Raises Failure if the kernel has no such limits."""
    if not group.fs.exists(group.file(FILE)):
        raise Failure(f"this kernel has no {FILE}: leave throttle out of --schedulers")
    rate = kib_per_weight(tunables) * weight * 1024
    group.fs.write(group.file(FILE), f"{number} rbps={rate} wbps={rate}")
