# SPDX-License-Identifier: GPL-2.0
"""Measures the start-up time of a program beside four heavy readers (figure 6 of Sui et al.).

replay: the reads of a real start-up are replayed, with the program's think times between them. Four
tenants with 16 requests of 64 KiB each run beside it, on a drive with eight slots. The normalised
start-up time is the time beside the four over the time alone. Checked are:

  - the normalised start-up time under ifq is at most that under BFQ,
  - the four have 0.9 of their throughput under none.

record: a guest starts a program, python3 with matplotlib, from a file system that holds nothing
else, with cold caches. The block tracepoints give the reads. The trace has four numbers for each
read: its predecessor, its think time in microseconds, its sector, and its length in sectors. The
predecessor is the last read that had completed before it, and the think time is the time since that
completion. So the replay keeps both the waiting and the concurrency of the program. replay records
a trace if there is none.

    python3 -m experiments.papers.ifq.startup record
    python3 -m experiments.papers.ifq.startup replay --picture build/ifq-startup.png
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from experiments import harness
from experiments.guest_options import add_module_argument
from experiments.harness import Candidate, Check
from experiments.papers.ifq import startup_guest
from experiments.papers.ifq.startup_guest import RUNS, TRACE, read_trace
from experiments.pictures import COLOURS
from lab import guest, kernel
from lab.errors import LabError
from lab.guest import GuestResult
from lab.spec import GuestSpec
from mqfair.bench import report
from mqfair.bench.kernel_log import splat
from mqfair.bench.result import Document
from mqfair.bench.session import ROOT
from mqfair.bench.variant import BFQ, NONE
from mqfair.text.errors import Failure, UsageError
from mqfair.text.palette import FAINT, STYLE

RECORDED = Path("build") / "experiments" / TRACE
IFQ = "ifq"
SCHEDULERS = "none,bfq,kyber,mqfq,ifq"
LEAST_HEAVY = 0.9

Runs = Sequence[Document]


def in_guest(arguments: Sequence[str], out: Path, spec: GuestSpec) -> GuestResult:
    argv = [sys.executable, "-m", startup_guest.__name__, *arguments]
    try:
        result = guest.run(spec, argv, env={"PYTHONPATH": str(ROOT)}, out_dir=out)
    except LabError as error:
        raise Failure(str(error)) from error
    trouble = result.trouble() or splat(result.dmesg)
    if trouble or result.status:
        raise Failure(f"the guest: {trouble or result.stderr.strip()[-2000:]}")
    return result


# -------------------------------------------------------------------------- record

PYTHON = Path("/usr/bin/python3")
ENV = Path("/usr/bin/env")
PROGRAM = "import matplotlib.pyplot"
LEFT_OUT = ("mypy*", "ruff*", "pip*", "test", "tests", "dist-packages")
IMAGE_MB = 320


def libraries_of(files: Iterable[Path]) -> set[Path]:
    """The shared libraries that the dynamic linker loads for @files."""
    found = set()
    for file in files:
        said = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
        found |= {Path(name) for name in re.findall(r"(/\S+) \(0x", said.stdout)}
    return found


def gather(root: Path) -> list[str]:
    """Copies the program and all its files below @root; returns its command line there."""
    packages = Path(mpl.__file__).parent.parent
    library = Path(json.__file__).parent.parent
    for folder in (packages, library):
        shutil.copytree(
            folder,
            root / folder.relative_to("/"),
            symlinks=True,
            ignore=shutil.ignore_patterns(*LEFT_OUT),
        )
    needed = libraries_of([PYTHON, ENV, *packages.rglob("*.so"), *library.rglob("*.so")])
    for file in (PYTHON.resolve(), ENV, *needed):
        if file.is_relative_to(packages):
            continue
        target = root / file.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file.resolve(), target)
    # The program runs once here, so that its font cache exists, as on a machine in use.
    settings = {"PYTHONPATH": str(packages), "MPLBACKEND": "agg", "HOME": "/home"}
    (root / "home/.config").mkdir(parents=True)
    (root / "tmp").mkdir()
    start = [str(PYTHON.resolve()), "-c", PROGRAM]
    subprocess.run(start, env={**settings, "HOME": str(root / "home")}, check=True)
    return [str(ENV), "-i", *(f"{name}={value}" for name, value in settings.items()), *start]


def record(trace: Path) -> None:
    """Starts the program in a guest and writes its reads to @trace."""
    with tempfile.TemporaryDirectory(prefix="mqfair-startup-") as name:
        folder = Path(name)
        root, image, out = folder / "root", folder / "image", folder / "out"
        for one in (root, out):
            one.mkdir()
        command = gather(root)
        with image.open("wb") as file:
            file.truncate(IMAGE_MB << 20)
        # The file system itself must not do I/O: no journal, no lazy initialisation.
        mkfs = ["mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0"]
        subprocess.run([*mkfs, "-d", str(root), str(image)], check=True)
        spec = GuestSpec(cpus=1, icount=True, timeout_s=900)
        in_guest(["record", str(image), guest.GUEST_OUT, *command], out, spec)
        trace.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(out / TRACE, trace)


def record_command(args: argparse.Namespace) -> int:
    record(args.trace)
    harness.console().print(describe(args.trace))
    return 0


def describe(trace: Path) -> str:
    issues = read_trace(trace)
    read_mb = sum(one.sectors for one in issues) * startup_guest.SECTOR / 1e6
    return f"{trace.name}: {len(issues)} reads, {read_mb:.1f} MB"


# -------------------------------------------------------------------------- replay


def of(runs: Runs, scheduler: str) -> list[Document]:
    return [run for run in runs if run["scheduler"] == scheduler]


def normalised(runs: Runs, scheduler: str) -> list[float]:
    return [run["shared_s"] / run["alone_s"] for run in of(runs, scheduler)]


def heavy(runs: Runs, scheduler: str) -> list[float]:
    none = {run["repeat"]: run["heavy_bytes_per_s"] for run in of(runs, NONE)}
    return [run["heavy_bytes_per_s"] / none[run["repeat"]] for run in of(runs, scheduler)]


def judge(runs: Runs, schedulers: Sequence[str]) -> Iterator[Check]:
    if IFQ not in schedulers:
        return
    candidate = Candidate("start-up", IFQ)
    if BFQ in schedulers:
        beside = zip(normalised(runs, IFQ), normalised(runs, BFQ), strict=True)
        yield candidate.at_most("start-up / bfq's", [own / bfq for own, bfq in beside], 1.0)
    yield candidate.at_least("heavy total / none", heavy(runs, IFQ), LEAST_HEAVY)


def show(runs: Runs, schedulers: Sequence[str]) -> Table:
    table = Table(title="start-up", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("scheduler")
    for name in ("alone, s", "beside four, s", "normalised", "the four / none"):
        table.add_column(name, justify="right")
    for label in schedulers:
        table.add_row(
            label,
            report.spread([run["alone_s"] for run in of(runs, label)], "{:.2f}"),
            report.spread([run["shared_s"] for run in of(runs, label)], "{:.2f}"),
            report.spread(normalised(runs, label), "{:.2f}"),
            report.spread(heavy(runs, label), "{:.3f}"),
        )
    return table


def draw(runs: Runs, schedulers: Sequence[str], where: str, path: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 4.2), layout="constrained")
        axes = figure.subplots()
        for number, label in enumerate(schedulers):
            values = normalised(runs, label)
            middle = statistics.median(values)
            spread = [[middle - min(values)], [max(values) - middle]]
            axes.bar(label, middle, yerr=spread, color=COLOURS[number], width=0.6, capsize=4)
            axes.annotate(
                f"{middle:.2f}",
                (number, max(values)),
                textcoords="offset points",
                xytext=(0, 4),
                ha="center",
            )
        axes.axhline(1.0, color=COLOURS[0], linewidth=0.8, linestyle=(0, (4, 3)))
        axes.set_ylabel("start-up time beside four readers / alone")
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        axes.set_axisbelow(True)
        figure.suptitle(
            "Start-up of python3 with matplotlib beside four heavy readers\n" + where,
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def replay_command(args: argparse.Namespace) -> int:
    schedulers = list(dict.fromkeys((NONE, *args.schedulers.split(","))))
    if not args.trace.is_file() and args.trace != RECORDED:
        raise UsageError(f"--trace {args.trace}: no such file: record it with `startup record`")
    module = args.module or ROOT / "build" / "module" / kernel.ensure().release / "mqfair.ko"
    if not module.is_file():
        raise UsageError(f"--module {module}: no such file: run `make module`")
    if not args.trace.is_file():
        record(args.trace)
    with tempfile.TemporaryDirectory(prefix="mqfair-startup-") as name:
        out = Path(name)
        spec = GuestSpec(
            cpus=1,
            icount=True,
            modules=(module,),
            timeout_s=300.0 + 480.0 * args.repeat * len(schedulers),
        )
        trace = str(args.trace.resolve())
        arguments = ["replay", trace, guest.GUEST_OUT, str(args.repeat), *schedulers]
        result = in_guest(arguments, out, spec)
        runs = json.loads((out / RUNS).read_text())
    where = f"Linux {result.kernel}, one CPU ({result.accel}), counted time"
    harness.console().print(describe(args.trace), show(runs, schedulers))
    if args.picture:
        draw(runs, schedulers, where, args.picture)
    figures: Mapping[str, object] = {"where": where, "runs": runs}
    return harness.conclude(args, "startup", [], list(judge(runs, schedulers)), dict(figures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiments.papers.ifq.startup", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record", help="record a program's start with cold caches")
    recording.set_defaults(command=record_command)
    replaying = commands.add_parser("replay", help="replay it alone and beside four readers")
    replaying.set_defaults(command=replay_command)
    replaying.add_argument(
        "--schedulers",
        default=SCHEDULERS,
        metavar="NAME,...",
        help="schedulers to compare (default %(default)s)",
    )
    replaying.add_argument(
        "--repeat",
        type=int,
        default=3,
        metavar="N",
        help="runs of each scheduler, interleaved (default %(default)s)",
    )
    add_module_argument(replaying)
    replaying.add_argument("--json", metavar="FILE", help="write checks and runs to FILE")
    replaying.add_argument("--picture", type=Path, metavar="FILE", help="draw the result")
    for one in (recording, replaying):
        one.add_argument(
            "--trace",
            type=Path,
            default=RECORDED,
            metavar="FILE",
            help="the recorded reads (default %(default)s)",
        )
    return parser


def main() -> int:
    return harness.main(_parser(), harness.dispatch)


if __name__ == "__main__":
    sys.exit(main())
