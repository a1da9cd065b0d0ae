# SPDX-License-Identifier: GPL-2.0
"""Measures the throughput of 1 to 64 cgroups when the processor is the bottleneck.

null_blk completes at once, so every instruction on a request's path counts. There are two loads of
the Kyber-fairness paper:

  - random reads of 1 KiB by 1, 2, 4, ... 64 cgroups of equal weight (figure 6),
  - requests of 4 KiB, half reads and half writes, by four weights (figure 1).

Checked are:

  - with more cgroups, a scheduler loses no more throughput than none does, within 10 %;
  - in the mix, kyber-fair has at least 1.5 times the IOPS of BFQ;
  - in the mix, kyber-fair takes at most 3000 ns of processor time per I/O more than none.

In counted time (--icount) a nanosecond is an instruction. Contention between processors appears
only with --cpus on a host with as many processors.

    python3 -m experiments.scaling --icount --picture build/cgroups-scaling.png
"""

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from experiments import harness, pictures
from experiments.harness import Candidate, Check, ratios, runs_of, total_iops
from mqfair.bench import jobfile, report
from mqfair.bench.jobfile import JobFile
from mqfair.bench.picture import caption
from mqfair.bench.result import CaseResult, Document
from mqfair.bench.variant import BFQ, NONE
from mqfair.text.errors import UsageError

MIXED = "four-cgroups-mixed"
CASES = ("cgroups", MIXED)
# The time between the start of the last job and the counted window: six periods of kyber-fair and
# wdt.
RAMP_S = 0.6
NS_PER_S = 1_000_000_000
COUNTS = (1, 2, 4, 8, 16, 32, 64)
SCHEDULERS = "bfq,mqfq,kyber-fair,wdt,wdt:single_lock=1"
# The throughput that is left, relative to the throughput left under none with as many cgroups.
LEAST_LEFT: Mapping[str, float] = {"kyber-fair": 0.9, "wdt": 0.9}
LEAST_ABOVE_BFQ: Mapping[str, float] = {"kyber-fair": 1.5}
MOST_NS_ABOVE_NONE: Mapping[str, float] = {"kyber-fair": 3000}
DEVICE = "null:irqmode=0,submit_queues={queues},hw_queue_depth=64,gb=4,poll_queues=0"


def cgroups(count: int, runtime_s: float) -> JobFile:
    lines = ["[global]", "ioengine=libaio", "direct=1", "rw=randread", "bs=1k", "iodepth=4"]
    lines += ["norandommap", f"ramp_time={round(RAMP_S * 1000)}ms"]
    for number in range(count):
        lines += [f"[c{number}]", f"cgroup=c{number}"]
    return jobfile.parse("\n".join(lines), f"cgroups-{count}.fio", runtime_s)


def curves(results: Sequence[CaseResult]) -> dict[str, dict[int, list[float]]]:
    """For each scheduler and number of cgroups, the IOPS of each repeat, relative to none's median
    with the least number of cgroups."""
    counts = {len(result.case.groups): result for result in results}
    one = counts[min(counts)]
    base = statistics.median(run.total_iops for run in runs_of(one, NONE))
    return {
        label: {
            count: [run.total_iops / base for run in runs_of(result, label)]
            for count, result in sorted(counts.items())
        }
        for label in report.schedulers_of(one)
    }


def left(curve: Mapping[int, Sequence[float]], count: int) -> list[float]:
    """The throughput with @count cgroups over that with the least number, for each repeat."""
    first = curve[min(curve)]
    return [value / start for value, start in zip(curve[count], first, strict=True)]


def judge_curves(found: Mapping[str, Mapping[int, Sequence[float]]]) -> Iterator[Check]:
    for label, curve in found.items():
        if label not in LEAST_LEFT:
            continue
        for count in curve:
            none = statistics.median(left(found[NONE], count))
            values = [value / none for value in left(curve, count)]
            if count != min(curve):
                candidate = Candidate(f"{count} cgroups", label)
                yield candidate.at_least("left / left of none", values, LEAST_LEFT[label])


def ns_above_none(result: CaseResult, label: str, cpus: int) -> list[float]:
    """The processor time per I/O above none's, in ns. All @cpus are busy all the time, so it
    follows from the IOPS."""
    none = {run.repeat: run.total_iops for run in runs_of(result, NONE)}
    return [
        cpus * NS_PER_S * (1 / run.total_iops - 1 / none[run.repeat])
        for run in runs_of(result, label)
    ]


def judge_mixed(result: CaseResult, cpus: int) -> Iterator[Check]:
    for label, most in MOST_NS_ABOVE_NONE.items():
        if runs_of(result, label):
            candidate = Candidate(result.case.name, label)
            yield candidate.at_most("ns above none", ns_above_none(result, label, cpus), most)
    for label, least in LEAST_ABOVE_BFQ.items():
        if runs_of(result, label):
            yield from harness.above_bfq(result, label, total_iops, least)


def show(found: Mapping[str, Mapping[int, Sequence[float]]]) -> Table:
    counts = list(found[NONE])
    table = Table(
        title=f"IOPS of 1 KiB random reads, relative to none with {counts[0]} cgroups",
        title_style="bold", title_justify="left", box=box.SIMPLE_HEAD,
    )  # fmt: skip
    table.add_column("cgroups")
    for count in counts:
        table.add_column(str(count), justify="right")
    for label, curve in found.items():
        table.add_row(label, *(report.spread(curve[count], "{:.3f}") for count in counts))
    return table


def show_mixed(result: CaseResult, cpus: int) -> Table:
    table = Table(title=MIXED, title_style="bold", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("scheduler")
    for name in ("IOPS", "/ none", "/ bfq", "ns of CPU above none"):
        table.add_column(name, justify="right")
    for label in report.schedulers_of(result):
        beside_bfq = ratios(result, label, BFQ, total_iops) if runs_of(result, BFQ) else []
        table.add_row(
            label,
            report.spread([run.total_iops for run in runs_of(result, label)], "{:,.0f}"),
            report.spread(ratios(result, label, NONE, total_iops), "{:.3f}"),
            report.spread(beside_bfq, "{:.2f}") if beside_bfq else "-",
            report.spread(ns_above_none(result, label, cpus), "{:,.0f}"),
        )
    return table


def _counts(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() and 1 <= int(word) <= 256 for word in words):
        raise UsageError(f"--cgroups {text}: use numbers in 1..256, as 1,8,64")
    return sorted({int(word) for word in words})


def run(args: argparse.Namespace) -> int:
    counts = _counts(args.cgroups)
    names = harness.cases(args, CASES)
    mixed = jobfile.load(str(harness.EXAMPLES / f"{MIXED}.fio"), args.runtime)
    jobs = [dataclasses.replace(mixed, ramp_s=RAMP_S)] if MIXED in names else []
    if "cgroups" in names:
        jobs += [cgroups(count, args.runtime) for count in counts]
    cpus = harness.cpus(args)
    outcome = harness.run_bench(harness.request(args, jobs, DEVICE.format(queues=cpus)))
    checks: list[Check] = []
    for result in outcome.results:
        if result.case.name == MIXED:
            harness.console().print(show_mixed(result, cpus))
            checks += judge_mixed(result, cpus)
    scaled = [result for result in outcome.results if result.case.name != MIXED]
    found = curves(scaled) if scaled else {}
    if found:
        harness.console().print(show(found))
        checks += judge_curves(found)
        if args.picture:
            draw(found, outcome.where, args.picture)
    return harness.conclude(args, "scaling", [outcome], checks, {"relative": found})


def draw(found: Mapping[str, Mapping[int, Sequence[float]]], where: Document, path: Path) -> None:
    pictures.draw_curves(
        {
            label: {count: statistics.median(values) for count, values in curve.items()}
            for label, curve in found.items()
        },
        title="Random reads of 1 KiB by cgroups of equal weight; the processor is the bottleneck\n"
        f"{caption(where)}",
        across="cgroups",
        up="IOPS, relative to none with one cgroup",
        path=path,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="experiments.scaling", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--cgroups",
        default=",".join(map(str, COUNTS)),
        metavar="N,...",
        help="numbers of cgroups (default %(default)s)",
    )
    harness.add_cases(parser, CASES)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves")
    harness.add_arguments(parser, schedulers=SCHEDULERS, runtime_s=1.0)
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
