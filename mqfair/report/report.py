# SPDX-License-Identifier: GPL-2.0
"""The command line of mqfair report: plots of a recording, or of results of mqfair bench.

plots.py draws them. It needs a package that --help and --csv do without.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqfair.report.compare import (
    MAKER,
    QUALIFY_SCHEMA,
    Document,
    benches_of,
    document_of,
    figures_of,
    names_of,
)
from mqfair.report.steps import steps
from mqfair.text.errors import UsageError
from mqfair.text.json_text import WrongJsonError
from mqfair.text.output import print_json, read_text, require_outputs, whole_output
from mqfair.watch import recording
from mqfair.watch.recording import Recording
from mqfair.watch.sample import Use

EPILOG = """\
FILE is a recording of `mqfair record`, one or two results of `mqfair bench --json`, or the file
qualify.json of `mqfair qualify`. The report is one HTML file of at most 2 MB, without a script, and
needs no network. Its first table has for each tenant the due, the share that it got, the p99 and a
verdict. Of many cgroups the busiest and the worst are drawn one by one, and the others together. A
point of a long recording is the mean of several intervals.

With --csv the figures are written as a table, too, or alone. Plots need the Python package
matplotlib.

examples:
  mqfair record --out minute.jsonl
  mqfair report minute.jsonl --out minute.html
  mqfair report before.json after.json --out both.html
  mqfair report minute.jsonl --csv minute.csv
"""


# The endings of files with pictures, which a report is not.
PICTURES = (".png", ".svg", ".pdf", ".jpg", ".jpeg")


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("files", nargs="+", metavar="FILE", help="recording, or results of bench")
    parser.add_argument("-o", "--out", metavar="HTML", help="the report to write")
    parser.add_argument("--csv", metavar="FILE", help="write a table to FILE; - for the output")
    parser.add_argument("--json", action="store_true", help="print the names of the files as JSON")


def _recording(text: str, name: str) -> Recording | None:
    """The recording in the @text of the file @name, or None for other text. Raises UsageError."""
    if f'"{recording.SCHEMA}"' not in text.partition("\n")[0]:
        return None
    try:
        found = recording.read(text)
    except WrongJsonError as error:
        raise UsageError(f"{name}: a damaged recording: {error}: record anew") from error
    if len(found.samples) < 2:
        many = "no sample is" if not found.samples else "one sample is"
        raise UsageError(f"{name}: {many} too few: record for longer")
    return found


def _benches(files: list[str], documents: list[Document]) -> tuple[list[str], list[Document]]:
    """The results in @documents, with a name for each; a file may have several."""
    names: list[str] = []
    benches: list[Document] = []
    for name, document in zip(files, documents, strict=True):
        found = benches_of(document)
        names += [f"{name}, {of}" if len(found) > 1 else name for of in names_of(found)]
        benches += found
    return names, benches


def main(args: argparse.Namespace) -> int:
    if args.out is None and args.csv is None:
        raise UsageError("name a file to write: --out HTML or --csv FILE")
    if args.out is not None and Path(args.out).suffix.lower() in PICTURES:
        raise UsageError(f"--out {args.out}: the report is HTML: name a file that ends in .html")
    require_outputs({"--out": args.out, "--csv": args.csv}, args.files)
    maker = f"`{recording.MAKER}` or `{MAKER}`"
    # A pipe can be read once.
    texts = {name: read_text(name, f"{maker} makes one") for name in args.files[:2]}
    recorded = _recording(texts[args.files[0]], args.files[0])
    if len(args.files) > (1 if recorded else 2):
        raise UsageError("one recording, or one or two results of mqfair bench at a time")
    documents = [] if recorded else [document_of(texts[name], name, maker) for name in args.files]
    names, benches = _benches(args.files[: len(documents)], documents)
    if args.out is not None:
        page = _page(args.files, recorded or documents, names, benches)
        with whole_output(args.out) as file:
            file.write(page)
    if args.csv is not None:
        rows = recording_rows(recorded) if recorded else bench_rows(names, benches)
        with whole_output(args.csv) as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    _say(args)
    return 0


def _page(
    files: list[str],
    found: Recording | list[Document],
    names: list[str],
    benches: list[Document],
) -> str:
    """The page; raises UsageError."""
    from mqfair.report import plots, qualified  # noqa: PLC0415 -- a table needs no package

    if isinstance(found, Recording):
        return plots.of_recording(found)
    if all(one["schema"] != QUALIFY_SCHEMA for one in found):
        return plots.of_benches(names, benches)
    if len(found) > 1:
        raise UsageError(
            f"{' '.join(files)}: a page has one qualification: use `mqfair compare` for two"
        )
    return qualified.page(found[0])


def _say(args: argparse.Namespace) -> None:
    written = {"html": args.out, "csv": args.csv}
    if args.json:
        print_json({"schema": "mqfair.report/1", "files": args.files, **written})
    else:
        for name in written.values():
            if name not in (None, "-"):
                print(f"{name}: {Path(name).stat().st_size} bytes")


def recording_rows(found: Recording) -> Iterator[list[Any]]:
    """A line for each cgroup in each interval."""
    names = [name for name in Use.__slots__ if name != "cgroup"]
    yield ["at_s", "device", "cgroup", *names]
    for disk in found.samples[-1].disks:
        for step in steps(found, disk):
            for use in step.uses.values():
                values = [getattr(use, name) for name in names]
                yield [round(step.at, 3), disk, use.cgroup, *values]


def bench_rows(names: list[str], benches: list[Document]) -> Iterator[list[Any]]:
    """A line for each figure in each run."""
    yield ["file", "scheduler", "figure", "run", "value"]
    for name, bench in zip(names, benches, strict=True):
        for (scheduler, figure), values in figures_of(bench).items():
            for run, value in enumerate(values):
                yield [name, scheduler, figure, run, value]
