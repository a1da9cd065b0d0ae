# SPDX-License-Identifier: GPL-2.0
"""Findings about io.weight and /etc/mqfair.conf: weights and schedulers that did not arrive."""

from collections.abc import Iterator

from mqfair.check.finding import Finding, warn
from mqfair.follow import config, unit_files
from mqfair.follow.carried_weights import disagreement
from mqfair.machine.blockdev import Disk
from mqfair.machine.cgroup import WEIGHT_FILE, Cgroup
from mqfair.text.errors import UsageError
from mqfair.text.output import quoted
from mqfair.tune import chosen_by_hand

ALL = "mqfair follow --once, or systemctl enable --now mqfair, for all cgroups"


def config_findings(disk: Disk) -> Iterator[Finding]:
    """A configuration with a mistake, and a rule for @disk that is not in force."""
    fs = disk.fs
    try:
        rules = config.load(fs)
    except UsageError as error:
        yield warn("configuration", str(error), config.PATH, "mqfair follow --check")
        return
    rule = rules.device_rule(fs, disk) if rules else None
    selector = disk.selector()
    if rule is None or selector is None or selector.active == rule.scheduler:
        return
    chosen = chosen_by_hand.chosen(disk)
    cause = f", because {chosen} was chosen by hand" if chosen == selector.active else ""
    yield warn(
        "configuration",
        f"the rule asks for {rule.scheduler}, and {selector.active} is active{cause}",
        rule.place,
        f"mqfair enable {disk.name} --scheduler {rule.scheduler}, or remove the rule",
    )


def _ruled(disk: Disk) -> config.Rules:
    """The weights of the rules; none if the configuration has a mistake."""
    try:
        rules = config.load(disk.fs)
    except UsageError:
        rules = None
    return config.Rules(disk.fs, rules or config.Config())


def weight_findings(groups: Iterator[Cgroup], disk: Disk) -> Iterator[Finding]:
    """The cgroups with an io.weight that differs from the weight in force, unless a rule gives
    them theirs."""
    rules = _ruled(disk)
    units = unit_files.UnitFiles(disk.fs)
    units.read()
    for group in groups:
        found = disagreement(group, disk.number, units)
        if found is None:
            continue
        weight, used, source = found
        ruled = rules(group.path)
        if used == ruled.get(disk.number or "", ruled.get("default")):
            continue
        yield warn(
            source,
            f"{group.name}: {source} says {weight}, mqfair uses {used} on {disk.name}",
            group.file(WEIGHT_FILE),
            f"{_mend(group, disk, weight, source)}; {ALL}",
        )


def _mend(group: Cgroup, disk: Disk, weight: int, source: str) -> str:
    """The command that sets the weight: for the device alone if it has a weight of its own."""
    if source == unit_files.SOURCE:
        unit = group.path.rpartition("/")[2]
        return (
            "the kernel refuses it in io.weight while iocost is off:"
            f" mqfair weight {quoted(group.name)} {disk.name} {weight}, or in {config.PATH}"
            f" the lines [[weight]], unit = '{unit}', weight = {weight}, device = '{disk.name}'"
        )
    weights = group.weights()
    own = weights is not None and disk.number in weights.devices
    on = f" {disk.name}" if own else ""
    return f"mqfair weight {quoted(group.name)}{on} {weight}"
