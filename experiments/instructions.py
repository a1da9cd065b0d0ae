# SPDX-License-Identifier: GPL-2.0
"""Counts the guest instructions per I/O of each scheduler, by function.

The guest has one virtual CPU and an exact instruction count, so a run gives the same figure on any
host. The drive, null_blk, completes within the submission, so only the path of a request is
counted. The job marks the beginning and the end of its I/O. It runs with N and with 2 N requests;
the difference of the two counts excludes start-up and end. Compare figures of the same kernel only.

In the workloads `tenants` and `paced` the drive completes requests later. Another cgroup uses it,
too, so a figure also has the instructions of that cgroup. In `tenants` it does about as many I/Os.
In `paced` it is a reader with one request at a time and ten times the weight, so schedulers with
isolation try windows.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lab
from lab import kernel, module, plugin
from lab.plugin import USER_SPACE, Count, Function, Profile
from lab.tree import DEFAULT_KERNEL
from mqfair.bench.kernel_log import splat
from mqfair.bench.variant import (
    IOCOST,
    NONE,
    is_ours,
    parse_variants,
    scheduler_of,
    schedulers_in,
    tunables_of,
)
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import table

SCHEMA = "mqfair.instructions/1"

BASE = NONE
SCHEDULERS = "kyber,bfq,mqfq,kyber-fair,wdt"
# Bounds by workload and scheduler on Linux 6.12; 7.2 asks a scheduler more often. They cover the
# kernel half (locking, staging) and the scheduler.
BOUNDED = "6.12"
MOST_ABOVE_NONE = {
    ("qd32", "mqfq"): 1780,
    ("batch8", "mqfq"): 1150,
    ("qd32", "wdt"): 1950,
    ("mixed", "kyber-fair"): 1970,
    ("tenants", "mqfq"): 2900,
}
# Locked instructions, for a hardware queue with one queue. A latency sample has one, too.
MOST_LOCKED = {
    ("qd32", "mqfq"): 6.8,
    ("batch8", "mqfq"): 4.0,
    ("qd32", "wdt"): 9.8,
    ("batch8", "wdt"): 5.5,
}
# For each CPU that may come online. The block layer's own look at its map of CPUs takes 1.6 to 2.4.
MOST_FOR_CPU = 4

POSSIBLE_CPUS_MOST = 512
TENANTS, PACED = "tenants", "paced"
BUSY_TAGS = 64


@dataclasses.dataclass(frozen=True)
class Neighbour:
    """The load of the other cgroup, and the drive that both use."""

    disk: str
    folder: str  # in configfs
    values: Mapping[str, Any]
    depth: int
    weight: int


NEIGHBOURS = {
    TENANTS: Neighbour(
        "busy",
        "nullb/busy",
        # Requests complete later, so they hold tags.
        {"irqmode": 2, "completion_nsec": 1_000_000, "submit_queues": 1, "hw_queue_depth": 64},
        depth=64,
        weight=100,
    ),
    PACED: Neighbour(
        "ssd-paced",
        "mqfair_ssd/paced",
        # Requests of the job delay those of the reader. The processor is not the limit.
        {
            "model": "980pro",
            "size_mb": 64,
            "queues": 1,
            "time_scale": 40,
            "fill": 100,
            "fill_pattern": "random",
        },
        depth=1,
        weight=1000,
    ),
}

WORKLOADS: Mapping[str, tuple[str, ...]] = {
    "qd32": ("iodepth=32",),
    "qd1": ("iodepth=1",),
    # More than two requests in one io_submit are plugged.
    "batch8": ("iodepth=32", "iodepth_batch_submit=8", "iodepth_batch_complete_min=8"),
    "mixed": ("iodepth=32", "rw=randrw", "rwmixread=50"),
    # Beside another cgroup, and there are too few tags for both.
    TENANTS: ("iodepth=64", f"filename=/dev/{NEIGHBOURS[TENANTS].disk}"),
    PACED: ("iodepth=128", f"filename=/dev/{NEIGHBOURS[PACED].disk}"),
}

# A line tells how many windows a scheduler with isolation has tried.
STATE = "/sys/kernel/debug/block/$disk/sched/state"
DEVICE = "queue_mode=2 irqmode=0 submit_queues=1 hw_queue_depth=64 poll_queues=0 gb=4"
FIO = (
    "filename=/dev/nullb0",
    "ioengine=libaio",
    "direct=1",
    "rw=randread",
    "bs=4k",
    "norandommap",
    "randrepeat=1",
    "gtod_reduce=1",
    "thread",
)
# The greatest relative spread of the repeats of a valid figure.
SPREAD_MOST = 0.003
REPEAT_LEAST = 4
# Functions with a smaller difference are summed up in one line.
SHOWN_LEAST = 2.0
TIMEOUT_PER_RUN_S = 20.0
BOOT_S = 240.0

EXAMPLES = """\
examples:
  python3 -m experiments.instructions
  python3 -m experiments.instructions --schedulers mqfq --workloads qd32 --json cost.json
  python3 -m experiments.instructions --schedulers wdt,wdt:single_lock=1 --workloads qd32,mixed
"""


@dataclasses.dataclass(frozen=True)
class Plan:
    schedulers: tuple[str, ...]
    workloads: tuple[str, ...]
    ios: int
    repeat: int
    possible_cpus: int = 1
    kernel: str = DEFAULT_KERNEL

    def cells(self) -> list[tuple[str, str]]:
        return [(load, scheduler) for load in self.workloads for scheduler in self.schedulers]

    @property
    def runs_per_cell(self) -> int:
        return 1 + 2 * self.repeat

    @property
    def runs(self) -> int:
        return len(self.cells()) * self.runs_per_cell


@dataclasses.dataclass(frozen=True)
class Cost:
    """Instructions per I/O of one scheduler under one workload. @totals has one value for each
    repeat, @functions the medians."""

    totals: tuple[float, ...]
    functions: Profile

    @property
    def total(self) -> float:
        return statistics.median(self.totals)

    @property
    def spread(self) -> float:
        """The relative spread of the repeats without the least and the greatest.

        Occasionally a repeat includes work of a kernel thread; the median ignores it.
        """
        middle = sorted(self.totals)[1:-1]
        return (middle[-1] - middle[0]) / self.total


Costs = Mapping[tuple[str, str], Cost]


def job_file(plan: Plan, load: str) -> str:
    """One run to warm up, then pairs of a short and a long run, one after the other.

    Each run leaves two sections: the instructions before its I/O, and those of its I/O.
    """
    lines = ["[global]", *FIO, *WORKLOADS[load], "exec_prerun=./mark", "exec_postrun=./mark"]
    lines += ["stonewall", "[warm]", f"number_ios={2 * plan.ios}"]
    for number in range(plan.repeat):
        lines += [f"[short{number}]", f"number_ios={plan.ios}"]
        lines += [f"[long{number}]", f"number_ios={2 * plan.ios}"]
    return "\n".join(lines) + "\n"


def guest_script(plan: Plan, mark: Path) -> str:
    lines = [
        "set -e",
        f"modprobe null_blk {DEVICE}",
        "modprobe -a kyber-iosched bfq mqfair mqfair-ssd",
        "echo 0 > /proc/sys/kernel/kptr_restrict",
        "cat /proc/kallsyms > $LAB_OUT/kallsyms",
        "queue=/sys/block/nullb0/queue",
        # /run is a tmpfs, so nothing waits for the host. fio writes files there for each mark.
        "cd /run",
        f"cp {shlex.quote(str(mark))} mark",
        *shared_disks(),
    ]
    for load, scheduler in plan.cells():
        lines += [
            f"disk={NEIGHBOURS[load].disk if load in NEIGHBOURS else 'nullb0'}",
            "queue=/sys/block/$disk/queue",
            "echo none > $queue/scheduler",
            f"echo {scheduler_of(scheduler)} > $queue/scheduler",
            f"grep -qF '[{scheduler_of(scheduler)}]' $queue/scheduler",
            *(
                f"echo {shlex.quote(value)} > $queue/iosched/{name}"
                for name, value in tunables_of(scheduler).items()
            ),
            *(neighbour(load) if load in NEIGHBOURS else ()),
            f"fio $LAB_OUT/{load}.fio > fio.log || {{ cat fio.log; exit 1; }}",
            *(["kill -INT $other; wait $other || true"] if load in NEIGHBOURS else ()),
            f"echo {load} {scheduler} $(grep window_trials {STATE} 2> /dev/null || true)",
        ]
    return "\n".join(lines)


def shared_disks() -> list[str]:
    """The drives of two cgroups, and the cgroups. The job runs in the first one."""
    lines = ["mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config"]
    for one in NEIGHBOURS.values():
        folder = f"/sys/kernel/config/{one.folder}"
        lines += [
            f"mkdir {folder}",
            *(f"echo {value} > {folder}/{key}" for key, value in one.values.items()),
            f"echo 1 > {folder}/power",
        ]
    return [
        *lines,
        "echo +io > /sys/fs/cgroup/cgroup.subtree_control",
        "mkdir /sys/fs/cgroup/mine /sys/fs/cgroup/other",
        "echo $$ > /sys/fs/cgroup/mine/cgroup.procs",
    ]


def neighbour(load: str) -> list[str]:
    """Starts the load of the other cgroup, which runs until it is interrupted."""
    other = NEIGHBOURS[load]
    options = (*FIO, *WORKLOADS[load], f"iodepth={other.depth}", "time_based", "runtime=100000")
    words = " ".join(f"--{option}" for option in ("name=other", *options))
    return [
        *([f"echo {BUSY_TAGS} > $queue/nr_requests || true"] if load == TENANTS else []),
        f"echo {other.weight} > /sys/fs/cgroup/other/io.mqfair.weight",
        f"(echo 0 > /sys/fs/cgroup/other/cgroup.procs; exec fio {words} > other.log) & other=$!",
    ]


def costs_of(plan: Plan, sections: Sequence[Profile]) -> dict[tuple[str, str], Cost]:
    if len(sections) != 2 * plan.runs:
        raise Failure(f"the plugin wrote {len(sections)} sections, expected {2 * plan.runs}")
    runs = sections[1::2]
    costs = {}
    for number, cell in enumerate(plan.cells()):
        mine = runs[number * plan.runs_per_cell + 1 : (number + 1) * plan.runs_per_cell]
        pairs = zip(mine[0::2], mine[1::2], strict=True)
        costs[cell] = cost_of([difference(long, short, plan.ios) for short, long in pairs])
    return costs


def difference(long: Profile, short: Profile, ios: int) -> Profile:
    none = Count()
    return {
        function: (long.get(function, none) - short.get(function, none)) / ios
        for function in {*long, *short}
    }


def cost_of(repeats: Sequence[Profile]) -> Cost:
    none = Count()
    functions = {}
    for function in {name for profile in repeats for name in profile}:
        counts = [profile.get(function, none) for profile in repeats]
        functions[function] = Count(
            statistics.median(count.instructions for count in counts),
            statistics.median(count.entries for count in counts),
            statistics.median(count.locked for count in counts),
        )
    totals = tuple(sum(count.instructions for count in profile.values()) for profile in repeats)
    return Cost(totals, functions)


def measure(plan: Plan, built: Path | None) -> tuple[dict[tuple[str, str], Cost], str]:
    """The cost by (workload, scheduler), and the release of the guest's kernel."""
    tools = plugin.build()
    tree = kernel.ensure(plan.kernel)
    built = built or module.build(tree)
    require_present(plan, built)
    with tempfile.TemporaryDirectory(prefix="mqfair-instructions-") as name:
        folder = Path(name)
        # A copy, because the checkout may be rebuilt meanwhile. modprobe needs the file's name.
        names = ("mqfair.ko", "mqfair-ssd.ko")
        own = tuple(Path(shutil.copy(built.with_name(name), folder / name)) for name in names)
        for load in plan.workloads:
            (folder / f"{load}.fio").write_text(job_file(plan, load))
        spec = lab.GuestSpec(
            kernel=plan.kernel,
            cpus=1,
            icount=True,
            plugin=tools.argument(folder / "counts"),
            # The addresses of functions must be the same in every run.
            append=f"nokaslr possible_cpus={plan.possible_cpus}",
            modules=own,
            timeout_s=BOOT_S + plan.runs * TIMEOUT_PER_RUN_S,
        )
        result = lab.run(
            spec, script=guest_script(plan, tools.mark), out_dir=folder, sink=show_progress
        )
        trouble = result.trouble() or splat(result.dmesg)
        if trouble:
            raise Failure(trouble)
        if result.status:
            said = (result.stderr or result.stdout).strip()
            raise Failure(f"the guest ended with status {result.status}: {said}")
        symbols = plugin.Symbols((folder / "kallsyms").read_text())
        sections = list(plugin.read_sections(folder / "counts", symbols))
        return costs_of(plan, sections), tree.release


def require_present(plan: Plan, built: Path) -> None:
    present = schedulers_in(built)
    for label in plan.schedulers:
        name = scheduler_of(label)
        if is_ours(name) and name not in present:
            raise UsageError(f"--schedulers: {built} has no {name}: use {', '.join(present)}")


def show_progress(_stream: str, data: bytes) -> None:
    sys.stderr.write("".join(f"  {line}\n" for line in data.decode(errors="replace").splitlines()))
    sys.stderr.flush()


def rows_of(cost: Cost, base: Cost) -> list[tuple[Function, Count, Count]]:
    """(function, its count in @cost, its count in @base), the greatest difference first."""
    none = Count()
    rows = [
        (function, cost.functions.get(function, none), base.functions.get(function, none))
        for function in {*cost.functions, *base.functions}
    ]
    return sorted(rows, key=lambda row: (row[2].instructions - row[1].instructions, row[0]))


def kind_of(function: Function, cost: Count, base: Count) -> str:
    if function == USER_SPACE:
        return "user"
    if function.module:
        return function.module
    return "kernel, new" if 10 * base.instructions < cost.instructions else "kernel"


def summary_lines(costs: Costs) -> list[str]:
    header = ["workload", "scheduler", "instructions", "above none", "in its module"]
    header += ["locked", "spread"]
    rows = []
    for (load, scheduler), cost in costs.items():
        base = costs[load, BASE]
        inside = inside_of(cost, scheduler)
        rows.append(
            [
                load,
                scheduler,
                f"{cost.total:.0f}",
                f"{cost.total - base.total:+.0f}" if scheduler != BASE else "",
                f"{inside.instructions:.0f}" if scheduler != BASE else "",
                f"{locked_of(cost, base, scheduler):.2f}" if scheduler != BASE else "",
                f"{100 * cost.spread:.2f} %",
            ]
        )
    return table(header, rows, left=2)


def inside_of(cost: Cost, label: str) -> Count:
    """The instructions of the module of scheduler @label."""
    module = module_of(label)
    counts = [count for function, count in cost.functions.items() if function.module == module]
    return Count(
        sum(count.instructions for count in counts), locked=sum(count.locked for count in counts)
    )


def locked_of(cost: Cost, base: Cost, label: str) -> float:
    """The locked instructions of scheduler @label: those of its module and of its spin locks."""
    spins = sum(
        mine.locked - theirs.locked
        for function, mine, theirs in rows_of(cost, base)
        if function.name.startswith("_raw_spin_lock")
    )
    return inside_of(cost, label).locked + spins


def module_of(label: str) -> str:
    name = scheduler_of(label)
    return "mqfair" if is_ours(name) else {"kyber": "kyber_iosched"}.get(name, name)


def function_lines(load: str, scheduler: str, costs: Costs) -> list[str]:
    cost, base = costs[load, scheduler], costs[load, BASE]
    header = ["function", "where", "entries", "instructions", "under none", "difference"]
    rows, shown = [], 0.0
    for function, mine, theirs in rows_of(cost, base):
        more = mine.instructions - theirs.instructions
        if abs(more) < SHOWN_LEAST:
            continue
        shown += more
        rows.append(
            [
                function.name,
                kind_of(function, mine, theirs),
                f"{mine.entries:.2f}",
                f"{mine.instructions:.1f}",
                f"{theirs.instructions:.1f}",
                f"{more:+.1f}",
            ]
        )
    whole = cost.total - base.total
    rows.append([f"(each below {SHOWN_LEAST:g})", "", "", "", "", f"{whole - shown:+.1f}"])
    rows.append(["sum", "", "", f"{cost.total:.1f}", f"{base.total:.1f}", f"{whole:+.1f}"])
    return [f"{load}: {scheduler} beside {BASE}, per I/O", *table(header, rows, left=2)]


def document(plan: Plan, costs: Costs, release: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "where": {
            "kernel": release,
            "accel": "tcg",
            "cpus": 1,
            "possible_cpus": plan.possible_cpus,
            "device": f"null_blk {DEVICE}",
        },
        "ios": plan.ios,
        "repeat": plan.repeat,
        "costs": [
            {
                "workload": load,
                "fio": [*FIO, *WORKLOADS[load]],
                "scheduler": scheduler,
                "instructions": cost.total,
                "above_none": cost.total - costs[load, BASE].total,
                "locked": round(locked_of(cost, costs[load, BASE], scheduler), 3),
                "totals": cost.totals,
                "spread": cost.spread,
                "functions": [
                    {
                        "name": function.name,
                        "where": kind_of(function, mine, theirs),
                        "instructions": round(mine.instructions, 3),
                        "entries": round(mine.entries, 3),
                        "locked": round(mine.locked, 3),
                        "above_none": round(mine.instructions - theirs.instructions, 3),
                    }
                    for function, mine, theirs in rows_of(cost, costs[load, BASE])
                ],
            }
            for (load, scheduler), cost in costs.items()
        ],
    }


def misses(costs: Costs, plan: Plan) -> list[str]:
    """The failed checks, one line each. Only one kernel has bounds."""
    possible_cpus = plan.possible_cpus
    found = [
        f"{load} {scheduler}: repeats differ by {100 * cost.spread:.2f} %,"
        f" a valid figure has at most {100 * SPREAD_MOST:.1f} %; raise --ios"
        for (load, scheduler), cost in costs.items()
        if cost.spread > SPREAD_MOST
    ]
    if plan.kernel != BOUNDED:
        return found
    for (load, scheduler), bound in MOST_ABOVE_NONE.items():
        most = bound + MOST_FOR_CPU * (possible_cpus - 1)
        if (load, scheduler) in costs:
            above = costs[load, scheduler].total - costs[load, BASE].total
            if above > most:
                found.append(
                    f"{load} {scheduler}: {above:+.0f} instructions per I/O relative to none,"
                    f" at most {most:+d} allowed"
                )
    if possible_cpus == 1:
        found += [
            f"{load} {scheduler}: {locked:.2f} locked instructions per I/O, at most {most} allowed"
            for (load, scheduler), most in MOST_LOCKED.items()
            if (load, scheduler) in costs
            and (locked := locked_of(costs[load, scheduler], costs[load, BASE], scheduler)) > most
        ]
    return found


def parse_words(text: str, known: Sequence[str], option: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(filter(None, text.split(","))))
    for word in words:
        if word not in known:
            raise UsageError(f"{option} '{word}': unknown: choose from {', '.join(known)}")
    if not words:
        raise UsageError(f"{option}: empty: choose from {', '.join(known)}")
    return words


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="experiments.instructions",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--schedulers",
        default=SCHEDULERS,
        metavar="NAME,...",
        help="default %(default)s; NAME:TUNABLE=VALUE sets a tunable",
    )
    parser.add_argument(
        "--workloads",
        default=",".join(WORKLOADS),
        metavar="NAME,...",
        help="workloads to run (default %(default)s)",
    )
    parser.add_argument(
        "--ios", type=int, default=20000, metavar="N", help="I/Os of a run (default %(default)s)"
    )
    parser.add_argument(
        "--repeat",
        type=int,
        default=5,
        metavar="N",
        help="repeats, of which the median is taken (default %(default)s)",
    )
    parser.add_argument(
        "--possible-cpus",
        type=int,
        default=1,
        metavar="N",
        help="CPUs that may come online, and so queues of the hardware queue (default %(default)s)",
    )
    parser.add_argument(
        "--kernel",
        default=DEFAULT_KERNEL,
        choices=tuple(kernel.KERNELS),
        help="the guest's kernel (default %(default)s); bounds are for the default",
    )
    parser.add_argument(
        "--module", type=Path, metavar="FILE", help="mqfair.ko (default: build it now)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser.parse_args(argv)


def plan_of(args: argparse.Namespace) -> Plan:
    schedulers = parse_variants(args.schedulers)
    if IOCOST in schedulers:
        raise UsageError("--schedulers: iocost: it does not charge the root cgroup: leave it out")
    if args.module and not args.module.is_file():
        raise UsageError(f"--module {args.module}: no such file: name mqfair.ko")
    if args.ios < 1000:
        raise UsageError(f"--ios {args.ios}: too few: use at least 1000")
    if args.repeat < REPEAT_LEAST:
        raise UsageError(f"--repeat {args.repeat}: too few: use at least {REPEAT_LEAST}")
    if not 1 <= args.possible_cpus <= POSSIBLE_CPUS_MOST:
        raise UsageError(
            f"--possible-cpus {args.possible_cpus}: use a number from 1 to {POSSIBLE_CPUS_MOST}"
        )
    if args.json and not args.json.absolute().parent.is_dir():
        raise UsageError(f"--json {args.json}: no such folder: create it first")
    return Plan(
        # Figures are given relative to none.
        tuple(dict.fromkeys((BASE, *schedulers))),
        parse_words(args.workloads, list(WORKLOADS), "--workloads"),
        args.ios,
        args.repeat,
        args.possible_cpus,
        args.kernel,
    )


def run(argv: Sequence[str] | None) -> int:
    args = parse_arguments(argv)
    plan = plan_of(args)
    costs, release = measure(plan, args.module)
    for load, scheduler in costs:
        if scheduler != BASE:
            print("\n".join(function_lines(load, scheduler, costs)), end="\n\n")
    print(f"guest instructions per I/O, kernel {release}, median of {plan.repeat}")
    print("\n".join(summary_lines(costs)))
    if args.json:
        args.json.write_text(json.dumps(document(plan, costs, release), indent=2) + "\n")
    found = misses(costs, plan)
    for line in found:
        print(f"instructions: {line}", file=sys.stderr)
    return 1 if found else 0


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return run(argv)
    except (UsageError, lab.SpecError) as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 2
    except (Failure, lab.LabError) as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
