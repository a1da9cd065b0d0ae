# SPDX-License-Identifier: GPL-2.0
"""mqfair fit: a model of a drive from measured or published figures."""

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mqfair import __version__
from mqfair.bench.simulated import program
from mqfair.bench.simulated.drive import FAST_REQUEST_NS
from mqfair.drives import data_sheet, fio_results, model_file
from mqfair.drives.figures import P99, WHATS, Figure
from mqfair.drives.fit import Fit
from mqfair.drives.measure import FILLS, Measurement
from mqfair.machine.signals import interrupted_once
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import (
    add_json_argument,
    nearest,
    overwrite,
    print_json,
    read_text,
    require_writable,
    table,
    whole_output,
)

SCHEMA = "mqfair.fit/1"
BASE = "p4500"
_REQUEST_NS_MOST = 1_000_000
# A figure that is farther off is named below the table.
TOLERANCE_PERCENT = 10

EPILOG = f"""\
Finds the numbers of a model with which the simulator has the figures in FILE, and prints how far
each figure of the model is from its input. FILE is one of these, and several may be named:

  x.json  results of fio --output-format=json with direct=1: jobs that only read or only write, one
          after the other, at several depths and sizes. They contain the time of the host.
  x.toml  figures of a data sheet, each a table [[figure]] with rw, bs, depth and one of
          {", ".join(WHATS)}.

The numbers of channels and planes, and sizes of pages and blocks, are those of --base, which should
be near the drive. The search finds the number of dies, and the times. Figures of one request, of
many small ones, of large ones, and at depths in between determine most. doc/simulator.md has more.

--out writes the model, for --device ssd:file=FILE of `mqfair sim` and `mqfair bench`. The model is
the same at each run of this command.

examples:
  mqfair fit reads.json writes.json --out my.toml
  mqfair fit sheet.toml --base 980pro --out my.toml
  mqfair sim examples/four-cgroups.fio --device ssd:file=my.toml,fill=100
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("file", nargs="+", metavar="FILE", help="results of fio, or a data sheet")
    parser.add_argument("--out", metavar="FILE", help="write the model as TOML")
    parser.add_argument(
        "--base",
        default=BASE,
        metavar="MODEL",
        help="begin with this model, a built-in one or a file (default %(default)s)",
    )
    parser.add_argument(
        "--fill",
        choices=FILLS,
        default=FILLS[0],
        help="the order in which the drive was written before it was read (default %(default)s)",
    )
    parser.add_argument(
        "--request-ns",
        default=str(FAST_REQUEST_NS),
        metavar="N",
        help="CPU time of a request in results of fio (default %(default)s, as in mqfair sim)",
    )
    add_json_argument(parser)


def main(args: argparse.Namespace) -> int:
    inputs = args.file if args.base in model_file.BUILT_IN else [*args.file, args.base]
    require_writable("--out", args.out, inputs)
    request_ns = _request_ns(args.request_ns)
    base = _base(args.base)
    figures = [figure for name in args.file for figure in _figures(name)]
    model, values, runs = _fitted(args, base, figures, request_ns)
    if args.out:
        with whole_output(args.out) as file:
            file.write(_text(args, base, model, list(_rows(figures, values))))
    if args.json:
        print_json(_document(args, model, figures, values, runs))
    elif args.out != "-":
        _show(args, figures, values)
    return 0


def _request_ns(text: str) -> int:
    if not is_number(text, 0, _REQUEST_NS_MOST):
        raise UsageError(f"--request-ns {text}: use a number in 0..{_REQUEST_NS_MOST}")
    return int(text)


def _base(name: str) -> model_file.Model:
    if name in model_file.BUILT_IN:
        return model_file.built_in(name)
    if "/" not in name and not name.endswith(".toml"):
        known = nearest(name, model_file.BUILT_IN) or f"use {', '.join(model_file.BUILT_IN)}"
        raise UsageError(f"--base {name}: no such model: {known}, or a file such as my.toml")
    return model_file.load(name)


def _figures(name: str) -> list[Figure]:
    text = read_text(name, "name results of fio in JSON, or a data sheet in TOML")
    parse = data_sheet.parse if name.endswith(".toml") else fio_results.parse
    return parse(text, name)


def _fitted(
    args: argparse.Namespace,
    base: model_file.Model,
    figures: Sequence[Figure],
    request_ns: int,
) -> tuple[model_file.Model, Sequence[float], int]:
    """The model, its figures, and the number of runs of the search."""
    live = sys.stderr is not None and sys.stderr.isatty()

    def tell(line: str) -> None:
        if live:
            overwrite(f"fit: {line}")
        elif sys.stderr is not None:
            print(f"fit: {line}", file=sys.stderr, flush=True)

    binary = program.ensure(building=lambda: tell("building the simulator"))
    try:
        with (
            interrupted_once(),
            Measurement(binary, args.fill, request_ns) as measurement,
        ):
            found = Fit(base, figures, measurement, tell).run()
            runs = measurement.runs
    finally:
        if live:
            overwrite("")
    named = Path(args.out).stem if args.out and args.out != "-" else "fitted"
    name = re.sub(r"[^A-Za-z0-9._-]", "-", named)[: model_file.NAME_MOST] or "fitted"
    return dataclasses.replace(found.model, name=name), found.values, runs


def _rows(figures: Sequence[Figure], values: Sequence[float]) -> Iterator[list[str]]:
    for figure, value in zip(figures, values, strict=True):
        unit = WHATS[figure.what]
        what = "p99" if figure.what == P99 else "mean" if unit == "us" else ""
        yield [
            str(figure.load),
            f"{what} {unit}".strip(),
            _number(figure.value),
            _number(value),
            f"{_off(figure, value):+.1f} %",
        ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def _off(figure: Figure, value: float) -> float:
    """How far the model's @value is from the input, in percent of the input."""
    return 100 * (value / figure.value - 1)


_HEAD = ("load", "figure", "input", "model", "off")


def _show(args: argparse.Namespace, figures: Sequence[Figure], values: Sequence[float]) -> None:
    print("\n".join(table(_HEAD, list(_rows(figures, values)), left=2)))
    off = [_off(figure, value) for figure, value in zip(figures, values, strict=True)]
    far = sum(abs(one) > TOLERANCE_PERCENT for one in off)
    print()
    if far:
        print(
            f"{far} of {len(off)} figures are more than {TOLERANCE_PERCENT} % off: another --base"
            " may be nearer, or the drive does something that the model lacks (doc/flash.md)"
        )
    if args.out:
        print(f"use it: mqfair sim JOB --device ssd:file={args.out},fill=100")
    else:
        print("--out FILE writes the model")


def _text(
    args: argparse.Namespace,
    base: model_file.Model,
    model: model_file.Model,
    rows: Sequence[Sequence[str]],
) -> str:
    """The file: the model, with its figures above it."""
    inputs = ", ".join(Path(name).name for name in args.file)
    width = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(len(_HEAD))]
    lines = [
        "  ".join(cell.ljust(width[i]) for i, cell in enumerate(row)) for row in (_HEAD, *rows)
    ]
    head = [f"mqfair fit {__version__} made this model from {inputs}.", "", *lines]
    comments = {
        name: "fitted" if model[name] != base[name] else f"as {base.name}"
        for name in (field.name for field in model_file.FIELDS)
    }
    return model_file.toml(model, comments, head)


def _document(
    args: argparse.Namespace,
    model: model_file.Model,
    figures: Sequence[Figure],
    values: Sequence[float],
    runs: int,
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "base": args.base,
        "fill": args.fill,
        "runs": runs,
        "model": {"name": model.name, **model.values},
        "figures": [
            {
                "place": figure.place,
                "rw": figure.load.rw,
                "bytes": figure.load.bytes,
                "depth": figure.load.depth,
                "jobs": figure.load.jobs,
                "what": figure.what,
                "input": figure.value,
                "model": value,
                "off_percent": _off(figure, value),
            }
            for figure, value in zip(figures, values, strict=True)
        ],
    }
