# SPDX-License-Identifier: GPL-2.0
"""Reads the results that blktests' `check` leaves, and compares those of two schedulers.

`check` writes one file for each test and each place where the test ran:

    <output>/nodev/block/001                    a test that makes its own disks
    <output>/nvme0n1/block/005                  a test of a disk in TEST_DEVS
    <output>/nodev_tr_loop_bd_file/nvme/004     a test that is repeated with several settings

A line of the file is a key, a tab and a value. The guest's Python and the host's import this file.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PASSED, FAILED, NOT_RUN, HUNG = "pass", "fail", "not run", "hung"
# The place of the kernel's complaints, which concern no disk in particular.
KERNEL_LOG = "kernel log"
QUIET = "quiet"
# The place of the disk that the runner gives to the tests.
GIVEN_DISK = "disk"
_OUTPUT_LINES = 40
_WRITTEN = (".out.bad", ".dmesg")


@dataclasses.dataclass(frozen=True, order=True)
class Key:
    """A test, such as "block/005", and the place where it ran, such as "nvme0n1"."""

    test: str
    place: str

    def __str__(self) -> str:
        return f"{self.test} {self.place}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """@status is one of the constants above, or for KERNEL_LOG the complaints. @reason says how the
    test failed (output, exit, dmesg), or why it did not run. @detail is its output."""

    status: str
    reason: str = ""
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.status} ({self.reason})" if self.reason else self.status

    @property
    def compared(self) -> str:
        """The words that are equal for both schedulers, unless they differ."""
        return str(self) if self.status == FAILED else self.status


Outcomes = dict[Key, Outcome]


def collect(folder: Path, test: str, printed: str, hung_after_s: float | None = None) -> Outcomes:
    """The outcomes of @test in @folder. @printed is the output of `check`, which alone says why a
    test did not run. @hung_after_s are the seconds after which it was ended, or None."""
    found = {
        Key(test, file.relative_to(folder).parts[0]): _outcome(file, printed)
        for file in sorted(folder.glob(f"*/{test}"))
    }
    if hung_after_s is not None:
        # A file at this time belongs to an earlier setting, or to an earlier run.
        place = _last_place(folder, test) or "nodev"
        reason = f"not done after {hung_after_s:g} s"
        return {**found, Key(test, place): Outcome(HUNG, reason, _tail(printed))}
    if not found:
        return {Key(test, "nodev"): Outcome(NOT_RUN, _why_not(printed))}
    return found


def _last_place(folder: Path, test: str) -> str:
    """The place of the newest output of @test, which `check` writes while the test runs."""
    outputs = sorted(folder.glob(f"*/{test}.out"), key=lambda file: file.stat().st_mtime)
    return outputs[-1].relative_to(folder).parts[0] if outputs else ""


def _outcome(file: Path, printed: str) -> Outcome:
    fields = dict(line.split("\t", 1) for line in file.read_text().splitlines() if "\t" in line)
    status = fields.get("status", "no status")
    if status == NOT_RUN:
        return Outcome(status, _why_not(printed))
    detail = ""
    if status == FAILED:
        texts = (file.with_name(file.name + end) for end in _WRITTEN)
        detail = "\n".join(
            _tail(text.read_text(errors="replace")) for text in texts if text.exists()
        )
    return Outcome(status, fields.get("reason", ""), detail)


def _why_not(printed: str) -> str:
    """The first reason below a line that ends with [not run]."""
    match = re.search(r"\[not run\]\n(?:    \w.* \.\.\. .*\n)*(?:    (.+))?", printed)
    if match:
        return (match.group(1) or "").strip()
    lines = printed.strip().splitlines()
    return f"no outcome: {lines[-1]}" if lines else "no disk for it"


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-_OUTPUT_LINES:])


@dataclasses.dataclass(frozen=True)
class Difference:
    """Different outcomes of one test at one place."""

    key: Key
    reference: Outcome
    ours: Outcome

    def __str__(self) -> str:
        return f"{self.key}: {self.reference}, and with the scheduler: {self.ours}"


def differences(reference: Mapping[Key, Outcome], ours: Mapping[Key, Outcome]) -> list[Difference]:
    """The differences of all tests that both have run."""
    both = {key.test for key in reference} & {key.test for key in ours}
    found = []
    for key in sorted({*reference, *ours}):
        absent = Outcome(QUIET if key.place == KERNEL_LOG else NOT_RUN)
        one, other = reference.get(key, absent), ours.get(key, absent)
        if key.test in both and one.compared != other.compared:
            found.append(Difference(key, one, other))
    return found


@dataclasses.dataclass(frozen=True)
class Expected:
    """An expected difference, with its reason. @place and @test may contain * for any text. Without
    @kernels or @schedulers it is expected for all. With @sometimes it need not happen."""

    test: str
    place: str
    reference: str
    ours: str
    reason: str
    kernels: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()
    sometimes: bool = False

    def concerns(self, kernel: str, scheduler: str) -> bool:
        return kernel in (self.kernels or (kernel,)) and scheduler in (
            self.schedulers or (scheduler,)
        )

    def explains(self, difference: Difference) -> bool:
        return (
            fnmatch.fnmatchcase(difference.key.test, self.test)
            and fnmatch.fnmatchcase(difference.key.place, self.place)
            and fnmatch.fnmatchcase(difference.reference.status, self.reference)
            and fnmatch.fnmatchcase(difference.ours.status, self.ours)
        )


def read_expected(file: Path) -> list[Expected]:
    """The tables [[difference]] of @file. Raises ValueError, which names the table."""
    tables = tomllib.loads(file.read_text()).get("difference", [])
    found = []
    for number, table in enumerate(tables, 1):
        words = {
            key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
        }
        try:
            found.append(Expected(**words))
        except TypeError as error:
            raise ValueError(f"{file}: difference {number}: {error}: correct its keys") from error
    return found


@dataclasses.dataclass(frozen=True)
class Judgement:
    """@explained are pairs of a difference and its reason. @missing are expected, but did not
    happen although their tests ran."""

    explained: Sequence[tuple[Difference, str]]
    unexplained: Sequence[Difference]
    missing: Sequence[Expected]


def judge(
    found: Sequence[Difference], expected: Iterable[Expected], tests: Iterable[str]
) -> Judgement:
    """Judges the differences of one scheduler on one kernel, after @tests ran. @expected are those
    that concern this kernel and scheduler."""
    known = list(expected)
    explained, unexplained = [], []
    happened: set[Expected] = set()
    for difference in found:
        reasons = [one for one in known if one.explains(difference)]
        happened.update(reasons)
        if reasons:
            explained.append((difference, reasons[0].reason))
        else:
            unexplained.append(difference)
    ran = set(tests)
    missing = [
        one
        for one in known
        if one not in happened and not one.sometimes and fnmatch.filter(ran, one.test)
    ]
    return Judgement(explained, unexplained, missing)


def counts(outcomes: Mapping[Key, Outcome]) -> dict[str, dict[str, int]]:
    """For each group the number of outcomes by status."""
    found: dict[str, dict[str, int]] = {}
    for key, outcome in outcomes.items():
        if key.place != KERNEL_LOG:
            of_group = found.setdefault(key.test.partition("/")[0], {})
            of_group[outcome.status] = of_group.get(outcome.status, 0) + 1
    return found
