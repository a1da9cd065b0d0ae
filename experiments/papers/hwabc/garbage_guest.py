# SPDX-License-Identifier: GPL-2.0
"""The guest half of garbage.py: tenants on a virtual SSD that knows the owner of each page.

    python3 -m experiments.papers.hwabc.garbage_guest FOLDER

It reads FOLDER/plan.json, a list of Scenario, and writes FOLDER/NNN.json for each. Every SAMPLE_S
it samples the bytes of each tenant, the scheduler's state and flows, and the drive's own figures.
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

from mqfair.bench import cgroups, ssd
from mqfair.bench.variant import merged_tunables, scheduler_of
from mqfair.machine.blockdev import Disk, find_disk, require_number
from mqfair.machine.cgroup import Cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure
from mqfair.tune.enable import Enabler, Plan

PLAN = "plan.json"
SAMPLE_S = 0.25
DEBUGFS = Path("/sys/kernel/debug")
# In seconds of the guest's clock, which jumps forward while the guest waits for its host.
PATIENCE_S = 600.0

Figures = dict[str, Any]


@dataclass(frozen=True)
class Load:
    """A tenant's fio in cgroup @group, @start_s after the scenario's start and for @run_s."""

    group: str
    options: tuple[str, ...]
    start_s: float
    run_s: float


@dataclass(frozen=True)
class Scenario:
    """@scheduler is a label of bench/variant.py. @drive are the settings of the virtual SSD; its
    fill_parts name cgroups of @groups. A change (seconds, name, value) is a later write to a
    setting."""

    name: str
    scheduler: str
    drive: Mapping[str, str]
    groups: tuple[str, ...]
    loads: tuple[Load, ...]
    seconds: float
    changes: tuple[tuple[float, str, str], ...] = field(default=())


def read_plan(path: Path) -> list[Scenario]:
    scenarios = json.loads(path.read_text())
    for scenario in scenarios:
        scenario["loads"] = tuple(
            Load(**{**load, "options": tuple(load["options"])}) for load in scenario["loads"]
        )
        scenario["groups"] = tuple(scenario["groups"])
        scenario["changes"] = tuple(tuple(change) for change in scenario["changes"])
    return [Scenario(**scenario) for scenario in scenarios]


def samples_name(number: int) -> str:
    return f"{number:03d}.json"


def write_plan(scenarios: Sequence[Scenario], path: Path) -> None:
    path.write_text(json.dumps([dataclasses.asdict(scenario) for scenario in scenarios]))


# -------------------------------------------------------------------------- samples


def numbers(words: Sequence[str]) -> Figures:
    """The NAME=VALUE words with an integer for VALUE."""
    pairs = (word.partition("=") for word in words)
    return {name: int(value) for name, _, value in pairs if value.lstrip("-").isdecimal()}


def read_scheduler(disk: Disk) -> tuple[Figures, dict[str, Figures]]:
    """The state, and the flows by the last part of their cgroup's path. Both are empty under a
    scheduler of the kernel."""
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


def read_drive(disk: Disk, fs: Fs) -> tuple[Figures, dict[str, Figures]]:
    """The drive's statistics, and the owners by the last part of their cgroup's path."""
    stat = (line.split() for line in fs.read(f"{ssd.DRIVE}/stat").splitlines())
    owners: dict[str, Figures] = {}
    for line in (DEBUGFS / "mqfair_ssd" / disk.name / "owners").read_text().splitlines():
        _, *words, path = line.split()
        owners[path.rpartition("/")[2]] = numbers(words)
    return {name: float(value) for name, value in stat}, owners


def sample(disk: Disk, fs: Fs, number: str, groups: Mapping[str, Cgroup]) -> Figures:
    state, flows = read_scheduler(disk)
    drive, owners = read_drive(disk, fs)
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


# -------------------------------------------------------------------------- runs


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
        # Latencies of single requests are not needed.
        "--gtod_reduce=1",
        "--output=/dev/null",
    ]
    join = f"echo $$ > '{group.fs.host_path(group.file('cgroup.procs'))}' && exec \"$@\""
    fio = shutil.which("fio")
    if fio is None:
        raise Failure("fio is missing in the guest: install the package fio")
    return subprocess.Popen(["/bin/sh", "-c", join, "sh", fio, *options])


def await_requests(group: Cgroup, number: str) -> None:
    """Waits for @group's first request. Loading a program waits for the host, and the guest's clock
    jumps forward meanwhile."""
    deadline = time.monotonic() + PATIENCE_S
    while not group.stat().get(number):
        if time.monotonic() > deadline:
            raise Failure(f"{group.name}: fio sent no request in {PATIENCE_S:.0f} s: see its log")
        time.sleep(0.005)


def run_loads(
    scenario: Scenario, disk: Disk, fs: Fs, groups: Mapping[str, Cgroup]
) -> list[Figures]:
    number = require_number(disk)
    loads = sorted(scenario.loads, key=lambda load: load.start_s)
    changes = sorted(scenario.changes)
    running: list[subprocess.Popen[bytes]] = []
    samples: list[Figures] = []
    try:
        while loads and not loads[0].start_s:
            load = loads.pop(0)
            running.append(start(load, groups[load.group]))
            await_requests(groups[load.group], number)
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < scenario.seconds:
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


def run_scenario(scenario: Scenario, fs: Fs, own: Cgroup) -> list[Figures]:
    """Runs @scenario on a new drive; returns its samples."""
    weights = dict.fromkeys(scenario.groups, 100)
    with cgroups.tree(own, weights) as groups, ssd.made(fs, scenario.drive):
        ssd.fill_parts(fs, ssd.parts_of(scenario.drive), groups)
        disk = find_disk(fs, ssd.PATH)
        # Merging is off, so that each request is one page under every scheduler.
        fs.write(disk.queue("nomerges"), "2")
        with scheduled(disk, scenario.scheduler):
            return run_loads(scenario, disk, fs, groups)


def main(argv: Sequence[str]) -> int:
    folder = Path(argv[0])
    fs = Fs()
    with cgroups.io_controller(fs) as own:
        for number, scenario in enumerate(read_plan(folder / PLAN)):
            print(f"{scenario.name}: {scenario.scheduler}", flush=True)
            samples = run_scenario(scenario, fs, own)
            (folder / samples_name(number)).write_text(json.dumps(samples))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
