# SPDX-License-Identifier: GPL-2.0
"""A drive with more queues than a scheduler has room for.

A queue is a CPU of a hardware queue, and CPUs that may come online count, too.
"""

from __future__ import annotations

import errno

from guestlib import Guest, KernelLog, NullBlk, fio, only_on, slow, write_fails

_CPUS = 600
guest = Guest(cpus=1, memory_mb=2048, append=f"possible_cpus={_CPUS}", needs_module=True)


# From 6.9 on Linux counts the CPUs that the firmware names, and possible_cpus adds none.
@only_on("6.1")
@slow
def test_the_kernel_log_names_the_limit() -> None:
    log = KernelLog()
    # Each CPU uses one of the two hardware queues for reads, and the other for polled reads.
    with NullBlk(submit_queues=1, poll_queues=1) as disk:
        got = write_fails(disk.sysfs / "queue/scheduler", "mqfq")
        assert got == errno.EINVAL, errno.errorcode[got]
        assert disk.scheduler != "mqfq"
        lines = [line for line in log.read() if "mqfair" in line and disk.name in line]
        assert any(f"{2 * _CPUS} queues" in line and "1024" in line for line in lines), lines
        assert not fio(disk, number_ios=64)["jobs"][0]["error"]
    with NullBlk(submit_queues=1, poll_queues=0) as disk:
        disk.scheduler = "mqfq"
        assert not fio(disk, number_ios=64)["jobs"][0]["error"]
