#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Breaks a file of sched/ as broken.toml says, and expects the explorer to find the race.

broken.py list                     NAME TEST FILE SUITE of each variant
broken.py make NAME OUT            the broken file
broken.py check NAME PROGRAM       PROGRAM must fail, and its seed must repeat the failure
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((Path(__file__).parent / "broken.toml").read_text())
# The races of the first suite are found in seconds. The other one has those that take minutes.
SUITES = ("unit", "explore-slow")
INTERLEAVINGS = {"unit": 1_000_000, "explore-slow": 20_000_000}
TIMEOUT_S = {"unit": 120, "explore-slow": 1800}


def broken(name: str) -> str:
    variant = TABLE[name]
    text = (ROOT / variant["file"]).read_text()
    count = text.count(variant["old"])
    if count != 1:
        raise SystemExit(f"broken.toml: {name}: its text occurs {count} times in {variant['file']}")
    return text.replace(variant["old"], variant["new"])


def suite_of(name: str) -> str:
    return SUITES[TABLE[name].get("slow", False)]


def failure(limit_s: int, program: str, *options: str) -> str:
    """The report of a run, which must fail."""
    argv = [program, *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode != 1 or "repeat: " not in done.stderr:
        raise SystemExit(f"{' '.join(argv)}: no race was found: {done.stdout}{done.stderr}")
    return done.stderr


def check(name: str, program: str) -> None:
    limit_s = TIMEOUT_S[suite_of(name)]
    report = failure(limit_s, program, "--interleavings", str(INTERLEAVINGS[suite_of(name)]))
    found = re.search(r"repeat: .* --seed (\d+)$", report, re.M)
    if not found:
        raise SystemExit(f"{name}: the report has no seed:\n{report}")
    again = failure(limit_s, program, "--seed", found[1])
    lines = [re.sub(r"interleaving \d+", "", text) for text in (report, again)]
    if lines[0] != lines[1]:
        raise SystemExit(f"{name}: seed {found[1]} fails in another way:\n{report}{again}")
    print(f"{name}: {report.splitlines()[0]}")


def main(argv: list[str]) -> None:
    match argv:
        case ["list"]:
            for name, variant in TABLE.items():
                print(name, variant["test"], variant["file"], suite_of(name))
        case ["make", name, out]:
            Path(out).write_text(broken(name))
        case ["check", name, program]:
            check(name, program)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
