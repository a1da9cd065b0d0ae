# SPDX-License-Identifier: GPL-2.0
"""Build mqfair.ko for a guest kernel, from this checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lab import kernel
from lab.errors import LabError

_CHECKOUT = Path(__file__).resolve().parent.parent


def module_path(tree: kernel.KernelTree) -> Path:
    """Where the module for @tree lies once it is built."""
    return _CHECKOUT / "build" / "module" / tree.release / "mqfair.ko"


def build(tree: kernel.KernelTree) -> Path:
    """Build the module for @tree; quick when nothing changed."""
    builder = _CHECKOUT / "kernel" / "build"
    if not builder.is_file():
        raise LabError(f"{builder}: not found; build the module from a checkout")
    module = module_path(tree)
    argv = [sys.executable, str(builder), "--headers", str(tree.headers_build_dir)]
    argv += ["--btf", str(tree.vmlinux), "--out", str(module.parent)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode or not module.is_file():
        raise LabError(f"kernel/build: exit status {done.returncode}\n{done.stderr.strip()}")
    return module
