# SPDX-License-Identifier: GPL-2.0
"""One bench from job files to results, in a guest or on this host.

This is what `mqfair bench` calls, and what a test calls that wants the shares of a job file
under a scheduler:

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab import guest, kernel
from lab.errors import LabError, SpecError
from lab.spec import GuestSpec
from mqfair import __version__, kmod
from mqfair.benchlib import device as devices
from mqfair.benchlib import ssd
from mqfair.benchlib.cgroups import BFQ_WEIGHT_MAX
from mqfair.benchlib.device import DEFAULT_DEVICE, Device, check_drive, parse_device
from mqfair.benchlib.jobfile import JobFile
from mqfair.benchlib.kernel_log import splat
from mqfair.benchlib.plan import (
    PROGRESS,
    SLACK_S,
    Case,
    Event,
    Plan,
    PlannedDevice,
    PlannedGroup,
    PlannedJob,
    write_plan,
)
from mqfair.benchlib.result import CaseResult, Document, analyse
from mqfair.benchlib.variant import (
    BFQ,
    MQFQ,
    NONE,
    OURS,
    SCHEDULERS,
    is_ours,
    scheduler_of,
    schedulers_in,
)
from mqfair.blockdev import find_disk
from mqfair.errors import Failure, UsageError
from mqfair.fs import Fs

VM = "vm"
HOST = "host"

ROOT = Path(__file__).resolve().parents[2]
RUNNER = "mqfair.benchlib.runner"
NULL_BLK_NODE = "/dev/nullb0"
# For starting fio, settling and copying logs, on an emulated processor with neighbours.
RUN_OVERHEAD_S = 60.0
BOOT_S = 180.0
# For filling a virtual SSD and overwriting it until it is in its steady state.
FILL_S = 120.0
ICOUNT_PATIENCE = 60.0
# For jobs that start late, instead of SLACK_S: no neighbour takes counted time from them.
ICOUNT_SLACK_S = 0.3
# Of what its slots and its completion time allow: a drive that is reached less is not the limit.
DEVICE_BOUND = 0.85

Progress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Request:
    """@schedulers are labels of variant.py; none: all that can be had. @events are carried out in
    every run of every job; tunables are by scheduler. With @icount the guest's clock counts
    instructions, so that a busy host does not slow its processor. With @calibrate_s mqfq's depth
    and threshold are measured first, for so long at most."""

    jobs: tuple[JobFile, ...]
    schedulers: tuple[str, ...] = ()
    repeat: int = 1
    device: Device = field(default_factory=lambda: parse_device(DEFAULT_DEVICE))
    on: str = VM
    cpus: int = 2
    icount: bool = False
    nr_requests: int | None = None
    module: Path | None = None
    tunables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    solo: bool = False
    destroy_data: bool = False
    events: tuple[Event, ...] = ()
    time_limit_s: float = math.inf
    calibrate_s: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the schedulers, without their tunables."""
        return tuple(dict.fromkeys(map(scheduler_of, self.schedulers)))

    @property
    def ours(self) -> tuple[str, ...]:
        return tuple(filter(is_ours, self.names))


@dataclass(frozen=True)
class Outcome:
    results: tuple[CaseResult, ...]
    where: Document
    notes: tuple[str, ...]


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
    )


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
    return Case(job.name, groups, dict(job.weights), job.ramp_s, job.window_s, request.events)


def run(request: Request, folder: Path, progress: Progress = lambda _message: None) -> Outcome:
    """Raw files stay in @folder, which must be empty."""
    check(request)
    plan = plan_for(request)
    write_plan(plan, folder / "plan.json")
    with _lab_errors():
        accel = (_run_in_guest if request.on == VM else _run_here)(request, plan, folder, progress)
    trouble = splat((folder / "kernel.log").read_text())
    if trouble:
        raise Failure(f"the kernel complained during the bench, nothing is reported:\n{trouble}")
    machine = json.loads((folder / "machine.json").read_text())
    results = tuple(analyse(folder, case) for case in plan.cases)
    notes = (*_notes(request, machine), *_processor_bound(request.device, results))
    return Outcome(results, _where(request, machine, accel), notes)


def check(request: Request) -> None:
    """Everything that can be known to be wrong before anything is changed."""
    if request.on == HOST:
        if request.device.kind != devices.DRIVE:
            raise UsageError(
                f"--device {request.device.text} is made in a guest: use --on vm, or /dev/NAME"
            )
        if os.geteuid() != 0:
            raise UsageError("--on host sets schedulers and cgroups: run as root, or --on vm")
        check_drive(request.device.text, destroy_data=request.destroy_data)
    elif request.device.kind == devices.DRIVE:
        raise UsageError(
            f"--device {request.device.text} is a drive of this host, which a guest does not see:"
            " use --on host, or null:..., nvme:... or ssd:..."
        )
    _check_cpus(request)
    _check_parts(request)
    if shutil.which("fio") is None:
        raise UsageError("fio is missing: install package fio")
    if request.calibrate_s is not None and MQFQ not in request.names:
        raise UsageError("--calibrate finds tunables of mqfq: add it to --schedulers")
    if request.ours:
        _check_module(request)
    if request.device.kind == devices.SSD:
        _check_ssd_module(request)


def _check_cpus(request: Request) -> None:
    if request.icount and (request.cpus != 1 or request.on != VM):
        raise UsageError("--icount counts the instructions of a guest with one CPU: add --cpus 1")


def _check_parts(request: Request) -> None:
    """Pages belong to cgroups that there will be."""
    for part in ssd.parts_of(request.device.settings):
        for job in request.jobs:
            if part.cgroup not in job.weights:
                raise UsageError(
                    f"--device {request.device.text}: {ssd.PARTS}: {job.path} has no cgroup"
                    f" '{part.cgroup}': use {', '.join(job.weights)}"
                )


def _check_module(request: Request) -> None:
    if request.module is not None:
        if not request.module.is_file():
            raise UsageError(f"--module {request.module}: no such file: run `make module`")
        present = schedulers_in(request.module)
        for name in request.ours:
            if name not in present:
                raise UsageError(
                    f"--schedulers: {request.module} has no scheduler {name}:"
                    f" use {', '.join(present)}, or build it anew: `make module`"
                )
        return
    fs = Fs()
    for name in request.ours:
        if request.on == VM or not (kmod.loaded(fs) or kmod.autoloads(fs, name)):
            raise UsageError(
                f"scheduler {name}: no module: run `make module`, or name it with --module"
            )


def _check_ssd_module(request: Request) -> None:
    """It is built beside mqfair.ko, which it needs."""
    beside = _ssd_module(request)
    if beside is None or not beside.is_file():
        raise UsageError(
            f"--device {request.device.text}: {beside or 'no module'}: run `make module`,"
            " or name mqfair.ko with --module and have mqfair-ssd.ko beside it"
        )


def _ssd_module(request: Request) -> Path | None:
    return request.module.with_name(f"{ssd.MODULE}.ko") if request.module else None


def _modules(request: Request) -> tuple[Path, ...]:
    """What the guest loads, in order."""
    beside = _ssd_module(request)
    if request.module is None or beside is None:
        return ()
    if request.device.kind == devices.SSD:
        return request.module, beside
    return (request.module,) if request.ours else ()


def with_built_module(request: Request) -> Request:
    """With this checkout's module for the kernel that will run, if a scheduler of ours or the
    drive wants one, it is built, and none is named; and with all schedulers that there are where
    none is named."""
    wanted = request.ours or not request.schedulers or request.device.kind == devices.SSD
    if request.module is None and wanted:
        with _lab_errors():
            release = os.uname().release if request.on == HOST else kernel.ensure().release
        path = ROOT / "build" / "module" / release / "mqfair.ko"
        if path.is_file():
            request = dataclasses.replace(request, module=path)
    if request.schedulers:
        return request
    # Without any module mqfq stays, so that check() says how to come by one.
    present = _present(request) or (MQFQ,)
    names = tuple(name for name in SCHEDULERS if not is_ours(name) or name in present)
    return dataclasses.replace(request, schedulers=names)


def _present(request: Request) -> tuple[str, ...]:
    """Ours that can be had."""
    if request.module is not None and request.module.is_file():
        return schedulers_in(request.module)
    if request.on == VM:
        return ()
    fs = Fs()
    selector = find_disk(fs, request.device.text).selector()
    offered = selector.available if selector else ()
    return tuple(name for name in OURS if name in offered or kmod.autoloads(fs, name))


@contextlib.contextmanager
def _lab_errors() -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise UsageError(str(error)) from error
    except LabError as error:
        raise Failure(str(error)) from error


class _Messages:
    """Picks the runner's messages out of its output, whatever pieces that comes in."""

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
        drives=(drive,) if drive else (),
        modules=_modules(request),
        memory_mb=GuestSpec.memory_mb + int(request.device.settings.get("size_mb", "0")),
        timeout_s=BOOT_S
        + plan.patience * (FILL_S if plan.device.ssd else 0)
        + plan.patience * (plan.calibrate_s or 0)
        + sum(one.case.run_s * plan.patience + RUN_OVERHEAD_S for one in plan.runs()),
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
    trouble = result.trouble() or splat(result.dmesg)
    if trouble:
        raise Failure(trouble)
    messages.raise_error()
    if result.status != 0:
        raise Failure(f"the bench ended with status {result.status} in the guest: {result.stderr}")
    return result.accel


def _run_here(request: Request, plan: Plan, folder: Path, progress: Progress) -> str:
    """In a process of its own, which puts everything back even when this one is interrupted."""
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
    notes = [note for job in request.jobs for note in job.notes]
    greatest = max(weight for job in request.jobs for weight in job.weights.values())
    if BFQ in request.names and greatest > BFQ_WEIGHT_MAX:
        notes.append(
            f"bfq knows weights of 1..{BFQ_WEIGHT_MAX}: all are scaled by"
            f" {BFQ_WEIGHT_MAX}/{greatest} for it, and rounded"
        )
    if machine["ssd"]:
        notes += ssd.notes(machine["ssd"])
    if machine["iocost_model"]:
        rates = " ".join(f"{name}={rate}" for name, rate in machine["iocost_model"].items())
        notes.append(f"iocost's model, fitted to this drive under none: {rates}")
    found = machine["calibration"]
    if found:
        notes += [f"calibrated: mqfq, {line}" for line in (*found["reasons"], *found["notes"])]
    return tuple(notes)


def _depth(case: Case) -> float:
    """I/Os that the jobs keep asking for."""
    return sum(
        _number(job, "iodepth") * _number(job, "numjobs")
        for group in case.groups
        for job in group.jobs
    )


def _number(job: PlannedJob, name: str) -> float:
    """Of an option; infinite where fio alone can read it."""
    found = [text for key, _, text in (one.partition("=") for one in job.options) if key == name]
    text = found[-1] if found else "1"
    return int(text) if text.isdecimal() else math.inf


def _processor_bound(drive: Device, results: Sequence[CaseResult]) -> Iterator[str]:
    """Weights divide the drive: where the processor is what is short, shares mean little. Jobs that
    ask for less than the drive has slots are limited by neither."""
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
                f" drive's {capacity:,.0f} requests a second: the processor is the limit and shares"
                " say little: take load off this machine, or ask for a slower drive"
            )
