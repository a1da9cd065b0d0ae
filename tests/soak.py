#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Churns everything at once in a guest, with checked data, for hours; prints counts.

usage: tests/soak.py HOURS [--seed N] [--on uml|vm] [--kernel NAME] [--blocked]

tests/vm/soak_guest.py has the activities. The seed repeats their random numbers, not their order.
Without --on the guest is user-mode Linux, which `make uml` builds. With --blocked the guest holds
the race of blocked queues open instead: tests/vm/blocked_guest.py.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "vm")]

import consoles  # noqa: E402

import lab  # noqa: E402
from lab import kernel, module  # noqa: E402

# The time to boot, and to check the file systems and disks at the end, on a busy machine.
_AROUND_S = 1800.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/soak.py", description=__doc__.splitlines()[0])
    parser.add_argument("hours", type=float, metavar="HOURS", help="for instance 0.2")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), metavar="N")
    parser.add_argument(
        "--on",
        choices=(lab.UML, "vm"),
        default=lab.UML,
        help="user-mode Linux, or emulation or KVM (vm)",
    )
    known = ", ".join(lab.KERNELS)
    parser.add_argument(
        "--kernel", choices=lab.KERNELS, metavar="NAME", help=f"with --on vm: one of {known}"
    )
    parser.add_argument(
        "--blocked", action="store_true", help="only the race of queues that are blocked"
    )
    args = parser.parse_args()
    if not 0 < args.hours <= 1000:
        print(f"tests/soak.py: HOURS {args.hours:g}: use more than 0, to 1000", file=sys.stderr)
        return 2
    if args.kernel and args.on != "vm":
        print(f"tests/soak.py: --kernel {args.kernel}: add --on vm", file=sys.stderr)
        return 2
    seconds = args.hours * 3600
    chosen = args.on if args.on != "vm" else args.kernel or lab.DEFAULT_KERNEL
    print(f"soak: {seconds:.0f} s on {chosen} with --seed {args.seed}", flush=True)
    try:
        return soak(seconds, args.seed, chosen, args.blocked)
    except lab.LabError as error:
        print(f"tests/soak.py: {error}", file=sys.stderr)
        return 1


def soak(seconds: float, seed: int, chosen: str, blocked: bool = False) -> int:
    tree = kernel.ensure(chosen)
    defines = ("MQFAIR_TEST_WINDOWS",) if blocked else ()
    spec = lab.GuestSpec(
        kernel=chosen,
        memory_mb=3072,
        # User-mode Linux has no NVMe drives.
        drives=() if tree.is_uml else (lab.parse_drive("size=512M,queues=2"),),
        modules=(module.build(tree, defines),),
        timeout_s=seconds + _AROUND_S,
    )
    name = "blocked_guest.py" if blocked else "soak_guest.py"
    program = str(ROOT / "tests" / "vm" / name)
    result = lab.run(spec, ["/usr/bin/python3", program, str(seconds), str(seed)], stream=False)
    last = (result.stdout.splitlines() or [""])[-1]
    if result.trouble() or not last.startswith("{"):
        print(result.trouble() or result.stdout + result.stderr)
        keep_console(chosen, result)
        return 1
    found = json.loads(last)
    for name, count in sorted(found["steps"].items()):
        refused = found["refused"].get(name, 0)
        print(f"{name:40} {count:9}" + (f", {refused} refused" if refused else ""))
    for failure in found["failures"]:
        print(f"failed: {failure}")
    print(f"{len(found['failures'])} failures, Linux {result.kernel}, {result.wall_s:.0f} s")
    if found["failures"]:
        keep_console(chosen, result)
    return result.status


def keep_console(chosen: str, result: lab.GuestResult) -> None:
    path = consoles.path_of(f"soak-{chosen}")
    consoles.keep(path, result)
    print(f"the whole console of the guest: {path}")


if __name__ == "__main__":
    sys.exit(main())
