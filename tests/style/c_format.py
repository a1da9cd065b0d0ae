#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Hold the functions of C files to .clang-format.

usage: tests/style/c_format.py [--write] [FILE...]

Only functions are formatted. Outside of them, tables, enums and field comments are aligned by
hand, and clang-format would undo that. Without FILE, all C files that git tracks are read.
Prints a diff of each function that differs. Exit status: 0 none differs, 1 some do, 2 no tool.
"""

from __future__ import annotations

import argparse
import difflib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMENT_OR_END = ("#", " *", "/*", "}", "//")


def functions(text: str) -> list[tuple[int, int]]:
    """First and last line (from 1) of each function: a body in braces in the first column."""
    lines = text.split("\n")
    found = []
    at = 0
    while at < len(lines):
        if lines[at] == "{":
            first = at
            while first and is_signature(lines[first - 1]):
                first -= 1
            while lines[at] != "}":
                at += 1
            found.append((first + 1, at + 1))
        at += 1
    return found


def is_signature(line: str) -> bool:
    return bool(line.strip()) and not (
        line.startswith(COMMENT_OR_END) or line.endswith((";", "*/", "\\"))
    )


def formatted(tool: str, name: str, text: str) -> str:
    lines = [f"--lines={first}:{last}" for first, last in functions(text)]
    if not lines:
        return text
    argv = [tool, f"--assume-filename={name}", *lines]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def tracked() -> list[str]:
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="change the files")
    parser.add_argument("file", nargs="*", help="default: all C files that git tracks")
    arguments = parser.parse_args()
    beside = Path(sys.executable).parent / "clang-format"
    tool = str(beside) if beside.exists() else shutil.which("clang-format")
    if tool is None:
        print("c_format.py: no clang-format; run lab/bootstrap test", file=sys.stderr)
        return 2
    differ = 0
    for name in arguments.file or tracked():
        old = (ROOT / name).read_text()
        new = formatted(tool, name, old)
        if new == old:
            continue
        differ += 1
        if arguments.write:
            (ROOT / name).write_text(new)
        else:
            lines = (old.splitlines(keepends=True), new.splitlines(keepends=True))
            sys.stdout.writelines(difflib.unified_diff(*lines, name, f"{name}, formatted"))
    if differ and not arguments.write:
        print(f"{differ} files differ; run tests/style/c_format.py --write", file=sys.stderr)
    return 1 if differ and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
