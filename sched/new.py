#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Create a scheduler that builds, loads and shares by weight.

usage: sched/new.py NAME        create sched/NAME/NAME.c and enter it in policies.def
       sched/new.py --lists     write the lists again that follow from policies.def
       sched/new.py --check     only say whether those lists are current

The new scheduler is a copy of sched/example/drr.c under the new name, with an empty head comment.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
POLICIES = ROOT / "sched" / "core" / "policies.def"
EXAMPLE = ROOT / "sched" / "example" / "drr.c"
NAMES = ROOT / "mqfair" / "schedulers.py"

ENTRY = re.compile(r'^(SCHEDULER|EXAMPLE)\((\w+), "([\w-]+)"\)$', re.M)
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 15  # ELV_NAME_MAX of the kernel, less the final NUL
# Names of the kernel's own schedulers, and of rooms of sched/.
TAKEN = {"none", "bfq", "kyber", "mq-deadline"}

# Names of structures that every scheduler includes, and of a scheduler of the tests.
RESERVED = {"fifo", "io", "lane", "queue", "sched"}

HEAD = """\
// SPDX-License-Identifier: GPL-2.0
/*
 * {name} - say in a few words what it is
 *
 * The problem.  Say which tenants are served badly today, and why.
 *
 * The idea.  Tell the policy without the code, and name its source.
 *
 *\tan example with numbers
 *
 * Invariants
 *   I1  a lane is in the ring if and only if it has requests.
 *
 * Limits.  Say what it does not promise.
 *
 * This file still is deficit round robin, as in sched/example/drr.c.
 */
"""

LIST = '''\
# SPDX-License-Identifier: GPL-2.0
"""The names of the schedulers; written by sched/new.py from sched/core/policies.def."""

SCHEDULERS = {schedulers}
# A module has these only when it is built with MQFAIR_EXAMPLES, as for the guests of the tests.
EXAMPLES = {examples}
'''


class NameRefusedError(Exception):
    """The name can't be used; the text says why and what to do."""


def entries(kind: str) -> list[str]:
    return [name for entry, _, name in ENTRY.findall(POLICIES.read_text()) if entry == kind]


def lists() -> str:
    """The text of mqfair/schedulers.py."""

    def quoted(kind: str) -> str:
        names = [f'"{name}"' for name in entries(kind)]
        return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"

    return LIST.format(schedulers=quoted("SCHEDULER"), examples=quoted("EXAMPLE"))


def check_name(name: str) -> None:
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise NameRefusedError(
            f"'{name}' is no name: use at most {LONGEST} lower-case letters, digits and single"
            " hyphens, a letter first"
        )
    symbol = name.replace("-", "_")
    found = ENTRY.findall(POLICIES.read_text())
    if name in TAKEN or any(name == taken or symbol == own for _, own, taken in found):
        raise NameRefusedError(
            f"'{name}' is taken: choose another, or remove its line in {POLICIES.relative_to(ROOT)}"
            f" and sched/{symbol}, then run sched/new.py --lists"
        )
    if (ROOT / "sched" / symbol).exists():
        raise NameRefusedError(f"'{name}' is taken: choose another, or remove sched/{symbol} first")
    if (ROOT / "sched" / "core" / f"{symbol}.h").exists() or symbol in RESERVED:
        raise NameRefusedError(f"'{name}' names a part of the core: choose another")


def source(name: str, symbol: str) -> str:
    text = EXAMPLE.read_text()
    body = text[text.index(" */\n") + len(" */\n") :]
    body = re.sub(r"\bdrr_", f"{symbol}_", body).replace('"drr"', f'"{name}"')
    return HEAD.format(name=name) + body


def create(name: str) -> Path:
    symbol = name.replace("-", "_")
    check_name(name)
    file = ROOT / "sched" / symbol / f"{symbol}.c"
    text = POLICIES.read_text()
    entry = f'SCHEDULER({symbol}, "{name}")\n'
    first_example = text.index("\nEXAMPLE(") + 1
    file.parent.mkdir()
    file.write_text(source(name, symbol))
    POLICIES.write_text(text[:first_example] + entry + text[first_example:])
    NAMES.write_text(lists())
    return file


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="sched/new.py",
        description="Create a scheduler that builds, loads and shares by weight.",
        epilog="example: sched/new.py edf",
    )
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--lists", action="store_true", help="write the lists again")
    parser.add_argument("--check", action="store_true", help="say whether the lists are current")
    arguments = parser.parse_args()
    if arguments.check:
        if NAMES.read_text() == lists():
            return 0
        print(f"{NAMES}: not current; run sched/new.py --lists", file=sys.stderr)
        return 1
    if arguments.lists:
        NAMES.write_text(lists())
        return 0
    if not arguments.name:
        parser.error("no NAME; make new NAME=edf, or sched/new.py edf")
    try:
        file = create(arguments.name)
    except (NameRefusedError, OSError) as error:
        print(f"sched/new.py: {error}", file=sys.stderr)
        return 2
    shown = file.relative_to(ROOT)
    print(f"{shown}: a copy of the worked example, entered in sched/core/policies.def.")
    print("Next: edit it, then")
    print("  meson setup build/dev; ninja -C build/dev")
    print(f"  build/dev/tests/sim/sim-tests -s {arguments.name} policy")
    print(f"  make bench BENCH='--schedulers none,{arguments.name} --icount'")
    print("doc/adding-a-scheduler.md walks through the example line by line.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
