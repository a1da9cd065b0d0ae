# SPDX-License-Identifier: GPL-2.0
"""KVM where it really runs this kernel here, else emulation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from lab.cache import cache_dir, locked, write_atomically
from lab.kernel import KernelTree

PROBE_TIMEOUT_S = 20.0


def choose(tree: KernelTree, probe_boots: Callable[[], bool]) -> Literal["kvm", "tcg"]:
    """@probe_boots tries the kernel under KVM; its answer is kept until the host reboots.

    A readable /dev/kvm says little: nested, it may refuse or hang in the middle of a boot.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    name = hashlib.sha256(f"{tree.release} {boot_id} {os.geteuid()}".encode()).hexdigest()[:16]
    verdict = cache_dir() / "accel" / name
    with locked(verdict.parent / ".lock"):
        if not verdict.exists():
            for stale in verdict.parent.glob("[!.]*"):
                stale.unlink()
            write_atomically(verdict, b"kvm\n" if probe_boots() else b"tcg\n")
        return "kvm" if verdict.read_text().strip() == "kvm" else "tcg"
