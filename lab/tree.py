# SPDX-License-Identifier: GPL-2.0
"""A kernel that guests boot, and the names of those with a meaning of their own."""

import dataclasses
from pathlib import Path

DEFAULT_KERNEL = "6.1"
# The names of the kernels that lab/compiled.py compiles: user-mode Linux as a distribution would
# have it, the same with checks, and an emulated kernel that finds data races.
UML = "uml"
UML_DEBUG = "uml-debug"
KCSAN = "kcsan"
COMPILED = (UML, UML_DEBUG, KCSAN)


@dataclasses.dataclass(frozen=True)
class KernelTree:
    """One unpacked kernel. All paths are absolute. @chroot_suite names the suite with the compiler
    and C library that the headers need; it is empty if the machine's own are right. With @is_uml
    the kernel is a program of the host, @vmlinuz."""

    release: str
    vmlinuz: Path
    vmlinux: Path
    modules_dir: Path
    headers_build_dir: Path
    root: Path
    chroot_suite: str = ""
    is_uml: bool = False
