# SPDX-License-Identifier: GPL-2.0
"""The program of `make demo`: four weights on one drive under every scheduler, in one guest.

With KVM the guest has two CPUs. An emulated guest has one CPU, and its clock counts instructions.
So the figures do not depend on the host's load, and the emulated CPU is never the bottleneck.
"""

import json
import math
import sys
import tempfile
from pathlib import Path

import lab
from mqfair.__main__ import ended
from mqfair.bench import jobfile, report, session
from mqfair.bench.command import show_progress
from mqfair.bench.device import parse_device
from mqfair.bench.picture import draw
from mqfair.bench.result import document
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import whole_output, writing

SCHEMA = "mqfair.demo/1"
OUT = session.ROOT / "build" / "demo"

# 32 slots of 16 ms give 2000 I/O per second, which an emulated CPU reaches under any scheduler.
DEVICE = (
    "null:irqmode=2,completion_nsec=16000000,submit_queues={cpus},hw_queue_depth=32,"
    "shared_tag_bitmap=1,gb=4,poll_queues=0"
)
CASES = {
    "four-cgroups.fio": "4 KiB random reads",
    "four-cgroups-mixed.fio": "4 KiB random, half reads and half writes",
}
CPUS = 2
RUNTIME_S = 3.0
REPEAT = 3
# The runtime with counted time. Repeats are alike then. A request of the lightest cgroup takes
# 0.6 s, because 64 of them wait for 5.4 % of the drive, so a run is about four of its queues.
COUNTED_RUNTIME_S = 2.5
# make demo should take five minutes in all. The rest is for booting, iocost's model and drawing.
TIME_LIMIT_S = 230.0


def demo_request() -> session.Request:
    examples = session.ROOT / "examples"
    counted = lab.accelerator(lab.GuestSpec(cpus=CPUS)) == "tcg"
    runtime_s = COUNTED_RUNTIME_S if counted else RUNTIME_S
    cpus = 1 if counted else CPUS
    return session.Request(
        jobs=tuple(jobfile.load(str(examples / name), runtime_s) for name in CASES),
        repeat=1 if counted else REPEAT,
        device=parse_device(DEVICE.format(cpus=cpus)),
        cpus=cpus,
        icount=counted,
        time_limit_s=math.inf if counted else TIME_LIMIT_S,
    )


def run() -> int:
    make_folder()
    asked = session.with_built_module(demo_request())
    with (
        tempfile.TemporaryDirectory(prefix="mqfair-demo-") as name,
        writing(name),
        show_progress([asked]) as progress,
    ):
        outcome = session.run(asked, Path(name), progress)
    console = report.console_for()
    for result in outcome.results:
        console.print(report.render(result, ()))
        console.print(report.share_bars(result))
    for note in outcome.notes:
        console.print(f"note: {note}", style="dim", highlight=False)
    save(outcome)
    console.print(f"written: {OUT / 'result.json'}, {OUT / 'shares.png'}", highlight=False)
    return 0


def make_folder() -> None:
    """Raises UsageError before the runs if their results have no place."""
    try:
        OUT.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{OUT}: {error.strerror}: use a checkout that can be written") from error


def save(outcome: session.Outcome) -> None:
    """Writes the figures and the picture. Raises Failure."""
    whole = {
        "schema": SCHEMA,
        "results": [document(one, outcome.where, outcome.notes) for one in outcome.results],
    }
    try:
        with whole_output(str(OUT / "result.json")) as file:
            file.write(json.dumps(whole, indent=1) + "\n")
        draw(outcome.results, list(CASES.values()), outcome.where, OUT / "shares.png")
    except OSError as error:
        raise Failure(
            f"cannot write {error.filename}: {error.strerror}: free space, or use a checkout that"
            " can be written"
        ) from error


def main() -> int:
    return ended("demo", run)


if __name__ == "__main__":
    sys.exit(main())
