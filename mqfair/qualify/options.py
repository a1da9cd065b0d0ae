# SPDX-License-Identifier: GPL-2.0
"""The command line of mqfair qualify. command.py carries it out, with packages that --help does
without."""

import argparse

from mqfair.bench.variant import IOCOST, KYBER, MQFQ, NONE
from mqfair.text.output import add_json_argument

SCHEDULERS = (NONE, KYBER, IOCOST, MQFQ)
DEPTHS = (8, 32, 256)
REPEAT = 3
RUNTIME_S = 2.0

EPILOG = """\
qualify measures one drive of this host for about ten minutes, under none, kyber, io.cost and mqfq:
the work of the processors for each request, the peak, the shares of two and of four cgroups, a
reader with one request at a time beside others, and a mixture of loads. It says before it begins
how long it takes.

Without --destructive fio opens the drive for reading alone, so the drive may hold data and be in
use. With --destructive the first 8 GiB of the drive are overwritten, and a drive that is in use is
refused. The scheduler of the drive, its tunables and the cgroups are restored at the end and after
Ctrl-C. --resume goes on after an interruption.

FOLDER gets qualify.html, qualify.json, and the records of the runs. `mqfair compare` compares two
such results, and `mqfair report` writes the page again. The JSON has the model and the firmware of
the drive, and no serial number.

examples:
  mqfair qualify nvme0n1
  mqfair qualify nvme0n1 --resume
  mqfair qualify nvme1n1 --destructive --out p5520
  mqfair qualify nvme0n1 --schedulers none,ifq --depths 1,4,16,64 --repeat 5
  mqfair compare a/qualify.json b/qualify.json
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("disk", metavar="DISK", help="nvme0n1 or /dev/nvme0n1")
    parser.add_argument(
        "--destructive",
        action="store_true",
        help="also measure writes: overwrites the first 8 GiB of DISK, whatever it holds",
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="the folder for the results (default: mqfair-qualify-DISK in this folder)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on in FOLDER: finished runs are not made again"
    )
    parser.add_argument(
        "--schedulers",
        default=",".join(SCHEDULERS),
        metavar="NAME,...",
        help="schedulers to compare; those that this kernel lacks are left out"
        " (default %(default)s)",
    )
    parser.add_argument(
        "--depths",
        default=",".join(map(str, DEPTHS)),
        metavar="N,...",
        help="requests that each cgroup keeps outstanding, in the tests of shares"
        " (default %(default)s)",
    )
    parser.add_argument(
        "--repeat",
        default=str(REPEAT),
        metavar="N",
        help="runs of each scheduler, interleaved (default %(default)s)",
    )
    parser.add_argument(
        "--runtime",
        default=f"{RUNTIME_S:g}",
        metavar="S",
        help="seconds that are counted in each run (default %(default)s)",
    )
    add_json_argument(parser)
