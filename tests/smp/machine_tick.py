#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Fails unless the schedulers by budget grant credit, and do so on a wide machine.

usage: tests/smp/machine_tick.py PROGRAM
"""

import itertools
import json
import subprocess
import sys

# A request takes 2800 ns without a scheduler, and the drive does four million in a second. Without
# tick four CPUs do 235,000. If each slot goes to another socket, 16 CPUs do two million and a half.
LEAST = {4: 900_000, 16: 3_600_000}


def main() -> int:
    for policy, (cpus, least) in itertools.product(("wdt", "kyber-fair", "hwabc"), LEAST.items()):
        argv = [sys.argv[1], "machine=two-sockets", f"policy={policy}", f"cpus={cpus}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        seen = json.loads(done.stdout)["requests_per_s"]
        if seen < least:
            print(f"{' '.join(argv)}: {seen} requests a second: less than {least}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
