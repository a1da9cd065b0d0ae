# SPDX-License-Identifier: GPL-2.0
"""What the runner is to do, written by one process and read by another, maybe in a guest."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# fio jobs run longer than ramp and window, so that one that starts late still overlaps.
SLACK_S = 2.0
# Beyond what a run should take: starting fio, draining the queues, writing the logs.
RUN_GRACE_S = 60.0

PROGRESS = "mqfair-bench "


@dataclass(frozen=True)
class PlannedJob:
    """A section for fio, less device, duration and logs; @delayed when it starts later."""

    name: str
    options: tuple[str, ...]
    run_s: float
    delayed: bool = False


@dataclass(frozen=True)
class PlannedGroup:
    """A cgroup that does I/O."""

    name: str
    jobs: tuple[PlannedJob, ...]


@dataclass(frozen=True)
class Event:
    """What is done to a cgroup @after_s the start of the jobs: @action "weight", with the new
    one as value, or "freeze", with 1 or 0."""

    after_s: float
    cgroup: str
    action: str
    value: int


@dataclass(frozen=True)
class Case:
    """One job file: who runs, and the weight of every cgroup, inner ones included."""

    name: str
    groups: tuple[PlannedGroup, ...]
    weights: Mapping[str, int]
    ramp_s: float
    window_s: float
    events: tuple[Event, ...] = ()

    @property
    def run_s(self) -> float:
        """How long fio runs."""
        return max(job.run_s for group in self.groups for job in group.jobs)


@dataclass(frozen=True)
class PlannedDevice:
    """A drive at @path, which the runner makes with null_blk when there are @parameters, and with
    mqfair-ssd when there are settings @ssd; no path is the first emulated drive of a guest."""

    path: str = ""
    parameters: Mapping[str, int] | None = None
    ssd: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Run:
    """One start of fio; @only is the group that runs alone, @scheduler a label of variant.py."""

    case: Case
    scheduler: str
    repeat: int
    only: PlannedGroup | None

    @property
    def groups(self) -> tuple[PlannedGroup, ...]:
        return self.case.groups if self.only is None else (self.only,)


@dataclass(frozen=True)
class Plan:
    """@schedulers are labels of variant.py, @tunables by scheduler. Fewer than @repeat repeats are
    made, but at least one, when one more would take the runs beyond @time_limit_s. Time limits on
    fio are multiplied by @patience: a clock that counts instructions leaps ahead whenever the guest
    waits for its host. With @calibrate_s mqfq's depth and threshold are measured first, for so long
    at most.
    """

    cases: tuple[Case, ...]
    schedulers: tuple[str, ...]
    repeat: int
    device: PlannedDevice
    solo: bool = False
    nr_requests: int | None = None
    time_limit_s: float = math.inf
    patience: float = 1.0
    module: str | None = None
    tunables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    calibrate_s: int | None = None

    def runs(self) -> list[Run]:
        """Interleaved, so that a machine that slows down slows all schedulers down."""
        return [
            Run(case, scheduler, repeat, only)
            for repeat in range(self.repeat)
            for case in self.cases
            for scheduler in self.schedulers
            for only in (None, *(case.groups if self.solo else ()))
        ]


def write_plan(plan: Plan, path: Path) -> None:
    path.write_text(json.dumps(dataclasses.asdict(plan), indent=1))


def read_plan(path: Path) -> Plan:
    raw: dict[str, Any] = json.loads(path.read_text())
    cases = tuple(_case(case) for case in raw.pop("cases"))
    device = PlannedDevice(**raw.pop("device"))
    schedulers = tuple(raw.pop("schedulers"))
    return Plan(cases=cases, schedulers=schedulers, device=device, **raw)


def _case(raw: dict[str, Any]) -> Case:
    groups = tuple(
        PlannedGroup(group["name"], tuple(_job(job) for job in group["jobs"]))
        for group in raw.pop("groups")
    )
    events = tuple(Event(**event) for event in raw.pop("events"))
    return Case(groups=groups, events=events, **raw)


def _job(raw: dict[str, Any]) -> PlannedJob:
    return PlannedJob(**{**raw, "options": tuple(raw["options"])})
