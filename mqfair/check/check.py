# SPDX-License-Identifier: GPL-2.0
"""mqfair check: explain why a weight is, or is not, in force on a device."""

import argparse
from collections.abc import Iterator, Sequence

from mqfair.check.check_cgroup import cgroup_findings, hierarchy_findings, iocost_findings
from mqfair.check.check_device import device_findings, kernel_findings
from mqfair.check.check_follow import config_findings, weight_findings
from mqfair.check.finding import Finding, Severity
from mqfair.check.other_programs import rival_findings
from mqfair.machine.blockdev import Disk, find_device, lowest
from mqfair.machine.cgroup import Cgroup, root_cgroup
from mqfair.machine.fs import Fs
from mqfair.machine.group_name import CGROUP_HELP, find_cgroup
from mqfair.text.errors import UsageError
from mqfair.text.output import add_json_argument, paint, print_json, visible

EPILOG = """\
Each problem is printed with the file that shows it and a hint. Without CGROUP, all cgroups are
listed in which io.weight and the weight in force differ.

exit status:
  0 in force, 1 not in force, 2 bad input

example:
  mqfair check nvme0n1 prod/db
"""

COLOURS = {
    Severity.OK: "green",
    Severity.NOTE: "cyan",
    Severity.WARN: "yellow",
    Severity.PROBLEM: "red",
}


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "device", metavar="DEVICE", help="nvme0n1, /dev/nvme0n1, MAJ:MIN or a mount point"
    )
    parser.add_argument("cgroup", nargs="?", metavar="CGROUP", help=CGROUP_HELP)
    add_json_argument(parser)


def _findings(disk: Disk, group: Cgroup | None) -> Iterator[Finding]:
    yield from kernel_findings(disk.fs)
    yield from device_findings(disk)
    yield from hierarchy_findings(disk.fs)
    lows = lowest(disk)
    for low in lows:
        yield from iocost_findings(disk.fs, low)
        yield from rival_findings(low)
        yield from config_findings(low)
    for low in lows:
        if group is not None:
            yield from cgroup_findings(group, low)
        groups = iter([group]) if group is not None else root_cgroup(disk.fs).walk()
        yield from weight_findings(groups, low)


def _unique(findings: Iterator[Finding]) -> list[Finding]:
    """Removes duplicates: a cgroup on several disks has some findings once for each disk."""
    return list(dict.fromkeys(findings))


def _print_text(subject: str, findings: Sequence[Finding], problems: int) -> None:
    width = max(len(finding.topic) for finding in findings)
    for finding in findings:
        word = paint(f"{finding.severity.value:<8}", COLOURS[finding.severity])
        print(f"{word} {finding.topic:<{width}}  {visible(finding.seen)}")
        if finding.severity is not Severity.OK:
            indent = " " * (width + 11)
            print(paint(f"{indent}in {visible(finding.where)}", "dim"))
            if finding.hint:
                print(f"{indent}-> {visible(finding.hint)}")
    print()
    if problems:
        plural = "s" if problems > 1 else ""
        print(paint(f"{subject}: not in force, {problems} problem{plural}", "red"))
    else:
        print(paint(f"{subject}: in force", "green"))


def main(args: argparse.Namespace) -> int:
    fs = Fs()
    disk = find_device(fs, args.device)
    group = find_cgroup(fs, args.cgroup) if args.cgroup is not None else None
    if group is not None and not group.path:
        raise UsageError("the root cgroup has no weight: name a cgroup below it")
    findings = _unique(_findings(disk, group))
    problems = sum(finding.severity is Severity.PROBLEM for finding in findings)
    if args.json:
        print_json(
            {
                "schema": "mqfair.check/1",
                "device": disk.name,
                "cgroup": group.name if group else None,
                "in_force": problems == 0,
                "findings": [finding.as_dict() for finding in findings],
            }
        )
    else:
        subject = (
            f"weight of {visible(group.name)} on {disk.name}"
            if group
            else f"weights on {disk.name}"
        )
        _print_text(subject, findings, problems)
    return 1 if problems else 0
