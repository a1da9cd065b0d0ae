# SPDX-License-Identifier: GPL-2.0
"""Measures interference fairness of ifq in a real kernel: its weights, and tail latencies.

weights: figure 5 of Sui et al. Three users read blocks of 512 KiB at random places. User 1 reads
continuously. User 2 reads 10 MB whenever user 1 has read 20 MB. User 3 reads ten blocks per second
at even intervals. A user's due weight in a window is the inverse of the bytes it was served in that
window. Checked is that the actual weights of each window are within 10 % of the due weights.

turns: the same for a user that reads continuously and a user that is light, heavy and light again
for twelve windows each. The last windows of each turn are checked.

latency: examples/interference.fio. Two readers with one request at a time and the sizes of traces
run beside six heavy readers, on a drive with eight slots. Checked are:

  - each reader's 99.9th percentile under ifq is at most three times its percentile without the six,
  - it is below the percentile under BFQ,
  - the six have 0.9 of their throughput under none.

    python3 -m experiments.papers.ifq.interference weights --picture ifq.png
    python3 -m experiments.papers.ifq.interference turns --picture ifq.png
    python3 -m experiments.papers.ifq.interference latency --icount --picture ifq.png
"""

import argparse
import contextlib
import dataclasses
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    ScalarFormatter,
)
from rich import box
from rich.table import Table

from experiments import harness
from experiments.guest_options import add_module_argument
from experiments.harness import Candidate, Check, runs_of
from experiments.papers.ifq import interference_guest
from experiments.papers.ifq.interference_guest import IFQ, SAMPLES, TURN_WINDOWS, WORKS
from experiments.pictures import COLOURS
from lab import guest, kernel
from lab.errors import LabError
from lab.spec import GuestSpec
from mqfair.bench import jobfile, report
from mqfair.bench.jobfile import JobFile
from mqfair.bench.kernel_log import splat
from mqfair.bench.picture import caption
from mqfair.bench.result import CaseResult, CgroupResult, Document, RunResult, read_runs
from mqfair.bench.session import ROOT
from mqfair.bench.variant import BFQ, NONE
from mqfair.bench.window import merge
from mqfair.text.errors import Failure, UsageError
from mqfair.text.palette import FAINT, STYLE

# ------------------------------------------------------------------------- weights

MOST_OFF = 0.10
# Windows until the weights have settled from 1 : 1 : 1. Each window halves their error.
SETTLING = 8


@dataclass(frozen=True)
class WindowWeights:
    """The users' weights in one window, as parts of their sum, and their served bytes."""

    number: int
    actual: tuple[float, ...]
    due: tuple[float, ...]
    served: tuple[int, ...]

    @property
    def off(self) -> float:
        return max(abs(a / d - 1) for a, d in zip(self.actual, self.due, strict=True))


def parts(values: Sequence[float]) -> tuple[float, ...]:
    whole = sum(values)
    return tuple(value / whole for value in values)


def windows_of(samples: Sequence[Document], users: Sequence[str]) -> list[WindowWeights]:
    """The windows in @samples but the first, which began before the users did.

    ifq reports the served bytes of a window in the next one. Raises Failure if a user was served
    nothing in a window.
    """
    last = {sample["window"]: sample["flows"] for sample in samples}
    found = []
    for number in sorted(last):
        if number + 1 not in last:
            continue
        served = [last[number + 1][user]["served_last_bytes"] for user in users]
        if not all(served):
            raise Failure(
                f"window {number}: a user was served nothing: use a longer window with --window-ms"
            )
        actual = [last[number][user]["weight_scale_milli"] for user in users]
        due = [1 / value for value in served]
        found.append(WindowWeights(number, parts(actual), parts(due), tuple(served)))
    return found[1:]


def run_guest(args: argparse.Namespace, module: Path, out: Path) -> str:
    spec = GuestSpec(
        cpus=1,
        icount=True,
        modules=(module,),
        timeout_s=300 + 60.0 * args.windows * args.window_ms / 1000,
    )
    argv = [sys.executable, "-m", interference_guest.__name__, args.experiment]
    argv += [guest.GUEST_OUT, str(args.window_ms), str(args.windows)]
    try:
        result = guest.run(spec, argv, env={"PYTHONPATH": str(ROOT)}, out_dir=out)
    except LabError as error:
        raise Failure(str(error)) from error
    trouble = result.trouble() or splat(result.dmesg)
    if trouble or result.status:
        raise Failure(f"the guest: {trouble or result.stderr.strip()[-2000:]}")
    return f"Linux {result.kernel}, one CPU ({result.accel}), counted time"


def draw_weights(
    found: Sequence[WindowWeights], users: Sequence[str], where: str, path: Path
) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 4.8), layout="constrained")
        axes = figure.subplots()
        for user, name in enumerate(users):
            numbers = range(1, len(found) + 1)
            axes.plot(
                numbers,
                [one.actual[user] for one in found],
                color=COLOURS[user],
                label=f"user {name[-1]}: actual",
            )
            axes.plot(
                numbers,
                [one.due[user] for one in found],
                color=COLOURS[user],
                linestyle="none",
                marker="o",
                markersize=5,
                markerfacecolor="white",
                label="due",
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("window")
        axes.set_ylabel("part of the weights")
        axes.grid(axis="y", color=FAINT, linewidth=0.8)
        figure.legend(loc="outside lower center", ncols=len(users), frameon=False)
        figure.suptitle(
            "ifq: actual weights, and due weights by the bytes served in the window\n" + where,
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def show_weights(found: Sequence[WindowWeights]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("window", "served MB", "actual %", "due %", "greatest error"):
        table.add_column(name, justify="right")
    for index, one in enumerate(found, 1):
        table.add_row(
            str(index),
            " ".join(f"{value / 1e6:.1f}" for value in one.served),
            " ".join(f"{100 * value:.2f}" for value in one.actual),
            " ".join(f"{100 * value:.2f}" for value in one.due),
            f"{100 * one.off:.1f} %",
        )
    return table


def settled_windows(found: Sequence[WindowWeights], experiment: str) -> list[WindowWeights]:
    """The windows to judge, in which the weights have settled."""
    if experiment == "weights":
        return list(found[SETTLING:])
    # The second user has been light, or heavy, for SETTLING windows, and still is in the next one.
    heavy = [one.served[1] > one.served[0] / 2 for one in found]
    return [
        found[number]
        for number in range(SETTLING, len(found) - 1)
        if len(set(heavy[number - SETTLING : number + 2])) == 1
    ]


def weights_command(args: argparse.Namespace) -> int:
    module = args.module or ROOT / "build" / "module" / kernel.ensure().release / "mqfair.ko"
    if not module.is_file():
        raise UsageError(f"--module {module}: no such file: run `make module`")
    users = tuple(WORKS[args.experiment])
    with tempfile.TemporaryDirectory(prefix="mqfair-interference-") as folder:
        where = run_guest(args, module, Path(folder))
        found = windows_of(json.loads((Path(folder) / SAMPLES).read_text()), users)
    settled = settled_windows(found, args.experiment)
    if not settled:
        raise UsageError(
            f"--windows {args.windows}: the weights do not settle in so few windows: use more"
        )
    harness.console().print(show_weights(found))
    if args.picture:
        draw_weights(found, users, where, args.picture)
    worst = max(settled, key=lambda one: one.off)
    judged = dataclasses.replace(
        Candidate(args.experiment, IFQ).at_most(
            "error of a weight, at most", [one.off for one in settled], MOST_OFF
        ),
        seen=worst.off,
        holds=worst.off <= MOST_OFF,
    )
    figures: Document = {"where": where, "windows": [dataclasses.asdict(one) for one in found]}
    return harness.conclude(args, f"interference-{args.experiment}", [], [judged], figures)


# ------------------------------------------------------------------------- latency

JOB = "interference"
ALONE = "interference-alone"
READERS = ("websearch", "financial")
SCHEDULERS = "bfq,kyber,mqfq,ifq"
# 2000 requests a second in 8 slots.
LATENCY_DEVICE = (
    "null:irqmode=2,completion_nsec=4000000,submit_queues=1,hw_queue_depth=8,gb=4,poll_queues=0"
)
# With this many tags, requests wait in the scheduler and not for a tag, under all schedulers.
LATENCY_TAGS = 256
MOST_BESIDE_ALONE = 3.0
LEAST_HEAVY = 0.9

Latencies = Mapping[tuple[str, str, str], np.ndarray]


def alone(job: JobFile) -> JobFile:
    """The job with the two readers alone."""
    groups = tuple(group for group in job.groups if group.name in READERS)
    weights = {group.name: job.weights[group.name] for group in groups}
    return dataclasses.replace(job, path=f"{ALONE}.fio", groups=groups, weights=weights)


def reader_of(run: RunResult, name: str) -> CgroupResult:
    return next(one for one in run.cgroups if one.name == name)


def heavy_bytes(run: RunResult) -> float:
    return sum(one.bytes_per_s for one in run.cgroups if one.name not in READERS)


def percentiles(result: CaseResult, label: str, name: str, which: str) -> list[float]:
    return [reader_of(run, name).lat_ns[which] for run in runs_of(result, label)]


def judge(shared: CaseResult, lone: CaseResult) -> Iterator[Check]:
    candidate = Candidate(JOB, IFQ)
    for name in READERS:
        beside = percentiles(shared, IFQ, name, "p999")
        own = percentiles(lone, IFQ, name, "p999")
        yield candidate.at_most(
            f"{name} p99.9 / alone",
            [a / b for a, b in zip(beside, own, strict=True)],
            MOST_BESIDE_ALONE,
        )
        other = percentiles(shared, BFQ, name, "p999")
        if other:
            yield candidate.at_most(
                f"{name} p99.9 / bfq", [a / b for a, b in zip(beside, other, strict=True)], 1.0
            )
    yield candidate.at_least(
        "heavy total / none", harness.ratios(shared, IFQ, NONE, heavy_bytes), LEAST_HEAVY
    )


def show_latency(shared: CaseResult, lone: CaseResult) -> Table:
    table = Table(title="latency, ms", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("scheduler")
    for name in READERS:
        for figure in ("mean", "p99", "p99.9"):
            table.add_column(f"{name} {figure}" if figure == "mean" else figure, justify="right")
    table.add_column("heavy / none", justify="right")

    def row(title: str, result: CaseResult, label: str, heavy: str) -> None:
        cells = [
            f"{statistics.median(percentiles(result, label, name, figure)) / 1e6:.2f}"
            for name in READERS
            for figure in ("mean", "p99", "p999")
        ]
        table.add_row(title, *cells, heavy)

    row("alone, none", lone, NONE, "")
    if runs_of(lone, IFQ):
        row("alone, ifq", lone, IFQ, "")
    for label in report.schedulers_of(shared):
        total = harness.ratios(shared, label, NONE, heavy_bytes)
        row(label, shared, label, f"{statistics.median(total):.3f}")
    return table


def collect(folder: Path, cases: Sequence[CaseResult]) -> Latencies:
    """The sorted latencies of all requests, in ns, by (case, scheduler, reader)."""
    found: dict[tuple[str, str, str], list[np.ndarray]] = {}
    for result in cases:
        for recorded in read_runs(folder, result.case):
            for name in READERS:
                key = (result.case.name, recorded.scheduler, name)
                found.setdefault(key, []).append(merge(recorded.threads[name]).latency_ns)
    return {key: np.sort(np.concatenate(arrays)) for key, arrays in found.items()}


def draw_latency(latencies: Latencies, labels: Sequence[str], where: Document, path: Path) -> None:
    """Draws the complementary distribution of the latencies: the part of the requests beyond each
    latency, on a logarithmic scale."""
    lines = [(ALONE, NONE, "without the six, none"), *((JOB, label, label) for label in labels)]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 5), layout="constrained")
        panels = figure.subplots(1, len(READERS), sharex=True, sharey=True)
        for axes, name in zip(panels, READERS, strict=True):
            for number, (case, label, title) in enumerate(lines):
                ordered = latencies[(case, label, name)] / 1e6
                beyond = 1 - np.arange(1, len(ordered) + 1) / (len(ordered) + 1)
                axes.step(
                    ordered,
                    beyond,
                    where="post",
                    color=COLOURS[number % len(COLOURS)],
                    linestyle=(0, (4, 2)) if case == ALONE else "solid",
                    label=title,
                )
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(ScalarFormatter())
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda part, _at: f"{100 * part:g} %"))
            axes.set_title(name, loc="left", fontsize=10.5, fontweight="bold")
            axes.set_xlabel("latency, ms")
            axes.grid(color=FAINT, linewidth=0.8)
            axes.axhline(0.001, color=FAINT, linewidth=1.6)
        panels[0].set_ylabel("part of the requests with a longer latency")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
        figure.suptitle(
            f"Two readers with one request at a time beside six heavy readers\n{caption(where)}",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def latency_command(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{JOB}.fio"), args.runtime)
    asked = harness.request(args, [job, alone(job)], LATENCY_DEVICE)
    with contextlib.ExitStack() as stack:
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqfair-raw-")))
        outcome = harness.run_bench(asked, lambda folder: _keep(folder, kept))
        shared, lone = outcome.results
        if args.picture:
            latencies = collect(kept, outcome.results)
            draw_latency(latencies, report.schedulers_of(shared), outcome.where, args.picture)
    harness.console().print(show_latency(shared, lone))
    checks = list(judge(shared, lone)) if runs_of(shared, IFQ) else []
    return harness.conclude(args, "interference-latency", [outcome], checks)


def _keep(folder: Path, kept: Path) -> None:
    """Moves the runs' folders out of the bench's folder, which is removed."""
    for run in folder.glob("[0-9]*"):
        run.rename(kept / run.name)


# --------------------------------------------------------------------------- command


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiments.papers.ifq.interference", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(required=True)
    weights = commands.add_parser("weights", help="figure 5: actual and due weights")
    turns = commands.add_parser("turns", help="weights of a user that is light, heavy, light")
    for one, windows in ((weights, 40), (turns, 3 * TURN_WINDOWS)):
        one.set_defaults(command=weights_command, experiment=one.prog.rpartition(" ")[2])
        one.add_argument(
            "--window-ms",
            type=int,
            default=1000,
            metavar="MS",
            help="ifq's window; it must hold many requests of each user (default %(default)s)",
        )
        one.add_argument(
            "--windows",
            type=int,
            default=windows,
            metavar="N",
            help="windows to record (default %(default)s)",
        )
        add_module_argument(one)
        one.add_argument("--json", metavar="FILE", help="write checks and windows to FILE")
    latency = commands.add_parser("latency", help="tail latencies of two readers beside six")
    latency.set_defaults(command=latency_command)
    harness.add_arguments(latency, schedulers=SCHEDULERS, runtime_s=10.0, repeat=1)
    latency.set_defaults(nr_requests=LATENCY_TAGS)
    for one in (weights, turns, latency):
        one.add_argument("--picture", type=Path, metavar="FILE", help="draw the result")
    return parser


def main() -> int:
    return harness.main(_parser(), harness.dispatch)


if __name__ == "__main__":
    sys.exit(main())
