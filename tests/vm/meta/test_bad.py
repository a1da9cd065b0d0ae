# SPDX-License-Identifier: GPL-2.0
"""Tests that fail in every possible way; tester_check.py has the expected results."""

from __future__ import annotations

import os
import signal
import time

from guestlib import Guest, Skip, cases, time_limit, write

guest = Guest(cpus=1, memory_mb=1024)


@time_limit(20)
def test_passes():
    assert os.getpid() != 1


@time_limit(20)
def test_fails():
    print("what the test printed")
    assert 1 + 1 == 3, "arithmetic holds"


@time_limit(20)
def test_skips():
    raise Skip("nothing to see")


@time_limit(20)
@cases(1, 2)
def test_fails_with_two(number):
    assert number != 2, "two"


@time_limit(20)
def test_exits():
    os._exit(0)


@time_limit(20)
def test_makes_the_kernel_complain():
    write("/dev/kmsg", "<4>WARNING: CPU: 0 PID: 1 at nowhere.c:1 nothing+0x0/0x0\n")


@time_limit(2)
def test_hangs():
    time.sleep(1000)


@time_limit(5)
def test_hangs_the_guest():
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(1000)


@time_limit(20)
def test_panics():
    write("/proc/sysrq-trigger", "c")


@time_limit(20)
def test_passes_after_all_that():
    assert os.getpid() != 1
