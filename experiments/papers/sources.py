# SPDX-License-Identifier: GPL-2.0
"""The runs behind the figures of the papers, and the values that are read from them.

A source plays its runs and returns their results. A Scene runs jobs in the simulator, Machines
runs programs on simulated CPUs, and Test runs one test of tests/sim. Each is played once, even if
several figures are read from it.
"""

import re
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from experiments import machine
from experiments.harness import build, ratios, runs_of, total_bytes
from experiments.machine import Variant
from experiments.traces import rotations
from mqfair.bench import jobfile, session
from mqfair.bench.device import parse_device
from mqfair.bench.jobfile import JobFile
from mqfair.bench.plan import SIM
from mqfair.bench.result import CaseResult, CgroupResult, RunResult
from mqfair.bench.simulated import session as simulation
from mqfair.bench.simulated.drive import unstretched
from mqfair.bench.variant import NONE
from mqfair.text.errors import Failure

# The values of one figure, one for each seed.
Values = Sequence[float]
Read = Callable[[Any], Values]

# The part of its peak from which on a drive counts as full.
FULL = 0.98


@dataclass(frozen=True)
class Options:
    """The options of all runs: the number of seeds, and the runs at the same time."""

    seeds: int = 3
    at_once: int = 1


class Source(Protocol):
    @property
    def words(self) -> str:
        """The jobs and the machine in a few words."""

    def play(self, options: Options) -> Any: ...


@dataclass
class Player:
    """Plays each source once. @seconds has the processor time of each."""

    options: Options
    seconds: dict[Source, float] = field(default_factory=dict)
    _played: dict[Source, Any] = field(default_factory=dict)

    def play(self, source: Source) -> Any:
        if source not in self._played:
            before = _children_s()
            self._played[source] = source.play(self.options)
            self.seconds[source] = _children_s() - before
        return self._played[source]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ----------------------------------------------------------------- jobs in the simulator


@dataclass(frozen=True)
class Scene:
    """Cgroups with options of fio, on a drive of `mqfair sim`.

    @common are the options of all cgroups, and @cgroups has the own ones of each. With @rotated
    the weights go round, so that each cgroup has each weight in one of the cases. A request takes
    the CPU time of its scheduler, too, as on the host of a paper.
    """

    name: str
    words: str
    common: str
    cgroups: tuple[tuple[str, str], ...]
    device: str
    schedulers: tuple[str, ...]
    cpus: int = 16
    sockets: int = 2
    solo: bool = False
    rotated: bool = False

    def text(self) -> str:
        """The job file."""
        lines = ["[global]", "ioengine=libaio", "direct=1", "norandommap", *self.common.split()]
        for name, options in self.cgroups:
            lines += ["", f"[{name}]", f"cgroup={name}", *options.split()]
        return "\n".join(lines) + "\n"

    def command(self) -> str:
        """The command that runs the job file."""
        words = f"mqfair sim {self.name}.fio --cpus {self.cpus} --sockets {self.sockets}"
        words += f" --schedulers {','.join(self.labels())}"
        words += f"{' --solo' if self.solo else ''} --priced"
        return f"{words} --device {self.device}"

    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((NONE, *self.schedulers)))

    def jobs(self) -> tuple[JobFile, ...]:
        job = jobfile.parse(self.text(), f"{self.name}.fio")
        return tuple(rotations(job)) if self.rotated else (job,)

    def request(self, options: Options) -> session.Request:
        return session.Request(
            jobs=self.jobs(),
            schedulers=self.labels(),
            repeat=options.seeds,
            device=unstretched(parse_device(self.device)),
            on=SIM,
            cpus=self.cpus,
            sockets=self.sockets,
            solo=self.solo,
            priced=True,
            at_once=options.at_once,
        )

    def play(self, options: Options) -> tuple[CaseResult, ...]:
        with tempfile.TemporaryDirectory(prefix="mqfair-experiment-") as name:
            return simulation.run(self.request(options), Path(name)).results


@dataclass(frozen=True)
class Drives:
    """The same cgroups on several drives. The case of scene n has number n."""

    scenes: tuple[Scene, ...]

    @property
    def words(self) -> str:
        return ". ".join(scene.words for scene in self.scenes)

    def play(self, options: Options) -> tuple[CaseResult, ...]:
        return tuple(case for scene in self.scenes for case in scene.play(options))


def scenes_of(source: Source) -> tuple[Scene, ...]:
    if isinstance(source, Drives):
        return source.scenes
    return (source,) if isinstance(source, Scene) else ()


def _group(run: RunResult, name: str) -> CgroupResult:
    return next(one for one in run.cgroups if one.name == name)


def total(label: str, base: str = NONE) -> Read:
    """The bytes of all cgroups under @label over those under @base."""
    return lambda cases: [
        value for case in cases for value in ratios(case, label, base, total_bytes)
    ]


def index(label: str) -> Read:
    """Jain's index of the bytes relative to the weights."""
    return lambda cases: [run.jain for case in cases for run in runs_of(case, label)]


def bytes_of(name: str, other: str, label: str) -> Read:
    """The bytes of cgroup @name over those of @other."""
    return lambda cases: [
        _group(run, name).bytes_per_s / _group(run, other).bytes_per_s
        for case in cases
        for run in runs_of(case, label)
    ]


def faster(name: str, label: str, base: str) -> Read:
    """The bytes of cgroup @name under @label over those under @base."""
    return lambda cases: [
        value
        for case in cases
        for value in ratios(case, label, base, lambda run: _group(run, name).bytes_per_s)
    ]


def slowdown(name: str, label: str) -> Read:
    """The bytes of cgroup @name alone, without a scheduler, over those beside the others."""

    def read(cases: Sequence[CaseResult]) -> Values:
        alone = {
            (n, one.repeat): one.alone_bytes_per_s
            for n, case in enumerate(cases)
            for one in case.solo
            if (one.cgroup, one.scheduler) == (name, NONE)
        }
        return [
            alone[n, run.repeat] / _group(run, name).bytes_per_s
            for n, case in enumerate(cases)
            for run in runs_of(case, label)
        ]

    return read


def of_drive(number: int, value: Read) -> Read:
    """@value on one of the Drives."""
    return lambda cases: value(cases[number : number + 1])


def mean_of_drives(*values: Read) -> Read:
    """The mean of one of @values on each of the Drives, for each seed."""
    return lambda cases: [
        statistics.mean(one)
        for one in zip(*(of_drive(n, value)(cases) for n, value in enumerate(values)), strict=True)
    ]


def latency(name: str, figure: str, label: str, base: str) -> Read:
    """The latency @figure, such as p999, of cgroup @name under @label over that under @base."""
    return lambda cases: [
        value
        for case in cases
        for value in ratios(case, label, base, lambda run: _group(run, name).lat_ns[figure])
    ]


def _tail(run: RunResult, name: str, figure: str) -> float:
    """The p99.9 of cgroup @name over its latency @figure."""
    latencies = _group(run, name).lat_ns
    return latencies["p999"] / latencies[figure]


def tail(name: str, figure: str, label: str) -> Read:
    """The p99.9 of cgroup @name over its latency @figure."""
    return lambda cases: [
        _tail(run, name, figure) for case in cases for run in runs_of(case, label)
    ]


def tails(name: str, figure: str, label: str, base: str) -> Read:
    """tail() under @label over that under @base."""
    return lambda cases: [
        value
        for case in cases
        for value in ratios(case, label, base, lambda run: _tail(run, name, figure))
    ]


def alone(name: str, other: str, label: str) -> Read:
    """The bytes of cgroup @name alone over those of @other alone."""

    def read(cases: Sequence[CaseResult]) -> Values:
        found: dict[tuple[str, int], float] = {
            (one.cgroup, one.repeat): one.alone_bytes_per_s
            for case in cases
            for one in case.solo
            if one.scheduler == label
        }
        return [
            value / found[other, seed] for (group, seed), value in found.items() if group == name
        ]

    return read


def megabytes(label: str) -> Read:
    """The bytes per second of all cgroups, in MB."""
    return lambda cases: [
        run.total_bytes_per_s / 1e6 for case in cases for run in runs_of(case, label)
    ]


# ----------------------------------------------------------------------- simulated CPUs


@dataclass(frozen=True)
class Machines:
    """Variants of the scheduler on simulated CPUs (experiments/machine.py)."""

    words: str
    variants: tuple[Variant, ...]
    name: str = "two-sockets"
    cpus: tuple[int, ...] = machine.CPUS

    def play(self, options: Options) -> machine.Results:
        return machine.measure(
            machine.build(), [self.name], self.cpus, self.variants, at_once=options.at_once
        )


def variants(*names: str) -> tuple[Variant, ...]:
    """Those of experiments/machine.py with these names."""
    return tuple(one for one in machine.VARIANTS if one.name in names)


def peak(ours: str, other: str) -> Read:
    """The most requests per second of all numbers of CPUs, over those of @other."""
    return at(None, ours, other)


def at(cpus: int | None, ours: str, other: str) -> Read:
    """Requests per second with @cpus over those of @other."""

    def read(results: machine.Results) -> Values:
        name = results.machines()[0]
        return [results.rate(name, ours, cpus) / results.rate(name, other, cpus)]

    return read


def at_full(ours: str, other: str) -> Read:
    """Requests per second over those of @other, with as few CPUs as @other needs for its peak."""

    def read(results: machine.Results) -> Values:
        name = results.machines()[0]
        peak_of_other = results.rate(name, other, None)
        cpus = min(
            n for n in results.cpus() if results.rate(name, other, n) >= FULL * peak_of_other
        )
        return at(cpus, ours, other)(results)

    return read


def looks(cpus: int, ours: str, other: str) -> Read:
    """How often a queue is run for a request with @cpus, over that of @other."""

    def read(results: machine.Results) -> Values:
        found = {run.variant: run.looks for run in results.runs if run.cpus == cpus}
        return [found[ours] / found[other]]

    return read


def misses(cpus: int, ours: str, other: str) -> Read:
    """Lines that a request fetches from another CPU with @cpus, over that of @other."""

    def read(results: machine.Results) -> Values:
        found = {run.variant: sum(run.misses) for run in results.runs if run.cpus == cpus}
        return [found[ours] / found[other]]

    return read


# ------------------------------------------------------------------------ tests of tests/sim


@dataclass(frozen=True)
class Test:
    """A test of tests/sim with the figures in its note."""

    words: str
    scheduler: str
    name: str

    def play(self, _options: Options) -> str:
        target = "tests/sim/sim-tests"
        argv = [str(build(target) / target), "-s", self.scheduler, self.name]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()[-2000:]}")
        return next(line for line in done.stdout.splitlines() if line.startswith("ok 1 "))


def noted(pattern: str, scale: float = 1.0) -> Read:
    """The number that the group of @pattern finds in the note of a test, times @scale."""

    def read(line: str) -> Values:
        found = re.search(pattern, line)
        if not found:
            raise Failure(f"no figure in the note of a test: {line}")
        return [float(found[1]) * scale]

    return read
