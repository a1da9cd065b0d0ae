# SPDX-License-Identifier: GPL-2.0
"""Finds guest tests, boots one guest for all files that need an equal one, and collects results.

If a guest dies or stops answering, the running test has failed, and the tests after it run in a new
guest.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import lab
from lab import kernel, module
from lab.tree import KernelTree
from mqfair.bench.simulated import program
from mqfair.text.errors import Failure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import consoles  # noqa: E402
import standins  # noqa: E402
from guestlib import (  # noqa: E402
    COUNTED,
    DEBUG_PATIENCE,
    DEFAULT_TIME_LIMIT_S,
    FIO_LIBRARIES,
    PYTHON,
    Guest,
)

# The time to load a test file in an emulated guest, and to kill the processes that a test left.
_AROUND_A_TEST_S = 45.0
_BOOT_S = 600.0
# The checks of the debug kernel need memory beside each object.
_DEBUG_MEMORY_MB = 3072
# A guest with this many tests is worth its boot of 11 s; the next file may get another guest
# beside it.
_ENOUGH_TESTS = 30


SECOND_TRY = "try 2"


def _second_try(first: str) -> str:
    return f"{SECOND_TRY}; at try 1 the {first}"


@dataclasses.dataclass(frozen=True)
class TestResult:
    name: str
    result: str
    reason: str = ""
    output: str = ""
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class Test:
    """@argument is for the agent, @name for reports."""

    name: str
    argument: str
    time_limit_s: float


@dataclasses.dataclass(frozen=True)
class Group:
    """Tests of one guest. @kernel_name is a name of lab.kernel."""

    name: str
    guest: Guest
    tests: tuple[Test, ...]
    kernel_name: str


Report = Callable[[TestResult], None]


@functools.cache
def schedulers(kernel_name: str) -> list[str]:
    """The names of the module's schedulers, by its aliases."""
    aliases = kernel.module_aliases(_module(kernel.ensure(kernel_name)))
    return [alias.removesuffix("-iosched") for alias in aliases if alias.endswith("-iosched")]


def discover(
    folder: Path = HERE,
    only: str = "",
    slow: bool = False,
    kernel_name: str = lab.DEFAULT_KERNEL,
    every_kernel: bool = False,
) -> list[Group]:
    """The tests in @folder that match @only, by guest: the slow ones, or the others. Of those for
    @every_kernel, @slow means all."""
    kernel.ensure(kernel_name)
    found: dict[Guest, list[Group]] = {}
    for path in sorted(folder.glob("test_*.py")):
        file = _load(path)
        tests = tuple(
            dataclasses.replace(test, name=test.name + _on(kernel_name))
            for test in _tests(path, file, kernel_name, slow, every_kernel)
            if re.search(only, test.name)
        )
        if tests:
            group = Group(path.stem.removeprefix("test_"), file.guest, tests, kernel_name)
            _join(found.setdefault(file.guest, []), group)
    return [group for groups in found.values() for group in _without_a_small_rest(groups)]


def _on(kernel_name: str) -> str:
    """The end of the name of a test that runs on another kernel than the distribution's."""
    return "" if kernel_name == lab.DEFAULT_KERNEL else f" on {kernel_name}"


def _join(groups: list[Group], group: Group) -> None:
    """Adds @group to the last one of @groups, or as a new one if the last one has enough tests."""
    if groups and len(groups[-1].tests) < _ENOUGH_TESTS:
        group = _in_one(groups.pop(), group)
    groups.append(group)


def _in_one(group: Group, next_one: Group) -> Group:
    name = f"{group.name}+{next_one.name}"
    return dataclasses.replace(group, name=name, tests=group.tests + next_one.tests)


def _without_a_small_rest(groups: list[Group]) -> list[Group]:
    """@groups of equal guests; the tests of the last files are not worth a boot of their own."""
    if len(groups) > 1 and len(groups[-1].tests) < _ENOUGH_TESTS:
        *first, last, rest = groups
        return [*first, _in_one(last, rest)]
    return groups


def _load(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    try:
        file = importlib.import_module(path.stem)
    finally:
        sys.path.remove(str(path.parent))
    if not isinstance(getattr(file, "guest", None), Guest):
        raise TypeError(f"{path}: names no guest: write guest = Guest(...)")
    return file


def _tests(
    path: Path, file: ModuleType, kernel_name: str, slow: bool, every_kernel: bool
) -> Iterable[Test]:
    for name, function in vars(file).items():
        if not name.startswith("test_") or not callable(function):
            continue
        if every_kernel and not getattr(function, "every_kernel", False):
            continue
        if getattr(function, "only_on", kernel_name) != kernel_name:
            continue
        limit = float(getattr(function, "time_limit_s", DEFAULT_TIME_LIMIT_S))
        limit *= DEBUG_PATIENCE if kernel_name in (lab.UML_DEBUG, lab.KCSAN) else 1
        label = f"{path.stem.removeprefix('test_')}.{name.removeprefix('test_')}"
        for case, suffix, number in _cases_of(function, kernel_name):
            if (every_kernel and slow) or _is_slow(function, case) == slow:
                yield Test(f"{label}{suffix}", f"{path}:{name}{number}", limit)


def _is_slow(function: Callable[..., None], case: object) -> bool:
    return getattr(function, "slow", False) or case in getattr(function, "slow_cases", ())


def _cases_of(function: Callable[..., None], kernel_name: str) -> Iterable[tuple[object, str, str]]:
    """For each case: the case, its suffix for the test's name, and its suffix for the argument."""
    if getattr(function, "of_each_scheduler", False):
        for scheduler in schedulers(kernel_name):
            yield scheduler, f"[{scheduler}]", f":={scheduler}"
    elif not hasattr(function, "cases"):
        yield None, "", ""
    else:
        for number, case in enumerate(function.cases):
            text = ",".join(map(str, case)) if isinstance(case, tuple) else str(case)
            yield case, f"[{text}]", f":{number}"


def run_group(group: Group, report: Report) -> None:
    """Runs all tests of @group in as many guests as necessary, and reports each test once."""
    if _is_user_mode(group) and group.guest.icount:
        for test in group.tests:
            report(TestResult(test.name, "skipped", "user-mode Linux has no counted time"))
        return
    try:
        spec = _spec(group)
    except (lab.LabError, Failure) as error:
        for test in group.tests:
            report(TestResult(test.name, "failed", str(error).splitlines()[0], str(error)))
        return
    left = list(group.tests)
    stood_still: dict[str, str] = {}
    while left:
        boot = _Boot(f"{group.name}.boot{_on(group.kernel_name)}", left, report, stood_still)
        boot.run(spec)
        left = boot.not_run()


def _is_user_mode(group: Group) -> bool:
    return group.kernel_name in (lab.UML, lab.UML_DEBUG)


@functools.cache
def _module(tree: KernelTree, defines: tuple[str, ...] = ()) -> Path:
    """The built module. Its sources do not change during a run, and a look at them takes 5 s."""
    return module.build(tree, defines)


@functools.cache
def _compile_python() -> None:
    """Compiles the Python of the checkout. An emulated processor takes ten seconds and more for the
    files of one verb, and a guest cannot keep what it has compiled for the next."""
    folders = [str(HERE.parents[1] / name) for name in ("mqfair", "lab", "tests/vm")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *folders], check=False)


def _spec(group: Group) -> lab.GuestSpec:
    _compile_python()
    guest = group.guest
    if _is_user_mode(group):
        # It has plain processors, and no NVMe drive.
        guest = dataclasses.replace(guest, sockets=1, threads=1, nvme=())
    if group.kernel_name == lab.UML_DEBUG:
        guest = dataclasses.replace(guest, memory_mb=max(guest.memory_mb, _DEBUG_MEMORY_MB))
    tree = kernel.ensure(group.kernel_name)
    modules = (_module(tree, guest.defines),) if guest.needs_module else ()
    if guest.needs_simulator:
        program.ensure()
    limits = [test.time_limit_s for test in group.tests]
    return lab.GuestSpec(
        cpus=guest.cpus,
        sockets=guest.sockets,
        threads=guest.threads,
        memory_mb=guest.memory_mb,
        drives=tuple(lab.parse_drive(text) for text in guest.nvme),
        icount=guest.icount,
        append=guest.append,
        kernel=group.kernel_name,
        modules=modules,
        timeout_s=_BOOT_S + sum(limits) + _AROUND_A_TEST_S * len(limits),
        silence_s=max(limits) + _AROUND_A_TEST_S,
    )


class _Boot:
    """One guest, and the records of its agent.

    @stood_still has the name of each test during which the emulator lost a CPU, and how that guest
    ended. All guests of a group share it. Such a test is in not_run() again, once.
    """

    def __init__(
        self, name: str, tests: Sequence[Test], report: Report, stood_still: dict[str, str]
    ) -> None:
        self._name = name
        self._stood_still = stood_still
        self._tests = {test.argument: test for test in tests}
        self._report_on = report
        self._failed = False
        self._console = consoles.path_of(name)
        self._line = b""
        self._strange: list[str] = []
        self._running: Test | None = None
        self._booted = False
        self._first_boot = ""

    def _report(self, result: TestResult) -> None:
        if first := self._stood_still.get(result.name):
            reasons = (result.reason, _second_try(first))
            result = dataclasses.replace(result, reason="; ".join(filter(None, reasons)))
        if result.result == "failed":
            self._failed = True
            output = f"{result.output}\nthe whole console of the guest: {self._console}"
            result = dataclasses.replace(result, output=output)
        self._report_on(result)

    def run(self, spec: lab.GuestSpec) -> None:
        argv = ["/usr/bin/python3", "-s", "-E", str(HERE / "agent.py"), *self._tests]
        libraries = standins.folder()
        env = {PYTHON: sys.executable}
        if libraries:
            env[FIO_LIBRARIES] = str(libraries)
        if spec.icount:
            env[COUNTED] = "1"
        result = lab.run(spec, argv, env=env, sink=self._received)
        if result.stood_still_in_boot:
            # One boot of some thousands does. No code of the module has run in it.
            first_console = consoles.path_of(self._name)
            consoles.keep(first_console, result)
            self._first_boot = f"{result.trouble()}\nits whole console: {first_console}"
            result = lab.run(spec, argv, env=env, sink=self._received)
        why = result.trouble() or f"its agent ended with exit status {result.status}"
        first, _, rest = why.partition("\n")
        if self._failed or self._running is not None or result.trouble():
            consoles.keep(self._console, result)
        output = "\n".join([rest, *self._strange])
        running = self._running
        if running is not None:
            if running.name not in self._stood_still and result.emulator_lost_a_cpu:
                said = f"{result.how_it_stood_still}; its whole console: {self._console}"
                self._stood_still[running.name] = said
            else:
                self._report(TestResult(running.name, "failed", first, output, result.wall_s))
                del self._tests[running.argument]
        elif not self._booted:
            # No test began, and the next guest would fail in the same way.
            for test in self._tests.values():
                self._report(TestResult(test.name, "failed", f"no test began: {first}", output))
                output = ""
            self._tests.clear()
        elif self._tests and not result.status and not result.timed_out:
            raise AssertionError(f"{self._name}: the agent passed over {list(self._tests)}")
        elif result.trouble():
            self._report(TestResult(f"{self._name}.end", "failed", first, output))

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
        elif "leaks" in record:
            self._report_leaks(record["leaks"])
        elif "start" in record:
            self._running = self._tests[str(record["start"])]
        else:
            test = self._tests.pop(str(record.pop("test")))
            self._running = None
            self._report(TestResult(name=test.name, **record))  # type: ignore[arg-type]

    def _report_leaks(self, leaks: object) -> None:
        name = self._name.replace(".boot", ".leaks")
        if leaks:
            self._report(TestResult(name, "failed", "the module leaks memory", str(leaks)))
        else:
            self._report(TestResult(name, "passed"))

    def _report_boot(self, complaints: object) -> None:
        lines = [str(line) for line in complaints] if isinstance(complaints, list) else []
        if lines:
            reason = f"the kernel complained: {lines[0]}"
            self._report(TestResult(self._name, "failed", reason, "\n".join(lines)))
        elif self._first_boot:
            first, _, output = self._first_boot.partition("\n")
            self._report(TestResult(self._name, "passed", _second_try(first), output))
        else:
            self._report(TestResult(self._name, "passed"))
