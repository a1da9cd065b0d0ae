# SPDX-License-Identifier: GPL-2.0
"""The choice of acceleration: KVM if it boots the guest kernel on this host, else emulation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from lab.cache import cache_dir, locked, write_atomically
from lab.tree import KernelTree

PROBE_TIMEOUT_S = 20.0


def choose(tree: KernelTree, probe_boots: Callable[[], bool]) -> Literal["kvm", "tcg"]:
    """The acceleration for @tree. @probe_boots tries to boot the kernel under KVM; its result is
    cached until the host reboots. No kernel is tried after others of which none boots.

    A readable /dev/kvm is not enough: nested KVM may refuse, or hang in the middle of a boot. Such
    a try keeps a processor busy for its whole time limit.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    boot = hashlib.sha256(f"{boot_id} {os.geteuid()}".encode()).hexdigest()[:16]
    folder = cache_dir() / "accel"
    cached = folder / f"{boot}-{tree.release}"
    with locked(folder / ".lock"):
        found = _results(folder, boot)
        if cached.name not in found:
            refused = bool(found) and "kvm" not in found.values()
            found[cached.name] = "kvm" if not refused and probe_boots() else "tcg"
            write_atomically(cached, f"{found[cached.name]}\n".encode())
        return "kvm" if found[cached.name] == "kvm" else "tcg"


def _results(folder: Path, boot: str) -> dict[str, str]:
    """The results for kernels since the host's @boot, by name. Removes those of other boots."""
    found = {}
    for path in folder.glob("[!.]*"):
        if path.name.startswith(f"{boot}-"):
            found[path.name] = path.read_text().strip()
        else:
            path.unlink()
    return found
