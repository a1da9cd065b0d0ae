# SPDX-License-Identifier: GPL-2.0
"""Measures the parallelism of drives, and the effect of ifq's depth on it.

readers: figure 1 of Sui et al. 1, 2, 4, ... 64 readers have one request each, of 4 KiB or 128 KiB.
They run without a scheduler on null_blk with eight slots and on the virtual SSD. Shown is the
throughput relative to one reader. The curve stops rising at the parallelism of the drive.

depth: examples/interference.fio with two readers beside six heavy readers, under ifq with depths
from 8 to 64, on drives of different parallelism. Shown are the total of the six relative to none,
and the readers' 99.9th percentile relative to the percentile without the six. Checked is the least
depth that gives the six 0.9 of their total under none: its relative percentile is at most 3.

    python3 -m experiments.papers.ifq.parallelism readers --icount --picture ifq.png
    python3 -m experiments.papers.ifq.parallelism depth --icount --picture ifq.png
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
from rich import box
from rich.table import Table

from experiments import harness
from experiments.harness import Candidate, Check, ratios, runs_of
from experiments.papers.ifq.interference import JOB, READERS, alone, heavy_bytes, percentiles
from experiments.papers.ifq.interference_guest import IFQ
from experiments.pictures import COLOURS, MARKS
from mqfair.bench import jobfile, report
from mqfair.bench.jobfile import JobFile
from mqfair.bench.picture import caption
from mqfair.bench.result import CaseResult
from mqfair.bench.session import Outcome
from mqfair.bench.variant import NONE
from mqfair.text.palette import FAINT, STYLE

Curve = Mapping[int, Sequence[float]]

_TIMED = "irqmode=2,submit_queues=1,gb=4,poll_queues=0,max_sectors=256"
# The drives by their names in the pictures. The first two serve 2000 requests per second.
DRIVES: Mapping[str, str] = {
    "8-slots": f"null:{_TIMED},completion_nsec=4000000,hw_queue_depth=8",
    "32-slots": f"null:{_TIMED},completion_nsec=16000000,hw_queue_depth=32",
    "p4500": "ssd:model=p4500,size_mb=512,fill=85",
}

# ------------------------------------------------------------------------- readers

COUNTS = (1, 2, 4, 8, 16, 32, 64)
SIZES = ("4k", "128k")
READERS_DRIVES = ("8-slots", "p4500")


def readers_job(size: str, count: int, runtime_s: float) -> JobFile:
    lines = ["[readers]", "cgroup=readers", "ioengine=psync", "direct=1", "rw=randread"]
    lines += [f"bs={size}", f"numjobs={count}", "norandommap", "ramp_time=500ms"]
    return jobfile.parse("\n".join(lines), f"{size}-{count}.fio", runtime_s)


def rates(outcome: Outcome) -> dict[str, dict[int, list[float]]]:
    """Bytes per second of each repeat, by size and number of readers."""
    found: dict[str, dict[int, list[float]]] = {size: {} for size in SIZES}
    for result in outcome.results:
        size, _, count = result.case.name.partition("-")
        found[size][int(count)] = [run.total_bytes_per_s for run in runs_of(result, NONE)]
    return found


def beside_one(curve: Curve) -> dict[int, float]:
    one = statistics.median(curve[min(curve)])
    return {count: statistics.median(values) / one for count, values in curve.items()}


def show_readers(found: Mapping[str, Mapping[str, Curve]]) -> Table:
    table = Table(title="MB/s (relative to one)", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("drive", "size", *map(str, COUNTS)):
        table.add_column(name, justify="right")
    for drive, sizes in found.items():
        for size, curve in sizes.items():
            gain = beside_one(curve)
            cells = (
                f"{statistics.median(values) / 1e6:.2f} ({gain[count]:.1f})"
                for count, values in curve.items()
            )
            table.add_row(drive, size, *cells)
    return table


def draw_readers(
    found: Mapping[str, Mapping[str, Curve]], outcomes: Sequence[Outcome], path: Path
) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 4.6), layout="constrained")
        panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
        for axes, (drive, sizes) in zip(panels, found.items(), strict=True):
            for number, (size, curve) in enumerate(sizes.items()):
                _plot(axes, beside_one(curve), number, f"{size.removesuffix('k')} KiB")
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(ScalarFormatter())
            axes.set_title(drive, loc="left", fontsize=10.5, fontweight="bold")
            axes.set_xlabel("readers, each with one request")
        panels[0].set_ylabel("throughput, relative to one reader")
        panels[-1].legend(frameon=False)
        _title(figure, "Parallelism of two drives, without a scheduler", outcomes)
        figure.savefig(path, dpi=150)


def readers_command(args: argparse.Namespace) -> int:
    jobs = [readers_job(size, count, args.runtime) for size in SIZES for count in COUNTS]
    ran = _run(args, jobs)
    outcomes = list(ran.values())
    found = {name: rates(outcome) for name, outcome in ran.items()}
    harness.console().print(show_readers(found))
    if args.picture:
        draw_readers(found, outcomes, args.picture)
    return harness.conclude(args, "parallelism-readers", outcomes, [], {"bytes_per_s": found})


# --------------------------------------------------------------------------- depth

DEPTHS = (8, 16, 32, 64)
DEPTH_DRIVES = ("8-slots", "32-slots")
LEAST_HEAVY = 0.9
MOST_BESIDE_ALONE = 3.0


def label_of(depth: int) -> str:
    return f"{IFQ}:depth={depth}"


def heavy_curve(shared: CaseResult) -> Curve:
    return {depth: ratios(shared, label_of(depth), NONE, heavy_bytes) for depth in DEPTHS}


def tail_curve(shared: CaseResult, lone: CaseResult, reader: str) -> Curve:
    """The percentile of @reader by depth, relative to its percentile alone and under none."""
    own = statistics.median(percentiles(lone, NONE, reader, "p999"))
    return {
        depth: [value / own for value in percentiles(shared, label_of(depth), reader, "p999")]
        for depth in DEPTHS
    }


def medians(curve: Curve) -> dict[int, float]:
    return {depth: statistics.median(values) for depth, values in curve.items()}


def judge_depth(drive: str, shared: CaseResult, lone: CaseResult) -> Iterator[Check]:
    totals = heavy_curve(shared)
    enough = [depth for depth, total in medians(totals).items() if total >= LEAST_HEAVY]
    if not enough:
        greatest = max(DEPTHS)
        candidate = Candidate(drive, label_of(greatest))
        yield candidate.at_least("heavy total / none", totals[greatest], LEAST_HEAVY)
        return
    least = min(enough)
    for reader in READERS:
        yield Candidate(drive, label_of(least)).at_most(
            f"{reader} p99.9 / alone", tail_curve(shared, lone, reader)[least], MOST_BESIDE_ALONE
        )


def show_depth(drive: str, shared: CaseResult, lone: CaseResult) -> Table:
    table = Table(title=drive, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    for name in ("depth", "heavy / none", *(f"{reader} p99.9 / alone" for reader in READERS)):
        table.add_column(name, justify="right")
    tails = [tail_curve(shared, lone, reader) for reader in READERS]
    totals = heavy_curve(shared)
    for depth in DEPTHS:
        cells = (report.spread(tail[depth], "{:.2f}") for tail in tails)
        table.add_row(str(depth), report.spread(totals[depth], "{:.3f}"), *cells)
    none = [
        [value / own for value in percentiles(shared, NONE, reader, "p999")]
        for reader in READERS
        for own in [statistics.median(percentiles(lone, NONE, reader, "p999"))]
    ]
    table.add_row(NONE, "1", *(report.spread(values, "{:.2f}") for values in none))
    return table


def draw_depth(results: Mapping[str, Outcome], path: Path) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.8), layout="constrained")
        totals, tails = figure.subplots(1, 2)
        for number, (drive, outcome) in enumerate(results.items()):
            shared, lone = outcome.results
            _plot(totals, medians(heavy_curve(shared)), number, drive)
            _plot(tails, medians(tail_curve(shared, lone, READERS[0])), number, drive)
        totals.set_ylabel("total of the six, relative to none")
        tails.set_ylabel(f"p99.9 of {READERS[0]}, relative to alone")
        for axes in (totals, tails):
            axes.set_ylim(bottom=0)
            axes.set_xlabel("depth of ifq")
        totals.legend(frameon=False)
        _title(figure, "Throughput and tail latency by ifq's depth", list(results.values()))
        figure.savefig(path, dpi=150)


def depth_command(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{JOB}.fio"), args.runtime)
    results = _run(args, [job, alone(job)])
    checks: list[Check] = []
    for drive, outcome in results.items():
        shared, lone = outcome.results
        harness.console().print(show_depth(drive, shared, lone))
        checks += judge_depth(drive, shared, lone)
    if args.picture:
        draw_depth(results, args.picture)
    return harness.conclude(args, "parallelism-depth", list(results.values()), checks)


# ------------------------------------------------------------------------- command


def _plot(axes: Axes, curve: Mapping[int, float], number: int, label: str) -> None:
    axes.plot(
        list(curve),
        list(curve.values()),
        color=COLOURS[number],
        marker=MARKS[number],
        markersize=5,
        label=label,
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(curve)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.grid(axis="y", color=FAINT, linewidth=0.8)


def _title(figure: Figure, title: str, outcomes: Sequence[Outcome]) -> None:
    captions = "\n".join(caption(outcome.where) for outcome in outcomes)
    figure.suptitle(f"{title}\n{captions}", x=0.01, ha="left", fontsize=10)


def drives_in(text: str) -> list[str]:
    return harness.chosen("--drives", text, DRIVES, "drive")


def _run(args: argparse.Namespace, jobs: Sequence[JobFile]) -> dict[str, Outcome]:
    """One outcome for each drive in --drives."""
    names = drives_in(args.drives)
    return {name: harness.run_bench(harness.request(args, jobs, DRIVES[name])) for name in names}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiments.papers.ifq.parallelism", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(required=True)
    readers = commands.add_parser("readers", help="throughput over the number of readers")
    readers.set_defaults(command=readers_command)
    readers.set_defaults(schedulers=NONE)
    harness.add_run_arguments(readers, runtime_s=1.0, repeat=1)
    depth = commands.add_parser("depth", help="throughput and tail latency by ifq's depth")
    depth.set_defaults(command=depth_command)
    depth.set_defaults(schedulers=",".join(map(label_of, DEPTHS)))
    harness.add_run_arguments(depth, runtime_s=5.0)
    for one, drives in ((readers, READERS_DRIVES), (depth, DEPTH_DRIVES)):
        one.add_argument(
            "--drives",
            default=",".join(drives),
            metavar="NAME,...",
            help=f"some of {', '.join(DRIVES)} (default %(default)s)",
        )
        one.add_argument("--picture", type=Path, metavar="FILE", help="draw the result")
    return parser


def main() -> int:
    return harness.main(_parser(), harness.dispatch)


if __name__ == "__main__":
    sys.exit(main())
