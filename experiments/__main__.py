# SPDX-License-Identifier: GPL-2.0
"""Runs the measurements that the documents cite, each with the options that the documents give.

    python3 -m experiments --list
    python3 -m experiments shares ifq.weights
    python3 -m experiments                      # all of them: many hours

Each measurement runs as a program of its own and writes NAME.json, and NAME.png if it draws a
picture, to the folder of --folder.
"""

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments import harness
from mqfair.text.errors import UsageError
from mqfair.text.output import table

FOLDER = Path("build") / "experiments"
COUNTED = "--icount"


@dataclass(frozen=True)
class Measurement:
    """A module below experiments/ with its arguments. @common says whether the options of
    --options apply; @document names the manual, without .md, that states the result."""

    module: str
    document: str
    arguments: str = ""
    common: bool = False
    picture: bool = False

    def argv(self, name: str, folder: Path, options: Sequence[str]) -> list[str]:
        return [
            sys.executable,
            "-m",
            f"experiments.{self.module}",
            *shlex.split(self.arguments),
            *(options if self.common else ()),
            "--json",
            str(folder / f"{name}.json"),
            *(("--picture", str(folder / f"{name}.png")) if self.picture else ()),
        ]


_INTERFERENCE = "papers.ifq.interference"
_PARALLELISM = "papers.ifq.parallelism"
_STARTUP = "papers.ifq.startup"
_GARBAGE = "papers.hwabc.garbage"

MEASUREMENTS: Mapping[str, Measurement] = {
    "shares": Measurement("shares", "mqfq", common=True),
    "light": Measurement("light", "mqfq", common=True),
    "moving": Measurement("moving", "kyber-fair", common=True, picture=True),
    "scaling": Measurement("scaling", "kyber-fair", common=True, picture=True),
    "cpu_bound": Measurement("cpu_bound", "mqfq", "--runtime 0.4 --repeat 9"),
    "instructions": Measurement("instructions", "mqfq"),
    "journal": Measurement("journal", "mqfq", common=True),
    "traces": Measurement("traces", "kyber-fair", common=True),
    "isolation": Measurement("isolation", "isolation", picture=True),
    "isolation.vm": Measurement("isolation", "isolation", "--on vm", common=True, picture=True),
    "flash_shares": Measurement("flash_shares", "on-flash", common=True),
    "follow": Measurement("follow", "follow"),
    "fidelity": Measurement("fidelity", "fidelity"),
    "machine": Measurement("machine", "machine", picture=True),
    "ifq.weights": Measurement(_INTERFERENCE, "ifq", "weights", picture=True),
    "ifq.turns": Measurement(_INTERFERENCE, "ifq", "turns", picture=True),
    "ifq.latency": Measurement(_INTERFERENCE, "ifq", "latency", common=True, picture=True),
    "ifq.startup": Measurement(_STARTUP, "ifq", "replay", picture=True),
    "ifq.readers": Measurement(_PARALLELISM, "ifq", "readers", common=True, picture=True),
    "ifq.depth": Measurement(_PARALLELISM, "ifq", "depth", common=True, picture=True),
    "hwabc.reader": Measurement(_GARBAGE, "hwabc", "reader", picture=True),
    "hwabc.writers": Measurement(_GARBAGE, "hwabc", "writers --seconds 0.7"),
    "hwabc.estimate": Measurement(_GARBAGE, "hwabc", "estimate --seconds 3"),
    "hwabc.costs": Measurement(_GARBAGE, "hwabc", "costs --seconds 21"),
    "figures": Measurement("papers", "figures", "all"),
    "drives.curve": Measurement("papers.drives.curve", "flash", picture=True),
}


def listing() -> list[str]:
    rows = [
        [name, one.document, " ".join([f"experiments.{one.module}", one.arguments]).strip()]
        for name, one in MEASUREMENTS.items()
    ]
    return table(["measurement", "document", "command"], rows, left=3)


def measure(name: str, folder: Path, options: Sequence[str]) -> bool:
    """Runs measurement @name; True if all its checks hold."""
    argv = MEASUREMENTS[name].argv(name, folder, options)
    print(f"{name}: python3 {shlex.join(argv[1:])}", flush=True)
    begin = time.monotonic()
    status = subprocess.run(argv, check=False).returncode
    print(f"{name}: status {status} after {time.monotonic() - begin:.0f} s", flush=True)
    return status == 0


def run(args: argparse.Namespace) -> int:
    if args.list:
        print("\n".join(listing()))
        return 0
    for name in args.names:
        if name not in MEASUREMENTS:
            raise UsageError(f"no measurement '{name}': use {', '.join(MEASUREMENTS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    options = shlex.split(args.options)
    failed = [
        name for name in args.names or MEASUREMENTS if not measure(name, args.folder, options)
    ]
    if failed:
        print(f"experiments: not all checks hold in: {' '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="measurements (default: all)")
    parser.add_argument("--list", action="store_true", help="list the measurements and end")
    parser.add_argument(
        "--folder",
        type=Path,
        default=FOLDER,
        metavar="FOLDER",
        help="where to write results (default %(default)s)",
    )
    parser.add_argument(
        "--options",
        default=COUNTED,
        help="options for the measurements that run the bench, as one word (default '%(default)s')",
    )
    return harness.main(parser, run, argv)


if __name__ == "__main__":
    sys.exit(main())
