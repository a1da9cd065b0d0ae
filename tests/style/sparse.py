#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run sparse on the C sources, and on the module as the kernel's makefiles compile it.

usage: tests/style/sparse.py

Two passes. The first reads sched/, flash/ and sim/ with the simulator's port.h. The second builds
the module for the guests' kernel and has its makefiles call sparse on every file (C=2). That also
checks address spaces, endianness and lock contexts. Exit status: 0 nothing found, 1 something,
2 a tool is missing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "kernel" / "btf")]

from headers import Headers  # noqa: E402

from lab import kernel, module  # noqa: E402

# What sparse says and we do not follow, with the reason.
IGNORED = {
    "unknown attribute": "sparse 0.6 does not know all attributes of the compiler",
    "self-comparison always evaluates to false": "two reads of an atomic may differ",
    "using sizeof on a flexible structure": "a structure with a tail is sized without it",
    "context imbalance": "a lock that one function takes and another releases",
    "cast truncates bits from constant value": "(u8)~FLAG",
    "different address spaces": "types that come from BTF have lost their __rcu",
    "is so big it is unsigned long": "the simulator has 64-bit constants",
    "symbol 'pick_a' shadows": "min() inside of max()",
    "missing braces around initializer": "= { 0 }",
    "Using plain integer as NULL pointer": "= { 0 } of a structure that begins with a pointer",
}
MESSAGE = re.compile(r"^(\S+):(\d+):\d+: (warning|error): (.*)$")


def findings(output: str) -> list[str]:
    found = []
    for line in output.splitlines():
        match = MESSAGE.match(line)
        if match and not any(kind in match[4] for kind in IGNORED):
            found.append(f"{match[1]}:{match[2]}: {match[4]}")
    return found


def plain() -> list[str]:
    rooms = ("sched/*.c", "flash/*.c", "sim/*.c")
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *rooms]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    found: list[str] = []
    for name in done.stdout.split():
        sparse = ["sparse", "-std=gnu11", "-I.", "-Isched", "-Isim", name]
        run = subprocess.run(sparse, capture_output=True, text=True, check=False, cwd=ROOT)
        found += findings(run.stdout + run.stderr)
    return found


def in_kernel() -> list[str]:
    tree = kernel.ensure()
    out = module.build(tree).parent
    headers = Headers(tree.headers_build_dir)
    done = headers.make(out, "C=2", "CHECK=sparse", "modules", jobs=2)
    # The makefiles name the links in the directory in which the module is built.
    return findings(done.stdout.replace(f"{out}/", ""))


def main() -> int:
    if shutil.which("sparse") is None:
        print("sparse.py: no sparse; run lab/bootstrap style", file=sys.stderr)
        return 2
    found = sorted(set(plain() + in_kernel()))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
