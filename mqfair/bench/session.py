# SPDX-License-Identifier: GPL-2.0
"""One bench from job files to results, in a guest or on this host.

`mqfair bench` calls it, and so do tests that need the shares of a job file under a scheduler:

    outcome = run(Request((jobfile.load("four-cgroups.fio"),), ("none", "mqfq")), folder)
    outcome.results[0].runs[0].cgroups[0].share
"""

import contextlib
import dataclasses
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import guest, kernel
from lab.errors import LabError, SpecError
from lab.spec import GuestSpec
from lab.tree import DEFAULT_KERNEL, UML
from mqfair import __version__
from mqfair.bench import device as devices
from mqfair.bench import fiocheck, iocost, replays, resume, ssd
from mqfair.bench.cgroups import BFQ_WEIGHT_MAX
from mqfair.bench.device import DEFAULT_DEVICE, Device, check_drive, parse_device
from mqfair.bench.jobfile import JobFile
from mqfair.bench.kernel_log import splat, starved
from mqfair.bench.plan import (
    HOST,
    PROGRESS,
    SLACK_S,
    VM,
    Case,
    Event,
    Plan,
    PlannedDevice,
    PlannedGroup,
    PlannedJob,
)
from mqfair.bench.result import CaseResult, Document, analyse, read_records
from mqfair.bench.variant import (
    BFQ,
    DEFAULT_OURS,
    IOCOST,
    MQFQ,
    NONE,
    SCHEDULERS,
    THROTTLE,
    is_ours,
    merged_tunables,
    scheduler_of,
    schedulers_in,
)
from mqfair.machine import kmod
from mqfair.machine.blockdev import NR_REQUESTS_MAX, find_disk
from mqfair.machine.fs import Fs
from mqfair.machine.signals import interrupted_once
from mqfair.text.errors import Failure, UsageError
from mqfair.text.numbers import is_number

ROOT = Path(__file__).resolve().parents[2]
RUNNER = "mqfair.bench.runner"
NULL_BLK_NODE = "/dev/nullb0"
# Time limits in host seconds. RUN_OVERHEAD_S is for a run's start, end and logs on a busy host.
# FILL_S is for filling a virtual SSD and overwriting it to its steady state.
RUN_OVERHEAD_S = 60.0
BOOT_S = 180.0
FILL_S = 120.0
# The factor of time limits with counted time.
ICOUNT_PATIENCE = 60.0
# Replaces SLACK_S with counted time, in which other load on the host delays no job.
ICOUNT_SLACK_S = 0.3
# If none reaches less than this part of the drive's capacity, the processor is the bottleneck.
DEVICE_BOUND = 0.85

Progress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Request:
    """The request for a bench.

    @schedulers are labels of variant.py; empty stands for all that are available. @tunables are by
    scheduler. @events happen in every run of every job. With @icount the guest's clock counts
    instructions, so that load on the host does not slow its processor. @kernel is the guest's, by
    its name in lab.kernel. With @calibrate_s mqfq's
    depth and threshold are measured first, within this number of seconds. In the simulator repeat
    n has the seed @seed + n, @at_once runs go on at the same time, as many as cores for 0, a
    request takes @request_ns of CPU time, with @priced the time of its scheduler too, and the CPUs
    are on @sockets sockets. The runs are played by the Dask cluster of the scheduler at @cluster,
    or here. @reads_only and @condensed are those of the plan.
    """

    jobs: tuple[JobFile, ...]
    schedulers: tuple[str, ...] = ()
    repeat: int = 1
    device: Device = field(default_factory=lambda: parse_device(DEFAULT_DEVICE))
    on: str = VM
    cpus: int = 2
    icount: bool = False
    kernel: str | None = None
    nr_requests: int | None = None
    module: Path | None = None
    tunables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    solo: bool = False
    destroy_data: bool = False
    events: tuple[Event, ...] = ()
    time_limit_s: float = math.inf
    calibrate_s: int | None = None
    seed: int = 1
    at_once: int = 0
    request_ns: int | None = None
    priced: bool = False
    sockets: int = 1
    cluster: str | None = None
    reads_only: bool = False
    condensed: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The schedulers' names without tunables, each once."""
        return tuple(dict.fromkeys(map(scheduler_of, self.schedulers)))

    @property
    def ours(self) -> tuple[str, ...]:
        return tuple(filter(is_ours, self.names))


@dataclass(frozen=True)
class Outcome:
    """@where describes the machine: kernel, accel, cpus, device, versions."""

    results: tuple[CaseResult, ...]
    where: Document
    notes: tuple[str, ...]


class Interrupted(KeyboardInterrupt):
    """The user has ended the bench. @outcome has the runs that were finished, None without any."""

    def __init__(self, message: str, outcome: Outcome | None) -> None:
        super().__init__(message)
        self.outcome = outcome


def plan_for(request: Request) -> Plan:
    return Plan(
        cases=tuple(_case(job, request) for job in request.jobs),
        schedulers=request.schedulers,
        repeat=request.repeat,
        device=_planned(request.device),
        solo=request.solo,
        nr_requests=request.nr_requests,
        time_limit_s=request.time_limit_s,
        patience=ICOUNT_PATIENCE if request.icount else 1.0,
        module=str(request.module) if request.module and request.on == HOST else None,
        tunables=request.tunables,
        calibrate_s=request.calibrate_s,
        reads_only=request.reads_only,
        condensed=request.condensed,
    )


def _with_replays(plan: Plan, request: Request, folder: Path) -> Plan:
    """@plan with the files that fio replays, which are written to @folder."""
    cases = tuple(
        replays.planned(case, job, folder)
        for case, job in zip(plan.cases, request.jobs, strict=True)
    )
    return dataclasses.replace(plan, cases=cases)


def _planned(device: Device) -> PlannedDevice:
    if device.kind == devices.NULL:
        return PlannedDevice(NULL_BLK_NODE, parameters=dict(device.parameters))
    if device.kind == devices.SSD:
        return PlannedDevice(ssd.PATH, ssd=dict(device.settings))
    return PlannedDevice(device.path or "")


def _case(job: JobFile, request: Request) -> Case:
    slack_s = ICOUNT_SLACK_S if request.icount else SLACK_S
    groups = tuple(
        PlannedGroup(
            group.name,
            tuple(
                PlannedJob(one.name, one.options, job.ramp_s + one.runtime_s + slack_s, one.delayed)
                for one in group.jobs
            ),
        )
        for group in job.groups
    )
    return Case(
        job.name,
        groups,
        dict(job.weights),
        job.ramp_s,
        job.window_s,
        request.events,
        job.schedulers,
    )


def run(request: Request, folder: Path, progress: Progress = lambda _message: None) -> Outcome:
    """Runs the bench. @folder gets the raw files. It must be empty, or that of the same bench,
    which then goes on. @progress gets the runner's messages. Raises UsageError, Failure or
    Interrupted."""
    check(request)
    with tempfile.TemporaryDirectory(prefix="mqfair-bench-") as name:
        plan = _with_replays(plan_for(request), request, Path(name))
        resume.begin(plan, folder)
        for trace in Path(name).iterdir():
            shutil.copyfile(trace, folder / trace.name)
    resume.keep_log(folder)
    _require_valid(folder)
    try:
        with _lab_errors(), interrupted_once():
            runs_on = _run_in_guest if request.on == VM else _run_here
            accel = runs_on(request, plan, folder, progress)
    except (KeyboardInterrupt, SystemExit) as interrupt:
        raise _interrupted(request, plan, folder) from interrupt
    _require_valid(folder)
    machine = resume.machine_of(folder)
    results = tuple(_analysed(folder, case, machine) for case in plan.cases)
    notes = (*_log_notes(folder), *_notes(request, machine))
    notes += tuple(_processor_bound(request.device, results))
    notes += tuple(_short_of_tags(folder, results))
    return Outcome(results, _where(request, machine, accel), notes)


def _require_valid(folder: Path) -> None:
    for log in resume.kernel_logs(folder):
        trouble = splat(log)
        if trouble:
            raise Failure(f"the kernel logged an error, so the results are not valid:\n{trouble}")


def _log_notes(folder: Path) -> Iterator[str]:
    if resume.log_is_missing(folder):
        yield "the kernel log of an interrupted guest was not examined"


def _analysed(folder: Path, case: Case, machine: Mapping[str, Any]) -> CaseResult:
    return dataclasses.replace(analyse(folder, case), left_out=machine["left_out"])


def _interrupted(request: Request, plan: Plan, folder: Path) -> Interrupted:
    """The runs that have a record. A run writes its record when it is finished."""
    words = f"{resume.finished(folder)} of {len(plan.runs())} runs were finished"
    if request.on == HOST:
        words += "; scheduler, cgroups and modules are as before"
    try:
        machine = resume.machine_of(folder)
        results = tuple(_analysed(folder, case, machine) for case in plan.cases)
    except (OSError, ValueError, Failure):
        return Interrupted(words, None)
    if not any(result.runs for result in results):
        return Interrupted(words, None)
    notes = [f"interrupted: {words}", *_log_notes(folder)]
    if any(map(splat, resume.kernel_logs(folder))):
        notes.append("the kernel logged an error: the results are not valid")
    notes += _notes(request, machine)
    accel = HOST if request.on == HOST else "unknown"
    return Interrupted(words, Outcome(results, _where(request, machine, accel), tuple(notes)))


def check(request: Request) -> None:
    """Raises UsageError for a wrong request, before anything is changed."""
    if request.on == HOST:
        if request.device.kind != devices.DRIVE:
            raise UsageError(
                f"--device {request.device.text} exists only in a guest: use --on vm, or /dev/NAME"
            )
        if request.kernel is not None:
            raise UsageError(f"--kernel {request.kernel}: names a guest's kernel: use --on vm")
        if os.geteuid() != 0:
            raise UsageError("--on host sets schedulers and cgroups: run as root, or use --on vm")
        check_drive(
            request.device.text,
            destroy_data=request.destroy_data,
            reads_only=request.reads_only,
        )
    elif request.device.kind == devices.DRIVE:
        raise UsageError(
            f"--device {request.device.text} is a drive of this host, which a guest cannot access:"
            " use --on host, or null:..., nvme:... or ssd:..."
        )
    _check_cpus(request)
    _check_uml(request)
    _check_parts(request)
    if ssd.FETCH in request.device.settings:
        raise UsageError(
            f"--device {request.device.text}: {ssd.FETCH}: only the simulator has it: leave it out,"
            " or use mqfair sim"
        )
    if shutil.which("fio") is None:
        raise UsageError("fio is missing: install the package fio")
    if request.calibrate_s is not None and MQFQ not in request.names:
        raise UsageError("--calibrate measures for mqfq: add mqfq to --schedulers")
    if request.ours:
        _check_module(request)
    if request.device.kind == devices.SSD:
        _check_ssd_module(request)
    for job in request.jobs:
        fiocheck.check(job)


def _check_cpus(request: Request) -> None:
    if request.icount and (request.cpus != 1 or request.on != VM):
        raise UsageError("--icount needs a guest with one CPU: add --cpus 1 --on vm")


def _check_uml(request: Request) -> None:
    """Raises UsageError for a guest that user-mode Linux cannot be."""
    if request.kernel != UML:
        return
    if request.icount:
        raise UsageError("--icount counts emulated instructions: use --on vm")
    if request.device.kind == devices.NVME:
        raise UsageError(
            f"--device {request.device.text}: user-mode Linux has no such drive: use null:... or"
            " ssd:..., or --on vm"
        )


def _check_parts(request: Request) -> None:
    """Raises UsageError if a part of the drive belongs to a cgroup that is in no job file."""
    for part in ssd.parts_of(request.device.settings):
        for job in request.jobs:
            if part.cgroup not in job.weights:
                raise UsageError(
                    f"--device {request.device.text}: {ssd.PARTS}: {job.path} has no cgroup"
                    f" '{part.cgroup}': use {', '.join(job.weights)}"
                )


def _make_module(request: Request) -> str:
    """The command that builds the modules for the kernel of @request."""
    if request.kernel == UML:
        return "make uml"
    if request.kernel in (None, DEFAULT_KERNEL):
        return "make module"
    return f"make module KERNEL={request.kernel}"


def _check_module(request: Request) -> None:
    if request.module is not None:
        if not request.module.is_file():
            raise UsageError(
                f"--module {request.module}: no such file: run `{_make_module(request)}`"
            )
        present = schedulers_in(request.module)
        for name in request.ours:
            if name not in present:
                raise UsageError(
                    f"--schedulers: {request.module} has no scheduler {name}:"
                    f" use {', '.join(present)}, or run `{_make_module(request)}`"
                )
        _check_tunables(request, request.module)
        return
    fs = Fs()
    for name in request.ours:
        if request.on != HOST:
            raise UsageError(
                f"scheduler {name}: no module: run `{_make_module(request)}`, or name it with"
                " --module"
            )
        # The verb qualify has no --module, and `make module` builds for the kernels of guests.
        if not (kmod.loaded(fs) or kmod.autoloads(fs, name)):
            raise UsageError(f"scheduler {name}: {kmod.missing(fs)}")


def _check_tunables(request: Request, module: Path) -> None:
    """Raises UsageError for a tunable with a name that is nowhere in the module. The runner checks
    the names again, for each scheduler, with the kernel's own list."""
    data = module.read_bytes()
    for label in filter(is_ours, request.schedulers):
        for name in merged_tunables(label, request.tunables):
            if name.encode() + b"\0" not in data:
                raise UsageError(
                    f"--schedulers {label}: {module.name} has no tunable {name}: use one of the"
                    f" tunables of {scheduler_of(label)} in doc/"
                )


def _check_ssd_module(request: Request) -> None:
    """Raises UsageError unless mqfair-ssd.ko is beside mqfair.ko, which it needs."""
    beside = _ssd_module(request)
    if beside is None or not beside.is_file():
        raise UsageError(
            f"--device {request.device.text}: {beside or 'no module'}:"
            f" run `{_make_module(request)}`, or use --module with a mqfair.ko that has"
            " mqfair-ssd.ko beside it"
        )


def _ssd_module(request: Request) -> Path | None:
    return request.module.with_name(f"{ssd.MODULE}.ko") if request.module else None


def _modules(request: Request) -> tuple[Path, ...]:
    """The modules that the guest loads, in order."""
    beside = _ssd_module(request)
    if request.module is None or beside is None:
        return ()
    if request.device.kind == devices.SSD:
        return request.module, beside
    return (request.module,) if request.ours else ()


def with_built_module(request: Request) -> Request:
    """@request with defaults filled in. If it needs a module and names none, it gets the one built
    in this checkout for the kernel that will run. If it names no schedulers, it gets all that are
    available."""
    wanted = request.ours or not request.schedulers or request.device.kind == devices.SSD
    if request.module is None and wanted:
        with _lab_errors():
            release = (
                os.uname().release if request.on == HOST else kernel.ensure(request.kernel).release
            )
        path = ROOT / "build" / "module" / release / "mqfair.ko"
        if path.is_file():
            request = dataclasses.replace(request, module=path)
    if request.schedulers:
        return request
    # Without a module mqfq stays in the list, so that check() tells how to build one.
    present = _present(request) or (MQFQ,)
    # The rate of throttle is the user's.
    known = tuple(name for name in SCHEDULERS if name != THROTTLE)
    names = tuple(name for name in known if not is_ours(name) or name in present)
    return dataclasses.replace(request, schedulers=names)


def _present(request: Request) -> tuple[str, ...]:
    """Our schedulers that are available, without the examples."""
    if request.module is not None and request.module.is_file():
        return tuple(one for one in schedulers_in(request.module) if one in DEFAULT_OURS)
    if request.on == VM:
        return ()
    fs = Fs()
    selector = find_disk(fs, request.device.text).selector()
    offered = selector.available if selector else ()
    return tuple(name for name in DEFAULT_OURS if name in offered or kmod.autoloads(fs, name))


@contextlib.contextmanager
def _lab_errors() -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise UsageError(str(error)) from error
    except LabError as error:
        raise Failure(str(error)) from error


class _Messages:
    """Finds the runner's messages in its output, which arrives in arbitrary pieces."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rest = ""
        self.error: Mapping[str, Any] | None = None

    def add(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if not line.startswith(PROGRESS):
                continue
            message = json.loads(line.removeprefix(PROGRESS))
            if message["event"] == "error":
                self.error = message
            else:
                self._progress(message)

    def raise_error(self) -> None:
        if self.error is not None:
            kind = UsageError if self.error["usage"] else Failure
            raise kind(self.error["message"])


def _run_in_guest(request: Request, plan: Plan, folder: Path, progress: Progress) -> str:
    drive = request.device.drive
    spec = GuestSpec(
        cpus=request.cpus,
        icount=request.icount,
        kernel=request.kernel,
        drives=(drive,) if drive else (),
        modules=_modules(request),
        memory_mb=GuestSpec.memory_mb + int(request.device.settings.get("size_mb", "0")),
        timeout_s=_timeout_s(request, plan),
    )
    messages = _Messages(progress)
    progress({"event": "boot"})
    result = guest.run(
        spec,
        [sys.executable, "-m", RUNNER, guest.GUEST_OUT],
        env={"PYTHONPATH": str(ROOT)},
        out_dir=folder,
        sink=lambda name, data: (
            messages.add(data.decode(errors="replace")) if name == "stdout" else None
        ),
    )
    log = folder / "kernel.log"
    if not log.exists():
        log.write_text(result.dmesg)
    trouble = result.trouble() or starved(result.dmesg) or splat(result.dmesg)
    if trouble:
        raise Failure(trouble)
    messages.raise_error()
    if result.status != 0:
        raise Failure(f"the bench ended with status {result.status} in the guest: {result.stderr}")
    return result.accel


def _timeout_s(request: Request, plan: Plan) -> float:
    """The time limit of the guest. A virtual SSD is filled once more after iocost's model has been
    fitted."""
    fills = (1 + (IOCOST in request.names)) if plan.device.ssd else 0
    fit_s = iocost.CALIBRATE_TIMEOUT_S + RUN_OVERHEAD_S if IOCOST in request.names else 0.0
    return (
        BOOT_S
        + plan.patience * (fills * FILL_S + fit_s + (plan.calibrate_s or 0))
        + sum(one.case.run_s * plan.patience + RUN_OVERHEAD_S for one in plan.runs())
    )


def _run_here(request: Request, plan: Plan, folder: Path, progress: Progress) -> str:
    """Runs the runner in a process, which restores the machine even if this one is interrupted."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    messages = _Messages(progress)
    process = subprocess.Popen(
        [sys.executable, "-m", RUNNER, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            messages.add(line)
        status = process.wait()
    except BaseException:
        # The runner restores the machine. interrupted_once() holds off more signals meanwhile.
        process.send_signal(signal.SIGTERM)
        process.wait()
        raise
    messages.raise_error()
    if status != 0:
        raise Failure(f"the bench ended with status {status}")
    return HOST


def _where(request: Request, machine: Mapping[str, Any], accel: str) -> Document:
    versions = {"mqfair": __version__, "fio": machine["fio"], "python": machine["python"]}
    if machine["module"]:
        versions["module"] = machine["module"].strip()
    return {
        "kernel": machine["kernel"],
        "accel": accel,
        "cpus": machine["cpus"],
        "device": request.device.text,
        **({"ssd": machine["ssd"]} if machine["ssd"] else {}),
        "versions": versions,
    }


def _notes(request: Request, machine: Mapping[str, Any]) -> tuple[str, ...]:
    notes = [note for job in request.jobs for note in (*job.notes, *replays.notes(job))]
    compared = NONE in request.names and len(request.schedulers) > 1
    # With counted time repeats are alike.
    if compared and request.repeat == 1 and not request.icount:
        notes.append(
            "a ratio of single runs includes changes of the machine between two moments:"
            " --repeat 5 shows the least and the greatest ratio"
        )
    greatest = max(weight for job in request.jobs for weight in job.weights.values())
    if BFQ in request.names and greatest > BFQ_WEIGHT_MAX:
        notes.append(
            f"bfq's weights are 1..{BFQ_WEIGHT_MAX}: for bfq all weights are scaled by"
            f" {BFQ_WEIGHT_MAX}/{greatest} and rounded"
        )
    if machine["ssd"]:
        notes += ssd.notes(machine["ssd"])
    notes += iocost.notes(machine["iocost_model"] or {})
    if machine.get("uncounted"):
        notes.append(f"the machine does not count {machine['uncounted']}")
    notes += [f"{name} was left out: {why}" for name, why in machine["left_out"].items()]
    found = machine["calibration"]
    if found:
        notes += [f"calibrated: mqfq, {line}" for line in (*found["reasons"], *found["notes"])]
    return tuple(notes)


def _depth(case: Case) -> float:
    """The I/Os that all jobs together keep outstanding."""
    return sum(
        _number(job, "iodepth") * _number(job, "numjobs")
        for group in case.groups
        for job in group.jobs
    )


def _number(job: PlannedJob, name: str) -> float:
    """The value of option @name; infinite if it is an expression that only fio can evaluate."""
    found = [text for key, _, text in (one.partition("=") for one in job.options) if key == name]
    text = found[-1] if found else "1"
    return int(text) if is_number(text, 0, (1 << 64) - 1) else math.inf


def _short_of_tags(folder: Path, results: Sequence[CaseResult]) -> Iterator[str]:
    """A note for each case in which BFQ saw a part of the requests only, so that the order in which
    tags became free decided its shares."""
    records = [record for _, record in read_records(folder)]
    tags = {one["case"]: one["sched_tags"] for one in records if "sched_tags" in one}
    for case in (result.case for result in results):
        depth = _depth(case)
        found = tags.get(case.name, depth)
        if found < depth < math.inf:
            enough = min(round(depth), NR_REQUESTS_MAX)
            yield (
                f"{case.name}: {BFQ} had {found} scheduler tags for {depth:g} I/Os, and orders only"
                f" those with a tag: --nr-requests {enough} gives it more"
            )


def _processor_bound(drive: Device, results: Sequence[CaseResult]) -> Iterator[str]:
    """A note for each case in which the processor was the bottleneck and not the drive, so that the
    shares mean little. Jobs with fewer I/Os than the drive has slots are limited by neither."""
    capacity = devices.null_capacity_iops(drive)
    if capacity is None:
        return
    for result in results:
        if _depth(result.case) < devices.null_slots(drive):
            continue
        reached = [
            devices.null_requests(drive, run.total_iops, run.total_bytes_per_s)
            for run in result.runs
            if run.scheduler == NONE
        ]
        if reached and statistics.median(reached) < DEVICE_BOUND * capacity:
            yield (
                f"{result.case.name}: none reached {statistics.median(reached):,.0f} of the"
                f" drive's {capacity:,.0f} requests per second: the processor is the bottleneck,"
                " and shares mean little: reduce the load on this machine, or use a slower drive"
            )
