# SPDX-License-Identifier: GPL-2.0
"""What in a kernel log makes a measurement worthless."""

import re

_SPLAT = re.compile(
    r"WARNING: CPU|WARNING: possible|BUG: |kernel BUG at|Oops: |general protection fault"
    r"|Kernel panic|INFO: task .* blocked for more than|detected stalls? on|self-detected stall"
    r"|possible recursive locking|circular locking|UBSAN: |KASAN: |KCSAN: |refcount_t: "
    r"|list_(?:add|del) corruption|unregister_netdevice: waiting|I/O error, dev|timing out command"
)
_LINES_AFTER = 12


def splat(log: str) -> str | None:
    """The first trouble that the kernel reported, with the lines after it."""
    lines = log.splitlines()
    for number, line in enumerate(lines):
        if _SPLAT.search(line):
            return "\n".join(lines[number : number + _LINES_AFTER])
    return None
