# SPDX-License-Identifier: GPL-2.0
"""Measures how hwabc charges garbage collection, in a real kernel on a virtual SSD.

reader: the experiment of Lee, Han, Shin (hwabc). In examples/cold-reader.fio a reader of cold data
runs beside a random writer. The drive is 85 % full and has its map on the host. The job runs
under hwabc with its defaults, with each alpha, and with the budgets of the paper. In the paper
budgets return when all tenants have spent them (work_conserving=0). Checked are:

  - under none, the writer has more bandwidth than the reader; under hwabc it is the reverse,
  - hwabc's total is 0.96 of none's.

writers: examples/hot-and-spread.fio under each value of gc_share and several alphas. A tenant's
slowdown is its bandwidth alone over its bandwidth beside the other. Checked is that a greater alpha
lowers the slowdown of the hot writer.

estimate: the same two writers on a drive that hides its map. hwabc's estimate of valid / invalid
pages is compared with the drive's own figure. Checked is that they differ by a factor of at most
1.5, from 2 s of the drive's own time on.

costs: a reader and a writer, while the drive is filled from 10 to 90 % and then becomes three times
slower at writing. The learned costs and the factors are compared with the time that planes
were busy. Checked is that the cost of a write in reads is within 10 % at the end of each phase.

Time is counted. The drive is slower than its model by --scale, because the processor is emulated.
Rates and times are converted to those of the model; the periods of hwabc are longer by --scale.

    python3 -m experiments.papers.hwabc.garbage reader --picture build/hwabc-bandwidth.png
"""

import argparse
import contextlib
import dataclasses
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from experiments import harness
from experiments.guest_options import add_module_argument
from experiments.harness import Candidate, Check
from experiments.papers.hwabc import garbage_guest
from experiments.papers.hwabc.garbage_guest import PLAN, Figures, Load, Scenario
from experiments.pictures import COLOURS
from lab import guest, kernel
from lab.errors import LabError
from lab.spec import GuestSpec
from mqfair.bench import jobfile
from mqfair.bench.jobfile import JobFile
from mqfair.bench.kernel_log import splat
from mqfair.bench.result import Document
from mqfair.bench.session import ROOT
from mqfair.bench.variant import BFQ, NONE
from mqfair.text.errors import Failure, UsageError
from mqfair.text.palette import FAINT, STYLE

READER = "cold-reader"
WRITERS = "hot-and-spread"
PARTS = {
    READER: "reader:40:0+writer:45:3",
    WRITERS: "hot:5:12+spread:80:2",
}
# Sixteen requests saturate the drive. A slow guest holds a few more, and eight of the tenants' 32
# requests wait in the scheduler.
MODEL = "four-dies"
SLOTS = 24
SCALE = 3
PERIOD_MS = 100
BUDGET_MS = 10
ALPHA = 10  # by default
PAPER = {"work_conserving": "0"}
SHARES = ("flow", "victim")
# In seconds of the drive's own time.
WARM_S = 0.4
LEAST_TOTAL = 0.96
MOST_OFF_ESTIMATE = 1.5
ESTIMATE_FROM_S = 2.0
MOST_OFF_COST = 0.10
PAGE_SECTORS = 8
BOOT_S = 600.0
# Host seconds for each guest second, on a busy host.
PATIENCE = 300.0

Samples = list[Figures]


# ---------------------------------------------------------------------------- scenarios


def label(scheduler: str, scale: int, **tunables: object) -> str:
    """The label of @scheduler with the experiment's depth, and with periods longer by @scale."""
    own: dict[str, object] = {"depth": SLOTS}
    if scheduler == "hwabc":
        own |= {"period_ms": PERIOD_MS * scale, "budget_ms": BUDGET_MS * scale}
    return ":".join(
        [scheduler, *(f"{name}={value}" for name, value in {**own, **tunables}.items())]
    )


def short(text: str, scale: int) -> str:
    """The label @text without the tunables that all labels have in common."""
    common = label("hwabc", scale).split(":")[1:]
    return ":".join(word for word in text.split(":") if word not in common)


def drive(args: argparse.Namespace, **settings: str) -> dict[str, str]:
    return {
        "model": MODEL,
        "size_mb": str(args.size_mb),
        "time_scale": str(args.scale),
        "ftl": "host",
        "fill_pattern": "sequential",
        **settings,
    }


def scenario(
    args: argparse.Namespace, job: JobFile, scheduler: str, only: str | None = None, **settings: str
) -> Scenario:
    seconds = args.seconds * args.scale
    loads = tuple(
        Load(group.name, one.options, 0.0, seconds + BOOT_S)
        for group in job.groups
        for one in group.jobs
        if only in (None, group.name)
    )
    return Scenario(
        f"{only} alone" if only else job.name,
        scheduler,
        drive(args, fill_parts=PARTS[job.name], **settings),
        tuple(group.name for group in job.groups),
        loads,
        seconds,
    )


def run_scenarios(args: argparse.Namespace, scenarios: Sequence[Scenario]) -> list[Samples]:
    """The samples of each scenario: measured in one guest, or read from --raw if it has them."""
    with contextlib.ExitStack() as stack:
        if args.raw is None:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="mqfair-garbage-"))
            )
        else:
            folder = args.raw
            folder.mkdir(parents=True, exist_ok=True)
        plan = folder / PLAN
        if plan.exists():
            if garbage_guest.read_plan(plan) != list(scenarios):
                raise UsageError(f"--raw {folder}: holds other runs: name another folder")
        else:
            garbage_guest.write_plan(scenarios, plan)
            _run_guest(args, scenarios, folder)
        return [
            json.loads((folder / garbage_guest.samples_name(number)).read_text())
            for number in range(len(scenarios))
        ]


def _run_guest(args: argparse.Namespace, scenarios: Sequence[Scenario], folder: Path) -> None:
    module = args.module or ROOT / "build" / "module" / kernel.ensure().release / "mqfair.ko"
    beside = module.with_name("mqfair-ssd.ko")
    for path in (module, beside):
        if not path.is_file():
            raise UsageError(f"{path}: no such file: run `make module`, or name it with --module")
    spec = GuestSpec(
        cpus=1,
        icount=True,
        modules=(module, beside),
        memory_mb=GuestSpec.memory_mb + args.size_mb,
        timeout_s=BOOT_S + PATIENCE * sum(one.seconds for one in scenarios),
    )
    argv = [sys.executable, "-m", garbage_guest.__name__, guest.GUEST_OUT]
    try:
        result = guest.run(spec, argv, env={"PYTHONPATH": str(ROOT)}, out_dir=folder)
    except LabError as error:
        raise Failure(str(error)) from error
    trouble = result.trouble() or splat(result.dmesg)
    if trouble or result.status:
        raise Failure(f"the guest: {trouble or result.stderr.strip()[-2000:]}")


# ---------------------------------------------------------------------------- figures


def done_bytes(sample: Figures, group: str) -> int:
    served = sample["served"][group]
    return sum(served.get(name, 0) for name in ("rbytes", "wbytes"))


def at_s(samples: Samples, index: int, scale: int) -> float:
    """Seconds since the first sample, in the drive's own time."""
    return float(samples[index]["at"] - samples[0]["at"]) / scale


def rates(samples: Samples, scale: int) -> dict[str, float]:
    """MB/s of each tenant, from WARM_S on."""
    first = next(i for i in range(len(samples)) if at_s(samples, i, scale) >= WARM_S)
    seconds = at_s(samples, -1, scale) - at_s(samples, first, scale)
    return {
        group: (done_bytes(samples[-1], group) - done_bytes(samples[first], group)) / seconds / 1e6
        for group in samples[0]["served"]
    }


def over_time(samples: Samples, scale: int, group: str) -> tuple[list[float], list[float]]:
    """The middle of each interval between samples, in s, and the rate in it, in MB/s."""
    times, values = [], []
    for i in range(1, len(samples)):
        step = at_s(samples, i, scale) - at_s(samples, i - 1, scale)
        served = done_bytes(samples[i], group) - done_bytes(samples[i - 1], group)
        times.append(at_s(samples, i, scale) - step / 2)
        values.append(served / step / 1e6)
    return times, values


def table(title: str, *columns: str) -> Table:
    found = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    found.add_column(columns[0])
    for name in columns[1:]:
        found.add_column(name, justify="right")
    return found


# ---------------------------------------------------------------------------- reader


def others(args: argparse.Namespace) -> list[str]:
    return [NONE, BFQ, label("mqfq", args.scale)]


def judge_reader(
    found: Mapping[str, Mapping[str, float]], own: Sequence[str], scale: int
) -> Iterator[Check]:
    none = found[NONE]
    yield Candidate(READER, NONE).at_most("reader / writer", [none["reader"] / none["writer"]], 1.0)
    for one in own:
        rate = found[one]
        candidate = Candidate(READER, short(one, scale))
        yield candidate.at_least("reader / writer", [rate["reader"] / rate["writer"]], 1.0)
        total = sum(rate.values()) / sum(none.values())
        yield candidate.at_least("total / none", [total], LEAST_TOTAL)


def draw_reader(panels_of: Mapping[str, Samples], scale: int, title: str, path: Path) -> None:
    """Draws figure 2 of the paper: a panel for each scheduler, a line for each tenant."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        panels = figure.subplots(1, len(panels_of), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (name, samples) in zip(panels, panels_of.items(), strict=True):
            for number, group in enumerate(("reader", "writer")):
                times, values = over_time(samples, scale, group)
                axes.plot(times, values, color=COLOURS[number + 1], label=group)
            axes.set_title(name, loc="left", fontsize=10.5, fontweight="bold")
            axes.set_xlabel("seconds of the drive's own time")
            axes.grid(axis="y", color=FAINT, linewidth=0.8)
        # All panels share the axis, so its limit is set after the last one is drawn.
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("MB/s")
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        figure.savefig(path, dpi=150)


def reader_command(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{READER}.fio"))
    own = [label("hwabc", args.scale, **tunables) for tunables in ({}, PAPER)]
    alphas = [alpha for alpha in args.alphas if alpha != ALPHA]
    own += [label("hwabc", args.scale, alpha_pct=one) for one in alphas]
    labels = [*others(args), *own]
    runs = run_scenarios(args, [scenario(args, job, one) for one in labels])
    found = {name: rates(samples, args.scale) for name, samples in zip(labels, runs, strict=True)}
    none = sum(found[NONE].values())
    shown = table("MB/s", "scheduler", "reader", "writer", "total", "total / none", "amplification")
    for (name, rate), samples in zip(found.items(), runs, strict=True):
        values = (rate["reader"], rate["writer"], sum(rate.values()))
        shown.add_row(
            short(name, args.scale),
            *(f"{value:.1f}" for value in values),
            f"{values[2] / none:.3f}",
            f"{samples[-1]['drive']['write_amplification']:.2f}",
        )
    harness.console().print(shown)
    if args.picture:
        drawn = {short(name, args.scale): runs[labels.index(name)] for name in (NONE, *own[:2])}
        title = (
            "A reader of cold data beside a random writer, 4 KiB, each 16 deep\n"
            f"{MODEL}, {args.size_mb} MiB, 85 % full, map on the host; counted time"
        )
        draw_reader(drawn, args.scale, title, args.picture)
    judged = list(judge_reader(found, own, args.scale))
    return harness.conclude(args, "garbage-reader", [], judged, {"mb_per_s": found})


# ---------------------------------------------------------------------------- writers


def judge_writers(
    found: Mapping[str, Mapping[str, float]], args: argparse.Namespace
) -> Iterator[Check]:
    for share in SHARES:
        curve = [
            found[label("hwabc", args.scale, alpha_pct=alpha, gc_share=share)]["hot"]
            for alpha in sorted(args.alphas)
        ]
        yield Candidate(WRITERS, f"hwabc {share}").at_most(
            "hot: most alpha / least", [curve[-1] / curve[0]], 1.0
        )


def writers_command(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{WRITERS}.fio"))
    labels = others(args) + [
        label("hwabc", args.scale, alpha_pct=alpha, gc_share=share)
        for alpha in args.alphas
        for share in SHARES
    ]
    names = [group.name for group in job.groups]
    scenarios = [scenario(args, job, NONE, only=name) for name in names]
    scenarios += [scenario(args, job, one) for one in labels]
    runs = run_scenarios(args, scenarios)
    alone = {
        name: rates(samples, args.scale)[name]
        for name, samples in zip(names, runs[: len(names)], strict=True)
    }
    shared = {
        name: rates(samples, args.scale)
        for name, samples in zip(labels, runs[len(names) :], strict=True)
    }
    slowdowns = {
        name: {group: alone[group] / rate[group] for group in names}
        for name, rate in shared.items()
    }
    none = sum(shared[NONE].values())
    shown = table("slowdown", "scheduler", *names, "total / none")
    for name, slowdown in slowdowns.items():
        shown.add_row(
            short(name, args.scale),
            *(f"{slowdown[group]:.2f}" for group in names),
            f"{sum(shared[name].values()) / none:.3f}",
        )
    harness.console().print(shown)
    figures: Document = {"alone_mb_per_s": alone, "slowdown": slowdowns, "mb_per_s": shared}
    return harness.conclude(
        args, "garbage-writers", [], list(judge_writers(slowdowns, args)), figures
    )


# ---------------------------------------------------------------------------- estimate


def truth_permille(sample: Figures, group: str) -> float:
    pages = sample["owners"][group]
    return 1000 * float(pages["valid"]) / max(1.0, float(pages["invalid"]))


def estimate_command(args: argparse.Namespace) -> int:
    job = jobfile.load(str(harness.EXAMPLES / f"{WRITERS}.fio"))
    names = [group.name for group in job.groups]
    (samples,) = run_scenarios(
        args, [scenario(args, job, label("hwabc", args.scale), ftl="device")]
    )
    columns = [f"{name} {which}" for name in names for which in ("truth", "estimate")]
    shown = table("valid / invalid, a window", "seconds", *columns)
    off: dict[str, list[float]] = {name: [] for name in names}
    windows = []
    for index, one in enumerate(samples):
        seconds = at_s(samples, index, args.scale)
        if not all(one["flows"].get(name, {}).get("valid_invalid_permille") for name in names):
            continue
        pairs = {
            name: (truth_permille(one, name), one["flows"][name]["valid_invalid_permille"])
            for name in names
        }
        windows.append({"seconds": seconds, **pairs})
        if seconds >= ESTIMATE_FROM_S:
            for name, (truth, guess) in pairs.items():
                off[name].append(max(truth / guess, guess / truth))
        figures = (value / 1000 for pair in pairs.values() for value in pair)
        shown.add_row(f"{seconds:.2f}", *(f"{value:.2f}" for value in figures))
    harness.console().print(shown)
    if not all(off.values()):
        raise UsageError(
            f"--seconds {args.seconds}: the first {ESTIMATE_FROM_S:.0f} are not judged: use more"
        )
    checks = [
        dataclasses.replace(
            Candidate(WRITERS, "hwabc").at_most(
                f"{name}: estimate off by", values, MOST_OFF_ESTIMATE
            ),
            seen=max(values),
            holds=max(values) <= MOST_OFF_ESTIMATE,
        )
        for name, values in off.items()
    ]
    return harness.conclude(args, "garbage-estimate", [], checks, {"windows": windows})


# ---------------------------------------------------------------------------- costs

# The phases of a run, and their parts of its length.
PHASES = ("10 % full", "being filled", "90 % full", "writes 3 x slower")
PHASE_PARTS = (0.2, 0.2, 0.3, 0.3)


def costs_scenario(args: argparse.Namespace) -> Scenario:
    seconds = args.seconds * args.scale
    ends = [sum(PHASE_PARTS[: n + 1]) * seconds for n in range(len(PHASE_PARTS))]
    page = ("ioengine=libaio", "direct=1", "bs=4k", f"iodepth={SLOTS}", "norandommap")
    fill = ("ioengine=libaio", "direct=1", "bs=128k", "iodepth=4", "rw=write")
    rest = seconds - ends[1] + BOOT_S
    loads = (
        Load("reader", (*page, "rw=randread", "offset=0", "size=5%"), 0.0, ends[0]),
        Load("writer", (*page, "rw=randwrite", "offset=5%", "size=5%"), 0.0, ends[0]),
        Load("writer", (*fill, "offset=10%", "size=80%"), ends[0], ends[1] - ends[0]),
        Load("reader", (*page, "rw=randread", "offset=0", "size=40%"), ends[1], rest),
        Load("writer", (*page, "rw=randwrite", "offset=45%", "size=45%"), ends[1], rest),
    )
    return Scenario(
        "costs",
        label("hwabc", args.scale),
        drive(args, fill_parts="reader:5:0+writer:5:0"),
        ("reader", "writer"),
        loads,
        seconds,
        ((ends[2], "write_times", "3"),),
    )


def learned_us(state: Figures, kind: str) -> float:
    """The learned cost of a page in us."""
    return float(state[f"request_ps.{kind}"] + PAGE_SECTORS * state[f"sector_ps.{kind}"]) / 1e6


def spent_us(before: Figures, after: Figures, group: str) -> float | None:
    """The time that planes were busy for each page of @group, in us; None if it had no I/O."""

    def grown(sample: Figures) -> tuple[int, float]:
        served = sample["served"][group]
        done = served.get("rbytes", 0) + served.get("wbytes", 0)
        return done, float(sample["owners"].get(group, {}).get("busy_us", 0))

    (bytes_then, busy_then), (bytes_now, busy_now) = grown(before), grown(after)
    pages = (bytes_now - bytes_then) / (PAGE_SECTORS * 512)
    return (busy_now - busy_then) / pages if pages else None


def costs_command(args: argparse.Namespace) -> int:
    one = costs_scenario(args)
    (samples,) = run_scenarios(args, [one])
    ends = [sum(PHASE_PARTS[: n + 1]) * args.seconds for n in range(len(PHASE_PARTS))]
    shown = table(
        "cost of a write in reads, and pages of the writer, by window",
        "seconds", "phase", "learned", "truth", "valid / invalid", "truth", "factor",
    )  # fmt: skip
    step = max(1, round(args.seconds * args.scale / garbage_guest.SAMPLE_S / 40))
    last: dict[str, list[float]] = {}
    windows: list[Document] = []
    for index in range(step, len(samples), step):
        before, now = samples[index - step], samples[index]
        seconds = at_s(samples, index, args.scale)
        phase = next((p for p, end in zip(PHASES, ends, strict=True) if seconds <= end), PHASES[-1])
        read, write = spent_us(before, now, "reader"), spent_us(before, now, "writer")
        state, flow = now["state"], now["flows"].get("writer", {})
        if not (read and write and state.get("windows") and flow):
            continue
        learned = learned_us(state, "write") / max(learned_us(state, "read"), 1e-6)
        truth = write / read
        ratio = flow.get("valid_invalid_permille", 0) / 1000
        factor = flow.get("write_factor_permille", 0) / 1000
        true_ratio = truth_permille(now, "writer") / 1000
        windows.append(
            {
                "seconds": seconds, "phase": phase, "learned": learned, "truth": truth,
                "read_us": learned_us(state, "read") / args.scale,
                "write_us": learned_us(state, "write") / args.scale,
                "valid_invalid": ratio, "valid_invalid_truth": true_ratio, "factor": factor,
            }
        )  # fmt: skip
        last[phase] = [*last.get(phase, []), learned / truth - 1][-3:]
        figures = (learned, truth, ratio, true_ratio, factor)
        shown.add_row(f"{seconds:.2f}", phase, *(f"{value:.2f}" for value in figures))
    harness.console().print(shown)
    checks = [
        Candidate("costs", "hwabc").within(
            f"{phase}: off by", [statistics.mean(off)], MOST_OFF_COST
        )
        for phase, off in last.items()
        if phase != PHASES[1]
    ]
    return harness.conclude(args, "garbage-costs", [], checks, {"windows": windows})


# ---------------------------------------------------------------------------- command


def add_parser(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str,
               command: harness.Command, seconds: float) -> argparse.ArgumentParser:  # fmt: skip
    parser = kinds.add_parser(name)
    parser.set_defaults(command=command)
    parser.add_argument(
        "--seconds",
        type=float,
        default=seconds,
        metavar="S",
        help="length of a run in the drive's own time (default %(default)s)",
    )
    parser.add_argument(
        "--scale",
        type=int,
        default=SCALE,
        metavar="N",
        help="time_scale: how many times slower than the model the drive is (default %(default)s)",
    )
    parser.add_argument(
        "--size-mb",
        type=int,
        default=256,
        metavar="MB",
        help="size of the drive (default %(default)s)",
    )
    add_module_argument(parser)
    parser.add_argument(
        "--raw",
        type=Path,
        metavar="FOLDER",
        help="keep the samples in FOLDER; samples of the same runs in it are judged again",
    )
    parser.add_argument("--json", metavar="FILE", help="write checks and figures to FILE")
    return parser


def add_alphas(parser: argparse.ArgumentParser, *alphas: int) -> None:
    parser.add_argument(
        "--alphas", type=lambda text: [int(word) for word in text.split(",")],
        default=list(alphas), metavar="PERCENT,...",
        help=f"values of alpha_pct (default {','.join(map(str, alphas))})",
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.papers.hwabc.garbage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(required=True)
    reader = add_parser(kinds, "reader", reader_command, 0.9)
    reader.add_argument("--picture", type=Path, metavar="FILE", help="draw bandwidth over time")
    add_alphas(reader, 0, ALPHA, 50, 100)
    add_alphas(add_parser(kinds, "writers", writers_command, 0.9), ALPHA, 100)
    add_parser(kinds, "estimate", estimate_command, 4.0)
    add_parser(kinds, "costs", costs_command, 12.0)
    return harness.main(parser, harness.dispatch, argv)


if __name__ == "__main__":
    sys.exit(main())
