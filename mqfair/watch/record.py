# SPDX-License-Identifier: GPL-2.0
"""mqfair record: samples of drives and cgroups in a file, for `mqfair report`, or the requests of a
drive, for a replay (record_trace.py)."""

import argparse
import time
from collections.abc import Iterator

from mqfair import __version__
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import open_output, print_json, require_writable
from mqfair.watch import record_trace, recording
from mqfair.watch.drives import (
    add_device_arguments,
    add_interval_argument,
    interval_of,
    seconds_of,
    watched,
)
from mqfair.watch.sample import Sample, Sampler

SECONDS_MOST = 86400.0
INTERVAL = "1"

EPILOG = """\
Each line of FILE is a sample in JSON: the counters of each drive and of its cgroups. The first line
tells the machine. An interrupted recording keeps its samples. `mqfair report` makes plots of it.

With --trace each line is a request that arrived at one drive, with its time and its cgroup, in the
format of `mqfair trace`. Root and the kernel's tracefs are needed, and no scheduler of mqfair. FILE
should be on another drive, since its writes are requests, too. doc/traces.md tells more.

examples:
  mqfair record --out minute.jsonl
  mqfair record nvme0n1 --out hour.jsonl --seconds 3600 --interval 10
  mqfair report minute.jsonl --out minute.html
  mqfair record nvme0n1 --trace --out /dev/shm/prod.trace
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_device_arguments(parser)
    parser.add_argument(
        "--out", metavar="FILE", required=True, help="file to write; - is standard output"
    )
    parser.add_argument(
        "--seconds", metavar="S", default="60", help="time to record (default %(default)s)"
    )
    add_interval_argument(parser, INTERVAL)
    parser.add_argument(
        "--trace", action="store_true", help="record each request of DEVICE, for a replay"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def main(args: argparse.Namespace) -> int:
    if args.trace:
        if args.interval != INTERVAL:
            raise UsageError(f"--interval {args.interval}: is for samples: leave out --trace")
        return record_trace.main(args, SECONDS_MOST)
    interval_s = interval_of(args)
    seconds = seconds_of("--seconds", args.seconds, interval_s, SECONDS_MOST)
    require_writable("--out", args.out)
    fs = Fs()
    sampler = Sampler(fs, watched(fs, args.devices))
    head = recording.Head(
        time.time(), interval_s, fs.read("/proc/sys/kernel/osrelease").strip(), __version__
    )
    taken = 0
    last: Sample | None = None
    try:
        with open_output(args.out) as file:
            for sample in recording.write(file, head, _samples(sampler, seconds, interval_s)):
                taken += 1
                last = sample
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(f"{args.out} has {taken} samples") from interrupt
    except OSError as error:
        if args.out == "-":
            raise
        kept = f"it has {taken} samples: free space, or name another file"
        raise Failure(f"cannot write {args.out}: {error.strerror}: {kept}") from error
    if args.out != "-" and last is not None:
        _summarise(args, taken, last)
    return 0


def _samples(sampler: Sampler, seconds: float, interval_s: float) -> Iterator[Sample]:
    """Samples at the multiples of the interval, whatever a sample takes."""
    begun = time.monotonic()
    for number in range(round(seconds / interval_s) + 1):
        ahead = begun + number * interval_s - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        yield sampler.sample()


def _summarise(args: argparse.Namespace, taken: int, last: Sample) -> None:
    names = {name for disk in last.disks.values() for name in disk.flows}
    if args.json:
        print_json(
            {
                "schema": "mqfair.record-summary/1",
                "file": args.out,
                "samples": taken,
                "disks": list(last.disks),
                "cgroups": len(names),
            }
        )
    else:
        drives = " ".join(last.disks)
        print(f"{args.out}: {taken} samples of {drives}, {len(names)} cgroups with I/O")
        for name in [name for name, disk in last.disks.items() if not disk.ours]:
            print(f"note: {name} was removed or lost its scheduler before the end: mqfair status")
