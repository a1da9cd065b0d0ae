# SPDX-License-Identifier: GPL-2.0
"""The loads of a qualification, as job files of the bench.

    one         a cgroup with one request at a time: the latency, and the work of a request
    peak        a cgroup with a job on each CPU, up to eight: the most requests a second
    two-D       two cgroups of weights 100 and 300, each with D requests outstanding
    four-D      four cgroups of weights 100, 250, 500 and 1000, each with D
    reader-D    a reader of weight 1000 with one request at a time, beside D requests of 64 KiB
    mixed       small reads, a scan and a lone reader; with writes, a writer, too
    writes      with writes: two cgroups of weights 100 and 300 that write

Every load reads or writes at random but the scan. A request has 4 KiB where nothing else is said.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from mqfair.bench import jobfile
from mqfair.bench.jobfile import JobFile
from mqfair.bench.variant import DEADLINE, IOCOST, KYBER, is_ours, scheduler_of

RAMP_S = 0.5
# The window of isolation needs seconds to find its size.
SETTLE_S = 3.0
PEAK_JOBS_MOST = 8
PEAK_DEPTH = 64
WRITE_DEPTH = 32
TWO = (100, 300)
FOUR = (100, 250, 500, 1000)
READER = "reader"
# They run alone on the drive, to save time: two know no weights, and io.cost has its own fit.
OF_PEAK_ALONE = (KYBER, DEADLINE, IOCOST)
# The end of a label of a scheduler of ours that gives up no work for a cgroup below its share.
OFF = ":isolation=0"


def without_isolation(label: str) -> str:
    return f"{label}{OFF}"


def _section(name: str, weight: int, **options: object) -> str:
    lines = [f"[{name}]", f"cgroup={name}", f"cgroup_weight={weight}"]
    return "\n".join([*lines, *(f"{key}={value}" for key, value in options.items())])


def _of_weights(weights: Sequence[int], **options: object) -> list[str]:
    return [_section(f"w{weight}", weight, **options) for weight in weights]


def _reader(weight: int) -> str:
    return _section(READER, weight, iodepth=1)


def _sections(depths: Sequence[int], cpus: int, *, writes: bool) -> Iterator[tuple[str, list[str]]]:
    jobs = min(cpus, PEAK_JOBS_MOST)
    yield "one", [_reader(100)]
    yield "peak", [_section("all", 100, iodepth=PEAK_DEPTH, numjobs=jobs)]
    for depth in depths:
        yield f"two-{depth}", _of_weights(TWO, iodepth=depth)
    for depth in depths:
        yield f"four-{depth}", _of_weights(FOUR, iodepth=depth)
    for depth in depths:
        yield f"reader-{depth}", [_reader(1000), _section("others", 100, bs="64k", iodepth=depth)]
    mixed = [
        _section("small", 200, iodepth=32),
        _section("scan", 100, rw="read", bs="128k", iodepth=8),
        _reader(100),
    ]
    if not writes:
        yield "mixed", mixed
        return
    yield "mixed", [*mixed, _section("writer", 100, rw="randwrite", bs="16k", iodepth=16)]
    yield "writes", _of_weights(TWO, rw="randwrite", iodepth=WRITE_DEPTH)


def _schedulers(name: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The labels under which the load @name runs."""
    if name in ("one", "peak"):
        return tuple(labels)
    found = [label for label in labels if scheduler_of(label) not in OF_PEAK_ALONE]
    if name.startswith(READER):
        found += [without_isolation(one) for one in found if is_ours(one) and ":" not in one]
    return tuple(found)


def _ramp(name: str) -> str:
    settles = name.startswith(READER) or name == "mixed"
    return f"ramp_time={round((SETTLE_S if settles else RAMP_S) * 1000)}ms"


def all_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels of all loads. Those without isolation come last."""
    return tuple(dict.fromkeys((*labels, *_schedulers(READER, labels))))


def jobs(
    labels: Sequence[str],
    depths: Sequence[int],
    cpus: int,
    runtime_s: float,
    region_bytes: int | None,
) -> tuple[JobFile, ...]:
    """The loads. With @region_bytes they read and write in this part of the drive, at its begin;
    without it they read everywhere, and nothing is written."""
    shared = [
        "[global]",
        "ioengine=libaio",
        "direct=1",
        "rw=randread",
        "bs=4k",
        "norandommap",
        f"runtime={round(runtime_s * 1000)}ms",
    ]
    if region_bytes is not None:
        shared.append(f"size={region_bytes}")
    return tuple(
        dataclasses.replace(
            jobfile.parse("\n".join([*shared, _ramp(name), *sections]), f"{name}.fio"),
            schedulers=_schedulers(name, labels),
        )
        for name, sections in _sections(depths, cpus, writes=region_bytes is not None)
    )
