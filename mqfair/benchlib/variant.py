# SPDX-License-Identifier: GPL-2.0
"""Labels of schedulers in a comparison: NAME or NAME:TUNABLE=VALUE[:TUNABLE=VALUE...].

The whole label identifies the results, so that one scheduler can be in a table several times, as in
none,kyber-fair,kyber-fair:work_conserving=0.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from mqfair import schedulers
from mqfair.errors import UsageError

NONE = "none"
IOCOST = "iocost"
BFQ = "bfq"
MQFQ = "mqfq"
# The examples run only when they are named.
DEFAULT_OURS = schedulers.SCHEDULERS
OURS = (*schedulers.SCHEDULERS, *schedulers.EXAMPLES)
SCHEDULERS = (NONE, "kyber", BFQ, "mq-deadline", IOCOST, *OURS)
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
    if name not in SCHEDULERS:
        raise UsageError(
            f"--schedulers: unknown scheduler '{name}': use {', '.join(SCHEDULERS)},"
            " or NAME:TUNABLE=VALUE"
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


def merged_tunables(label: str, common: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The tunables for @label: those of its scheduler in @common, overridden by its own."""
    return {**common.get(scheduler_of(label), {}), **tunables_of(label)}


def schedulers_in(module: Path) -> tuple[str, ...]:
    """Our schedulers in a built module, by the aliases under which the kernel finds it."""
    found = {match.decode() for match in _ALIAS.findall(module.read_bytes())}
    return tuple(name for name in OURS if name in found)
