# SPDX-License-Identifier: GPL-2.0
"""A build that takes each kernel for one on which no test ran."""

from __future__ import annotations

import os

from guestlib import Guest, KernelLog, slow

guest = Guest(cpus=1, memory_mb=512, needs_module=True, defines=("MQFAIR_TEST_UNTESTED",))


@slow
def test_the_load_line_says_that_the_kernel_was_never_tested() -> None:
    log = KernelLog(whole=True)
    (line,) = [line for line in log.read() if "mqfair: version" in line]
    log.close()
    assert f"was never tested on Linux {os.uname().release}, only on 6.1, 6.12, 7.2" in line
