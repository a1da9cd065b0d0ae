# SPDX-License-Identifier: GPL-2.0
"""Executes a plan on this machine and restores the machine's settings afterwards.

    python3 -m mqfair.bench.runner FOLDER

reads FOLDER/plan.json, leaves out the runs that are finished there, and writes

    machine.json                kernel, fio, drive, iocost's model, calibration, and the schedulers
                                that were left out, with the reasons; a part of a bench takes
                                these over from the part before it
    kernel.log                  the kernel's messages from begin to end
    NNN/run.json                the run of the plan, the time when its jobs had started and, on a
                                virtual SSD, the time planes were busy for each group
    NNN/fio.json                fio's own result
    NNN/<group>_lat.<job>.log   a line for each I/O; groups are numbered as in run.json
    NNN/figures.json            in a condensed plan, in place of the logs

One fio runs all jobs. Each job is a process. It joins its cgroup when fio starts all jobs, before
its first I/O. Standard output has one line for each step, see PROGRESS in plan.py.
"""

import contextlib
import dataclasses
import errno
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqfair.bench import cgroups, iocost, iomax, resume, ssd
from mqfair.bench.counters import Counters, counting
from mqfair.bench.kernel_log import messages, open_log
from mqfair.bench.plan import (
    FIGURES,
    PLAN,
    PROGRESS,
    RECORD,
    RUN_GRACE_S,
    Event,
    Plan,
    PlannedJob,
    Run,
    read_plan,
)
from mqfair.bench.variant import (
    BFQ,
    DEADLINE,
    IOCOST,
    KYBER,
    MQFQ,
    NONE,
    THROTTLE,
    is_ours,
    merged_tunables,
    scheduler_of,
)
from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk, find_disk, require_number, setting
from mqfair.machine.cgroup import Cgroup, root_cgroup
from mqfair.machine.fs import Fs
from mqfair.machine.lock import locked
from mqfair.machine.signals import interrupted_once
from mqfair.text.errors import Failure, UsageError
from mqfair.tune.enable import Enabler, calibrated
from mqfair.tune.enable import Plan as EnablePlan

JOB_FILE = "job.fio"
RESULT = "fio.json"
ERRORS = "fio.err"
# The initial entries of each job's log, the greatest number that fio accepts, because entries are
# lost while a log grows. The kernel allocates the memory as the log fills.
LOG_ENTRIES = 1 << 20
_PRERUN_OUTPUT = ".prerun.txt"

_START_TIMEOUT_S = 60.0
_START_POLL_S = 0.05
# Long, because under --icount the guest's clock jumps forward while it waits for the host.
_MODULE_TIMEOUT_S = 3600.0
_ERROR_LINES = 5
# fio uses job names in file names of a shell command, without quoting.
_UNSAFE = re.compile(r"[^\w.-]")
# The kernel's schedulers that may be modules, and their modules.
SCHEDULER_MODULES = {BFQ: "bfq", KYBER: "kyber-iosched", DEADLINE: "mq-deadline"}

# (seconds after the jobs have started, function to call).
Step = tuple[float, Callable[[], None]]


def _say(**message: object) -> None:
    print(PROGRESS + json.dumps(message), flush=True)


class Runner:
    """Executes one plan on one drive and writes its records to a folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._fs = Fs()
        fio = shutil.which("fio")
        if fio is None:
            raise Failure("fio is missing: install the package fio")
        self._fio = fio
        self._model: dict[str, int] = {}
        self._left_out: dict[str, str] = {}
        self._tunables = dict(plan.tunables)
        self._calibration: dict[str, object] = {}
        self._ssd: dict[str, str] = {}
        self._counters: Counters | None = None
        self._number = ""
        self._before = resume.machine_before(folder)

    def run(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_kernel_log(self._folder / "kernel.log"))
            self._ssd = stack.enter_context(_ssd(self._plan, self._fs))
            disk = stack.enter_context(_drive(self._plan, self._fs))
            stack.enter_context(locked(disk))
            # A module leaves after the scheduler that is in it.
            stack.enter_context(_modules(self._plan, self._fs))
            stack.enter_context(_scheduler_restored(disk))
            own = stack.enter_context(cgroups.io_controller(self._fs))
            self._number = require_number(disk)
            iocost.require_off(root_cgroup(self._fs), self._number)
            if self._plan.condensed:
                self._counters = stack.enter_context(counting(disk))
            self._try_tunables(disk)
            if self._before is None:
                self._fit_iocost(disk)
                self._calibrate(disk)
            else:
                self._take_over(self._before)
            self._record_machine(disk)
            self._all_runs(disk, own)

    def _all_runs(self, disk: Disk, own: Cgroup) -> None:
        """Makes all runs, but no repeat that would exceed the plan's time limit."""
        runs = self._plan.runs()
        started = time.monotonic()
        for number, run in enumerate(runs):
            if resume.is_finished(self._folder, number):
                continue
            if run.repeat and run.repeat != runs[number - 1].repeat:
                spent = time.monotonic() - started
                if spent + spent / run.repeat > self._plan.time_limit_s:
                    return
            _say(
                event="run",
                number=number,
                runs=len(runs),
                case=run.case.name,
                scheduler=run.scheduler,
                repeat=run.repeat,
                only=run.only.name if run.only else None,
            )
            self._one(disk, own, run, resume.run_folder(self._folder, number))

    def _try_tunables(self, disk: Disk) -> None:
        """Sets all tunables once before the first run, because only the kernel can check them."""
        for label in self._plan.schedulers:
            if not merged_tunables(label, self._tunables):
                continue
            try:
                with self._scheduled(disk, label):
                    pass
            except Failure as error:
                raise UsageError(f"--schedulers {label}: {error}") from error

    def _calibrate(self, disk: Disk) -> None:
        """Calibrates mqfq. The user's own tunables take precedence over the result."""
        if self._plan.calibrate_s is None:
            return
        _say(event="calibrate", what="mqfq's depth and threshold")
        _set_scheduler(disk, NONE)
        asked = EnablePlan(MQFQ, {}, self._plan.nr_requests)
        found = calibrated(disk, asked, self._plan.calibrate_s, force=False)
        self._calibration = found.as_json()
        self._tunables[MQFQ] = {**found.tunables(), **self._tunables.get(MQFQ, {})}

    def _fit_iocost(self, disk: Disk) -> None:
        if IOCOST not in self._plan.schedulers:
            return
        if not self._fs.exists(root_cgroup(self._fs).file(iocost.QOS_FILE)):
            raise Failure("this kernel has no iocost: leave it out of --schedulers")
        _say(event="calibrate", what="iocost's model")
        _set_scheduler(disk, NONE)
        with tempfile.TemporaryDirectory(prefix="mqfair-bench-") as name:
            timeout_s = iocost.CALIBRATE_TIMEOUT_S * self._plan.patience
            path = self._plan.device.path
            try:
                self._model = iocost.calibrate(
                    self._fio, path, Path(name), timeout_s, reads_only=self._plan.reads_only
                )
            except Failure as error:
                self._leave_out(IOCOST, error)
        if self._ssd:
            # The drive goes on collecting garbage for a long time after the writes.
            ssd.remake(self._fs)
            self._number = require_number(disk)

    def _take_over(self, before: Mapping[str, Any]) -> None:
        """Uses what the part before has measured, so that all runs have the same tunables."""
        self._model = before["iocost_model"]
        self._calibration = before["calibration"]
        self._tunables = before["tunables"]
        for label, reason in before["left_out"].items():
            self._leave_out(label, Failure(reason))

    def _leave_out(self, label: str, reason: Failure) -> None:
        """Goes on without @label; raises @reason if no other scheduler is left."""
        others = tuple(one for one in self._plan.schedulers if one != label)
        if not others:
            raise reason
        self._left_out[label] = str(reason).removeprefix(f"{label}: ")
        self._plan = dataclasses.replace(self._plan, schedulers=others)

    def _record_machine(self, disk: Disk) -> None:
        version = subprocess.run(
            [self._fio, "--version"], capture_output=True, text=True, check=True
        )
        machine = {
            "kernel": os.uname().release,
            "cpus": os.cpu_count(),
            "fio": version.stdout.strip(),
            "python": sys.version.split()[0],
            "disk": disk.name,
            "iocost_model": self._model,
            "calibration": self._calibration,
            "tunables": self._tunables,
            "left_out": self._left_out,
            "ssd": self._ssd,
            "module": self._fs.read_if_any("/sys/module/mqfair/srcversion"),
            "uncounted": _uncounted(self._counters),
        }
        if self._before is not None:
            resume.require_same_machine(self._before, machine)
        _write(self._folder / resume.MACHINE, machine)

    def _one(self, disk: Disk, own: Cgroup, run: Run, folder: Path) -> None:
        folder.mkdir()
        scheduler = scheduler_of(run.scheduler)
        weights = cgroups.scheduler_weights(scheduler, run.case.weights)
        with contextlib.ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mqfair-bench-")))
            groups = stack.enter_context(cgroups.tree(own, run.case.weights))
            self._fill(disk, groups)
            tunables = stack.enter_context(self._scheduled(disk, run.scheduler))
            for name, group in groups.items():
                cgroups.set_weight(group, scheduler, weights[name])
            if scheduler == THROTTLE:
                for one in run.groups:
                    iomax.limit(groups[one.name], self._number, weights[one.name], tunables)
            tags = _sched_tags(disk, scheduler)
            started_ms, busy_us, cpu = self._measure(run, groups, tunables, work)
            _served(groups, run, self._number)
            if self._plan.condensed:
                _condense(work, run)
            for file in work.iterdir():
                if not file.name.endswith(_PRERUN_OUTPUT) and not file.is_symlink():
                    shutil.copyfile(file, folder / file.name)
        record = {
            "case": run.case.name,
            "scheduler": run.scheduler,
            "repeat": run.repeat,
            "only": run.only.name if run.only else None,
            "groups": [group.name for group in run.groups],
            "weights": weights,
            "started_ms": started_ms,
            "tunables": tunables,
            **({"busy_us": busy_us} if busy_us else {}),
            **({"cpu": cpu} if cpu else {}),
            **({"sched_tags": tags} if tags else {}),
        }
        # A run with a record is finished.
        _write(folder / RECORD, record)

    def _fill(self, disk: Disk, groups: dict[str, Cgroup]) -> None:
        """Makes a virtual SSD anew for each run. fio writes the same places in each run, so on a
        drive with the garbage of the run before whole blocks become free, and writes are faster."""
        if not self._ssd:
            return
        parts = ssd.parts_of(self._ssd)
        if parts:
            ssd.fill_parts(self._fs, parts, groups)
        else:
            ssd.remake(self._fs)
        self._number = require_number(disk)

    @contextlib.contextmanager
    def _scheduled(self, disk: Disk, label: str) -> Iterator[dict[str, str]]:
        """Selects a new instance of the scheduler; yields its tunables as the kernel has them."""
        scheduler = scheduler_of(label)
        _set_scheduler(disk, NONE)
        if scheduler == IOCOST:
            scale = int(self._ssd.get("time_scale", "1"))
            root = root_cgroup(self._fs)
            with iocost.switched_on(self._fs, root, self._number, self._model, scale):
                yield {}
            return
        tunables = merged_tunables(label, self._tunables)
        if scheduler == THROTTLE:
            yield {iomax.TUNABLE: str(iomax.kib_per_weight(tunables))}
            return
        _set_scheduler(disk, scheduler)
        _require_tunables(disk, scheduler, tunables)
        if is_ours(scheduler):
            # Enabler is the code of `mqfair enable`, which also chooses the number of tags.
            Enabler(disk, EnablePlan(scheduler, tunables, self._plan.nr_requests)).run()
        elif scheduler != NONE:
            self._tune(disk, tunables)
        yield disk.tunables()

    def _tune(self, disk: Disk, tunables: Mapping[str, str]) -> None:
        if self._plan.nr_requests is not None:
            self._fs.write(disk.queue("nr_requests"), str(self._plan.nr_requests))
        for name, value in tunables.items():
            self._fs.write(disk.tunable(name), value)

    def _measure(
        self, run: Run, groups: dict[str, Cgroup], tunables: Mapping[str, str], work: Path
    ) -> tuple[float, dict[str, int], dict[str, int]]:
        """Runs fio. Returns the time when all jobs were in their cgroups (ms of the monotonic
        clock), each group's busy time on a virtual SSD (us), and the work of the processors."""
        steps = _events(run, groups, self._number, tunables)
        busy, busy_steps = _watched(
            run, functools.partial(ssd.busy_us, self._fs, groups) if self._ssd else None
        )
        cpu, cpu_steps = _watched(run, self._counters.look if self._counters else None)
        steps += [*busy_steps, *cpu_steps]
        (work / JOB_FILE).write_text(self._job_text(run, groups))
        for trace in self._folder.glob("trace-*"):
            (work / trace.name).symlink_to(trace.resolve())
        argv = [self._fio, "--output-format=json", "--eta=never", f"--output={RESULT}", JOB_FILE]
        if self._plan.reads_only:
            argv.insert(1, "--readonly")
        with (work / ERRORS).open("w") as errors:
            fio = subprocess.Popen(
                argv, stdout=errors, stderr=errors, cwd=work, start_new_session=True
            )
        try:
            started = _await_jobs(fio, run, groups, _START_TIMEOUT_S * self._plan.patience)
            _supervise(fio, run, started, steps, RUN_GRACE_S * self._plan.patience)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(fio.pid, signal.SIGKILL)
            fio.wait()
        if fio.returncode != 0:
            raise Failure(_complaint(fio.returncode, work / ERRORS))
        return started * 1000, _difference(busy), _difference(cpu)

    def _job_text(self, run: Run, groups: dict[str, Cgroup]) -> str:
        lines: list[str] = []
        for index, group in enumerate(run.groups):
            for job in group.jobs:
                lines += [f"[{_UNSAFE.sub('_', job.name)}]", *job.options]
                lines += self._own_options(job, index, groups[group.name])
        return "\n".join(lines) + "\n"

    def _own_options(self, job: PlannedJob, index: int, group: Cgroup) -> Iterator[str]:
        yield f"filename={self._plan.device.path}"
        if any(option.startswith("read_iolog=") for option in job.options):
            yield f"replay_redirect={self._plan.device.path}"
        yield "time_based"
        yield f"runtime={round(job.run_s * 1000)}ms"
        # fio appends a redirection, and treats the rest of a line after a semicolon as a comment.
        yield f"exec_prerun=( echo $PPID > '{self._fs.host_path(group.file('cgroup.procs'))}' )"
        # Without these options fio would log submission and completion latencies, too.
        yield f"write_lat_log={index}"
        yield from ("disable_slat=1", "disable_clat=1", "disable_lat=0", "lat_percentiles=1")
        yield from ("per_job_logs=1", "log_avg_msec=0", f"log_entries={LOG_ENTRIES}")
        yield "log_alternate_epoch=1"
        yield f"log_alternate_epoch_clock_id={time.CLOCK_MONOTONIC}"


def _await_jobs(
    fio: subprocess.Popen[bytes], run: Run, groups: dict[str, Cgroup], timeout_s: float
) -> float:
    """Waits until each cgroup has processes, except cgroups with a delayed job. Returns the time in
    s of the monotonic clock; raises Failure after @timeout_s."""
    deadline = time.monotonic() + timeout_s
    waiting = {group.name for group in run.groups if not all(job.delayed for job in group.jobs)}
    while waiting and fio.poll() is None:
        waiting = {name for name in waiting if not groups[name].words("cgroup.procs")}
        if time.monotonic() > deadline:
            raise Failure(
                f"fio did not start all jobs within {timeout_s:.0f} s: reduce the machine's load"
            )
        time.sleep(_START_POLL_S)
    return time.monotonic()


def _supervise(
    fio: subprocess.Popen[bytes],
    run: Run,
    started: float,
    steps: Sequence[Step],
    grace_s: float,
) -> None:
    """Calls @steps at their times until fio has ended; raises Failure if fio hangs."""
    deadline = started + run.case.run_s + grace_s
    for after_s, step in sorted(steps, key=lambda one: one[0]):
        with contextlib.suppress(subprocess.TimeoutExpired):
            fio.wait(max(0.0, started + after_s - time.monotonic()))
            return
        step()
    try:
        fio.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Failure(
            f"{run.scheduler}: fio did not end within {grace_s:.0f} s after its runtime, I/O may"
            " hang: see the kernel log (dmesg)"
        ) from None


def _events(
    run: Run, groups: dict[str, Cgroup], number: str, tunables: Mapping[str, str]
) -> list[Step]:
    limited = scheduler_of(run.scheduler) == THROTTLE

    def act(event: Event) -> None:
        group = groups[event.cgroup]
        if event.action != "weight":
            group.fs.write(group.file("cgroup.freeze"), str(event.value))
        elif limited:
            iomax.limit(group, number, event.value, tunables)
        else:
            cgroups.set_weight(group, scheduler_of(run.scheduler), event.value)

    events = run.case.events if run.only is None else ()
    return [(event.after_s, functools.partial(act, event)) for event in events]


def _watched(
    run: Run, look: Callable[[], dict[str, int]] | None
) -> tuple[list[dict[str, int]], list[Step]]:
    """A list, and the steps that put what @look finds at both ends of the counted time into it."""
    found: list[dict[str, int]] = []
    if look is None:
        return found, []
    ends = (run.case.ramp_s, run.case.ramp_s + run.case.window_s)
    return found, [(end_s, lambda: found.append(look())) for end_s in ends]


def _difference(found: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """What was counted between two looks; empty if fio ended before the second."""
    if len(found) < 2:
        return {}
    return {name: count - found[0][name] for name, count in found[1].items()}


def _uncounted(counters: Counters | None) -> str:
    """The names that are not counted, with the kernel's reasons."""
    missing = counters.missing if counters else {}
    return ", ".join(f"{name} ({reason})" for name, reason in missing.items())


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Writes @path in one step. A full disk or a killed guest leaves it as it was."""
    partial = path.with_name(f"{path.name}.new")
    partial.write_text(json.dumps(document, indent=1))
    partial.rename(path)


def _condense(folder: Path, run: Run) -> None:
    """Puts the figures of the run in @folder in the place of its logs."""
    # Only a condensed plan needs numpy here.
    from mqfair.bench.result import condense  # noqa: PLC0415

    names = [group.name for group in run.groups]
    figures = condense(folder, run.case, run.scheduler, names)
    for log in folder.glob("*_lat.*.log"):
        log.unlink()
    (folder / FIGURES).write_text(figures)


def _complaint(status: int, errors: Path) -> str:
    lines = errors.read_text(errors="replace").split("\n")
    said = " / ".join([line.strip() for line in lines if line.strip()][-_ERROR_LINES:])
    return f"fio ended with status {status}: {said or 'no message'}"


def _served(groups: dict[str, Cgroup], run: Run, number: str) -> None:
    """Raises Failure if io.stat shows no I/O of a cgroup, which was then charged elsewhere."""
    for group in run.groups:
        stat = groups[group.name].stat().get(number, {})
        if not any(int(stat.get(key, "0")) for key in ("rios", "wios", "dios")):
            raise Failure(f"{run.scheduler}: no I/O was charged to cgroup {group.name}")


def _sched_tags(disk: Disk, scheduler: str) -> int | None:
    """The scheduler tags of BFQ, the one scheduler of the kernel that shares by weight among the
    requests with a tag."""
    requests = disk.nr_requests() if scheduler == BFQ else None
    return None if requests is None else requests * disk.queue_count()


def _set_scheduler(disk: Disk, scheduler: str) -> None:
    selector = disk.require_selector()
    if selector.active == scheduler:
        return
    disk.fs.write(
        disk.scheduler_file,
        scheduler,
        {errno.EINVAL: f"this kernel has no scheduler {scheduler} for {disk.name}"},
    )
    now = disk.require_selector().active
    if now != scheduler:
        raise Failure(
            f"{disk.scheduler_file} reads back '{now}' after '{scheduler}' was written:"
            " see the kernel log (dmesg)"
        )


def _require_tunables(disk: Disk, scheduler: str, tunables: Mapping[str, str]) -> None:
    present = disk.tunables()
    absent = [name for name in tunables if name not in present]
    if absent:
        known = ", ".join(present) or "none"
        research = kmod.research_hint(disk.fs) if is_ours(scheduler) else ""
        raise Failure(f"{scheduler} has no tunable {absent[0]}: use {known}{research}")


@contextlib.contextmanager
def _scheduler_restored(disk: Disk) -> Iterator[None]:
    before = disk.require_selector().active
    requests = disk.nr_requests()
    tunables = disk.tunables()
    try:
        yield
    finally:
        _set_scheduler(disk, before)
        if requests is not None and disk.nr_requests() != requests:
            disk.fs.write(disk.queue("nr_requests"), str(requests))
        _restore_tunables(disk, tunables)


def _restore_tunables(disk: Disk, before: Mapping[str, str]) -> None:
    """Writes the tunables that the switch to a new instance has reset. A tunable that reads `32
    auto` was set to auto."""
    now = disk.tunables()
    for name, text in before.items():
        value = "auto" if "auto" in text.split() else text
        if setting(now.get(name, text), value) != setting(text, value):
            disk.fs.write(disk.tunable(name), value)


@contextlib.contextmanager
def _modules(plan: Plan, fs: Fs) -> Iterator[None]:
    """Loads the modules of the schedulers. Those that were not loaded before are removed at the end
    of the block."""
    names = {scheduler_of(label) for label in plan.schedulers}
    new = [
        module
        for scheduler, module in SCHEDULER_MODULES.items()
        if scheduler in names and not fs.is_dir(f"/sys/module/{module.replace('-', '_')}")
    ]
    for module in new:
        # A failure means built in or missing; the write to queue/scheduler shows which.
        subprocess.run(["modprobe", "-q", module], timeout=60, check=False)
    try:
        with _own_module(plan, fs, names):
            yield
    finally:
        for module in new:
            # A failure means that another disk uses it, or that there is none.
            subprocess.run(["modprobe", "-q", "-r", module], timeout=60, check=False)


@contextlib.contextmanager
def _own_module(plan: Plan, fs: Fs, names: set[str]) -> Iterator[None]:
    if not any(map(is_ours, names)) or plan.module is None or fs.is_dir("/sys/module/mqfair"):
        yield
        return
    _must("insmod", plan.module, "research=1")
    try:
        yield
    finally:
        _must("rmmod", "mqfair")


def _must(*argv: str) -> None:
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=_MODULE_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise Failure(f"{' '.join(argv)}: {done.stderr.strip() or 'failed'}")


@contextlib.contextmanager
def _ssd(plan: Plan, fs: Fs) -> Iterator[dict[str, str]]:
    """Makes the virtual SSD of the plan; yields its settings, or {} for another drive."""
    if plan.device.ssd is None:
        yield {}
        return
    with ssd.made(fs, plan.device.ssd) as settings:
        yield settings


@contextlib.contextmanager
def _drive(plan: Plan, fs: Fs) -> Iterator[Disk]:
    parameters = plan.device.parameters
    if parameters is None:
        yield find_disk(fs, plan.device.path)
        return
    _must("modprobe", "null_blk", "nr_devices=1", *(f"{k}={v}" for k, v in parameters.items()))
    try:
        _check_null_parameters(fs, dict(parameters))
        yield find_disk(fs, plan.device.path)
    finally:
        _must("rmmod", "null_blk")


def _check_null_parameters(fs: Fs, asked: dict[str, int]) -> None:
    """Raises UsageError for a parameter that null_blk ignored or changed: the kernel ignores
    unknown names, and null_blk adjusts some values."""
    for name, value in asked.items():
        text = fs.read_if_any(f"/sys/module/null_blk/parameters/{name}")
        if text is None:
            raise UsageError(
                f"null:{name}={value}: unknown to this kernel's null_blk: leave it out"
            )
        now = {"Y": "1", "N": "0"}.get(text.strip(), text.strip())
        if now != str(value):
            raise UsageError(f"null:{name}={value}: null_blk changed it to {now}: use {name}={now}")


@contextlib.contextmanager
def _kernel_log(path: Path) -> Iterator[None]:
    fd = open_log()
    try:
        yield
    finally:
        with path.open("w") as log:
            log.writelines(messages(fd))
        os.close(fd)


def _on_this_machine(plan: Plan) -> Plan:
    """@plan with the path of the drive; a guest has its emulated drives in LAB_DRIVES."""
    if plan.device.path:
        return plan
    drive = os.environ["LAB_DRIVES"].split()[0]
    return dataclasses.replace(plan, device=dataclasses.replace(plan.device, path=drive))


def main(argv: Sequence[str]) -> int:
    folder = Path(argv[0])
    try:
        with interrupted_once():
            Runner(_on_this_machine(read_plan(folder / PLAN)), folder).run()
    except (Failure, UsageError) as error:
        _say(event="error", message=str(error), usage=isinstance(error, UsageError))
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
