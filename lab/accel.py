# SPDX-License-Identifier: GPL-2.0
"""The choice of acceleration: KVM if it boots the guest kernel on this host, else emulation."""

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
    """The acceleration for @tree. @probe_boots tries to boot the kernel under KVM; its result is
    cached until the host reboots.

    A readable /dev/kvm is not enough: nested KVM may refuse, or hang in the middle of a boot.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    name = hashlib.sha256(f"{tree.release} {boot_id} {os.geteuid()}".encode()).hexdigest()[:16]
    cached = cache_dir() / "accel" / name
    with locked(cached.parent / ".lock"):
        if not cached.exists():
            for stale in cached.parent.glob("[!.]*"):
                stale.unlink()
            write_atomically(cached, b"kvm\n" if probe_boots() else b"tcg\n")
        return "kvm" if cached.read_text().strip() == "kvm" else "tcg"
