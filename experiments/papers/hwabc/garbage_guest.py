# SPDX-License-Identifier: GPL-2.0
"""Tenants on a virtual SSD whose pages are theirs, in the guest: see garbage.py.

    python3 -m experiments.papers.hwabc.garbage_guest FOLDER

reads FOLDER/plan.json, a list of Scene, and writes FOLDER/NNN.json for each: every SAMPLE_S what
each tenant has read and written, what the scheduler says of itself and of each of them, and what
the drive says, which knows the truth.
"""

import contextlib
import dataclasses
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqfair.benchlib import cgroups, ssd
from mqfair.benchlib.variant import merged_tunables, scheduler_of
from mqfair.blockdev import Disk, find_disk, require_number
from mqfair.cgroup import Cgroup
from mqfair.enable import Enabler, Plan
from mqfair.errors import Failure
from mqfair.fs import Fs

PLAN = "plan.json"
SAMPLE_S = 0.25
DEBUGFS = Path("/sys/kernel/debug")
# Of the guest's clock, which leaps while the guest waits for its host.
PATIENCE_S = 600.0

Figures = dict[str, Any]


@dataclass(frozen=True)
class Load:
    """A tenant's fio, in cgroup @group, from @start_s of the scene on, for @run_s."""

    group: str
    options: tuple[str, ...]
    start_s: float
    run_s: float


@dataclass(frozen=True)
class Scene:
    """@scheduler is a label of benchlib/variant.py; @drive the settings of the virtual SSD, whose
    fill_parts name cgroups of @groups; after so many seconds @changes are written to its files."""

    name: str
    scheduler: str
    drive: Mapping[str, str]
    groups: tuple[str, ...]
    loads: tuple[Load, ...]
    seconds: float
    changes: tuple[tuple[float, str, str], ...] = field(default=())


def read_plan(path: Path) -> list[Scene]:
    scenes = json.loads(path.read_text())
    for scene in scenes:
        scene["loads"] = tuple(
            Load(**{**load, "options": tuple(load["options"])}) for load in scene["loads"]
        )
        scene["groups"] = tuple(scene["groups"])
        scene["changes"] = tuple(tuple(change) for change in scene["changes"])
    return [Scene(**scene) for scene in scenes]


def samples_name(number: int) -> str:
    return f"{number:03d}.json"


def write_plan(scenes: Sequence[Scene], path: Path) -> None:
    path.write_text(json.dumps([dataclasses.asdict(scene) for scene in scenes]))


# -------------------------------------------------------------------------- what is read


def numbers(words: Sequence[str]) -> Figures:
    """Of NAME=VALUE words those that are numbers."""
    pairs = (word.partition("=") for word in words)
    return {name: int(value) for name, _, value in pairs if value.lstrip("-").isdecimal()}


def scheduler_says(disk: Disk) -> tuple[Figures, dict[str, Figures]]:
    """State, and flows by the last part of their cgroup's path; nothing of none and of bfq."""
    folder = DEBUGFS / "block" / disk.name / "sched"
    state: Figures = {}
    flows: dict[str, Figures] = {}
    if not (folder / "state").exists():
        return state, flows
    for line in (folder / "state").read_text().splitlines():
        name, *words = line.split()
        if len(words) == 1 and words[0].lstrip("-").isdecimal():
            state[name] = int(words[0])
        else:
            state.update({f"{name}.{part}": value for part, value in numbers(words).items()})
    for line in (folder / "flows").read_text().splitlines():
        path, *words = line.split()
        flows[path.rpartition("/")[2]] = numbers(words)
    return state, flows


def drive_says(disk: Disk, fs: Fs) -> tuple[Figures, dict[str, Figures]]:
    stat = (line.split() for line in fs.read(f"{ssd.DRIVE}/stat").splitlines())
    owners: dict[str, Figures] = {}
    for line in (DEBUGFS / "mqfair_ssd" / disk.name / "owners").read_text().splitlines():
        _, *words, path = line.split()
        owners[path.rpartition("/")[2]] = numbers(words)
    return {name: float(value) for name, value in stat}, owners


def sample(disk: Disk, fs: Fs, number: str, groups: Mapping[str, Cgroup]) -> Figures:
    state, flows = scheduler_says(disk)
    drive, owners = drive_says(disk, fs)
    served = {
        name: {
            key: int(value)
            for key, value in group.stat().get(number, {}).items()
            if key in ("rbytes", "wbytes", "rios", "wios")
        }
        for name, group in groups.items()
    }
    return {
        "at": time.monotonic(),
        "served": served,
        "state": state,
        "flows": flows,
        "drive": drive,
        "owners": owners,
    }


# -------------------------------------------------------------------------- what is done


@contextlib.contextmanager
def scheduled(disk: Disk, label: str) -> Iterator[None]:
    name = scheduler_of(label)
    subprocess.run(["modprobe", "-q", name], check=False)
    disk.fs.write(disk.scheduler_file, name)
    try:
        if name not in ("none", "bfq"):
            Enabler(disk, Plan(name, merged_tunables(label, {}), None)).run()
        yield
    finally:
        disk.fs.write(disk.scheduler_file, "none")


def start(load: Load, group: Cgroup) -> subprocess.Popen[bytes]:
    options = [
        f"--name={load.group}",
        *(f"--{option}" for option in load.options),
        f"--filename={ssd.PATH}",
        "--time_based",
        f"--runtime={round(load.run_s * 1000)}ms",
        # What each request took is not asked for.
        "--gtod_reduce=1",
        "--output=/dev/null",
    ]
    join = f"echo $$ > '{group.fs.host_path(group.file('cgroup.procs'))}' && exec \"$@\""
    fio = shutil.which("fio")
    if fio is None:
        raise Failure("fio is missing in the guest: install package fio")
    return subprocess.Popen(["/bin/sh", "-c", join, "sh", fio, *options])


def await_requests(group: Cgroup, number: str) -> None:
    """A program that starts waits for the host, and the guest's clock leaps meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not group.stat().get(number):
        if time.monotonic() > deadline:
            raise Failure(f"{group.name}: fio has sent no request")
        time.sleep(0.005)


def play(scene: Scene, disk: Disk, fs: Fs, groups: Mapping[str, Cgroup]) -> list[Figures]:
    number = require_number(disk)
    loads = sorted(scene.loads, key=lambda load: load.start_s)
    changes = sorted(scene.changes)
    running: list[subprocess.Popen[bytes]] = []
    samples: list[Figures] = []
    try:
        while loads and not loads[0].start_s:
            load = loads.pop(0)
            running.append(start(load, groups[load.group]))
            await_requests(groups[load.group], number)
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < scene.seconds:
            while loads and loads[0].start_s <= now:
                load = loads.pop(0)
                running.append(start(load, groups[load.group]))
            while changes and changes[0][0] <= now:
                _, name, value = changes.pop(0)
                fs.write(f"{ssd.DRIVE}/{name}", value)
            samples.append(sample(disk, fs, number, groups))
            due = begin + len(samples) * SAMPLE_S
            time.sleep(max(0.0, due - time.monotonic()))
    finally:
        for group in groups.values():
            fs.write(group.file("cgroup.kill"), "1")
        for fio in running:
            fio.wait(PATIENCE_S)
    return samples


def show(scene: Scene, fs: Fs, own: Cgroup) -> list[Figures]:
    """On a drive of its own."""
    weights = dict.fromkeys(scene.groups, 100)
    with cgroups.tree(own, weights) as groups, ssd.made(fs, scene.drive):
        ssd.fill_parts(fs, ssd.parts_of(scene.drive), groups)
        disk = find_disk(fs, ssd.PATH)
        # A request is a page, whoever merges what waits.
        fs.write(disk.queue("nomerges"), "2")
        with scheduled(disk, scene.scheduler):
            return play(scene, disk, fs, groups)


def main(argv: Sequence[str]) -> int:
    folder = Path(argv[0])
    fs = Fs()
    with cgroups.io_controller(fs) as own:
        for number, scene in enumerate(read_plan(folder / PLAN)):
            print(f"{scene.name}: {scene.scheduler}", flush=True)
            samples = show(scene, fs, own)
            (folder / samples_name(number)).write_text(json.dumps(samples))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
