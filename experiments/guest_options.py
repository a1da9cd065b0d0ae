# SPDX-License-Identifier: GPL-2.0
"""The options of an experiment in a guest. It needs no package beyond the standard library."""

import argparse
from pathlib import Path

# A parser, or a group of its options.
Options = argparse._ActionsContainer


def add_guest_arguments(options: Options, *, runtime_s: float) -> None:
    options.add_argument(
        "--runtime",
        type=float,
        default=runtime_s,
        metavar="S",
        help="seconds of each run (default %(default)s)",
    )
    options.add_argument(
        "--cpus", type=int, default=2, metavar="N", help="CPUs of the guest (default %(default)s)"
    )
    options.add_argument(
        "--icount",
        action="store_true",
        help="one CPU, and its clock counts instructions: exact on a busy host",
    )
    add_module_argument(options)


def add_module_argument(options: Options) -> None:
    options.add_argument(
        "--module", type=Path, metavar="FILE", help="mqfair.ko (default: the one built here)"
    )
