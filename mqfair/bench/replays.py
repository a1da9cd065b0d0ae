# SPDX-License-Identifier: GPL-2.0
"""Sections of a job file that replay a trace: fio's read_iolog, in a guest, on a host, simulated.

    [db]
    cgroup=db
    read_iolog=hm.trace
    numjobs=16
    replay_time_scale=200

The file may have any format of mqfair/traces, and is beside the job file unless its path is
absolute. Each of the numjobs processes has one request outstanding (traces/replay.py). A trace is
replayed once, and ends before the section does if it is shorter than runtime.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from mqfair.bench.fio_keys import ABSORBED, ENGINES_OF_ONE, REPLACED
from mqfair.bench.jobfile import RW_KEYS, Job, JobFile, Option
from mqfair.bench.plan import Case, PlannedJob
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.traces.replay import Extent, Replay, deal, measured, require_inside

READ_IOLOG = "read_iolog"
# fio 3.33 does not begin a longer line of options.
PROCESSES_MOST = 128
_OWN = (READ_IOLOG, "replay_no_stall", "replay_time_scale", "numjobs")
# fio takes these from the trace, or they change no request.
_BESIDE = (*_OWN, *RW_KEYS, "bs", "blocksize", "direct", "ioengine", "iodepth", "name")
_BESIDE_TOO = ("description", "startdelay", "norandommap", "randrepeat", "size", "invalidate")
_SCALE_MOST = 1_000_000
# The part of the measured time that a trace lasts at least, without a note.
_MUCH = 0.9


def replay_of(job: Job, path: str) -> Replay | None:
    """The replay of @job, a section of the file @path; None for another job. Raises UsageError
    with file and line for an option that does not go with it."""
    section = job.section
    found = section.option(READ_IOLOG)
    if found is None:
        return None
    if not found.value:
        raise UsageError(f"{path}:{found.line}: {READ_IOLOG}: name a trace file")
    for option in (*section.inherited, *section.own):
        _require_apt(option, path)
    return Replay(
        str(Path(path).parent / found.value),
        _number(section.option("numjobs"), path, 1, PROCESSES_MOST, 1),
        _number(section.option("replay_time_scale"), path, 1, _SCALE_MOST, 100),
        _switch(section.option("replay_no_stall"), path),
    )


def extent_of(job: Job, path: str, replay: Replay, drive_bytes: int | None) -> Extent:
    """Raises UsageError if the trace cannot be replayed on a drive of @drive_bytes, or of any size
    for None."""
    found = measured(replay)
    if drive_bytes is not None:
        require_inside(replay, drive_bytes)
    if found.requests < replay.processes:
        option = job.section.option("numjobs")
        line = option.line if option else job.section.line
        raise UsageError(
            f"{path}:{line}: numjobs={replay.processes}: {replay.path} has {found.requests}"
            f" requests: use at most {found.requests} processes"
        )
    return found


def notes(job: JobFile) -> Iterator[str]:
    """Notes on traces that end before the measured time does."""
    for group in job.groups:
        for one in group.jobs:
            replay = replay_of(one, job.path)
            if replay is None:
                continue
            last_s = measured(replay).last_ns / 1e9
            end_s = job.ramp_s + job.window_s
            if last_s < _MUCH * end_s:
                yield (
                    f"{job.path}: [{one.name}]: the last request of {replay.path} is at"
                    f" {last_s:.1f} s, and the measured time ends at {end_s:.1f} s"
                )


def traces(job: JobFile) -> Iterator[str]:
    """The trace files that @job replays."""
    for group in job.groups:
        for one in group.jobs:
            replay = replay_of(one, job.path)
            if replay is not None:
                yield replay.path


def planned(case: Case, job: JobFile, folder: Path) -> Case:
    """@case, the plan of @job, with the options by which fio replays files of @folder."""
    groups = tuple(
        dataclasses.replace(
            group,
            jobs=tuple(
                _planned(plan, one, job.path, folder)
                for plan, one in zip(group.jobs, source.jobs, strict=True)
            ),
        )
        for group, source in zip(case.groups, job.groups, strict=True)
    )
    return dataclasses.replace(case, groups=groups)


def _planned(plan: PlannedJob, job: Job, path: str, folder: Path) -> PlannedJob:
    replay = replay_of(job, path)
    if replay is None:
        return plan
    extent_of(job, path, replay, None)
    names = deal(replay, "iolog", folder)
    kept = tuple(one for one in plan.options if one.partition("=")[0] not in _OWN)
    # fio gives the files to the processes in this order.
    own = (f"numjobs={replay.processes}", f"{READ_IOLOG}={':'.join(names)}")
    return dataclasses.replace(plan, options=(*kept, *own))


def _require_apt(option: Option, path: str) -> None:
    place = f"{path}:{option.line}: {option}"
    if option.key == "ioengine" and option.value not in ENGINES_OF_ONE:
        raise UsageError(
            f"{place}: fio measures a replay with a synchronous engine alone: use ioengine=psync,"
            " and numjobs for more requests at a time"
        )
    if option.key not in (*_BESIDE, *_BESIDE_TOO, *ABSORBED, *REPLACED):
        raise UsageError(f"{place}: not beside {READ_IOLOG}: remove it")


def _number(option: Option | None, path: str, least: int, most: int, plain: int) -> int:
    if option is None:
        return plain
    text = option.value or ""
    if not is_number(text, least, most):
        raise UsageError(f"{path}:{option.line}: {option}: use a number in {least}..{most}")
    return int(text)


def _switch(option: Option | None, path: str) -> bool:
    if option is not None and option.value is None:
        return True
    return _number(option, path, 0, 1, 0) == 1
