# SPDX-License-Identifier: GPL-2.0
"""mqfair latency: read or set the latency goals of a cgroup."""

import argparse
import errno
import re

from mqfair.machine.blockdev import Disk, find_disk, require_number
from mqfair.machine.cgroup import LATENCY_FILE, Cgroup
from mqfair.machine.fs import Fs
from mqfair.machine.group_name import CGROUP_HELP, find_cgroup
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import add_dry_run_argument, add_json_argument, print_json, quoted, visible
from mqfair.tune.weight import require_file, require_lowest

TARGET_MIN_NS = 1000
TARGET_MAX_NS = 16_000_000_000
UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
TARGETS = "1us..16s, such as 500us or 2ms, or none"
PERCENTS = "1..99.9"

EPILOG = """\
A goal says that PCT percent of the requests take at most TARGET. While it is missed, the scheduler
gives up throughput, at most as much as its tunable `isolation` allows. A cgroup without a goal has
that of its nearest ancestor with one. Its own goal counts alone.

Each line shows what was achieved in the last seconds, and the throughput that is given up now.

examples:
  mqfair latency prod                          read the goals
  mqfair latency prod nvme0n1 500us            99 % of the requests within 500 us
  mqfair latency prod nvme0n1 2ms --pct 99.9   a goal for 99.9 %
  mqfair latency prod nvme0n1 none             remove the goal
"""

Goals = dict[str, dict[str, str]]


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("cgroup", metavar="CGROUP", help=CGROUP_HELP)
    parser.add_argument(
        "device", nargs="?", metavar="DEVICE", help="the device (default: all devices)"
    )
    parser.add_argument("target", nargs="?", metavar="TARGET", help=TARGETS)
    parser.add_argument(
        "--pct", metavar="PCT", help=f"percent of the requests, {PERCENTS} (default: 99)"
    )
    add_dry_run_argument(parser)
    add_json_argument(parser)


def nanoseconds(target: str) -> int | None:
    """The duration that @target states, or None if it is none."""
    match = re.fullmatch(r"(\d{1,11})(ns|us|ms|s)", target, re.ASCII)
    return int(match[1]) * UNITS[match[2]] if match else None


def _is_target(fs: Fs, word: str) -> bool:
    """Whether @word, in the place of a device, may be meant as a target."""
    if word != "none" and not re.match(r"\d+(\.\d*)?[a-z]*$", word):
        return False
    try:
        find_disk(fs, word)
    except UsageError:
        return True
    return False


def _body(path: str, target: str, pct: str | None) -> str:
    """The words after the device's number, after a check."""
    if target == "none":
        if pct is not None:
            raise UsageError("--pct needs a target other than none")
        return "target=none"
    ns = nanoseconds(target)
    if ns is None or not TARGET_MIN_NS <= ns <= TARGET_MAX_NS:
        raise UsageError(f"target '{target}' for {path}: use {TARGETS}")
    pct = "99" if pct is None else pct
    if not re.fullmatch(r"\d{1,2}(\.\d)?", pct, re.ASCII) or float(pct) < 1:
        raise UsageError(f"--pct '{pct}' for {path}: use {PERCENTS}")
    return f"target={target} pct={pct}"


def _holds(goals: Goals, number: str, target: str) -> bool:
    goal = goals.get(number, {})
    if target == "none":
        return not goal or goal.get("inherited") == "1"
    return nanoseconds(goal.get("target", "")) == nanoseconds(target)


def _set(group: Cgroup, disk: Disk, target: str, body: str) -> None:
    path = group.file(LATENCY_FILE)
    line = f"{require_number(disk)} {body}"
    gone = f"{disk.name} takes no goal: it was removed or is no whole disk"
    group.fs.write(path, line, {errno.ENODEV: gone})
    if not group.fs.dry_run and not _holds(group.goals(), require_number(disk), target):
        raise Failure(f"{path} reads back '{group.text(LATENCY_FILE)}' after '{line}'")


def _name(fs: Fs, number: str) -> str:
    """The device's name; the number itself for a device that does not exist."""
    try:
        return find_disk(fs, number).name
    except UsageError:
        return number


def _line(name: str, goal: dict[str, str]) -> str:
    words = [f"{goal.get('pct', '?')} % within {goal.get('target', '?')}"]
    if "achieved" in goal:
        met = "met" if goal.get("met") == "1" else "missed"
        words.append(f"achieved {goal['achieved']} ({met})")
    if "loss" in goal:
        words.append(f"loss {goal['loss']}")
    if goal.get("inherited") == "1":
        words.append("inherited")
    return f"{name}  {'  '.join(words)}"


def _print_text(group: Cgroup, goals: Goals) -> None:
    if group.fs.writes and group.fs.dry_run:
        print(visible(str(group.fs.writes[0])))
        return
    if not goals:
        print(f"{visible(group.name)}  no goal")
    for number, goal in goals.items():
        print(f"{visible(group.name)}  {_line(_name(group.fs, number), goal)}")


def _report(group: Cgroup, disk: Disk | None, goals: Goals) -> dict[str, object]:
    return {
        "schema": "mqfair.latency/1",
        "cgroup": group.name,
        "device": disk.name if disk else None,
        "goals": goals,
        "dry_run": group.fs.dry_run,
        "writes": [{"path": w.path, "value": w.value} for w in group.fs.writes],
    }


def main(args: argparse.Namespace) -> int:
    fs = Fs(dry_run=args.dry_run)
    group = find_cgroup(fs, args.cgroup)
    if args.pct is not None and args.target is None:
        raise UsageError("--pct needs a DEVICE and a TARGET")
    if args.target is None and args.device and _is_target(fs, args.device):
        raise UsageError(
            f"a goal is for one device: mqfair latency {quoted(group.name)} DEVICE"
            f" {quoted(args.device)}"
        )
    disk = find_disk(fs, args.device) if args.device is not None else None
    if disk is not None:
        disk = require_lowest(disk, "goal")
    body = _body(group.file(LATENCY_FILE), args.target, args.pct) if args.target else None
    require_file(group, LATENCY_FILE, "latency goal")
    if disk is not None and body is not None:
        _set(group, disk, args.target, body)
    goals = group.goals()
    if disk is not None:
        goals = {number: goal for number, goal in goals.items() if number == disk.number}
    if args.json:
        print_json(_report(group, disk, goals))
    else:
        _print_text(group, goals)
    return 0
