# SPDX-License-Identifier: GPL-2.0
"""Runs the figures of the papers, and writes doc/figures.md.

    python3 -m experiments.papers --list
    python3 -m experiments.papers mqfq.9 ifq
    python3 -m experiments.papers all --json figures.json --document doc/figures.md
    python3 -m experiments.papers all --results figures.json --document doc/figures.md

NAME is a figure, a paper by its scheduler, or all. A bound that does not hold is a result, and the
status is 0; --strict makes it 1. With --results nothing runs: the values are those in a file that
--json wrote.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import harness
from experiments.papers.entry import Entry, Paper
from experiments.papers.hwabc import figures as hwabc
from experiments.papers.ifq import figures as ifq
from experiments.papers.kyber_fair import figures as kyber_fair
from experiments.papers.mqfq import figures as mqfq
from experiments.papers.page import Measured, full_name, page
from experiments.papers.sources import Options, Player, scenes_of
from experiments.papers.wdt import figures as wdt
from mqfair.text.errors import UsageError
from mqfair.text.output import nearest, require_writable, table

PAPERS: Sequence[Paper] = (
    mqfq.PAPER,
    ifq.PAPER,
    kyber_fair.PAPER,
    wdt.PAPER,
    hwabc.PAPER,
)
ALL = "all"
SCHEMA = "mqfair.figures/1"

Chosen = Sequence[tuple[Paper, Sequence[Entry]]]


def choose(names: Sequence[str]) -> Chosen:
    """The entries that @names name, by paper. Raises UsageError."""
    known = [full_name(paper, entry) for paper in PAPERS for entry in paper.entries]
    papers = [paper.scheduler for paper in PAPERS]
    for name in names:
        if name not in (ALL, *papers, *known):
            raise UsageError(
                f"no figure '{name}': use all, {', '.join(papers)}, or a name of --list:"
                f" {nearest(name, known)}".rstrip(": ")
            )
    chosen = []
    for paper in PAPERS:
        entries = [
            entry
            for entry in paper.entries
            if {ALL, paper.scheduler, full_name(paper, entry)} & set(names)
        ]
        if entries:
            chosen.append((paper, entries))
    return chosen


def listing() -> list[str]:
    rows = [
        [full_name(paper, entry), entry.place, entry.what, str(entry.stated)]
        for paper in PAPERS
        for entry in paper.entries
    ]
    return table(["name", "figure", "quantity", "paper"], rows, left=4)


def show(chosen: Chosen) -> None:
    """Prints the job files of @chosen, with the command that runs each."""
    scenes = dict.fromkeys(
        scene for _, entries in chosen for entry in entries for scene in scenes_of(entry.source)
    )
    for scene in scenes:
        print(f"# {scene.command()}")
        print(scene.text())


def measure(chosen: Chosen, options: Options) -> list[tuple[Paper, list[Measured]]]:
    player = Player(options)
    found = []
    for paper, entries in chosen:
        measured = []
        for entry in entries:
            values = entry.read(player.play(entry.source))
            one = Measured(entry, values, player.seconds[entry.source])
            cells = one.cells(paper)
            print("  ".join([f"{cells[0].strip('`'):32}", *cells[2:]]), flush=True)
            measured.append(one)
        found.append((paper, measured))
    return found


def read_results(chosen: Chosen, name: str) -> list[tuple[Paper, list[Measured]]]:
    """The values in the file @name, which --json wrote. Raises UsageError."""
    try:
        known = {one["name"]: one for one in json.loads(Path(name).read_text())["figures"]}
        found = []
        for paper, entries in chosen:
            values = [known[full_name(paper, entry)] for entry in entries]
            measured = [
                Measured(entry, value["values"], value["seconds"])
                for entry, value in zip(entries, values, strict=True)
            ]
            found.append((paper, measured))
        return found
    except OSError as error:
        raise UsageError(f"--results {name}: {error.strerror}: name a file of --json") from error
    except KeyError as error:
        raise UsageError(f"--results {name}: no {error}: name a file of --json all") from error
    except (ValueError, TypeError) as error:
        raise UsageError(f"--results {name}: not a file that --json wrote: name one") from error


def document(found: Sequence[tuple[Paper, Sequence[Measured]]]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "figures": [
            {
                "name": full_name(paper, one.entry),
                "figure": one.entry.place,
                "quantity": one.entry.what,
                "paper": one.entry.stated,
                "bound": vars(one.entry.bound) if one.entry.bound else None,
                "values": list(one.values),
                "holds": one.holds,
                "seconds": one.seconds,
            }
            for paper, measured in found
            for one in measured
        ],
    }


def run(args: argparse.Namespace) -> int:
    if args.list:
        print("\n".join(listing()))
        return 0
    chosen = choose(args.names)
    if not chosen:
        raise UsageError("no figure is named: use all, or names of --list")
    if args.show:
        show(chosen)
        return 0
    if args.document and args.names != [ALL]:
        raise UsageError("--document: the page has all figures: name all")
    for option in ("json", "document"):
        require_writable(f"--{option}", getattr(args, option))
    if args.results:
        found = read_results(chosen, args.results)
    else:
        found = measure(chosen, Options(args.seeds, args.jobs))
    if args.json:
        text = json.dumps(document(found), indent=1)
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    if args.document:
        Path(args.document).write_text(page(found), encoding="utf-8")
    holds = all(one.holds for _, measured in found for one in measured)
    return 0 if holds or not args.strict else 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures, papers, or all")
    parser.add_argument("--list", action="store_true", help="list the figures and end")
    parser.add_argument("--show", action="store_true", help="print the job files and end")
    parser.add_argument(
        "--seeds",
        type=int,
        default=Options.seeds,
        metavar="N",
        help="runs of each job, with seeds from 1 on (default %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=Options.at_once,
        metavar="N",
        help="runs at the same time (default %(default)s)",
    )
    parser.add_argument(
        "--results", metavar="FILE", help="take the values from FILE, which --json wrote"
    )
    parser.add_argument("--json", metavar="FILE", help="write the values to FILE")
    parser.add_argument("--document", metavar="FILE", help="write the page to FILE")
    parser.add_argument("--strict", action="store_true", help="status 1 if a bound does not hold")
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
