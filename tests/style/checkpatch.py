#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run the kernel's checkpatch.pl on the C sources of the module, for the rules that fit here.

usage: tests/style/checkpatch.py [FILE...]

Without FILE, the sources of kernel/, sched/ and flash/ are read. The script is taken out of
Debian's package linux-source-6.1 by lab/bootstrap style. Layout is left to clang-format; tests and
simulators, which define the primitives themselves, are left out. Exit status: 0 nothing found,
1 something, 2 a tool is missing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab.cache import cache_dir  # noqa: E402

# Rules of checkpatch.pl that say more than clang-format and the compilers do.
TYPES = (
    "ASSIGN_IN_IF",
    "BRACKET_SPACE",
    "CODE_INDENT",
    "COMPARISON_TO_NULL",
    "DEEP_INDENTATION",
    "INDENTED_LABEL",
    "MEMORY_BARRIER",
    "NON_OCTAL_PERMISSIONS",
    "OPEN_BRACE",
    "PREFER_KERNEL_TYPES",
    "REPEATED_WORD",
    "RETURN_VOID",
    "SPACE_BEFORE_TAB",
    "SPDX_LICENSE_TAG",
    "SUSPECT_CODE_INDENT",
    "TRAILING_STATEMENTS",
    "TRAILING_WHITESPACE",
    "TYPO_SPELLING",
    "UNCOMMENTED_DEFINITION",
    "UNNECESSARY_ELSE",
    "UNSPECIFIED_INT",
    "WAITQUEUE_ACTIVE",
    "YIELD",
)
# Findings that are right as they are: file, rule, the reason.
EXCEPTIONS = {
    ("kernel/attrs.c", "BRACKET_SPACE"): "an array in a macro's arguments",
    ("kernel/compat/compat.h", "ASSIGN_IN_IF"): "a loop macro, as the kernel's own",
    ("kernel/debugfs.c", "COMPARISON_TO_NULL"): "a pointer read with READ_ONCE()",
    ("sched/core/flow.c", "COMPARISON_TO_NULL"): "a boolean made of a pointer",
}


def script() -> Path:
    return cache_dir() / "checkpatch" / "checkpatch.pl"


def sources() -> list[str]:
    rooms = [f"{room}/*.[ch]" for room in ("kernel", "sched", "flash")]
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *rooms]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.split()


def findings(names: list[str]) -> list[str]:
    options = ["--no-tree", "--no-summary", "--strict", "--show-types", "--terse", "-f"]
    argv = ["perl", str(script()), *options, f"--types={','.join(TYPES)}", *names]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    found = []
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(":")
        rule = rest.split(":")[2] if rest.count(":") > 2 else ""  # line: LEVEL:RULE: text
        if rule and (name, rule) not in EXCEPTIONS:
            found.append(line)
    return found


def main() -> int:
    if not script().is_file():
        print(f"checkpatch.py: no {script()}; run lab/bootstrap style", file=sys.stderr)
        return 2
    found = findings(sys.argv[1:] or sources())
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
