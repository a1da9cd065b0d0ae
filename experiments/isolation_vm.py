# SPDX-License-Identifier: GPL-2.0
"""The backend of experiments.isolation that runs a case in a guest, on the virtual SSD.

One guest runs all schedulers and repeats of a case, interleaved, as `mqfair bench` does. A second
one runs the subject alone under none. A seed is a repeat here. The whole drive is filled, because
a page that was never written needs no flash. The drive is stretched, so latencies are --scale times
those of the real drive.

On a busy machine only counted time (icount) gives figures: without it the emulated processors are
the limit. Case B on two busy processors had 0.52 of none's total under mqfq, counted 0.93.

A run that writes leaves the drive collecting garbage. In a case with writes the drive is therefore
made anew for each run, with pages that belong to the subject.
"""

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments import harness
from experiments.isolation_cases import KIB, Case, Tenant
from experiments.isolation_run import (
    IN_A_GUEST,
    RUNTIME_S,
    SCALE,
    WHOLE,
    Drive,
    Figures,
    LeftOutError,
    Rates,
    Run,
    Scope,
    Setting,
)
from lab import DEFAULT_KERNEL, guest
from lab.spec import GuestSpec
from mqfair.bench import jobfile, session
from mqfair.bench.device import parse_device
from mqfair.bench.jobfile import JobFile
from mqfair.bench.result import CaseResult, CgroupResult
from mqfair.bench.variant import NONE, is_ours
from mqfair.text.errors import Failure, UsageError

RAMP_S = 2.0
# Overwrites of each page on average in the fill pattern `steady`.
STEADY_OVERWRITES = 2
_BOOT_TIMEOUT_S = 180.0

Bench = Callable[[session.Request], session.Outcome]


def job_text(tenants: Sequence[Tenant]) -> str:
    """The job file of @tenants."""
    lines = ["[global]", "ioengine=libaio", "direct=1", "norandommap"]
    for tenant in tenants:
        lines += [
            f"[{tenant.name}]",
            f"cgroup={tenant.name}",
            f"cgroup_weight={tenant.weight}",
            *_load(tenant),
            f"iodepth={tenant.depth}",
            *([f"numjobs={tenant.jobs}"] if tenant.jobs > 1 else []),
        ]
    return "\n".join(lines) + "\n"


def _load(tenant: Tenant) -> Iterator[str]:
    if tenant.writes in (0, 1000):
        yield f"rw={'randwrite' if tenant.writes else 'randread'}"
    else:
        yield "rw=randrw"
        yield f"rwmixwrite={round(tenant.writes / 10)}"
    if tenant.bytes_most:
        yield f"bsrange={tenant.bytes // KIB}k-{tenant.bytes_most // KIB}k"
    else:
        yield f"bs={tenant.bytes // KIB}k"


def job_file(name: str, tenants: Sequence[Tenant], runtime_s: float) -> JobFile:
    parsed = jobfile.parse(job_text(tenants), f"{name}.fio", runtime_s)
    return dataclasses.replace(parsed, ramp_s=RAMP_S)


def device(case: Case, drive: Drive, scale: int) -> str:
    """The drive in the syntax of `mqfair bench --device`."""
    words = [
        f"model={drive.model}",
        f"size_mb={drive.mib}",
        f"fill_pattern={drive.fill}",
        f"ftl={drive.ftl}",
        f"time_scale={scale}",
    ]
    if not any(tenant.writes for tenant in case.tenants):
        return f"ssd:{','.join([*words, 'fill=100'])}"
    overwrites = STEADY_OVERWRITES if drive.fill == "steady" else 0
    return f"ssd:{','.join([*words, f'fill_parts={case.subject.name}:100:{overwrites}'])}"


def bench_label(setting: Setting) -> str:
    return ":".join([setting.scheduler, *(f"{name}={value}" for name, value in setting.tunables)])


def check_case(case: Case) -> None:
    """Raises UsageError for a case that needs the simulator."""
    pauses = any(tenant.pauses or tenant.think_us for tenant in case.tenants)
    if case.windows or case.events or pauses:
        raise UsageError(
            f"--cases {case.name}: it has events or pauses, which only the simulator has:"
            " use --on sim, or leave the case out"
        )


def rates(group: CgroupResult) -> Rates:
    return Rates(group.iops, group.bytes_per_s, group.lat_ns["mean"], group.lat_ns["p99"])


def figures_of(result: CaseResult) -> dict[tuple[str, int], Figures]:
    """The figures by label of the bench and repeat."""
    return {
        (run.scheduler, run.repeat): Figures({group.name: rates(group) for group in run.cgroups})
        for run in result.runs
    }


@dataclass
class Guest:
    """Runs the cases in guests. @cpus, @icount, @module and @kernel are those of `mqfair bench`."""

    runtime_s: float = RUNTIME_S
    scale: int = SCALE
    cpus: int = 2
    icount: bool = False
    module: Path | None = None
    kernel: str = DEFAULT_KERNEL
    bench: Bench = harness.run_bench
    scope: Scope = IN_A_GUEST
    notes: list[str] = field(default_factory=list)
    _batches: list[tuple[Run, ...]] = field(default_factory=list)
    _found: dict[Run, Figures | LeftOutError] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tunables(self, scheduler: str) -> Sequence[str]:
        """The tunables are listed by the kernel, in a guest with a small drive."""
        asked = session.with_built_module(
            session.Request((), schedulers=(scheduler,), module=self.module, kernel=self.kernel)
        )
        if is_ours(scheduler) and asked.module is None:
            raise UsageError(f"scheduler {scheduler}: no module: run `make module`")
        spec = GuestSpec(
            cpus=1,
            kernel=self.kernel,
            modules=(asked.module,) if asked.module else (),
            timeout_s=_BOOT_TIMEOUT_S,
        )
        queue = "/sys/block/nullb0/queue"
        script = (
            f"modprobe null_blk nr_devices=1 && echo {scheduler} > {queue}/scheduler"
            f" && ls {queue}/iosched"
        )
        found = guest.run(spec, script=script, stream=False)
        trouble = found.trouble()
        if trouble or found.status:
            raise Failure(f"the guest: {trouble or found.stderr.strip()}")
        return found.stdout.split()

    def expect(self, runs: Sequence[Run]) -> None:
        for run in runs:
            check_case(run.case)
        self._batches.append(tuple(runs))

    def play(self, run: Run) -> dict[str, Figures]:
        """The first run of a case runs the whole case."""
        with self._lock:
            if run not in self._found:
                batch = next(batch for batch in self._batches if run in batch)
                self._found.update(self._alone([one for one in batch if one.alone]))
                self._found.update(self._shared([one for one in batch if not one.alone]))
        found = self._found[run]
        if isinstance(found, LeftOutError):
            raise found
        return {WHOLE: found}

    def _alone(self, runs: Sequence[Run]) -> dict[Run, Figures | LeftOutError]:
        return self._run(runs, (NONE,)) if runs else {}

    def _shared(self, runs: Sequence[Run]) -> dict[Run, Figures | LeftOutError]:
        return self._run(runs, tuple(dict.fromkeys(bench_label(run.setting) for run in runs)))

    def _run(
        self, runs: Sequence[Run], labels: tuple[str, ...]
    ) -> dict[Run, Figures | LeftOutError]:
        """The figures of @runs, which differ in setting and seed alone."""
        first = runs[0]
        seeds = list(dict.fromkeys(run.seed for run in runs))
        name = f"{first.case.name}-alone" if first.alone else first.case.name
        outcome = self.bench(
            session.with_built_module(
                session.Request(
                    jobs=(job_file(name, first.tenants, self.runtime_s),),
                    schedulers=labels,
                    repeat=len(seeds),
                    device=parse_device(device(first.case, first.drive, self.scale)),
                    cpus=1 if self.icount else self.cpus,
                    icount=self.icount,
                    module=self.module,
                    kernel=self.kernel,
                )
            )
        )
        self.notes += [note for note in outcome.notes if note not in self.notes]
        (result,) = outcome.results
        found = figures_of(result)
        return {run: _figures(run, found, result, seeds.index(run.seed)) for run in runs}


def _figures(
    run: Run, found: dict[tuple[str, int], Figures], result: CaseResult, repeat: int
) -> Figures | LeftOutError:
    label = bench_label(run.setting)
    why = result.left_out.get(label)
    return LeftOutError(why) if why is not None else found[label, repeat]
