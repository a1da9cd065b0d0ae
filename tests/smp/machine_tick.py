#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Fails unless machine-mqfq grants credit: without a timer a scheduler by budget stands still.

usage: tests/smp/machine_tick.py PROGRAM
"""

import json
import subprocess
import sys

# A request takes 2800 ns without a scheduler. Without tick four CPUs do 235,000 requests a second.
LEAST = 900_000


def main() -> int:
    for policy in ("wdt", "kyber-fair", "hwabc"):
        argv = [sys.argv[1], f"policy={policy}", "cpus=4"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        seen = json.loads(done.stdout)["requests_per_s"]
        if seen < LEAST:
            print(f"{' '.join(argv)}: {seen} requests a second: less than {LEAST}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
