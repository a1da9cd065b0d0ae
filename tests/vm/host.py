# SPDX-License-Identifier: GPL-2.0
"""Finds guest tests, boots one guest for files that ask for an equal one, collects verdicts.

A guest that dies or stops answering fails the test that ran in it; the tests after that one run
in a fresh guest.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import lab
from lab import kernel, module

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import standins  # noqa: E402
from guestlib import DEFAULT_TIME_LIMIT_S, FIO_LIBRARIES, Guest  # noqa: E402

# Loading a test file in an emulated guest, killing what a test left.
_AROUND_A_TEST_S = 45.0
_BOOT_S = 600.0
# With so many tests a guest is worth its boot; those of the next file may run beside it.
_ENOUGH_TESTS = 12


@dataclasses.dataclass(frozen=True)
class Verdict:
    name: str
    result: str
    reason: str = ""
    output: str = ""
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Test:
    """@argument is what the agent is told; @name what people read; the limit is of one try."""

    name: str
    argument: str
    time_limit_s: float
    tries: int


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    guest: Guest
    tests: tuple[Test, ...]


Report = Callable[[Verdict], None]


@functools.cache
def schedulers() -> list[str]:
    """What the module has, by the names under which the kernel asks for it."""
    aliases = kernel.module_aliases(module.build(kernel.ensure()))
    return [alias.removesuffix("-iosched") for alias in aliases if alias.endswith("-iosched")]


def discover(folder: Path = HERE, only: str = "", slow: bool = False) -> list[Group]:
    """The tests in @folder whose name matches @only, the slow ones or the others, by guest."""
    found: dict[Guest, list[Group]] = {}
    for path in sorted(folder.glob("test_*.py")):
        file = _load(path)
        tests = tuple(test for test in _tests(path, file, slow) if re.search(only, test.name))
        if tests:
            group = Group(path.stem.removeprefix("test_"), file.guest, tests)
            _join(found.setdefault(file.guest, []), group)
    return [group for groups in found.values() for group in groups]


def _join(groups: list[Group], group: Group) -> None:
    """@group in the last guest of @groups, or in a new one when that has enough to do."""
    if groups and len(groups[-1].tests) < _ENOUGH_TESTS:
        last = groups.pop()
        group = Group(f"{last.name}+{group.name}", group.guest, last.tests + group.tests)
    groups.append(group)


def _load(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    try:
        file = importlib.import_module(path.stem)
    finally:
        sys.path.remove(str(path.parent))
    if not isinstance(getattr(file, "guest", None), Guest):
        raise TypeError(f"{path}: names no guest; write guest = Guest(...)")
    return file


def _tests(path: Path, file: ModuleType, slow: bool) -> Iterable[Test]:
    for name, function in vars(file).items():
        if not name.startswith("test_") or not callable(function):
            continue
        limit = float(getattr(function, "time_limit_s", DEFAULT_TIME_LIMIT_S))
        tries = int(getattr(function, "tries", 1))
        label = f"{path.stem.removeprefix('test_')}.{name.removeprefix('test_')}"
        for case, told, number in _cases_of(function):
            if _is_slow(function, case) == slow:
                yield Test(f"{label}{told}", f"{path}:{name}{number}", limit, tries)


def _is_slow(function: Callable[..., None], case: object) -> bool:
    return getattr(function, "slow", False) or case in getattr(function, "slow_cases", ())


def _cases_of(function: Callable[..., None]) -> Iterable[tuple[object, str, str]]:
    """Each case, what people read of it, and what the agent is told."""
    if getattr(function, "of_each_scheduler", False):
        for scheduler in schedulers():
            yield scheduler, f"[{scheduler}]", f":={scheduler}"
    elif not hasattr(function, "cases"):
        yield None, "", ""
    else:
        for number, case in enumerate(function.cases):
            text = ",".join(map(str, case)) if isinstance(case, tuple) else str(case)
            yield case, f"[{text}]", f":{number}"


def run_group(group: Group, report: Report) -> None:
    """Run all tests of @group, each reported once, in as many guests as it takes."""
    try:
        spec = _spec(group)
    except lab.LabError as error:
        for test in group.tests:
            report(Verdict(test.name, "failed", str(error).splitlines()[0], str(error)))
        return
    left = list(group.tests)
    while left:
        boot = _Boot(f"{group.name}.boot", left, report)
        boot.run(spec)
        left = boot.not_run()


def _spec(group: Group) -> lab.GuestSpec:
    guest = group.guest
    tree = kernel.ensure()
    modules = (module.build(tree, guest.defines),) if guest.needs_module else ()
    limits = [test.time_limit_s for test in group.tests for _ in range(test.tries)]
    return lab.GuestSpec(
        cpus=guest.cpus,
        sockets=guest.sockets,
        threads=guest.threads,
        memory_mb=guest.memory_mb,
        drives=tuple(lab.parse_drive(text) for text in guest.nvme),
        icount=guest.icount,
        append=guest.append,
        modules=modules,
        timeout_s=_BOOT_S + sum(limits) + _AROUND_A_TEST_S * len(limits),
        silence_s=max(limits) + _AROUND_A_TEST_S,
    )


class _Boot:
    """One guest: what its agent said of which test."""

    def __init__(self, name: str, tests: Sequence[Test], report: Report) -> None:
        self._name = name
        self._tests = {test.argument: test for test in tests}
        self._report = report
        self._line = b""
        self._strange: list[str] = []
        self._running: Test | None = None
        self._booted = False

    def run(self, spec: lab.GuestSpec) -> None:
        argv = ["/usr/bin/python3", "-s", "-E", str(HERE / "agent.py"), *self._tests]
        libraries = standins.folder()
        env = {FIO_LIBRARIES: str(libraries)} if libraries else None
        result = lab.run(spec, argv, env=env, sink=self._received)
        why = result.trouble() or f"its agent ended with exit status {result.status}"
        first, _, rest = why.partition("\n")
        output = "\n".join([rest, *self._strange])
        if self._running is not None:
            self._report(Verdict(self._running.name, "failed", first, output, result.wall_s))
            del self._tests[self._running.argument]
        elif not self._booted:
            # The next guest would do no better.
            for test in self._tests.values():
                self._report(Verdict(test.name, "failed", f"no test began: {first}", output))
                output = ""
            self._tests.clear()
        elif self._tests and not result.status and not result.timed_out:
            raise AssertionError(f"{self._name}: the agent passed over {list(self._tests)}")
        elif result.trouble():
            self._report(Verdict(f"{self._name}.end", "failed", first, output))

    def not_run(self) -> list[Test]:
        return list(self._tests.values())

    def _received(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._strange.append(data.decode(errors="replace"))
            return
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._record(json.loads(line))

    def _record(self, record: dict[str, object]) -> None:
        if "boot" in record:
            self._booted = True
            self._report_boot(record["boot"])
        elif "start" in record:
            self._running = self._tests[str(record["start"])]
        else:
            test = self._tests.pop(str(record.pop("test")))
            self._running = None
            self._report(Verdict(name=test.name, **record))  # type: ignore[arg-type]

    def _report_boot(self, complaints: object) -> None:
        lines = [str(line) for line in complaints] if isinstance(complaints, list) else []
        if lines:
            reason = f"the kernel complained: {lines[0]}"
            self._report(Verdict(self._name, "failed", reason, "\n".join(lines)))
        else:
            self._report(Verdict(self._name, "passed"))
