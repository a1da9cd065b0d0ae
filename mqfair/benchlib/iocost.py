# SPDX-License-Identifier: GPL-2.0
"""The iocost controller over scheduler none, with a linear model fitted to the drive.

The kernel's model is a cost per I/O, for sequential and random ones, plus a cost per byte, each
for reads and writes; it derives them from six rates of the saturated drive: bytes per second of
large sequential I/O and I/Os per second of 4 KiB sequential and random ones. They are measured
here, under none, one after the other in one start of fio.

Quality of service is left to the model alone (rpct=0, wpct=0: no latency target): a target
would lend iocost knowledge of the drive that no other scheduler is given. It issues at a fixed
95 % of the model, the best found. On a 32-slot drive with weights 100:250:500:1000 that gave
exact shares and 0.94 of none's throughput. At 100 % the drive's own queue fills, and its order
decides instead of the weights (Jain 0.88 at 0.99); free to choose within 50..150 % the
controller takes the few tags for saturation and stays at 0.50.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mqfair.cgroup import Cgroup
from mqfair.errors import Failure
from mqfair.fs import Fs

QOS_FILE = "io.cost.qos"
MODEL_FILE = "io.cost.model"
QOS_ON = "enable=1 ctrl=user rpct=0.00 rlat=0 wpct=0.00 wlat=0 min=95.00 max=95.00"
QOS_OFF = "enable=0 ctrl=auto"
MODEL_OFF = "ctrl=auto"

RAMP_S = 0.3
RUNTIME_S = 1.0
CALIBRATE_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Probe:
    """One coefficient: how to load the drive, and which figure of fio to take."""

    coefficient: str
    rw: str
    bs: str
    direction: str
    figure: str


PROBES = (
    Probe("rbps", "read", "1m", "read", "bw_bytes"),
    Probe("rseqiops", "read", "4k", "read", "iops"),
    Probe("rrandiops", "randread", "4k", "read", "iops"),
    Probe("wbps", "write", "1m", "write", "bw_bytes"),
    Probe("wseqiops", "write", "4k", "write", "iops"),
    Probe("wrandiops", "randwrite", "4k", "write", "iops"),
)


def probe_job(device: str) -> str:
    """Two jobs of depth 128 saturate a drive that one could not, without waiting long for one
    whose queues are short."""
    lines = [
        "[global]",
        f"filename={device}",
        "ioengine=libaio",
        "direct=1",
        "iodepth=128",
        "numjobs=2",
        "group_reporting",
        "norandommap",
        "time_based",
        f"ramp_time={round(RAMP_S * 1000)}ms",
        f"runtime={round(RUNTIME_S * 1000)}ms",
    ]
    for probe in PROBES:
        lines += [f"[{probe.coefficient}]", "stonewall", f"rw={probe.rw}", f"bs={probe.bs}"]
    return "\n".join(lines) + "\n"


def coefficients(result: Mapping[str, object]) -> dict[str, int]:
    jobs = result["jobs"]
    assert isinstance(jobs, list)
    by_name = {job["jobname"]: job for job in jobs}
    found = {
        probe.coefficient: round(by_name[probe.coefficient][probe.direction][probe.figure])
        for probe in PROBES
    }
    silent = [name for name, value in found.items() if value <= 0]
    if silent:
        raise Failure(f"iocost: the drive did no I/O for {', '.join(silent)}: is it read-only?")
    return found


def calibrate(fio: str, device: str, folder: Path, timeout_s: float) -> dict[str, int]:
    job = folder / "iocost.fio"
    job.write_text(probe_job(device))
    done = subprocess.run(
        [fio, "--output-format=json", "--eta=never", str(job)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=folder,
        check=False,
    )
    if done.returncode != 0:
        raise Failure(f"iocost: fio cannot measure {device}: {done.stderr.strip()}")
    return coefficients(json.loads(done.stdout))


@contextlib.contextmanager
def switched_on(fs: Fs, root: Cgroup, number: str, model: Mapping[str, int]) -> Iterator[None]:
    """Afterwards off, with whatever parameters the drive had before."""
    before = {file: _line(root, file, number) for file in (QOS_FILE, MODEL_FILE)}
    rates = " ".join(f"{name}={value}" for name, value in model.items())
    try:
        fs.write(root.file(MODEL_FILE), f"{number} ctrl=user model=linear {rates}")
        fs.write(root.file(QOS_FILE), f"{number} {QOS_ON}")
        yield
    finally:
        fs.write(root.file(QOS_FILE), f"{number} {before[QOS_FILE] or QOS_OFF}")
        fs.write(root.file(MODEL_FILE), f"{number} {before[MODEL_FILE] or MODEL_OFF}")


def require_off(root: Cgroup, number: str) -> None:
    """Nothing that is measured while iocost is on is what it seems."""
    if "enable=1" in _line(root, QOS_FILE, number).split():
        raise Failure(
            f"iocost is active on {number}: echo '{number} enable=0' > {root.file(QOS_FILE)}"
        )


def _line(root: Cgroup, file: str, number: str) -> str:
    """The parameters of one drive; empty when it has none of its own."""
    for line in (root.text(file) or "").splitlines():
        name, _, parameters = line.partition(" ")
        if name == number:
            return parameters
    return ""
