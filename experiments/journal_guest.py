# SPDX-License-Identifier: GPL-2.0
"""The guest half of journal.py: two tenants on one file system.

    python3 -m experiments.journal_guest FOLDER SCHEDULERS REPEATS

For each file system, scheduler and repeat it leaves the writes and the seconds of each turn. In the
turns the light tenant is stopped or runs.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import inside
from experiments.inside import DEVICE
from mqfair.bench import cgroups
from mqfair.machine.blockdev import Disk
from mqfair.machine.cgroup import Cgroup

LIGHT, HEAVY = "light", "heavy"
WEIGHTS = {LIGHT: 1, HEAVY: 1000}
SLOTS = 64
COMPLETION_NS = 8_000_000
NULL_BLK = (
    f"queue_mode=2 irqmode=2 completion_nsec={COMPLETION_NS} submit_queues=1"
    f" hw_queue_depth={SLOTS} gb=1 memory_backed=1 poll_queues=0"
)
MKFS: Mapping[str, Sequence[str]] = {"ext4": ("mkfs.ext4", "-qF"), "xfs": ("mkfs.xfs", "-qf")}
MOUNT = Path("/run/journal")
COMMON = "--direct=1 --bs=4k --rw=randwrite --time_based --runtime=3600 --overwrite=1 --size=16m"
# The depth exceeds the number of slots, so that the scheduler always has requests to choose from.
ARGUMENTS = {
    HEAVY: f"{COMMON} --ioengine=libaio --iodepth={2 * SLOTS}",
    LIGHT: f"{COMMON} --ioengine=psync --direct=0 --fsync=1",
}
TURN_S, SETTLE_S, TURNS_EACH = 1.0, 0.3, 3


def start(group: Cgroup, name: str) -> subprocess.Popen[bytes]:
    procs = str(group.fs.host_path(group.file("cgroup.procs")))
    # The file is written before the job enters its cgroup, so that this I/O is not measured.
    file = MOUNT / name
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=16", "status=none"], check=True
    )
    os.sync()
    script = f'echo $$ > {procs} && exec fio --name={name} --filename={file} "$@"'
    return subprocess.Popen(
        ["sh", "-c", script, "sh", *ARGUMENTS[name].split()], stdout=subprocess.DEVNULL
    )


def writes(group: Cgroup, disk: Disk) -> int:
    for line in group.fs.read(group.file("io.stat")).splitlines():
        number, *words = line.split()
        if number == disk.number:
            values = dict(word.split("=") for word in words)
            return int(values.get("wios", 0))
    return 0


def send(job: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signals fio and its children, which do the I/O."""
    children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
    for pid in (job.pid, *map(int, children)):
        os.kill(pid, number)


def take_turns(groups: Mapping[str, Cgroup], disk: Disk) -> list[dict[str, Any]]:
    turns = []
    jobs = {name: start(groups[name], name) for name in (HEAVY, LIGHT)}
    time.sleep(2)
    for number in range(2 * TURNS_EACH):
        runs = number % 2 == 1
        send(jobs[LIGHT], signal.SIGCONT if runs else signal.SIGSTOP)
        time.sleep(SETTLE_S)
        before = {name: writes(group, disk) for name, group in groups.items()}
        began = time.monotonic()
        time.sleep(TURN_S)
        after = {name: writes(group, disk) for name, group in groups.items()}
        done = {name: after[name] - before[name] for name in groups}
        turns.append({"fsyncs": runs, "seconds": time.monotonic() - began, "writes": done})
    for job in jobs.values():
        send(job, signal.SIGCONT)
        send(job, signal.SIGKILL)
        job.wait()
    return turns


def measure(disk: Disk, kind: str, scheduler: str) -> list[dict[str, Any]]:
    inside.switch(disk, scheduler)
    subprocess.run([*MKFS[kind], DEVICE], check=True)
    subprocess.run(["mount", "-t", kind, DEVICE, MOUNT], check=True)
    try:
        with (
            cgroups.io_controller(disk.fs) as own,
            cgroups.tree(own, WEIGHTS) as groups,
        ):
            for name, weight in WEIGHTS.items():
                cgroups.set_weight(groups[name], scheduler, weight)
            return take_turns(groups, disk)
    finally:
        subprocess.run(["umount", MOUNT], check=True)


def main(argv: Sequence[str]) -> int:
    folder, schedulers, repeats = argv
    MOUNT.mkdir(exist_ok=True)
    disk = inside.null_blk(NULL_BLK)
    cells = list(itertools.product(range(int(repeats)), MKFS, schedulers.split(",")))
    found = [
        {"file system": kind, "scheduler": scheduler, "turns": measure(disk, kind, scheduler)}
        for _repeat, kind, scheduler in inside.each(cells)
    ]
    inside.leave(folder, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
