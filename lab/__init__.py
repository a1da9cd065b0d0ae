# SPDX-License-Identifier: GPL-2.0
"""Guest kernels and virtual machines. No other part of the project starts a virtual machine.

spec = lab.GuestSpec(cpus=2, drives=(lab.Drive(size=1 << 30, queues=2),))
result = lab.run(spec, ["fio", "--version"])
print(result.status, result.stdout)
"""

from lab.errors import GoneError, LabError, SpecError
from lab.guest import (
    GUEST_OUT,
    STATUS_DIED,
    STATUS_TIMED_OUT,
    GuestResult,
    accelerator,
    run,
    shell,
)
from lab.kernel import KERNELS
from lab.spec import (
    MAX_CPUS,
    Drive,
    GuestSpec,
    HostDir,
    parse_drive,
    parse_duration_ns,
    parse_size,
)
from lab.tree import DEFAULT_KERNEL, KCSAN, UML, UML_DEBUG

__all__ = [
    "DEFAULT_KERNEL",
    "GUEST_OUT",
    "KCSAN",
    "KERNELS",
    "MAX_CPUS",
    "STATUS_DIED",
    "STATUS_TIMED_OUT",
    "UML",
    "UML_DEBUG",
    "Drive",
    "GoneError",
    "GuestResult",
    "GuestSpec",
    "HostDir",
    "LabError",
    "SpecError",
    "accelerator",
    "parse_drive",
    "parse_duration_ns",
    "parse_size",
    "run",
    "shell",
]
