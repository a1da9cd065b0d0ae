# SPDX-License-Identifier: GPL-2.0
"""Labels of schedulers in a comparison: NAME or NAME:TUNABLE=VALUE[:TUNABLE=VALUE...].

The whole label identifies the results, so that one scheduler can be in a table several times, as in
none,kyber-fair,kyber-fair:work_conserving=0.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mqfair import schedulers
from mqfair.text.errors import UsageError

NONE = "none"
IOCOST = "iocost"
BFQ = "bfq"
MQFQ = "mqfq"
# The examples run only when they are named.
DEFAULT_OURS = schedulers.SCHEDULERS
OURS = (*schedulers.SCHEDULERS, *schedulers.EXAMPLES)
# The scheduler none with limits in io.max, or its model in the simulator.
THROTTLE = "throttle"
# Schedulers of the kernel without weights, which run in a guest, too.
KYBER = "kyber"
DEADLINE = "mq-deadline"
# Schedulers of the literature that only the simulator has.
COMPARATORS = ("flashfq", "bwf2q", "cfq", "mfap", "stf", "iolatency")
# mqfq with one lock around all dispatches, of its paper. Only a model of CPUs shows a lock.
SERIAL = "mqfq-serial"
SCHEDULERS = (NONE, KYBER, BFQ, DEADLINE, IOCOST, THROTTLE, *OURS)
# none has no tunables, and iocost is configured by a model of the drive.
WITHOUT_TUNABLES = (NONE, IOCOST)

_FILE = re.compile(r"\w+")
_ALIAS = re.compile(rb"alias=([\w-]+)-iosched\0")


def scheduler_of(label: str) -> str:
    """The scheduler's name in @label."""
    return label.partition(":")[0]


def tunables_of(label: str) -> dict[str, str]:
    """The tunables in @label, which parse_variant() has checked."""
    words = label.split(":")[1:]
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def is_ours(label: str) -> bool:
    return scheduler_of(label) in OURS


def parse_variants(text: str) -> tuple[str, ...]:
    """The labels in @text, A,B,...; raises UsageError, which names the wrong label."""
    labels = tuple(parse_variant(word) for word in text.split(","))
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"--schedulers: {label} is given twice: give it once")
    return labels


def parse_variant(text: str) -> str:
    label = text.strip()
    name, *words = label.split(":")
    if name == SERIAL:
        raise UsageError(
            f"--schedulers: {name} sends requests in the order of {MQFQ}: use that, and for the"
            " cost of its lock python3 -m experiments.machine"
        )
    if name not in (*SCHEDULERS, *COMPARATORS):
        if set(name.split()) <= {*SCHEDULERS, *COMPARATORS} and name:
            raise UsageError(f"--schedulers '{name}': write {','.join(name.split())}")
        raise UsageError(
            f"--schedulers: unknown scheduler '{name}': use {', '.join(SCHEDULERS)}, in the"
            f" simulator also {', '.join(COMPARATORS)}, or NAME:TUNABLE=VALUE"
        )
    if words and name in WITHOUT_TUNABLES:
        raise UsageError(f"--schedulers: {label}: {name} has no tunables: write {name}")
    files = [_file(word, label) for word in words]
    for file in files:
        if files.count(file) > 1:
            raise UsageError(f"--schedulers: {label}: {file} is given twice: give it once")
    return label


def _file(word: str, label: str) -> str:
    file, _, value = word.partition("=")
    if not _FILE.fullmatch(file) or not value:
        raise UsageError(
            f"--schedulers: {label}: '{word}' is not TUNABLE=VALUE, such as"
            " kyber-fair:work_conserving=0"
        )
    return file


def sweep(word: str, labels: Sequence[str]) -> tuple[str, ...]:
    """@labels, each of the scheduler in @word replaced by one for each of its values. @word is
    [SCHEDULER.]NAME=VALUE,VALUE...; without a scheduler it is for all that have tunables. Raises
    UsageError."""
    path, _, text = word.partition("=")
    scheduler, dot, name = path.rpartition(".")
    values = text.split(",")
    if not _FILE.fullmatch(name) or not all(values) or (dot and not scheduler):
        raise UsageError(
            f"--sweep {word}: write NAME=VALUE,VALUE or SCHEDULER.NAME=VALUE,VALUE, such as"
            " mqfq.depth=8,16,32"
        )
    if len(set(values)) < len(values):
        raise UsageError(f"--sweep {word}: a value is given twice: give it once")
    found: list[str] = []
    for label in labels:
        if scheduler_of(label) in WITHOUT_TUNABLES or scheduler not in ("", scheduler_of(label)):
            found.append(label)
            continue
        if name in tunables_of(label):
            raise UsageError(f"--sweep {word}: {label} has a value of {name}: give it once")
        found += [f"{label}:{name}={value}" for value in values]
    if tuple(found) == tuple(labels):
        raise UsageError(
            f"--sweep {word}: no scheduler of {','.join(labels)} has it: add one to --schedulers"
        )
    return tuple(found)


def merged_tunables(label: str, common: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The tunables for @label: those of its scheduler in @common, overridden by its own."""
    return {**common.get(scheduler_of(label), {}), **tunables_of(label)}


def schedulers_in(module: Path) -> tuple[str, ...]:
    """Our schedulers in a built module, by the aliases under which the kernel finds it."""
    found = {match.decode() for match in _ALIAS.findall(module.read_bytes())}
    return tuple(name for name in OURS if name in found)
