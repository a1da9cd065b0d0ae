# SPDX-License-Identifier: GPL-2.0
"""The soak in the guest: loads with checked data, and every change at once, until a time is over.

usage: soak_guest.py SECONDS SEED

Each activity is a thread with random numbers of its own, which depend on the seed alone. The order
of the activities among each other depends on the clock. The last line of the output is JSON: the
steps of each activity, and the failures.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fairlib import OF_THE_KERNEL, check_settled, ours, own_values
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    Disk,
    Fio,
    KernelLog,
    NullBlk,
    read,
    rmmod,
    run,
    splats,
    write,
)

GROUPS = ("light", "middle", "heavy")
FILE_SYSTEMS = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}
CHECKS = {"ext4": ("e2fsck", "-fn"), "xfs": ("xfs_repair", "-n")}
MEMORY = {"memory_backed": 1, "submit_queues": 2, "irqmode": 2, "completion_nsec": 100_000}
VERIFY = {"rw": "randwrite", "verify": "crc32c", "do_verify": 1, "verify_fatal": 1}
# Refusals that a change may meet while another change goes on.
EXPECTED = {errno.EBUSY, errno.EINVAL, errno.ENOENT, errno.ENODEV, errno.EAGAIN, errno.EOPNOTSUPP}
_FILE_MIB = 8


class Soak:
    def __init__(self, seconds: float, seed: int) -> None:
        self.deadline = time.monotonic() + seconds
        self.seed = seed
        self.steps: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.failures: list[str] = []
        self.threads: list[threading.Thread] = []

    @property
    def over(self) -> bool:
        return bool(self.failures) or time.monotonic() >= self.deadline

    def start(self, name: str, step: Callable[[random.Random], None], pause_s: float) -> None:
        def repeat() -> None:
            numbers = random.Random(f"{self.seed} {name}")
            try:
                while not self.over:
                    try:
                        step(numbers)
                        self.steps[name] += 1
                    except OSError as error:
                        if error.errno not in EXPECTED:
                            raise
                        self.refused[name] += 1
                    time.sleep(numbers.random() * 2 * pause_s)
            except BaseException:
                self.failures.append(f"{name}: {traceback.format_exc()}")

        thread = threading.Thread(target=repeat, daemon=True)
        self.threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join()


def checked(disk: Disk, group: Cgroup, offset_mib: int) -> Callable[[random.Random], None]:
    """Writes a part of @disk at random, and reads it back."""

    def step(numbers: random.Random) -> None:
        options = {**VERIFY, "offset": f"{offset_mib}m", "size": f"{_FILE_MIB}m"}
        options["bsrange"] = numbers.choice(["512-32k", "4k-4k", "64k-256k"])
        options["iodepth"] = numbers.choice([1, 4, 64])
        no_error(Fio(disk, group, randseed=numbers.randrange(1 << 30), **options))

    return step


def on_files(mount: Path, group: Cgroup, name: str) -> Callable[[random.Random], None]:
    """Writes a file through the page cache or past it, with fsync, and reads it back."""

    def step(numbers: random.Random) -> None:
        options = {**VERIFY, "size": f"{_FILE_MIB}m", "fallocate": "none", "bs": "4k"}
        options |= {"direct": numbers.choice([0, 1]), "fsync": numbers.choice([1, 16, 0])}
        no_error(Fio(mount / name, group, ioengine="psync", **options))

    return step


def no_error(job: Fio) -> None:
    for one in job.result()["jobs"]:
        assert not one["error"], f"{one['jobname']}: error {one['error']}"


def metadata(mount: Path) -> Callable[[random.Random], None]:
    folder = mount / "many"
    folder.mkdir()

    def step(numbers: random.Random) -> None:
        for number in range(50):
            file = folder / str(numbers.randrange(200))
            file.write_bytes(bytes(numbers.randrange(5000)))
            if number % 3:
                file.rename(folder / str(numbers.randrange(200)))
        if numbers.random() < 0.3:
            os.sync()
        for file in list(folder.iterdir())[:60]:
            file.unlink()

    return step


def switch(disks: list[Disk]) -> Callable[[random.Random], None]:
    names = [*ours(disks[0]), *ours(disks[0]), "none", "mq-deadline"]

    def step(numbers: random.Random) -> None:
        write(numbers.choice(disks).sysfs / "queue/scheduler", numbers.choice(names))

    return step


def tags(disks: list[Disk]) -> Callable[[random.Random], None]:
    def step(numbers: random.Random) -> None:
        write(numbers.choice(disks).sysfs / "queue/nr_requests", numbers.choice([4, 16, 64, 256]))

    return step


def hardware_queues(disks: list[NullBlk]) -> Callable[[random.Random], None]:
    def step(numbers: random.Random) -> None:
        numbers.choice(disks).set("submit_queues", numbers.choice([1, 2]))

    return step


def tunables(disks: list[Disk]) -> Callable[[random.Random], None]:
    values = ["0", "1", "4", "64", "auto", "1000", "bytes", "iops", "learned"]

    def step(numbers: random.Random) -> None:
        disk = numbers.choice(disks)
        name = numbers.choice(sorted(own_values(disk)) or [""])
        if name and disk.scheduler not in OF_THE_KERNEL:
            write(disk.sysfs / "queue/iosched" / name, numbers.choice(values))

    return step


def weights(groups: list[Cgroup], disks: list[Disk]) -> Callable[[random.Random], None]:
    def step(numbers: random.Random) -> None:
        group, disk = numbers.choice(groups), numbers.choice(disks)
        group.weight = numbers.choice([1, 100, 1000, 10000])
        group.weight = f"{disk.number} {numbers.choice(['default', 1, 777, 10000])}"

    return step


def brief_cgroup(disks: list[Disk]) -> Callable[[random.Random], None]:
    """A cgroup that reads once and leaves."""

    def step(numbers: random.Random) -> None:
        with Cgroup(f"brief{numbers.randrange(4)}", numbers.choice([1, 10000])) as group:
            read_once = ["dd", f"if={numbers.choice(disks).path}", "of=/dev/null", "bs=4k"]
            run(*group.command([*read_once, "count=4", "iflag=direct", "status=none"]))

    return step


def brief_disk(group: Cgroup) -> Callable[[random.Random], None]:
    """A disk that is removed under load."""

    def step(numbers: random.Random) -> None:
        with NullBlk("nullb9", irqmode=2, completion_nsec=1_000_000) as disk:
            disk.scheduler = numbers.choice(ours(disk))
            job = Fio(disk, group, runtime=60)
            time.sleep(numbers.random())
            disk.remove()
            job.result(check=False)

    return step


def pressure(mount: Path, group: Cgroup) -> Callable[[random.Random], None]:
    """Buffered writes of more than the cgroup's memory, and then fsync."""
    write(group.path / "memory.max", 32 << 20)

    def step(numbers: random.Random) -> None:
        target = ["dd", "if=/dev/zero", f"of={mount / 'big'}", "bs=1M", "count=48"]
        run(*group.command([*target, "conv=fsync", "status=none"]))
        (mount / "big").unlink()

    return step


def busy(numbers: random.Random) -> None:
    spin = "import time; e = time.monotonic() + 1.0\nwhile time.monotonic() < e: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)


def reports(numbers: random.Random) -> None:
    for path in Path("/sys/kernel/debug/block").glob("nullb*/**/sched/*"):
        if path.name in {"state", "flows", "queues"}:
            with contextlib.suppress(OSError):
                read(path)
    read(CGROUP_ROOT / "io.stat")


def main() -> int:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    log = KernelLog(whole=True)
    soak = Soak(seconds, seed)
    run("modprobe", "bfq")
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        raw = enter(NullBlk("nullb1", size=256, **MEMORY))
        drives = {
            kind: enter(NullBlk(f"nullb{number}", size=512, cache_size=8, **MEMORY))
            for number, kind in enumerate(FILE_SYSTEMS, 2)
        }
        disks = [raw, *drives.values()]
        groups = [enter(Cgroup(name, 10**n)) for n, name in enumerate(GROUPS, 1)]
        squeezed = enter(Cgroup("squeezed", 100))
        for number, group in enumerate(groups):
            soak.start(f"checked data of {group.name}", checked(raw, group, 64 * number), 0.1)
        for kind, drive in drives.items():
            mount = Path("/run/soak") / kind
            mount.mkdir(parents=True)
            run(*FILE_SYSTEMS[kind], drive.path)
            run("mount", "-t", kind, drive.path, mount)
            for group in groups[:2]:
                name = f"files of {group.name} on {kind}"
                soak.start(name, on_files(mount, group, group.name), 0.1)
            soak.start(f"metadata on {kind}", metadata(mount), 0.2)
            soak.start(f"memory pressure on {kind}", pressure(mount, squeezed), 0.5)
        soak.start("switches", switch(disks), 0.2)
        soak.start("nr_requests", tags(disks), 0.5)
        soak.start("hardware queues", hardware_queues(disks), 2.0)
        soak.start("tunables", tunables(disks), 0.1)
        soak.start("weights", weights(groups, disks), 0.05)
        soak.start("cgroups", brief_cgroup(disks), 0.2)
        soak.start("disks", brief_disk(groups[2]), 1.0)
        soak.start("busy processors", busy, 3.0)
        soak.start("reports", reports, 0.2)
        soak.join()
        for kind, drive in drives.items():
            run("umount", Path("/run/soak") / kind)
            run(*CHECKS[kind], drive.path)
        for number, disk in enumerate(disks):
            # The scheduler in force has seen the churn; the others see the disk that it left.
            if disk.scheduler not in OF_THE_KERNEL:
                check_settled(disk)
            for name in ours(disk):
                disk.scheduler = name
                checked(disk, groups[number], 0)(random.Random(seed))
                check_settled(disk)
            soak.steps["requests"] += sum(int(read(disk.sysfs / "stat").split()[n]) for n in (0, 4))
            disk.scheduler = "none"
    rmmod("mqfair")
    soak.failures += [f"the kernel complained: {line}" for line in splats(log.read())]
    print(
        json.dumps(
            {"seed": seed, "steps": soak.steps, "refused": soak.refused, "failures": soak.failures}
        )
    )
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
