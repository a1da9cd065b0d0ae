# SPDX-License-Identifier: GPL-2.0
"""mqfair trace: the figures of a block trace, its conversion for a replay, and generated traces."""

import argparse
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mqfair.bench.jobfile import RUNTIME_MOST_S
from mqfair.bench.simulated.options import PROCESSES_MOST
from mqfair.text.errors import UsageError
from mqfair.text.output import (
    add_json_argument,
    human_bytes,
    print_json,
    quoted,
    require_writable,
    shortened,
    table,
    whole_folder,
    whole_output,
)
from mqfair.traces import native
from mqfair.traces.figures import Description, Figures, describe
from mqfair.traces.formats import FORMATS
from mqfair.traces.generators import DISK_BYTES, PROFILES, generate
from mqfair.traces.reader import Trace
from mqfair.traces.replay import WRITERS, Change, part_of, split
from mqfair.traces.request import NS, OPS, READ, REPLAYED_MOST, WRITE, Request

SCHEMA = "mqfair.trace/1"
JOB = "replay.fio"
REQUESTS_GENERATED = 100_000
_ROWS = 40
# Of a section of JOB.
_PROCESSES = 32
# int() refuses some thousand digits.
_WHOLE = re.compile(r"[0-9]{1,18}")
_SIZE = re.compile(rf"({_WHOLE.pattern})([kmgt]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST_DISK = 1 << 20

EPILOG = f"""\
Shows the requests, sizes and rates of a trace, for each of its disks or cgroups. With --out or
--split it writes a trace that fio and the simulator replay. FILE may be compressed with gzip. Its
format is taken from its first lines, or from --format:

{chr(10).join(f"  {one.name:14} {one.summary}" for one in FORMATS.values())}

--generate makes a trace with published characteristics, of one of the profiles
{", ".join(PROFILES)}. --split writes a file for each source, and {JOB}, a job file for
`mqfair sim` and `mqfair bench` with a cgroup for each of them. doc/traces.md tells more.

examples:
  mqfair trace Financial1.spc.gz
  mqfair trace hm_0.csv.gz --out hm.trace --align 4k --size 1g
  mqfair trace LUN.csv --split replay --size 1g --requests 100000
  mqfair trace --generate websearch --seed 7 --requests 50000 --out web.trace
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("file", nargs="?", metavar="FILE", help="a trace")
    parser.add_argument("--format", choices=list(FORMATS), help="the format of FILE")
    parser.add_argument("--generate", choices=list(PROFILES), help="make a trace instead")
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of --generate (default %(default)s)"
    )
    parser.add_argument(
        "--requests",
        metavar="N",
        help=f"take the first N; default: all, or {REQUESTS_GENERATED} of a generated trace",
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="NAME",
        help="take this disk, file or cgroup alone; may be repeated",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=OPS,
        help="leave an operation out; may be repeated",
    )
    parser.add_argument(
        "--align", default="1", metavar="BYTES", help="round begin and end outwards, such as 4k"
    )
    parser.add_argument(
        "--size", metavar="BYTES", help="move all places into a drive of this size, such as 1g"
    )
    parser.add_argument("--out", metavar="FILE", help="write the trace; - is standard output")
    parser.add_argument(
        "--to",
        choices=list(WRITERS),
        default=native.NAME,
        help="format of --out: mqfair (the default), or iolog of fio in version 3 or 2",
    )
    parser.add_argument(
        "--split", metavar="FOLDER", help="write a trace for each source, and a job file"
    )
    add_json_argument(parser)


def main(args: argparse.Namespace) -> int:
    change = _change(args)
    if args.out and args.split:
        raise UsageError(f"--out {args.out}: not beside --split: use one of them")
    if args.split:
        return _split(args, change)
    if args.out:
        return _write(args, change)
    return _show(args, change)


def _change(args: argparse.Namespace) -> Change:
    if (args.file is None) == (args.generate is None):
        raise UsageError("name a trace file, or --generate with a profile (see --help)")
    if args.generate and args.format:
        raise UsageError(f"--format {args.format}: is for a file: leave it out")
    if args.generate and args.source:
        raise UsageError(f"--source {args.source[0]}: is for a file: leave it out")
    if args.generate and {READ, WRITE} <= {*args.without}:
        raise UsageError("--without: a generated trace has reads and writes: keep one of them")
    most = None if args.requests is None else _whole("--requests", args.requests, 1)
    if args.generate and most is None:
        most = REQUESTS_GENERATED
    align = _bytes("--align", args.align, 1)
    if align & (align - 1) or align > _LEAST_DISK:
        raise UsageError(f"--align {args.align}: use a power of two up to 1m")
    size = None if args.size is None else _bytes("--size", args.size, _LEAST_DISK)
    if size is not None and size % align:
        raise UsageError(f"--size {args.size}: use a multiple of {align}, the --align")
    return Change(size, align, tuple(args.source), tuple(args.without), most)


def _whole(option: str, text: str, least: int) -> int:
    found = int(text) if _WHOLE.fullmatch(text) else 0
    if found < least:
        raise UsageError(
            f"{option} {shortened(text)}: use a whole number from {least} on, of at most 18 digits"
        )
    return found


def _bytes(option: str, text: str, least: int) -> int:
    match = _SIZE.fullmatch(text)
    found = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if found < least:
        raise UsageError(
            f"{option} {shortened(text)}: use at least {least} bytes, such as 4k or 1g, of at most"
            " 18 digits"
        )
    return found


def _requests(args: argparse.Namespace, change: Change) -> tuple[Trace | None, Iterator[Request]]:
    if args.generate:
        disk = DISK_BYTES if change.size is None else change.size
        return None, change.made(generate(args.generate, args.seed, disk))
    trace = Trace(args.file, args.format)
    return trace, change.made(trace.requests())


def _write(args: argparse.Namespace, change: Change) -> int:
    trace, requests = _requests(args, change)
    first = _first(args, requests)
    require_writable("--out", args.out, [args.file] if trace else [])
    whole = Figures()
    with whole_output(args.out) as file:
        WRITERS[args.to](file, _counted(itertools.chain((first,), requests), whole))
    if args.out != "-":
        _tell(args, {"files": {args.out: whole.requests}}, [_line(args.out, whole)])
    return 0


def _first(args: argparse.Namespace, requests: Iterator[Request]) -> Request:
    """The first request: a wrong trace is refused before a file is written."""
    for request in requests:
        return request
    raise _none_left(args)


def _none_left(args: argparse.Namespace) -> UsageError:
    if args.source or args.without:
        return UsageError(f"{args.file}: no request is left: check --source and --without")
    return UsageError(f"{args.file}: no line has a request: name another file, or its --format")


def _counted(requests: Iterator[Request], whole: Figures) -> Iterator[Request]:
    for request in requests:
        whole.add(request, sequential=False)
        yield request


def _line(name: str, whole: Figures) -> str:
    return (
        f"{name}: {whole.requests} requests of {human_bytes(whole.bytes)} in {whole.seconds:.1f} s"
    )


def _split(args: argparse.Namespace, change: Change) -> int:
    _, requests = _requests(args, change)
    first = _first(args, requests)
    whole = Figures()
    with whole_folder("--split", args.split) as made:
        parts = split(_counted(_in_time(itertools.chain((first,), requests)), whole), made)
        (made / JOB).write_text(_job_text(parts, whole), encoding="utf-8")
    folder = Path(args.split)
    job = str(folder / JOB)
    lines = [_line(args.split, whole), *(_needs(whole) or [f"run it: mqfair sim {quoted(job)}"])]
    files = {name: str(folder / part_of(name)) for name in parts}
    _tell(args, {"job": job, "files": files}, lines)
    return 0


def _in_time(requests: Iterator[Request]) -> Iterator[Request]:
    """Raises UsageError at the first request that no job file is long enough for."""
    for before, request in enumerate(requests):
        if request.at_ns >= RUNTIME_MOST_S * NS:
            at_s = request.at_ns / NS
            raise UsageError(
                f"--split: request {before + 1} is {at_s:.0f} s after the first, and a job file has"
                f" at most {RUNTIME_MOST_S:.0f} s, a week: add --requests {before}"
            )
        yield request


def _job_text(parts: Mapping[str, int], whole: Figures) -> str:
    """All cgroups run from the first request of the trace to its last. @parts has the number of
    requests of each."""
    most = min(_PROCESSES, PROCESSES_MOST // len(parts))
    lines = [
        "# Each cgroup replays its part of one trace, with requests outstanding up to numjobs.",
        "[global]",
        "ioengine=psync",
        "direct=1",
        "ramp_time=0",
        f"runtime={max(1, whole.last_ns // 10**6 + 1)}ms",
    ]
    for name, requests in parts.items():
        lines += ["", f"[{name}]", f"cgroup={name}", f"read_iolog={part_of(name)}"]
        # No process may be without a request.
        lines.append(f"numjobs={min(most, requests)}")
    return "\n".join(lines) + "\n"


def _tell(args: argparse.Namespace, document: dict[str, object], lines: list[str]) -> None:
    if args.json:
        print_json({"schema": SCHEMA, **document})
    else:
        print("\n".join(lines))


def _show(args: argparse.Namespace, change: Change) -> int:
    trace, requests = _requests(args, change)
    found = describe(requests)
    if not found.whole.requests:
        raise _none_left(args)
    name = trace.format.name if trace else args.generate
    without = trace.without_data if trace else 0
    _tell(
        args,
        {
            "format": name,
            "lines_without_data": without,
            **found.whole.document(),
            "sources": {one: own.document() for one, own in found.sources.items()},
        },
        _shown(args.file or args.generate, name, without, found),
    )
    return 0


def _shown(file: str, name: str, without: int, found: Description) -> list[str]:
    whole = found.whole
    head = ("source", "requests", "reads", "size", "median", "per s", "peak", "MiB/s", "in order")
    ranked = sorted(found.sources.items(), key=lambda one: -one[1].requests)
    rows = [_row(one, own) for one, own in ranked[:_ROWS]]
    if len(ranked) > 1:
        rows.append(_row("all", whole))
    lines = [f"{file}: {name}, {whole.seconds:.3f} s, {human_bytes(whole.bytes)}", ""]
    lines += table(head, rows)
    lines.append("")
    if len(ranked) > _ROWS:
        lines.append(f"{len(ranked) - _ROWS} more sources: see --json")
    if without:
        lines.append(f"{without} lines without data, such as flushes and heads")
    lines += _needs(whole)
    lines.append(f"the last byte of all requests is {whole.end}: a smaller drive needs --size")
    return lines


def _needs(whole: Figures) -> list[str]:
    """The options and changes without which a replay refuses the trace."""
    lines = []
    if whole.trims:
        lines.append(f"{whole.trims} trims: a replay needs --without trim")
    if whole.unaligned:
        lines.append(f"{whole.unaligned} requests are not of whole sectors: use --align 512")
    if whole.large:
        lines.append(
            f"{whole.large} requests have more than {human_bytes(REPLAYED_MOST)}: a replay needs"
            " their lines removed, or written as several"
        )
    return lines


def _row(name: str, own: Figures) -> list[str]:
    count = own.requests
    return [
        name,
        str(count),
        f"{100 * own.reads / count:.1f} %",
        human_bytes(round(own.bytes / count)),
        human_bytes(own.median_bytes),
        f"{own.iops:.1f}",
        str(own.peak),
        f"{own.bytes_per_s / (1 << 20):.2f}",
        f"{100 * own.sequential / count:.1f} %",
    ]
