# SPDX-License-Identifier: GPL-2.0
"""The behaviour of the programs behind the pages, as short hashes.

A page of measurements is stale when the programs behave differently, and not when a comment or a
name has changed. So short runs are hashed here, and not the sources in C. A run of the simulator
is exact, so most changes of a scheduler or of a drive change a figure of it in the last digit.

The probe is a sample: six cgroups of different kinds, on two drives, for 0.7 s. A change that no
run of it shows is not noticed. The figures of the machine model are those of one compiler.
"""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from experiments import machine
from experiments.machine import Variant
from mqfair.bench import jobfile, session
from mqfair.bench.device import parse_device
from mqfair.bench.plan import SIM, Event
from mqfair.bench.simulated import session as simulation
from mqfair.bench.simulated.drive import unstretched

# The part of a state that the machine model has. Each scheduler of the simulator is a part, too.
MACHINE = "machine"

JOB = """
[global]
ioengine=libaio
direct=1
norandommap
ramp_time=0.1
runtime=0.6

[prod]
cgroup=prod
cgroup_weight=900

[deep]
cgroup=prod/deep
cgroup_weight=500
rw=randread
bs=4k
iodepth=64

[mixed]
cgroup=prod/mixed
cgroup_weight=300
rw=randrw
bssplit=4k/50:16k/30:64k/20
iodepth=32

[write]
cgroup=write
cgroup_weight=250
rw=write
bs=128k
iodepth=8

[burst]
cgroup=burst
cgroup_weight=100
rw=randread
bs=4k
iodepth=32
thinktime=3000
thinktime_blocks=64

[one]
cgroup=one
cgroup_weight=100
rw=randread
bs=4k
iodepth=1
numjobs=2

[trim]
cgroup=trim
cgroup_weight=100
rw=randtrim
bs=64k
iodepth=1
thinktime=300
"""
DRIVES = (
    "ssd:model=980pro,size_mb=256,fill=85",
    "null:irqmode=2,completion_nsec=100000,submit_queues=2,hw_queue_depth=32,gb=1",
)
EVENT = Event(0.3, "one", "weight", 400)

_MS = ("ms=1",)
_WIDE = (*_MS, "threshold_kib=1024")
VARIANTS = (
    Variant("none", "mqfq", (*_MS, "policy=none")),
    Variant("mqfq", "mqfq", _MS),
    Variant("wide", "mqfq", _WIDE),
    Variant("clusters", "mqfq", (*_WIDE, "clusters=1")),
    Variant("serial", "mqfq", (*_WIDE, "serial=1")),
    Variant("counter", "counter", _WIDE),
    Variant("bitmap", "bitmap", _WIDE),
    Variant("scan", "scan", _MS),
    Variant("poll", "poll", (*_MS, "poll_ns=1000")),
    *(Variant(name, "mqfq", (*_MS, f"policy={name}")) for name in ("kyber-fair", "wdt", "hwabc")),
)
CPUS = (4, 24)


def short(text: str) -> str:
    """A hash of @text that fits a line with many of them."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def behaviour(parts: Sequence[str]) -> dict[str, str]:
    """The hash of each of @parts. Raises Failure."""
    found = schedulers([part for part in parts if part != MACHINE])
    return found | ({MACHINE: machines()} if MACHINE in parts else {})


def schedulers(names: Sequence[str]) -> dict[str, str]:
    """The hash of the figures that the simulator has under each of @names."""
    figures: dict[str, list[object]] = {name: [] for name in names}
    for device in DRIVES if names else ():
        request = session.Request(
            jobs=(jobfile.parse(JOB, "probe.fio"),),
            schedulers=tuple(names),
            device=unstretched(parse_device(device)),
            on=SIM,
            cpus=8,
            sockets=2,
            request_ns=2800,
            events=(EVENT,),
        )
        with tempfile.TemporaryDirectory(prefix="mqfair-probe-") as folder:
            (result,) = simulation.run(request, Path(folder)).results
        for run in result.runs:
            figures[run.scheduler].append(
                [(one.name, one.iops, one.bytes_per_s, dict(one.lat_ns)) for one in run.cgroups]
            )
    return {name: short(repr(seen)) for name, seen in figures.items()}


def machines() -> str:
    """The hash of the figures of the machine model."""
    folder = machine.build()
    results = machine.measure(folder, machine.MACHINES, CPUS, VARIANTS)
    return short(repr([astuple(run) for run in results.runs]))
