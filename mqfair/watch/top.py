# SPDX-License-Identifier: GPL-2.0
"""mqfair top: the shares, rates and times of the cgroups, live.

The picture of one interval needs the standard library alone. top_screen.py has the live one.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence

from mqfair.machine.fs import Fs
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import paint
from mqfair.watch.drives import (
    add_device_arguments,
    add_interval_argument,
    interval_of,
    two_samples,
    watched,
)
from mqfair.watch.sample import Line, Sampler
from mqfair.watch.top_lines import (
    LEGEND,
    SORTS,
    VIEWS,
    DiskView,
    Picked,
    Word,
    drawn,
    entries,
    fitting,
    narrowed,
    views,
)

SCHEMA = "mqfair.top/2"
# The width of a picture in a file.
PLAIN_WIDTH = 160
# The names of terminals that cannot move their cursor.
DUMB = ("dumb", "unknown")

# The colours of a view that mqfair.output has; the others are for the live picture.
_PLAIN_COLOURS = ("bold", "dim", "red", "yellow", "cyan")

_LEGEND = "\n".join(f"  {line}" for line in LEGEND.splitlines())
EPILOG = f"""\
A line is a cgroup, below its parent. The line of a parent has the sums of its children, and its own
processes have the line (own). Without DEVICE, all drives with an mqfair scheduler are shown.

A cgroup that asks for more and gets less than nine tenths of its share is yellow, and an idle one
is dim. Percentiles cover waiting and the drive together. The live picture needs the Python package
rich; --once and --json do not. debugfs, which root can read, has the window: the most
requests that isolation lets into the drive.

The scripts latency.bt and waits.bt in bpftrace/, beside the modules of this command, are for
bpftrace: histograms of the latencies of each cgroup, and which cgroup waits for which.

columns:
{_LEGEND}

keys:
  q quit             space pause        s S  sort by another column, back
  r turn the order   v     other columns   /  filter by a part of the name
  i hide the idle    tab   next drive   + -  interval
  c C hide the lowest level of the tree, show it again
  arrows, page up, page down, home, end: scroll

examples:
  mqfair top
  mqfair top nvme0n1 --sort p99 --filter prod
  mqfair top --once --interval 5 --levels 2
  mqfair top --json | jq .disks
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_device_arguments(parser)
    add_interval_argument(parser, "2")
    parser.add_argument(
        "--sort", metavar="COLUMN", default=SORTS[0], choices=SORTS, help=", ".join(SORTS)
    )
    parser.add_argument(
        "--filter", metavar="TEXT", default="", help="show only cgroups with TEXT in the path"
    )
    parser.add_argument("--busy", action="store_true", help="hide cgroups without a request")
    parser.add_argument(
        "--view", choices=tuple(VIEWS), default="rates", help="the columns if not all have room"
    )
    parser.add_argument(
        "--levels", metavar="N", help="show so many levels of the tree, with the sums of the others"
    )
    parser.add_argument("--once", action="store_true", help="show one interval and end")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print a line of JSON for each interval instead of the picture",
    )


def main(args: argparse.Namespace) -> int:
    interval_s = interval_of(args)
    levels = _levels(args.levels)
    picked = Picked(args.sort, pattern=args.filter, idle=not args.busy, levels=levels)
    fs = Fs()
    disks = watched(fs, args.devices)
    sampler = Sampler(fs, disks)
    if args.once:
        _print(views(sampler, *two_samples(sampler, interval_s)), args, picked)
    elif args.json:
        _print_lines(sampler, interval_s, args, picked)
    else:
        return _live(sampler, interval_s, args, picked)
    return 0


def _levels(text: str | None) -> int | None:
    if text is None:
        return None
    if not is_number(text, 1, (1 << 64) - 1):
        raise UsageError(f"--levels {text}: use a number from 1 on, as --levels 2")
    return int(text)


def _live(sampler: Sampler, interval_s: float, args: argparse.Namespace, picked: Picked) -> int:
    if sys.stdout is None or not sys.stdout.isatty() or not sys.stdin.isatty():
        raise UsageError("the live picture needs a terminal: add --once or --json")
    term = os.environ.get("TERM", "")
    if term in DUMB:
        raise UsageError(
            f"TERM={term}: the live picture needs a terminal that moves its cursor: set TERM to the"
            " name of yours, or add --once or --json"
        )
    from mqfair.watch.top_screen import Screen  # noqa: PLC0415 -- the other pictures do without rich

    return Screen(sampler, interval_s, picked, args.view).run()


def _print(found: Sequence[DiskView], args: argparse.Namespace, picked: Picked) -> None:
    if args.json:
        print(json.dumps(document(found, picked)))
        return
    width = shutil.get_terminal_size((PLAIN_WIDTH, 0)).columns
    columns = fitting(args.view, width)
    for number, view in enumerate(found):
        if number:
            print()
        narrow = narrowed([view], picked, columns, width)
        for words in drawn(entries(view, picked, columns, narrow), columns, narrow):
            print(_painted(words).rstrip())


def _painted(words: Sequence[Word]) -> str:
    return "".join(paint(text, style) if style in _PLAIN_COLOURS else text for text, style in words)


def _print_lines(
    sampler: Sampler, interval_s: float, args: argparse.Namespace, picked: Picked
) -> None:
    """One document a line, until the reader of the output or the user ends it."""
    before = sampler.sample()
    while True:
        time.sleep(interval_s)
        after = sampler.sample()
        print(json.dumps(document(views(sampler, before, after), picked)), flush=True)
        before = after


def document(found: Sequence[DiskView], picked: Picked) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "disks": [
            {**view.as_dict(), "cgroups": [_cgroup(line) for line in view.lines(picked)]}
            for view in found
        ],
    }


def _cgroup(line: Line) -> dict[str, object]:
    use = line.use
    figures = {name: getattr(use, name) for name in use.__slots__ if name != "cgroup"}
    return {"cgroup": use.cgroup, "own": line.own, "depth": line.depth, **figures}
