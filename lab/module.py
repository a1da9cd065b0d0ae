# SPDX-License-Identifier: GPL-2.0
"""Build mqfair.ko, and mqfair-ssd.ko beside it, for a guest kernel from this checkout."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import cache, kernel
from lab.errors import LabError

_CHECKOUT = Path(__file__).resolve().parent.parent


def module_path(tree: kernel.KernelTree, defines: Sequence[str] = ()) -> Path:
    """The place of mqfair.ko for @tree once it is built; a test build has its own folder."""
    folder = "-".join([tree.release, *defines])
    return _CHECKOUT / "build" / "module" / folder / "mqfair.ko"


def build(tree: kernel.KernelTree, defines: Sequence[str] = ()) -> Path:
    """Build both modules for @tree, with macros for a test build; quick when nothing changed."""
    builder = _CHECKOUT / "kernel" / "build"
    if not builder.is_file():
        raise LabError(f"{builder}: not found; build the module from a checkout")
    module = module_path(tree, defines)
    argv = [sys.executable, str(builder), "--headers", str(tree.headers_build_dir)]
    argv += ["--btf", str(tree.vmlinux), "--out", str(module.parent), "--with-ssd"]
    # The guests of the tests run the worked example, too.
    names = ("MQFAIR_EXAMPLES", *defines)
    argv += [word for name in names for word in ("--define", name)]
    # Two processes that build at once would write the same files.
    with cache.locked(module.parent.with_name(f".{module.parent.name}.lock")):
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode or not module.is_file():
        raise LabError(f"kernel/build: exit status {done.returncode}\n{done.stderr.strip()}")
    return module
