# SPDX-License-Identifier: GPL-2.0
"""The plan of a bench: one process writes it, and the runner reads it, perhaps in a guest."""

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqfair.text import json_text
from mqfair.text.output import whole_output

# The time that fio jobs run beyond ramp and window, so that a late job still overlaps the others.
SLACK_S = 2.0
# The time limit beyond a run's length: for starting fio, draining queues and writing logs.
RUN_GRACE_S = 60.0

PROGRESS = "mqfair-bench "

# The documents of a bench. Those of several drives have {schema, devices: [one for each drive]}.
SCHEMA = "mqfair.bench/2"
# It has no dues.
FIRST_SCHEMA = SCHEMA.replace("2", "1")
TIMELINE_SCHEMA = "mqfair.bench-timeline/1"
SEVERAL_SCHEMA = "mqfair.bench-several/1"
TIMELINES_SCHEMA = "mqfair.bench-timeline-several/1"

# In the folder of raw results, and in the folder of each run.
PLAN = "plan.json"
RECORD = "run.json"
# The figures of each cgroup in a run, in place of fio's logs.
FIGURES = "figures.json"

# Where a bench runs.
VM = "vm"
HOST = "host"
SIM = "sim"


@dataclass(frozen=True)
class PlannedJob:
    """A section of the job file without device, duration and logs. @delayed means that it has a
    startdelay."""

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
    """A change of a cgroup @after_s seconds after the start of the jobs. @action is "weight" with
    the new weight as @value, or "freeze" with 1 or 0."""

    after_s: float
    cgroup: str
    action: str
    value: int


@dataclass(frozen=True)
class Case:
    """One job file: the groups that do I/O, and the weights of all cgroups with the inner ones. It
    runs under @schedulers, or under all of the plan."""

    name: str
    groups: tuple[PlannedGroup, ...]
    weights: Mapping[str, int]
    ramp_s: float
    window_s: float
    events: tuple[Event, ...] = ()
    schedulers: tuple[str, ...] = ()

    @property
    def run_s(self) -> float:
        """The seconds that fio runs."""
        return max(job.run_s for group in self.groups for job in group.jobs)


@dataclass(frozen=True)
class PlannedDevice:
    """A drive at @path. The runner makes it with null_blk if @parameters are given, and with
    mqfair-ssd if the settings @ssd are. An empty path stands for a guest's first emulated drive."""

    path: str = ""
    parameters: Mapping[str, int] | None = None
    ssd: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Run:
    """One start of fio. @scheduler is a label of variant.py; @only is the group that runs alone."""

    case: Case
    scheduler: str
    repeat: int
    only: PlannedGroup | None

    @property
    def groups(self) -> tuple[PlannedGroup, ...]:
        return self.case.groups if self.only is None else (self.only,)


@dataclass(frozen=True)
class Plan:
    """All runs of a bench.

    @schedulers are labels of variant.py; @tunables are by scheduler. Repeats end, after at least
    one, before a repeat that would exceed @time_limit_s. Time limits on fio are multiplied by
    @patience, because a clock that counts instructions jumps forward while the guest waits for its
    host. With @calibrate_s mqfq's depth and threshold are measured first, within this limit. With
    @reads_only no program may write to the drive. With @condensed the work of the processors is
    counted, and a run leaves its figures in place of a log line for each I/O.
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
    reads_only: bool = False
    condensed: bool = False

    def runs(self) -> list[Run]:
        """All runs, interleaved, so that a machine that slows down affects all schedulers."""
        return [
            Run(case, scheduler, repeat, only)
            for repeat in range(self.repeat)
            for case in self.cases
            for scheduler in self.schedulers
            if scheduler in (case.schedulers or self.schedulers)
            for only in (None, *(case.groups if self.solo else ()))
        ]


def write_plan(plan: Plan, path: Path) -> None:
    with whole_output(str(path)) as file:
        file.write(json.dumps(dataclasses.asdict(plan), indent=1))


def read_plan(path: Path) -> Plan:
    raw: dict[str, Any] = json_text.parse(path.read_text(), str(path), "begin the bench again")
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
    schedulers = tuple(raw.pop("schedulers"))
    return Case(groups=groups, events=events, schedulers=schedulers, **raw)


def _job(raw: dict[str, Any]) -> PlannedJob:
    return PlannedJob(**{**raw, "options": tuple(raw["options"])})
