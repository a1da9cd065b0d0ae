# SPDX-License-Identifier: GPL-2.0
"""The lab's commands for the build: fetch a guest kernel, and build the module for it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from lab import compiled, cross, kernel, matrix, module
from lab.errors import LabError
from lab.tree import COMPILED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    fetch = verbs.add_parser("kernel", help="fetch a guest kernel; print its tree as JSON")
    fetch.add_argument(
        "--refresh", action="store_true", help="look up the newest release in the package lists"
    )
    build = verbs.add_parser("module", help="build mqfair.ko for a guest kernel; print its path")
    verbs.add_parser(
        cross.ARCHITECTURE, help="compile mqfair.ko for arm64, which no guest runs; print its path"
    )
    compile_it = verbs.add_parser(
        "compile", help="compile a kernel that no distribution ships; print its tree as JSON"
    )
    compile_it.add_argument(
        "name",
        choices=COMPILED,
        metavar="KERNEL",
        help=f"one of {', '.join(COMPILED)}",
    )
    table = verbs.add_parser(
        "matrix", help="compile both modules for every kernel that DKMS builds for; print a table"
    )
    table.add_argument(
        "rows",
        nargs="*",
        metavar="ROW",
        help=f"all, or some of {', '.join(row.name for row in matrix.ROWS)}",
    )
    table.add_argument("--refresh", action="store_true", help="look up the newest headers again")
    for verb in (fetch, build):
        verb.add_argument(
            "name", nargs="?", metavar="KERNEL", help=f"one of {', '.join(kernel.KERNELS)}"
        )
    args = parser.parse_args()
    try:
        if args.verb in ("kernel", "compile"):
            if args.verb == "kernel":
                tree = kernel.ensure(args.name, refresh=args.refresh)
            else:
                tree = compiled.build(args.name)
            print(json.dumps(dataclasses.asdict(tree), default=str, indent=2))
        elif args.verb == "matrix":
            return 0 if matrix.run(args.rows, args.refresh) else 1
        elif args.verb == cross.ARCHITECTURE:
            print(module.cross_build(cross.ensure()))
        else:
            print(module.build(kernel.ensure(args.name)))
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
