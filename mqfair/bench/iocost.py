# SPDX-License-Identifier: GPL-2.0
"""The iocost controller with the scheduler none, and a linear model fitted to the drive.

The kernel's model has a cost per sequential I/O, a cost per random I/O and a cost per byte, each
for reads and for writes. The kernel derives them from six rates of the saturated drive. Each
direction has three: bytes per second of large sequential I/O, and the IOPS of sequential and of
random 4 KiB. One start of fio measures the six under none, one after the other.

fio ends a probe only when the drive has done all of its outstanding I/O. A full flash drive writes
slowly, because it collects garbage, so the probes of 1 MiB keep no more than 16 MiB outstanding.
With 256 MiB, a virtual SSD that is stretched 100 times needs two minutes for them. A drive that
takes longer than CALIBRATE_TIMEOUT_S has no model, and the bench leaves iocost out.

There is no latency target (rpct=0, wpct=0), because no other scheduler is given a target for this
drive either. The controller issues at a fixed 95 % of the model, the best value found. On a drive
with 32 slots and weights 100:250:500:1000 the results were:

    95 %          exact shares, 0.94 of none's throughput
    100 %         Jain's index 0.88, throughput 0.99: the drive's queue fills and decides the order
    50..150 %     throughput 0.50: the controller takes the shortage of tags for saturation

Without a target the controller's period is 1 ms. One 64 KiB read of a drive that is stretched 100
times takes longer, and the controller then limits nothing. A reader of weight 1000 beside others of
weight 100 got 5 % of its IOPS alone, as under none. So the period is stretched as the drive is. The
kernel has no file for the period, but makes it twice the latency of a target with percentile 0.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mqfair.machine.cgroup import Cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure

QOS_FILE = "io.cost.qos"
MODEL_FILE = "io.cost.model"
QOS_ON = "enable=1 ctrl=user rpct=0.00 rlat={us} wpct=0.00 wlat={us} min=95.00 max=95.00"
QOS_OFF = "enable=0 ctrl=auto"
MODEL_OFF = "ctrl=auto"

RAMP_S = 0.3
RUNTIME_S = 1.0
CALIBRATE_TIMEOUT_S = 120.0
# Half of the kernel's least and of its greatest period.
HALF_PERIOD_US = 500
HALF_PERIOD_MOST_US = 500_000
PROBE_JOBS = 2


@dataclass(frozen=True)
class Probe:
    """One coefficient: the load that measures it, and the figure of fio that gives it. Each of
    PROBE_JOBS jobs keeps @depth I/Os outstanding."""

    coefficient: str
    rw: str
    bs: str
    depth: int
    direction: str
    figure: str


PROBES = (
    Probe("rbps", "read", "1m", 8, "read", "bw_bytes"),
    Probe("rseqiops", "read", "4k", 128, "read", "iops"),
    Probe("rrandiops", "randread", "4k", 128, "read", "iops"),
    Probe("wbps", "write", "1m", 8, "write", "bw_bytes"),
    Probe("wseqiops", "write", "4k", 128, "write", "iops"),
    Probe("wrandiops", "randwrite", "4k", 128, "write", "iops"),
)


def probes(*, reads_only: bool) -> tuple[Probe, ...]:
    return tuple(probe for probe in PROBES if not reads_only or probe.direction == "read")


def probe_job(device: str, *, reads_only: bool = False) -> str:
    """The fio job that measures all coefficients. Its jobs saturate even a fast drive, and do not
    take long on a drive with short queues. They are threads, so that the end of the one process
    ends all of their I/O."""
    lines = [
        "[global]",
        f"filename={device}",
        "ioengine=libaio",
        "direct=1",
        "thread",
        f"numjobs={PROBE_JOBS}",
        "group_reporting",
        "norandommap",
        "time_based",
        f"ramp_time={round(RAMP_S * 1000)}ms",
        f"runtime={round(RUNTIME_S * 1000)}ms",
    ]
    for probe in probes(reads_only=reads_only):
        lines += [f"[{probe.coefficient}]", "stonewall", f"rw={probe.rw}", f"bs={probe.bs}"]
        lines += [f"iodepth={probe.depth}"]
    return "\n".join(lines) + "\n"


def coefficients(result: Mapping[str, object], *, reads_only: bool = False) -> dict[str, int]:
    """The rates of the model. With @reads_only a write has the rate of a read, because the kernel
    wants all six. Raises Failure if a rate is 0."""
    jobs = result["jobs"]
    assert isinstance(jobs, list)
    by_name = {job["jobname"]: job for job in jobs}
    found = {
        probe.coefficient: round(by_name[probe.coefficient][probe.direction][probe.figure])
        for probe in probes(reads_only=reads_only)
    }
    if reads_only:
        found |= {f"w{name[1:]}": rate for name, rate in found.items()}
    silent = [name for name, value in found.items() if value <= 0]
    if silent:
        raise Failure(
            f"iocost: the drive did no I/O for {', '.join(silent)}: use a drive that is writable"
        )
    return found


def calibrate(
    fio: str, device: str, folder: Path, timeout_s: float, *, reads_only: bool = False
) -> dict[str, int]:
    """Measures the coefficients of @device; raises Failure if fio fails or exceeds @timeout_s."""
    job = folder / "iocost.fio"
    job.write_text(probe_job(device, reads_only=reads_only))
    try:
        done = subprocess.run(
            [fio, "--output-format=json", "--eta=never", str(job)],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failure(
            f"iocost: fio did not measure {device} within {timeout_s:.0f} s: use a faster drive,"
            " such as a virtual SSD with a smaller time_scale"
        ) from None
    if done.returncode != 0:
        raise Failure(f"iocost: fio cannot measure {device}: {done.stderr.strip()}")
    return coefficients(json.loads(done.stdout), reads_only=reads_only)


def notes(model: Mapping[str, int]) -> tuple[str, ...]:
    """The line about @model in the notes of a bench; none if no model was measured."""
    if not model:
        return ()
    rates = " ".join(f"{name}={rate}" for name, rate in model.items())
    return (f"iocost's model of this drive, measured under none: {rates}",)


def qos_on(time_scale: int) -> str:
    """The line that enables iocost on a drive with times stretched by @time_scale."""
    half_us = min(HALF_PERIOD_US * time_scale, HALF_PERIOD_MOST_US)
    return QOS_ON.format(us=half_us if time_scale > 1 else 0)


@contextlib.contextmanager
def switched_on(
    fs: Fs, root: Cgroup, number: str, model: Mapping[str, int], time_scale: int = 1
) -> Iterator[None]:
    """Enables iocost for the time of a block; afterwards restores the drive's parameters."""
    before = {file: _line(root, file, number) for file in (QOS_FILE, MODEL_FILE)}
    rates = " ".join(f"{name}={value}" for name, value in model.items())
    try:
        fs.write(root.file(MODEL_FILE), f"{number} ctrl=user model=linear {rates}")
        fs.write(root.file(QOS_FILE), f"{number} {qos_on(time_scale)}")
        yield
    finally:
        fs.write(root.file(QOS_FILE), f"{number} {before[QOS_FILE] or QOS_OFF}")
        fs.write(root.file(MODEL_FILE), f"{number} {before[MODEL_FILE] or MODEL_OFF}")


def require_off(root: Cgroup, number: str) -> None:
    """Raises Failure if iocost is enabled, because it would distort all measurements."""
    if "enable=1" in _line(root, QOS_FILE, number).split():
        raise Failure(
            f"iocost is active on {number}: echo '{number} enable=0' > {root.file(QOS_FILE)}"
        )


def _line(root: Cgroup, file: str, number: str) -> str:
    """The parameters of one drive; empty if it has none."""
    for line in (root.text(file) or "").splitlines():
        name, _, parameters = line.partition(" ")
        if name == number:
            return parameters
    return ""
