# SPDX-License-Identifier: GPL-2.0
"""Build mqfair.ko, and mqfair-ssd.ko beside it, for a guest kernel from this checkout."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import cache, chroot, cross
from lab.errors import LabError
from lab.tree import KernelTree

# ELF: the place of the machine's number in a file, and the number of arm64.
_ELF_MACHINE_AT = 18
_ELF_MACHINE_ARM64 = 183
_CHECKOUT = Path(__file__).resolve().parent.parent


def module_path(tree: KernelTree, defines: Sequence[str] = ()) -> Path:
    """The place of mqfair.ko for @tree once it is built; a test build has its own folder."""
    folder = "-".join([tree.release, *defines])
    return _CHECKOUT / "build" / "module" / folder / "mqfair.ko"


def build(tree: KernelTree, defines: Sequence[str] = ()) -> Path:
    """Build both modules for @tree, with macros for a test build; quick when nothing changed."""
    builder = _CHECKOUT / "kernel" / "build"
    if not builder.is_file():
        raise LabError(f"{builder}: not found; build the module from a checkout")
    module = module_path(tree, defines)
    argv = [str(builder), "--headers", str(tree.headers_build_dir)]
    argv += ["--btf", str(tree.vmlinux), "--out", str(module.parent)]
    argv += ["--with-ssd", "--werror"]
    # The guests of the tests run the worked example, too.
    names = ("MQFAIR_EXAMPLES", *defines)
    argv += [word for name in names for word in ("--define", name)]
    # Two processes that build at once would write the same files.
    with cache.locked(module.parent.with_name(f".{module.parent.name}.lock")):
        argv = _with_python(tree, argv)
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode or not module.is_file():
        raise LabError(f"kernel/build: exit status {done.returncode}\n{done.stderr.strip()}")
    return module


def compile_for(tree: KernelTree, out: Path) -> subprocess.CompletedProcess[str]:
    """Compile both modules for @tree in @out, without the examples of the tests."""
    argv = [str(_CHECKOUT / "kernel" / "build"), "--headers", str(tree.headers_build_dir)]
    argv += ["--btf", str(tree.vmlinux), "--out", str(out), "--with-ssd", "--werror"]
    return subprocess.run(
        _with_python(tree, argv), check=False, capture_output=True, text=True, errors="replace"
    )


def cross_build(headers: Path) -> Path:
    """Compile both modules for arm64 with @headers; check that they are for it."""
    out = _CHECKOUT / "build" / "module" / headers.name.removeprefix("linux-headers-")
    argv = [sys.executable, str(_CHECKOUT / "kernel" / "build"), "--headers", str(headers)]
    argv += ["--out", str(out), "--with-ssd", "--werror"]
    environment = {**os.environ, **cross.ENVIRONMENT}
    with cache.locked(out.with_name(f".{out.name}.lock")):
        done = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise LabError(f"kernel/build: exit status {done.returncode}\n{done.stderr.strip()}")
    for name in ("mqfair.ko", "mqfair-ssd.ko"):
        (machine,) = struct.unpack_from("<H", (out / name).read_bytes(), _ELF_MACHINE_AT)
        if machine != _ELF_MACHINE_ARM64:
            raise LabError(f"{out / name}: is for machine {machine}, not for arm64")
    return out / "mqfair.ko"


def _with_python(tree: KernelTree, argv: Sequence[str]) -> list[str]:
    """The command line that runs the Python program @argv where the tools for @tree are."""
    if not tree.chroot_suite:
        return [sys.executable, *argv]
    root = chroot.ensure(tree.chroot_suite, compiler(tree))
    # Byte code of another Python has no place in the checkout.
    inside = ["/usr/bin/python3", "-B", *argv]
    if tree.is_uml:
        inside = ["/usr/bin/env", "ARCH=um", *inside]
    return chroot.command(root, inside, [_CHECKOUT, tree.root.parent])


def compiler(tree: KernelTree) -> str:
    """The compiler that the headers of @tree name, which is also the name of its package."""
    variables = tree.headers_build_dir / ".kernelvariables"
    found = re.search(r"gcc-\d+", variables.read_text())
    if found is None:
        raise LabError(f"{variables}: names no compiler: the packages have a new layout")
    return found.group()
