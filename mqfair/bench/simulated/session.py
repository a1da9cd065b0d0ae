# SPDX-License-Identifier: GPL-2.0
"""A bench on the simulated host: the same request and the same outcome as in a guest.

Each run is a process of its own, on all cores or on a cluster (player.py). A run depends on its
description alone, so the number of cores changes no figure.
"""

import contextlib
import dataclasses
import functools
import importlib
import json
import math
import re
import shutil
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqfair import __version__
from mqfair.bench import fiocheck, iocost, limits, resume, ssd
from mqfair.bench.jobfile import JobFile
from mqfair.bench.plan import RECORD, SIM, TIMELINE_SCHEMA, Case, Event, Run
from mqfair.bench.result import (
    TIMELINE_STEP_MS,
    Alone,
    CaseResult,
    Document,
    RunResult,
    Used,
    case_result,
    made_again,
    require_requests,
)
from mqfair.bench.session import Interrupted, Outcome, Progress, Request, plan_for
from mqfair.bench.simulated import model, options, program
from mqfair.bench.simulated.drive import Drive, drive
from mqfair.bench.simulated.options import Load, milliseconds
from mqfair.bench.simulated.player import Here, Player, check_cluster
from mqfair.bench.simulated.prices import price
from mqfair.bench.simulated.scene_file import SceneFile
from mqfair.bench.variant import (
    COMPARATORS,
    DEADLINE,
    DEFAULT_OURS,
    IOCOST,
    KYBER,
    NONE,
    OURS,
    THROTTLE,
    merged_tunables,
    scheduler_of,
)
from mqfair.bench.window import Usage
from mqfair.machine.signals import interrupted_once
from mqfair.manual import json_check
from mqfair.manual.json_forms import node_of
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import writing
from mqfair.traces import native
from mqfair.traces.replay import Replay, deal

CPUS_MOST = 1024
# A wake-up of another CPU takes up to this time, at random.
WAKE_NS = 2000
# A CPU that is busy for this part of the time limits its loads, and a cgroup with less than
# this part of its due has lost by it.
CPU_BOUND = 0.95
# A signal that comes just before a wait does not end the wait, so each wait is short.
_LOOK_S = 0.2
# A run's input of sim-run, in the run's folder.
DESCRIPTION = "description"
_FIGURES = node_of("flows object\nflows.* object\npressure object?")
_LINE = re.compile(r"\bline \d+: ")
# The schedulers that sim-run has.
SIMULATED = (NONE, *OURS, IOCOST, THROTTLE, DEADLINE, KYBER, *COMPARATORS)
DEFAULTS = (NONE, *DEFAULT_OURS)


@dataclass(frozen=True)
class _Scene:
    """One job file on the drive: the parts of its descriptions that all runs share. @flows has the
    name in sim-run of each cgroup. Times are ms. @rates is iocost's model of the drive."""

    job: JobFile
    case: Case
    drive: Drive
    flows: Mapping[str, str]
    loads: tuple[Load, ...]
    warm_ms: int
    run_ms: int
    rates: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def step_ms(self) -> int:
        """The interval of the series: the warm-up has a whole number of them."""
        return math.gcd(TIMELINE_STEP_MS, self.warm_ms)


def run(request: Request, folder: Path, progress: Progress = lambda _message: None) -> Outcome:
    """Runs the bench. @folder gets the descriptions and the figures. It must be empty, or have
    those of the same bench, which then goes on. Raises UsageError, Failure or Interrupted."""
    check(request)
    scenes = {case.name: scene for case, scene in _scenes(request)}
    binary = program.ensure(building=lambda: progress({"event": "build"}))
    _try_labels(request, binary)
    if IOCOST in request.names:
        rates = _rates(request, next(iter(scenes.values())), binary)
        scenes = {name: dataclasses.replace(scene, rates=rates) for name, scene in scenes.items()}
    plan = plan_for(request)
    resume.begin(plan, folder)
    traces = _traces(list(scenes.values()), folder)
    runs = plan.runs()
    figures: list[Any] = []
    with (
        interrupted_once(),
        _player(request, binary, folder) as player,
        ThreadPoolExecutor(player.at_once) as pool,
    ):
        waiting: list[Future[Any]] = []
        try:
            for i, one in enumerate(runs):
                scene, where = scenes[one.case.name], resume.run_folder(folder, i)
                waiting.append(
                    pool.submit(_play, request, scene, one, player.play, where, traces=traces)
                )
            for number, (one, future) in enumerate(zip(runs, waiting, strict=True)):
                progress(_message(one, number, len(runs)))
                while not future.done():
                    wait([future], _LOOK_S)
                figures.append(future.result())
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            # A terminal sends Ctrl-C to these too, but a signal reaches this process alone.
            player.end()
            if isinstance(error, KeyboardInterrupt):
                raise _interrupted(request, scenes, runs, waiting) from error
            raise
    return _outcome(request, scenes, list(zip(runs, figures, strict=True)))


@contextlib.contextmanager
def _player(request: Request, binary: Path, folder: Path) -> Iterator[Player]:
    """The place of the runs. Dask is not imported unless it is asked for."""
    if request.cluster is None:
        yield Here(binary, folder, request.at_once)
        return
    cluster = importlib.import_module("mqfair.bench.simulated.cluster")
    with cluster.connected(request.cluster, binary, folder) as player:
        yield player


def _message(run: Run, number: int, runs: int) -> Mapping[str, Any]:
    return {
        "event": "run",
        "number": number,
        "runs": runs,
        "case": run.case.name,
        "scheduler": run.scheduler,
        "repeat": run.repeat,
        "only": run.only.name if run.only else None,
    }


def _interrupted(
    request: Request,
    scenes: Mapping[str, _Scene],
    runs: Sequence[Run],
    waiting: Sequence[Future[Any]],
) -> Interrupted:
    """@waiting has the first of @runs, or all."""
    done = [
        (run, future.result())
        for run, future in zip(runs, waiting, strict=False)
        if future.done() and not future.cancelled() and future.exception() is None
    ]
    words = f"{len(done)} of {len(runs)} runs were finished"
    if not any(run.only is None for run, _ in done):
        return Interrupted(words, None)
    outcome = _outcome(request, scenes, done)
    return Interrupted(
        words, dataclasses.replace(outcome, notes=(f"interrupted: {words}", *outcome.notes))
    )


# ------------------------------------------------------------------------ checks


def with_schedulers(request: Request) -> Request:
    """@request with the schedulers of the simulator if it names none."""
    return request if request.schedulers else dataclasses.replace(request, schedulers=DEFAULTS)


def check(request: Request) -> None:
    """Raises UsageError for a request that the simulator cannot carry out."""
    for label in request.schedulers:
        if scheduler_of(label) not in SIMULATED:
            raise UsageError(
                f"--schedulers: {scheduler_of(label)} is not in the simulator: use"
                f" {', '.join(SIMULATED)}, or --on vm"
            )
    refused = {
        "--kernel": request.kernel,
        "--module": request.module,
        "--icount": request.icount,
        "--calibrate": request.calibrate_s,
        "--nr-requests": request.nr_requests,
    }
    for option, value in refused.items():
        if value:
            raise UsageError(f"{option} is for a guest: leave it out, or use --on vm")
    for event in request.events:
        if event.action != "weight":
            raise UsageError(f"the simulator has no event '{event.action}': use --on vm")
    for job in request.jobs:
        if not isinstance(job, SceneFile):
            fiocheck.check(job)
        elif IOCOST in request.names:
            raise UsageError(f"{job.path}: {IOCOST} needs a drive of --device: use a job file")
    if request.cluster is not None:
        check_cluster(request.cluster)


def _scenes(request: Request) -> list[tuple[Case, _Scene]]:
    found = []
    for job, case in zip(request.jobs, plan_for(request).cases, strict=True):
        if isinstance(job, SceneFile):
            own = Drive((), 0, 0, 0, 0, 0)
            found.append((case, _Scene(job, case, own, job.flows, (), job.warm_ms, job.run_ms)))
            continue
        flows = {name: f"g{number}" for number, name in enumerate(_parents_first(job.weights))}
        for part in ssd.parts_of(request.device.settings):
            if part.cgroup not in flows:
                raise UsageError(
                    f"--device {request.device.text}: {ssd.PARTS}: {job.path} has no cgroup"
                    f" '{part.cgroup}': use {', '.join(job.weights)}"
                )
        where = drive(request.device, request.cpus, flows)
        loads = tuple(options.loads(job, where))
        for load in loads:
            if load.cpu is not None and load.cpu >= request.cpus:
                raise UsageError(
                    f"{load.place}: the host has the CPUs 0 to {request.cpus - 1}: add --cpus"
                    f" {load.cpu + 1}"
                )
        warm_ms = milliseconds(job.ramp_s, f"{job.path}: ramp_time")
        warm_ms += max(load.start_ms for load in loads)
        run_ms = max(1, round(job.window_s * 1000))
        found.append((case, _Scene(job, case, where, flows, loads, warm_ms, run_ms)))
    return found


def _parents_first(weights: Mapping[str, int]) -> list[str]:
    return sorted(weights, key=lambda name: (name.count("/"), name))


def _try_labels(request: Request, binary: Path) -> None:
    """Raises UsageError for a tunable that a scheduler does not have or accept."""
    for label in request.schedulers:
        lines = [*_scheduler(request, label), "device 1 1000 0", "run_ms 1", "flow a weight 1"]
        try:
            program.play(binary, "\n".join([*lines, "load a depth 1 bytes 4096", ""]))
        except program.WrongDescriptionError as error:
            said = str(error).partition(": set: ")[2] or str(error)
            raise UsageError(f"--schedulers {label}: {said}") from error


# ------------------------------------------------------------------------- a run


def _scheduler(request: Request, label: str) -> list[str]:
    tunables = merged_tunables(label, request.tunables)
    return [
        f"scheduler {scheduler_of(label)}",
        *(f"set {name} {value}" for name, value in tunables.items()),
    ]


# The files of each replay, by process.
Traces = Mapping[Replay, Sequence[str]]


def _traces(scenes: Collection[_Scene], folder: Path) -> Traces:
    """Writes the traces of all loads to @folder."""
    for scene in scenes:
        if isinstance(scene.job, SceneFile):
            for path, name in scene.job.copies.items():
                with writing(folder / name):
                    shutil.copyfile(path, folder / name)
    replays = {load.replay for scene in scenes for load in scene.loads}
    return {one: deal(one, native.NAME, folder) for one in replays if one is not None}


def _words(load: Load, traces: Traces) -> str:
    if load.replay is None:
        return load.words
    return f"{load.words} trace {traces[load.replay][load.piece]}"


def description(request: Request, scene: _Scene, run: Run, traces: Traces) -> str:
    """The description of @run, as sim-run reads it in the folder of @traces."""
    seed_and_series = (f"seed {request.seed + run.repeat}", f"series {scene.step_ms} whole")
    chosen = {group.name for group in run.groups}
    if isinstance(scene.job, SceneFile):
        head = [*_scheduler(request, run.scheduler), *seed_and_series, "audit end"]
        return scene.job.text(head, chosen)
    lines = [
        *_scheduler(request, run.scheduler),
        *(model.settings(scene.rates) if scheduler_of(run.scheduler) == IOCOST else ()),
        *seed_and_series,
        *_host(request, scene, scheduler_of(run.scheduler)),
        f"warm_ms {scene.warm_ms}",
        f"run_ms {scene.run_ms}",
        "audit end",
        *_flows(scene),
        *scene.drive.statements,
    ]
    depth = merged_tunables(run.scheduler, request.tunables).get("depth")
    tags = scene.drive.sched_tags(scheduler_of(run.scheduler), depth)
    lines.append(f"sched_tags {tags}")
    for number, load in enumerate(scene.loads):
        if load.cgroup in chosen:
            queue = _cpu_of(number, load, request)
            words = _words(load, traces)
            lines.append(f"load {scene.flows[load.cgroup]} queue {queue} {words} reaped 1")
    if run.only is None:
        lines += [_event(scene, event) for event in run.case.events]
    return "\n".join(lines) + "\n"


def _request_ns(request: Request, scene: _Scene) -> int:
    return scene.drive.request_ns if request.request_ns is None else request.request_ns


def _host(request: Request, scene: _Scene, scheduler: str) -> list[str]:
    own = price(scheduler, request.priced)
    return [
        f"queues {request.cpus}",
        f"sockets {request.sockets}",
        f"wake_ns {WAKE_NS}",
        *own.statements(_request_ns(request, scene)),
    ]


def _rates(request: Request, scene: _Scene, binary: Path) -> dict[str, int]:
    """iocost's model of the drive of @scene. Raises Failure."""
    flow = next(iter(scene.flows.values()))
    head = [
        f"seed {request.seed}",
        *_host(request, scene, NONE),
        *_flows(scene),
        *scene.drive.statements,
        f"sched_tags {scene.drive.sched_tags(NONE, None)}",
    ]

    def load(number: int, words: str) -> str:
        return f"load {flow} queue {_cpu(number, request.cpus, request.sockets)} {words}"

    return model.rates(head, load, flow, functools.partial(program.play, binary))


def _flows(scene: _Scene) -> Iterator[str]:
    for name, flow in scene.flows.items():
        parent = name.rpartition("/")[0]
        below = f" parent {scene.flows[parent]}" if parent else ""
        yield f"flow {flow} weight {scene.job.weights[name]}{below}"


def _cpu_of(number: int, load: Load, request: Request) -> int:
    return _cpu(number, request.cpus, request.sockets) if load.cpu is None else load.cpu


def _cpu(number: int, cpus: int, sockets: int) -> int:
    """The CPU of load @number: each socket in turn, as Linux spreads new tasks."""
    return number % sockets * (cpus // sockets) + number // sockets % (cpus // sockets)


def _event(scene: _Scene, event: Event) -> str:
    at_ms = milliseconds(event.after_s, f"{scene.job.path}: event")
    return f"at {at_ms} weight {scene.flows[event.cgroup]} {event.value}"


def _play(
    request: Request,
    scene: _Scene,
    run: Run,
    play: Callable[[str], Any],
    folder: Path,
    *,
    traces: Traces,
) -> Any:
    text = description(request, scene, run, traces)
    record = folder / RECORD
    if record.exists():
        return _recorded(folder, text)
    with writing(folder):
        folder.mkdir()
        (folder / DESCRIPTION).write_text(text)
    try:
        figures = play(text)
    except program.WrongDescriptionError as error:
        drive_is_wrong = str(error).startswith("drive ") and scene.loads
        place = f"--device {request.device.text}" if drive_is_wrong else scene.job.path
        # The lines of a description that was made from a job file are not those of a user.
        said = _LINE.sub("", str(error)) if scene.loads else str(error)
        raise UsageError(f"{place}: {said}") from error
    except Failure as error:
        raise Failure(f"{scene.case.name}, {run.scheduler}: {error}") from error
    # The only figure that differs between two equal runs.
    del figures["wall_s"]
    partial = folder / f"{RECORD}.new"
    with writing(partial):
        partial.write_text(json.dumps(figures, indent=1))
        partial.rename(record)
    return figures


def _recorded(folder: Path, text: str) -> Any:
    """The figures of a run that is finished; its description must be the present one."""
    if (folder / DESCRIPTION).read_text() != text:
        raise UsageError(
            f"--resume: the run in {folder} had another description: use the same command line,"
            " or a new folder"
        )
    path = folder / RECORD
    figures = json_check.load(path, _FIGURES, made_again(path))
    if "pressure" not in figures:
        raise UsageError(
            f"--resume: the run in {folder} is of an older simulator, without figures of"
            " pressure: use a new folder"
        )
    return figures


# ----------------------------------------------------------------------- results


def _outcome(
    request: Request, scenes: Mapping[str, _Scene], done: Sequence[tuple[Run, Any]]
) -> Outcome:
    results = tuple(
        _result(scene, [(run, figures) for run, figures in done if run.case.name == name])
        for name, scene in scenes.items()
    )
    first = next(iter(scenes.values()))
    settings = first.drive.settings
    notes = (
        *_notes(request, settings),
        *iocost.notes(first.rates),
        *(note for result in results for note in _bound_by_cpu(request, scenes, result)),
    )
    return Outcome(results, _where(request, settings), notes)


def _result(scene: _Scene, done: Sequence[tuple[Run, Any]]) -> CaseResult:
    shared: list[tuple[str, int, Used]] = []
    alone: Alone = {}
    steps: list[Document] = []
    for run, figures in done:
        used = {
            group.name: _usage(figures["flows"][scene.flows[group.name]]) for group in run.groups
        }
        require_requests(run.case.name, run.scheduler, used)
        if run.only is not None:
            alone[run.scheduler, run.repeat, run.only.name] = used[run.only.name].bytes_per_s
            continue
        shared.append((run.scheduler, run.repeat, used))
        steps.append(_timeline(scene, run, figures))
    whole = {"schema": TIMELINE_SCHEMA, "interval_ms": TIMELINE_STEP_MS, "runs": steps}
    result = case_result(scene.case, shared, alone, whole)
    together = [figures for run, figures in done if run.only is None]
    runs = tuple(
        dataclasses.replace(run, details=_details(scene, figures))
        for run, figures in zip(result.runs, together, strict=True)
    )
    return dataclasses.replace(result, runs=runs)


def _details(scene: _Scene, figures: Any) -> Document:
    steps = TIMELINE_STEP_MS // scene.step_ms
    series = figures["series"]
    parts = [series[at : at + steps] for at in range(0, len(series), steps)]
    windows = [part[-1]["window"] for part in parts]
    depth = {
        "interval_ms": TIMELINE_STEP_MS,
        "inside": [statistics.fmean(one["inside"] for one in part) for part in parts],
        **({"window": windows} if None not in windows else {}),
    }
    return {
        "seed": figures["seed"],
        "tunables": figures["tunables"],
        "depth": depth,
        "pressure": figures["pressure"],
        "limit": limits.limit(figures["pressure"], depth),
    }


def _bound_by_cpu(
    request: Request, scenes: Mapping[str, _Scene], result: CaseResult
) -> Iterator[str]:
    """A note for each cgroup that did not get its due because all its CPUs were busy, so that no
    scheduler could give it more."""
    scene = scenes[result.case.name]
    found: dict[str, list[str]] = {}
    for run in result.runs:
        busy = _busy(request, scene, run)
        for group in run.cgroups:
            own = {cpu for name, cpu in _placed(request, scene) if name == group.name}
            bound = own and all(busy[cpu] >= CPU_BOUND for cpu in own)
            if bound and group.met < CPU_BOUND:
                labels = found.setdefault(group.name, [])
                if run.scheduler not in labels:
                    labels.append(run.scheduler)
    for name, labels in found.items():
        yield (
            f"{result.case.name}: {name} is limited by its own CPU under {', '.join(labels)}: no"
            " scheduler can give it its due: use more --cpus, a greater numjobs, or a smaller"
            " --request-ns"
        )


def _placed(request: Request, scene: _Scene) -> list[tuple[str, int]]:
    """The cgroup and the CPU of each load."""
    return [(load.cgroup, _cpu_of(n, load, request)) for n, load in enumerate(scene.loads)]


def _busy(request: Request, scene: _Scene, run: RunResult) -> dict[int, float]:
    """The part of the time for which each CPU was busy, if the loads of a cgroup have equal parts
    of its requests."""
    placed = _placed(request, scene)
    loads = Counter(name for name, _ in placed)
    iops = {group.name: group.iops for group in run.cgroups}
    request_ns = _request_ns(request, scene)
    own = price(scheduler_of(run.scheduler), request.priced)
    request_ns += own.own_ns(request_ns) + own.locked_ns(request_ns)
    busy: dict[int, float] = dict.fromkeys((cpu for _, cpu in placed), 0.0)
    for name, cpu in placed:
        busy[cpu] += iops.get(name, 0.0) / loads[name] * request_ns / 1e9
    return busy


def _usage(flow: Mapping[str, Any]) -> Usage:
    latency = {name: float(flow[f"{name}_ns"]) for name in ("mean", "p50", "p99", "p999")}
    return Usage(flow["iops"], flow["bytes_per_s"], latency, flow["histogram"])


def _timeline(scene: _Scene, run: Run, figures: Any) -> Document:
    steps = TIMELINE_STEP_MS // scene.step_ms
    groups = []
    for group in run.groups:
        series = [one["bytes"] for one in figures["flows"][scene.flows[group.name]]["series"]]
        sums = [sum(series[at : at + steps]) for at in range(0, len(series), steps)]
        groups.append({"name": group.name, "bytes": sums})
    return {"scheduler": run.scheduler, "repeat": run.repeat, "cgroups": groups}


def _where(request: Request, settings: Mapping[str, str]) -> Document:
    scene = request.jobs[0]
    return {
        "kernel": "simulated",
        "accel": SIM,
        "cpus": request.cpus,
        **({"sockets": request.sockets} if request.sockets > 1 else {}),
        "device": scene.path if isinstance(scene, SceneFile) else request.device.text,
        "seed": request.seed,
        **({"ssd": dict(settings)} if settings else {}),
        "versions": {"mqfair": __version__},
    }


def _notes(request: Request, settings: Mapping[str, str]) -> tuple[str, ...]:
    notes = [note for job in request.jobs for note in (*job.notes, *options.notes(job))]
    if settings:
        notes += ssd.notes(settings)
    return tuple(notes)
