# SPDX-License-Identifier: GPL-2.0
"""One finding of `mqfair check`."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Only a problem keeps a weight out of force."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """@seen is the fact, @where the file that shows it, @hint the advice for the user."""

    severity: Severity
    topic: str
    seen: str
    where: str
    hint: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        return {
            "severity": self.severity.value,
            "topic": self.topic,
            "seen": self.seen,
            "where": self.where,
            "mend": self.hint,
        }


def ok(topic: str, seen: str, where: str) -> Finding:
    return Finding(Severity.OK, topic, seen, where)


def note(topic: str, seen: str, where: str, hint: str | None = None) -> Finding:
    return Finding(Severity.NOTE, topic, seen, where, hint)


def warn(topic: str, seen: str, where: str, hint: str | None = None) -> Finding:
    return Finding(Severity.WARN, topic, seen, where, hint)


def problem(topic: str, seen: str, where: str, hint: str) -> Finding:
    return Finding(Severity.PROBLEM, topic, seen, where, hint)
