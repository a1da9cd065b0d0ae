# SPDX-License-Identifier: GPL-2.0
"""Common parts of the verbs that watch drives: which drives, and how often."""

import argparse
import contextlib
import time
from collections.abc import Sequence

from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk, all_disks, find_disks
from mqfair.machine.fs import Fs
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import Failure, UsageError
from mqfair.watch.sample import Sample, Sampler

INTERVAL_LEAST_S = 0.1
INTERVAL_MOST_S = 3600.0


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "devices",
        nargs="*",
        metavar="DEVICE",
        help="nvme0n1, /dev/nvme0n1 or MAJ:MIN (default: all with an mqfair scheduler)",
    )


def add_interval_argument(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--interval",
        default=default,
        metavar="S",
        help="seconds between two samples (default %(default)s)",
    )


def seconds_of(option: str, text: str, least: float, most: float) -> float:
    """The number of seconds in @text; raises UsageError."""
    with contextlib.suppress(ValueError):
        if least <= float(text) <= most:
            return float(text)
    raise UsageError(f"{option} {text}: use a number of seconds in {least:g}..{most:g}")


def interval_of(args: argparse.Namespace) -> float:
    return seconds_of("--interval", args.interval, INTERVAL_LEAST_S, INTERVAL_MOST_S)


def has_ours(disk: Disk) -> bool:
    selector = disk.selector()
    return selector is not None and selector.ours


def watched(fs: Fs, names: Sequence[str]) -> list[Disk]:
    """The drives in @names, or all with an mqfair scheduler. Raises Failure if one has none."""
    asked = find_disks(fs, names)
    for disk in asked:
        if not has_ours(disk):
            active = disk.require_selector().active
            raise Failure(f"{disk.name} has no mqfair scheduler but {active}: {enabling(fs, disk)}")
    found = asked or [disk for disk in all_disks(fs) if has_ours(disk)]
    if not found:
        raise Failure(f"no device runs an mqfair scheduler: {enabling(fs)}")
    return list({disk.name: disk for disk in found}.values())


def enabling(fs: Fs, disk: Disk | None = None) -> str:
    """The advice for a machine on which no scheduler of ours is in force."""
    usable = kmod.loaded(fs) or kmod.autoloads(fs, SCHEDULERS[0])
    return f"mqfair enable {disk.name if disk else 'DEVICE'}" if usable else kmod.missing(fs)


def two_samples(sampler: Sampler, interval_s: float) -> tuple[Sample, Sample]:
    before = sampler.sample()
    time.sleep(interval_s)
    return before, sampler.sample()
