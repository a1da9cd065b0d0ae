# SPDX-License-Identifier: GPL-2.0
"""mqfair disable: switch a device from our scheduler to none, or to a named one."""

import argparse

from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk, Selector, all_disks, find_disks
from mqfair.machine.cgroup import Cgroup, Weights, root_cgroup
from mqfair.machine.fs import Fs
from mqfair.machine.lock import locked
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import add_dry_run_argument, add_json_argument, print_json
from mqfair.tune import chosen_by_hand

EPILOG = """\
The weights in io.mqfair.weight stay and apply again after `mqfair enable`. They end with their
cgroup, with the module (`modprobe -r mqfair`) and with a restart of the machine.

examples:
  mqfair disable nvme0n1
  mqfair disable nvme0n1 --to mq-deadline
  mqfair disable 'nvme*n1'
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "devices",
        nargs="+",
        metavar="DEVICE",
        help="nvme0n1, /dev/nvme0n1, MAJ:MIN, 'nvme*n1', a mount point or LABEL=data",
    )
    parser.add_argument(
        "--to", metavar="NAME", help="scheduler to switch to (default: none, if it is offered)"
    )
    add_dry_run_argument(parser)
    add_json_argument(parser)


def _target(disk: Disk, selector: Selector, to: str | None) -> str:
    if to is not None:
        if to not in selector.available:
            raise UsageError(
                f"--to '{to}': not offered by {disk.scheduler_file}:"
                f" use {', '.join(selector.available)}"
            )
        return to
    if not selector.ours:
        return selector.active
    others = [name for name in selector.available if name not in SCHEDULERS]
    if not others:
        raise Failure(
            f"{disk.scheduler_file} offers only mqfair's schedulers: load another scheduler"
        )
    return "none" if "none" in others else others[0]


def _switch(disk: Disk, target: str) -> None:
    disk.fs.write(disk.scheduler_file, target)
    if disk.fs.dry_run:
        return
    now = disk.selector()
    if now is None or now.active != target:
        active = now.active if now else "nothing"
        raise Failure(
            f"{disk.scheduler_file} reads back '{active}' after '{target}' was written:"
            " see the kernel log (dmesg)"
        )


def _is_set(group: Cgroup) -> bool:
    """True if a user has set a weight or a goal of @group."""
    own = any(goal.get("inherited") != "1" for goal in group.goals().values())
    return own or group.weights() not in (None, Weights())


def _notes(disk: Disk) -> list[str]:
    """A warning if the module is used no more and holds weights that its removal would drop."""
    selectors = [other.selector() for other in all_disks(disk.fs)]
    if disk.fs.dry_run or any(selector is not None and selector.ours for selector in selectors):
        return []
    try:
        count = sum(_is_set(group) for group in root_cgroup(disk.fs).walk())
    except Failure:
        return []
    if not count:
        return []
    return [
        f"{count} cgroup{'s have' if count > 1 else ' has'} weights or goals in the module:"
        f" `modprobe -r {kmod.MODULE}` drops them, as a restart does"
    ]


def main(args: argparse.Namespace) -> int:
    reports = []
    for disk in find_disks(Fs(dry_run=args.dry_run), args.devices):
        with locked(disk):
            reports.append(_disable(args, Disk(Fs(dry_run=args.dry_run), disk.name)))
    if args.json:
        several = {"schema": "mqfair.disable-several/1", "devices": reports}
        print_json(reports[0] if len(reports) == 1 else several)
    return 0


def _disable(args: argparse.Namespace, disk: Disk) -> dict[str, object]:
    """Switches one disk and returns the report; prints it as text without --json."""
    fs = disk.fs
    selector = disk.require_selector()
    target = _target(disk, selector, args.to)
    if target != selector.active:
        _switch(disk, target)
    chosen_by_hand.remember(disk, target)
    notes = _notes(disk)
    report = {
        "schema": "mqfair.disable/1",
        "device": disk.name,
        "scheduler": target,
        "previous": selector.active,
        "dry_run": fs.dry_run,
        "writes": [{"path": w.path, "value": w.value} for w in fs.writes],
        "notes": notes,
    }
    if args.json:
        return report
    if target == selector.active:
        print(f"{disk.name}: {target}, unchanged")
    elif fs.dry_run:
        print(fs.writes[0])
    else:
        print(f"{disk.name}: {target} (was {selector.active})")
    for note in notes:
        print(f"note: {note}")
    return report
