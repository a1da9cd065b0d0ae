# SPDX-License-Identifier: GPL-2.0
"""Measures the figures of doc/study.md in the simulator, and writes its tables and its picture.

    python3 -m experiments.study league
    python3 -m experiments.study price --picture price.png
    python3 -m experiments.pages --make study

The figures are league, price, idle, threshold, replication and sensitivity; `all` stands for all
of them. The same sources give the same figures. Runs are kept in build/study/, so that an
interrupted study goes on where it was.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from experiments import harness
from experiments.markdown import put
from experiments.study import idle, league, price, replication, sensitivity, threshold
from experiments.study.scene import Player

Tables = Mapping[str, str]
ALL = "all"
FIGURES: Mapping[str, Callable[[Player, Path | None], Tables]] = {
    "league": lambda player, _picture: league.tables(player),
    "price": price.tables,
    "idle": lambda player, _picture: idle.tables(player),
    "threshold": lambda _player, _picture: threshold.tables(),
    "replication": lambda _player, _picture: replication.tables(),
    "sensitivity": lambda player, _picture: sensitivity.tables(player),
}


def run(args: argparse.Namespace) -> int:
    names = list(FIGURES) if args.figure == ALL else [args.figure]
    tables: dict[str, str] = {}
    for name in names:
        player = Player(tell=_teller(name))
        tables.update(FIGURES[name](player, args.picture))
    for place, text in tables.items():
        print(f"{place}\n\n{text}")
    if args.document:
        put(args.document, tables)
    return 0


def _teller(name: str) -> Callable[[int], None]:
    def tell(number: int) -> None:
        if number % 50 == 0:
            print(f"study: {name}: {number} runs", file=sys.stderr)

    return tell


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.study",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figure", choices=(*FIGURES, ALL), help="the figure to measure")
    parser.add_argument(
        "--document", type=Path, metavar="FILE", help="write the tables into the document FILE"
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="draw the curves of `price` into FILE"
    )
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
