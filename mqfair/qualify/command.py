# SPDX-License-Identifier: GPL-2.0
"""mqfair qualify: from the command line to the runs, the report and the JSON."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mqfair.bench import command as bench
from mqfair.bench import device, resume, session
from mqfair.bench.iocost import QOS_FILE
from mqfair.bench.plan import HOST
from mqfair.bench.result import document
from mqfair.bench.runner import SCHEDULER_MODULES
from mqfair.bench.variant import IOCOST, NONE, is_ours, parse_variants, scheduler_of
from mqfair.machine.blockdev import Disk, find_disk
from mqfair.machine.cgroup import root_cgroup
from mqfair.machine.fs import Fs
from mqfair.qualify import drive, figures, loads
from mqfair.report import qualified
from mqfair.report.compare import QUALIFY_SCHEMA
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import print_json, table, whole_output

JSON_FILE = "qualify.json"
PAGE_FILE = "qualify.html"
RUNS = "runs"

REGION_BYTES = 8 << 30
FILL_TIMEOUT_S = 600.0
# The least part of the requests in the peak that other programs must have sent for a note.
OTHERS_LEAST = 0.05
BUSY_LEAST = 0.9
# Of a run beyond fio's own time: its start, its end and its logs.
AROUND_RUN_S = 1.2
FIT_S = 5.0
DEPTH_MOST = 1024
RUNTIME_MOST_S = 60.0


def main(args: argparse.Namespace) -> int:
    disk = find_disk(Fs(), args.disk)
    if disk.partition:
        raise UsageError(
            f"{args.disk} is a partition: schedulers act on whole drives: use /dev/{disk.name}"
        )
    request, absent = _request(args, disk)
    session.check(request)
    folder = Path(args.out or f"mqfair-qualify-{disk.name}")
    runs = _runs_folder(folder, resumed=args.resume)
    if args.destructive and not resume.has_begun(runs):
        _fill(request, disk)
    ending = None
    try:
        with bench.show_progress([request], [runs], _estimate(request, runs)) as progress:
            outcome = session.run(request, runs, progress)
    except session.Interrupted as interrupt:
        ending = session.Interrupted(f"{interrupt}; --resume goes on from there", None)
        if interrupt.outcome is None:
            raise ending from interrupt
        outcome = interrupt.outcome
    found = _document(args, request, disk, outcome, absent)
    _write(folder, found)
    if args.json:
        print_json(found)
    else:
        _say(folder, found)
    if ending is not None:
        raise ending
    return 0


def _request(args: argparse.Namespace, disk: Disk) -> tuple[session.Request, list[str]]:
    """The bench of all loads, and notes about the schedulers that this kernel lacks. Raises
    UsageError."""
    labels, absent = _present(disk, parse_variants(args.schedulers))
    if NONE not in labels:
        raise UsageError(
            f"--schedulers {args.schedulers}: each figure stands beside none's: add it"
        )
    region = min(REGION_BYTES, drive.size_of(disk)) if args.destructive else None
    runtime_s = bench.positive("--runtime", args.runtime, RUNTIME_MOST_S)
    jobs = loads.jobs(labels, _depths(args.depths), os.cpu_count() or 1, runtime_s, region)
    request = session.Request(
        jobs=jobs,
        schedulers=loads.all_labels(labels),
        repeat=bench.number("--repeat", args.repeat, 1, 1000),
        # The user's own name of the drive may have its serial number.
        device=device.parse_device(f"/dev/{disk.name}"),
        on=HOST,
        destroy_data=args.destructive,
        reads_only=not args.destructive,
        condensed=True,
    )
    return session.with_built_module(request), absent


def _depths(text: str) -> list[int]:
    words = text.split(",")
    found = sorted({bench.number("--depths", word, 1, DEPTH_MOST) for word in words})
    if len(found) < len(words):
        raise UsageError(f"--depths {text}: a number is given twice: give it once")
    return found


def _present(disk: Disk, labels: Sequence[str]) -> tuple[list[str], list[str]]:
    """The labels that this kernel has, and a note for each other one. session.check() tells about
    a module of ours that is missing."""
    missing = {label: words for label in labels if (words := _lacks(disk, scheduler_of(label)))}
    notes = [f"{label} was left out: {words}" for label, words in missing.items()]
    return [label for label in labels if label not in missing], notes


def _lacks(disk: Disk, name: str) -> str:
    if name == IOCOST:
        present = disk.fs.exists(root_cgroup(disk.fs).file(QOS_FILE))
        return "" if present else "this kernel has no io.cost"
    if name == NONE or is_ours(name) or name in disk.require_selector().available:
        return ""
    argv = ["modprobe", "--dry-run", "--quiet", SCHEDULER_MODULES.get(name, name)]
    with contextlib.suppress(OSError):
        if subprocess.run(argv, check=False, timeout=60).returncode == 0:
            return ""
    return f"this kernel has no scheduler {name}"


def _runs_folder(folder: Path, *, resumed: bool) -> Path:
    """The folder of the runs, made if it is absent. Raises UsageError if the command line and the
    folder disagree on whether a qualification has begun."""
    runs = folder / RUNS
    begun = resume.has_begun(runs)
    if resumed and not begun:
        raise UsageError(f"--resume: nothing has begun in {folder}: name its folder with --out")
    if begun and not resumed:
        raise UsageError(f"{folder}: a qualification is there: add --resume, or --out FOLDER")
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--out {folder}: {error.strerror}: name a folder that can be created"
        ) from error
    return runs


def _estimate(request: session.Request, folder: Path) -> str:
    plan = session.plan_for(request)
    runs = [(number, run) for number, run in enumerate(plan.runs())]
    left = [run for number, run in runs if not resume.is_finished(folder, number)]
    seconds = sum(run.case.run_s + AROUND_RUN_S for run in left)
    seconds += FIT_S if IOCOST in request.names and len(left) == len(runs) else 0
    how = "reads only" if request.reads_only else "reads and writes"
    finished = f", of which {len(runs) - len(left)} are finished" if len(left) < len(runs) else ""
    return (
        f"{request.device.text}, {how}: {len(runs)} runs{finished}:"
        f" about {max(seconds / 60, 1):.0f} min"
    )


def _fill(request: session.Request, disk: Disk) -> None:
    """Writes the region once, because a page that was never written is read without flash. Raises
    Failure."""
    region = min(REGION_BYTES, drive.size_of(disk))
    print(f"writing the first {region >> 20} MiB of {request.device.text}", file=sys.stderr)
    options = {"filename": request.device.text, "size": region, "rw": "write", "bs": "1m"}
    more = {"ioengine": "libaio", "iodepth": 16, "direct": 1, "name": "fill"}
    argv = ["fio", *(f"--{key}={value}" for key, value in {**more, **options}.items())]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=FILL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Failure(
            f"{request.device.text} took more than {FILL_TIMEOUT_S:.0f} s to write"
            f" {region >> 20} MiB: leave out --destructive"
        ) from None
    if done.returncode:
        raise Failure(f"fio cannot write {request.device.text}: {done.stderr.strip()}")


def _document(
    args: argparse.Namespace,
    request: session.Request,
    disk: Disk,
    outcome: session.Outcome,
    absent: Sequence[str],
) -> dict[str, Any]:
    about = drive.described(disk)
    words = f"{about['model'] or 'unknown'}, firmware {about['firmware'] or 'unknown'}"
    where = {**outcome.where, "drive": words}
    benches = [document(one, where, ()) for one in outcome.results if one.runs]
    for run in (run for one in benches for run in one["runs"]):
        for group in run["cgroups"]:
            # They would be most of the file.
            del group["lat_histogram"]
    notes = [*absent, *outcome.notes, *_cautions(benches, outcome.where["cpus"])]
    return {
        "schema": QUALIFY_SCHEMA,
        "drive": about,
        "kernel": outcome.where["kernel"],
        "processor": drive.processor(disk.fs),
        "cpus": outcome.where["cpus"],
        "destructive": args.destructive,
        "repeat": request.repeat,
        "runtime_s": request.jobs[0].window_s,
        "notes": list(dict.fromkeys(notes)),
        "benches": benches,
    }


def _cautions(benches: Sequence[dict[str, Any]], cpus: int) -> Iterator[str]:
    """Notes if other programs used the drive, or if the processors limited it, by the peak under
    none."""
    counted = [
        (run["total_iops"], run["cpu"])
        for one in benches
        for run in one["runs"]
        if (one["job"], run["scheduler"]) == ("peak", NONE) and run.get("cpu", {}).get("ios")
    ]
    if not counted:
        return
    others = statistics.median(
        1 - iops * cpu["elapsed_us"] / 1e6 / cpu["ios"] for iops, cpu in counted
    )
    if others >= OTHERS_LEAST:
        yield f"other programs sent {100 * others:.0f} % of the requests: repeat on a drive at rest"
    busy = statistics.median(cpu["busy_us"] / cpu["elapsed_us"] / cpus for _, cpu in counted)
    if busy >= BUSY_LEAST:
        yield (
            f"the processors were busy for {100 * busy:.0f} % of the peak under none: they limit"
            " it, and not the drive, so the work of a scheduler lowers it"
        )


def _write(folder: Path, found: dict[str, Any]) -> None:
    """Writes both files. Raises Failure."""
    for name, text in (
        (JSON_FILE, json.dumps(found, indent=1) + "\n"),
        (PAGE_FILE, qualified.page(found)),
    ):
        try:
            with whole_output(str(folder / name)) as file:
                file.write(text)
        except OSError as error:
            raise Failure(
                f"cannot write {folder / name}: {error.strerror}: free space, then use --resume"
            ) from error


def _say(folder: Path, found: dict[str, Any]) -> None:
    for section in figures.SECTIONS:
        lines = figures.rows(section, found)
        if lines:
            print(section.title)
            print("\n".join(f"  {line}" for line in table(lines[0], lines[1:], left=2)))
            print()
    for sentence in figures.sentences(found):
        print(sentence)
    for text in found["notes"]:
        print(f"note: {text}")
    print(f"{folder / PAGE_FILE}, {folder / JSON_FILE}")
