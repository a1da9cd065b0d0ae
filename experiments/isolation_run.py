# SPDX-License-Identifier: GPL-2.0
"""The backends of experiments.isolation: programs that run one case under one setting.

A backend is given a Run and returns Figures for each window of the case. The simulator's is the
program sim-run; sim/describe.h has the format of its input.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from experiments.isolation_cases import WARM_MS, Case, Tenant, Window
from mqfair import schedulers
from mqfair.bench.simulated import model, program
from mqfair.bench.variant import BFQ, COMPARATORS, DEADLINE, IOCOST, KYBER, THROTTLE
from mqfair.text.errors import Failure

ROOT = Path(__file__).resolve().parents[1]
SIM = "sim"
VM = "vm"
UML = "uml"
OURS = schedulers.SCHEDULERS
MODELS = ("980pro", "p3700", "p4500")
FILLS = ("sequential", "random", "steady")
WHOLE = "all"
# In a guest: the factor of the drive's times, and the seconds of a run.
SCALE = 100
RUNTIME_S = 10.0
QUICK_RUNTIME_S = 4.0

# The roles of a setting, by which a picture draws lines.
SCHEDULER = "scheduler"
DEPTH = "depth"
ISOLATION = "isolation"


@dataclass(frozen=True)
class Drive:
    model: str
    fill: str
    ftl: str
    mib: int

    def __str__(self) -> str:
        host = ", map on the host" if self.ftl == "host" else ""
        return f"{self.model}, {self.fill} fill{host}"


@dataclass(frozen=True)
class Setting:
    """A scheduler with tunables. @role says which line of a picture the setting belongs to."""

    label: str
    scheduler: str
    tunables: tuple[tuple[str, str], ...] = ()
    role: str = SCHEDULER


@dataclass(frozen=True)
class Run:
    """@alone: the subject runs without the other tenants."""

    case: Case
    drive: Drive
    setting: Setting
    seed: int
    alone: bool = False

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        return self.case.tenants[:1] if self.alone else self.case.tenants


@dataclass(frozen=True)
class Rates:
    """One tenant in one window. In a window made of intervals, @p99_ns is the greatest of theirs.
    @inside is the mean number of requests in the drive; it is 0 in such a window."""

    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: float
    inside: float = 0.0


@dataclass(frozen=True)
class Figures:
    tenants: Mapping[str, Rates]

    @property
    def bytes_per_s(self) -> float:
        return sum(one.bytes_per_s for one in self.tenants.values())

    @property
    def iops(self) -> float:
        return sum(one.iops for one in self.tenants.values())


class LeftOutError(Failure):
    """The scheduler of a run cannot run here. The other runs can."""


@dataclass(frozen=True)
class Scope:
    """The schedulers that a backend has, and the fixed depths and values of `isolation` that it
    sweeps. @defaults and @quick are the values of options by name, without and with --quick."""

    schedulers: tuple[str, ...]
    depths: tuple[int, ...]
    isolations: tuple[int, ...]
    defaults: Mapping[str, object]
    quick: Mapping[str, object]


SIMULATED = Scope(
    schedulers=(*OURS, *schedulers.EXAMPLES, IOCOST, THROTTLE, *COMPARATORS),
    depths=(1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024),
    isolations=(2, 5, 8, 12, 20, 30, 50),
    defaults={
        "models": ",".join(MODELS),
        "fills": ",".join(FILLS),
        "schedulers": ",".join(OURS),
        "seeds": 3,
        "jobs": os.cpu_count() or 1,
    },
    quick={"cases": "A", "models": "980pro", "fills": "random", "seeds": 1},
)
# A guest is slow, so it runs one drive and few depths unless more are asked for. It has the machine
# for itself.
IN_A_GUEST = Scope(
    schedulers=(KYBER, BFQ, DEADLINE, IOCOST, *OURS),
    depths=(8, 16, 32, 48, 64, 96),
    isolations=(4, 8, 16, 32),
    defaults={
        "models": "980pro",
        "fills": "steady",
        "schedulers": ",".join((KYBER, BFQ, IOCOST, *OURS)),
        "seeds": 3,
        "jobs": 1,
    },
    quick={
        "cases": "A",
        "schedulers": "mqfq",
        "seeds": 1,
        "no_sweep": True,
        "runtime": QUICK_RUNTIME_S,
    },
)
SCOPES: Mapping[str, Scope] = {SIM: SIMULATED, VM: IN_A_GUEST, UML: IN_A_GUEST}


class Backend(Protocol):
    @property
    def scope(self) -> Scope: ...

    @property
    def notes(self) -> Sequence[str]:
        """Notes for a reader of the figures, complete after the last run."""

    def tunables(self, scheduler: str) -> Sequence[str]:
        """The names of the tunables of @scheduler."""

    def expect(self, runs: Sequence[Run]) -> None:
        """Tells the backend the runs of one case on one drive, before play() gets any of them.
        Raises UsageError if the backend cannot run the case."""

    def play(self, run: Run) -> dict[str, Figures]:
        """The figures of each window; WHOLE is the window of a case without windows. Raises
        LeftOutError or Failure."""


# ------------------------------------------------------------------ the simulator


def drive_statements(run: Run) -> list[str]:
    drive = run.drive
    return [
        f"seed {run.seed}",
        f"queues {run.case.queues}",
        "wake_ns 2000",
        f"drive {drive.model} {drive.mib} {drive.fill}",
        f"ftl {drive.ftl}",
    ]


def _probe_load(number: int, words: str) -> str:
    return f"load probe queue {number} {words}"


def statements(run: Run) -> list[str]:
    """The description of @run, as sim-run reads it."""
    case = run.case
    lines = [
        f"scheduler {run.setting.scheduler}",
        *(f"set {name} {value}" for name, value in run.setting.tunables),
        *drive_statements(run),
        f"warm_ms {WARM_MS}",
        f"run_ms {case.run_ms}",
        "audit end",
    ]
    if case.windows:
        lines.append(f"series {case.interval}")
    lines += [f"flow {tenant.name} weight {tenant.weight}" for tenant in run.tenants]
    queue = 0
    for tenant in run.tenants:
        for _ in range(tenant.jobs):
            lines.append(f"load {tenant.name} queue {queue % case.queues} {_words(tenant)}")
            queue += 1
    lines += [f"at {WARM_MS + at} {event}" for at, event in case.events]
    return lines


def _words(tenant: Tenant) -> str:
    size = f"{tenant.bytes}-{tenant.bytes_most}" if tenant.bytes_most else f"{tenant.bytes}"
    words = f"depth {tenant.depth} bytes {size} write {tenant.writes}"
    if tenant.think_us:
        words += f" think_us {tenant.think_us}"
    if tenant.pauses:
        on, off = tenant.pauses
        words += f" start_ms {WARM_MS} on_ms {on} off_ms {off}"
    return words


def _whole(flow: Mapping[str, Any]) -> Rates:
    return Rates(
        iops=flow["iops"],
        bytes_per_s=flow["bytes_per_s"],
        mean_ns=flow["mean_ns"],
        p99_ns=flow["p99_ns"],
        # Little's law.
        inside=flow["iops"] * (flow["mean_ns"] - flow["wait_ns"]) / 1e9,
    )


def in_window(series: Sequence[Mapping[str, int]], window: Window, interval: int) -> Rates:
    """The rates in the intervals of @series that lie in @window."""
    chosen = [
        one
        for number, one in enumerate(series)
        if window.covers(number * interval, (number + 1) * interval)
    ]
    seconds = len(chosen) * interval / 1000
    ios = sum(one["ios"] for one in chosen)
    return Rates(
        iops=ios / seconds,
        bytes_per_s=sum(one["bytes"] for one in chosen) / seconds,
        mean_ns=sum(one["ios"] * one["mean_ns"] for one in chosen) / ios if ios else 0.0,
        p99_ns=max(one["p99_ns"] for one in chosen),
    )


@dataclass
class Simulator:
    """Runs sim-run from a build folder without sanitizers, which prepare() brings up to date."""

    folder: Path = ROOT / "build" / "sim-release"
    scope: Scope = SIMULATED
    notes: tuple[str, ...] = ()
    _known: dict[str, list[str]] = field(default_factory=dict)
    _models: dict[tuple[Drive, int], list[str]] = field(default_factory=dict)

    @property
    def program(self) -> Path:
        return self.folder / "sim" / "sim-run"

    def prepare(self) -> None:
        program.ensure(self.folder)

    def describe(self, text: str) -> Any:
        done = subprocess.run(
            [self.program], input=text, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Failure(f"{done.stderr.strip()} in:\n{text}")
        return json.loads(done.stdout)

    def tunables(self, scheduler: str) -> Sequence[str]:
        if scheduler not in self._known:
            text = f"scheduler {scheduler}\ndevice 1 1000 0\nrun_ms 1\nflow a weight 1\n"
            found = self.describe(text + "load a depth 1 bytes 4096\n")
            self._known[scheduler] = list(found["tunables"])
        return self._known[scheduler]

    def expect(self, runs: Sequence[Run]) -> None:
        """Every run is a program of its own."""

    def iocost(self, run: Run) -> list[str]:
        """The tunables of iocost for the drive of @run, which is measured once."""
        key = (run.drive, run.case.queues)
        if key not in self._models:
            flow = "flow probe weight 100"
            head = [*drive_statements(run), flow]
            rates = model.rates(head, _probe_load, "probe", self.describe)
            self._models[key] = model.settings(rates)
        return self._models[key]

    def play(self, run: Run) -> dict[str, Figures]:
        lines = statements(run)
        if run.setting.scheduler == IOCOST:
            lines[1:1] = self.iocost(run)
        flows = self.describe("\n".join(lines) + "\n")["flows"]
        if not run.case.windows:
            return {WHOLE: Figures({name: _whole(flow) for name, flow in flows.items()})}
        return {
            window.name: Figures(
                {
                    name: in_window(flow["series"], window, run.case.interval)
                    for name, flow in flows.items()
                }
            )
            for window in run.case.windows
        }
