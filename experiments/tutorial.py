# SPDX-License-Identifier: GPL-2.0
"""Runs the commands of doc/tutorial.md, and writes their outputs and pictures.

    python3 -m experiments.pages --make tutorial
    python3 -m experiments.tutorial --document doc/tutorial.md

A command is indented code of the document that begins with `mqfair sim`. A part of its output
goes to each place `<!-- COMMAND-PART -->` that follows: PARTS has the parts. The pictures that a
command draws are put beside the document.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments import harness
from experiments.markdown import put
from mqfair.text.errors import Failure

ROOT = Path(__file__).resolve().parents[1]
_COMMAND = re.compile(r"^ {4}mqfair (sim .*?[^\\])\n", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"^<!-- ([a-z]+-[a-z]+) -->$", re.MULTILINE)
# Each place has a part of the output: from the line with these words to the next empty one.
PARTS = {"shares": "scheduler +cgroup", "depths": "worst cgroup", "limit": "where the limit"}


def commands(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Each command of the document @text, with the names of its places."""
    found = list(_COMMAND.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    for one, end in zip(found, ends, strict=True):
        words = shlex.split(one[1].replace("\\\n", " "))
        yield words, _PLACE.findall(text, one.end(), end)


def ran(words: Sequence[str], folder: Path) -> str:
    """The output of `mqfair` with @words in @folder. Raises Failure."""
    done = subprocess.run(
        [sys.executable, "-m", "mqfair", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failure(f"mqfair {shlex.join(words)}: status {done.returncode}: {done.stderr}")
    return done.stdout


def part(output: str, name: str) -> str:
    """The lines of @output for the place @name, as indented code."""
    words = PARTS[name.rpartition("-")[2]]
    lines = [line.rstrip() for line in output.splitlines()]
    first = next((at for at, line in enumerate(lines) if re.search(words, line)), None)
    if first is None:
        raise Failure(f"the place {name}: no line with '{words}' in the output:\n{output}")
    # A table is over at two empty lines, at the next table or at a note.
    rest = "\n".join(lines[first:])
    table = re.split(r"\n\n\n|\n+(?=where the limit|note: )", rest)[0].rstrip()
    return "".join(f"    {line}".rstrip() + "\n" for line in table.splitlines())


def run(args: argparse.Namespace) -> int:
    tables = {}
    with tempfile.TemporaryDirectory(prefix="mqfair-tutorial-") as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        for words, places in commands(args.document.read_text()):
            output = ran(words, folder)
            print(output)
            tables.update({place: part(output, place) for place in places})
        for picture in folder.glob("*.png"):
            shutil.copy(picture, args.document.with_name(f"tutorial-{picture.name}"))
    put(args.document, tables)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.tutorial",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--document", type=Path, required=True, metavar="FILE", help="the page to write"
    )
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
