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

import agent
from fairlib import OF_THE_KERNEL, check_settled, ours, own_values
from guestlib import (
    CGROUP_ROOT,
    NULL_BLK_CONFIG,
    SCSI_DEBUG,
    Cgroup,
    Disk,
    Fio,
    KernelLog,
    NullBlk,
    is_user_mode,
    kernel_version,
    nvme_disks,
    read,
    rmmod,
    run,
    scsi_disk,
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
_PROCESSOR = Path("/sys/devices/system/cpu/cpu1/online")
# Before this version the log of xfs loses space that it reserved on a CPU that goes offline. After
# 2500 s on Linux 6.1 it had none left, and xfs shut itself down.
_XFS_BESIDE_HOTPLUG = (6, 6)
# Before this version io_wq_create() enters the list of those who are told that a processor came up,
# before it has the memory that they look at. A task that makes an io_uring then panics the kernel.
_IO_URING_BESIDE_HOTPLUG = (6, 4)
# When a processor leaves, this version warns in sched_cpu_dying() and inactive_task_timer(), which
# are parts of its scheduler of tasks. It did so twice in 44 times.
_NO_HOTPLUG = (6, 12)

# The array does not fit into the memory of its cgroup. Each page has its number, and the number of
# times that it was written to.
SWAP_MEMORY, SWAP_ARRAY = 24 << 20, 40 << 20
SWAPPER = f"""
import mmap, random, struct, sys
array = mmap.mmap(-1, {SWAP_ARRAY})
written = [0] * ({SWAP_ARRAY} // 4096)
chance = random.Random(int(sys.argv[1]))
for number in [*range(len(written)), *(chance.randrange(len(written)) for _ in range(2000))]:
    there = struct.unpack_from("QQ", array, 4096 * number)
    expected = (number, written[number]) if written[number] else (0, 0)
    if there != expected:
        sys.exit(f"page {{number}} has {{there}} instead of {{expected}}")
    written[number] += 1
    struct.pack_into("QQ", array, 4096 * number, number, written[number])
"""
POLLER = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
from iouring import PolledReads
reads = PolledReads(sys.argv[1], int(sys.argv[2]))
reads.submit()
time.sleep(0.2)
"""
CROWD = 300
_UNCHECKED_MIB = 200
# Options of scsi_debug: each n-th command is refused, or gets no answer.
SCSI_FAULTS = {"refused": (20, 0x8000), "without an answer": (150, 4), "served": (0, 0)}
_SCSI_TIME_LIMIT_S = 1
# Percentages of the faults of null_blk, and the time limit of its requests.
NULL_BLK_FAULTS = {"requeue_inject": 5, "timeout_inject": 1}
_TIME_LIMIT_MS = 300


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


# Linux 6.12 and 7.2 remake a hardware queue while its processor is offline, and it stays inactive,
# with any scheduler or none. A task that submits to it waits for ever.
ALL_PROCESSORS_ONLINE = threading.Lock()
# No processor comes up while a task may make an io_uring.
NO_PROCESSOR_COMES_UP: contextlib.AbstractContextManager[object] = (
    threading.Lock() if kernel_version() < _IO_URING_BESIDE_HOTPLUG else contextlib.nullcontext()
)


def hardware_queues(disks: list[NullBlk]) -> Callable[[random.Random], None]:
    def step(numbers: random.Random) -> None:
        with ALL_PROCESSORS_ONLINE:
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


def crowd(parent: Cgroup, disk: Disk) -> Callable[[random.Random], None]:
    """A task in each of CROWD children of @parent, which reads some blocks. The children leave
    while the weights of some change."""
    write(parent.path / "cgroup.subtree_control", "+io")
    children = [parent.path / str(number) for number in range(CROWD)]
    script = f"""
        for child in {parent.path}/[0-9]*; do
            echo $$ > $child/cgroup.procs
            dd if={disk.path} of=/dev/null bs=4k count=8 iflag=direct 2> /dev/null &
        done
        echo $$ > {parent.path.parent}/cgroup.procs
        wait"""

    def step(numbers: random.Random) -> None:
        for child in children:
            child.mkdir(exist_ok=True)
        with subprocess.Popen(["/bin/sh", "-c", script]) as tasks:
            while tasks.poll() is None:
                child = numbers.choice(children)
                write(child / "io.mqfair.weight", numbers.choice([1, 100, 10000]))
                time.sleep(0.05)
        for child in children:
            child.rmdir()

    return step


def discards(disk: Disk) -> Callable[[random.Random], None]:
    """A task discards a part of @disk from _UNCHECKED_MIB on. No job checks the data there."""

    def step(numbers: random.Random) -> None:
        mib = numbers.choice([1, 8, 32])
        part = ["--offset", f"{_UNCHECKED_MIB}MiB", "--length", f"{mib}MiB"]
        run("blkdiscard", "--force", *part, disk.path)

    return step


def polled(disk: Disk, group: Cgroup) -> Callable[[random.Random], None]:
    def step(numbers: random.Random) -> None:
        depth = numbers.choice([1, 8, 64])
        options = {"ioengine": "io_uring", "hipri": 1, "iodepth": depth, "number_ios": 2000}
        with NO_PROCESSOR_COMES_UP:
            no_error(Fio(disk, group, **options))

    return step


def polled_for_ever(disk: Disk, group: Cgroup) -> Callable[[random.Random], None]:
    """A task submits polled reads, and dies before it has asked whether they are done."""

    def step(numbers: random.Random) -> None:
        program = [sys.executable, "-c", POLLER, disk.path, numbers.choice("148")]
        with NO_PROCESSOR_COMES_UP:
            run(*group.command(program))

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
    """Buffered writes of more than the cgroup's memory, and then fsync.

    The limit slows the writer. At memory.max Linux 6.12 kills it, if most of its pages are dirty.
    """
    write(group.path / "memory.high", 32 << 20)

    def step(numbers: random.Random) -> None:
        target = ["dd", "if=/dev/zero", f"of={mount / 'big'}", "bs=1M", "count=48"]
        run(*group.command([*target, "conv=fsync", "status=none"]))
        (mount / "big").unlink()

    return step


def swapping(group: Cgroup) -> Callable[[random.Random], None]:
    """A program that has more memory than its cgroup, and checks each page that comes back."""
    write(group.path / "memory.max", SWAP_MEMORY)

    def step(numbers: random.Random) -> None:
        program = [sys.executable, "-c", SWAPPER, str(numbers.randrange(1 << 30))]
        run(*group.command(program))

    return step


def processors(numbers: random.Random) -> None:
    """A processor leaves while requests of its hardware queue are under way, and comes back."""
    with ALL_PROCESSORS_ONLINE:
        write(_PROCESSOR, 0)
        try:
            time.sleep(numbers.random())
        finally:
            with NO_PROCESSOR_COMES_UP:
                write(_PROCESSOR, 1)


def scsi_faults(numbers: random.Random) -> None:
    """A driver that refuses commands, so that they are requeued, or never ends some, so that they
    are aborted at their time limit and sent again. No command may fail."""
    every, options = SCSI_FAULTS[numbers.choice(sorted(SCSI_FAULTS))]
    write(SCSI_DEBUG / "every_nth", every)
    write(SCSI_DEBUG / "opts", options)
    time.sleep(3 * numbers.random())


def faulty(disk: NullBlk, group: Cgroup) -> Callable[[random.Random], None]:
    """Reads and writes on a disk with the faults of null_blk. Lost requests end in errors."""
    disk.set_queue("io_timeout", _TIME_LIMIT_MS)

    def step(numbers: random.Random) -> None:
        options = {"rw": "randrw", "bsrange": "512-32k", "number_ios": 500, "thread": 1}
        job = Fio(disk, group, continue_on_error="all", **options)
        for one in job.result(check=False)["jobs"]:
            assert one["read"]["total_ios"] + one["write"]["total_ios"] > 400, one

    return step


def inject(disk: NullBlk, **percent: int) -> None:
    for name, probability in percent.items():
        folder = NULL_BLK_CONFIG / disk.name / name
        for attribute, value in {"verbose": 0, "times": -1, "probability": probability}.items():
            write(folder / attribute, value)


def busy(numbers: random.Random) -> None:
    spin = "import time; e = time.monotonic() + 1.0\nwhile time.monotonic() < e: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)


def reports(numbers: random.Random) -> None:
    for path in Path("/sys/kernel/debug/block").glob("nullb*/**/sched/*"):
        if path.name in {"state", "flows", "queues"}:
            with contextlib.suppress(OSError):
                read(path)
    read(CGROUP_ROOT / "io.stat")


def file_systems() -> list[str]:
    if kernel_version() < _XFS_BESIDE_HOTPLUG and _PROCESSOR.exists():
        return ["ext4"]
    return list(FILE_SYSTEMS)


class Machine:
    """The disks of the soak, by their purposes."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        enter = stack.enter_context
        self.raw = enter(NullBlk("nullb1", size=256, discard=1, **MEMORY))
        self.files = {
            kind: enter(NullBlk(f"nullb{number}", size=512, cache_size=8, **MEMORY))
            for number, kind in enumerate(file_systems(), 2)
        }
        self.swap = enter(NullBlk("nullb4", size=128, **MEMORY))
        self.scsi = enter(scsi_disk(ndelay=100_000, submit_queues=2, every_nth=0))
        write(self.scsi.sysfs / "device/timeout", _SCSI_TIME_LIMIT_S)
        # User-mode Linux has no NVMe drives.
        self.nvme = [] if is_user_mode() else nvme_disks()
        self.null = [self.raw, *self.files.values(), self.swap]
        # Its data are checked at the end alone.
        self.polled = enter(NullBlk("nullb6", size=64, poll_queues=1, **MEMORY))
        self.all = [*self.null, self.polled, self.scsi, *self.nvme]
        self.faulty: list[NullBlk] = []
        if (NULL_BLK_CONFIG / self.raw.name / "requeue_inject").exists():
            # Its data are not checked.
            self.faulty = [enter(NullBlk("nullb5", size=64, **MEMORY))]
            self.all += self.faulty


def start_loads(soak: Soak, machine: Machine, groups: list[Cgroup], others: list[Cgroup]) -> None:
    on_files_group, swap_group, crowded = others
    for number, group in enumerate(groups):
        for disk in [machine.raw, *machine.nvme]:
            job = checked(disk, group, 64 * number)
            soak.start(f"checked data of {group.name} on {disk.name}", job, 0.1)
    for number, group in enumerate(groups[:2]):
        job = checked(machine.scsi, group, 32 * number)
        soak.start(f"checked data of {group.name} on scsi_debug", job, 0.1)
    for kind, drive in machine.files.items():
        mount = Path("/run/soak") / kind
        mount.mkdir(parents=True)
        run(*FILE_SYSTEMS[kind], drive.path)
        run("mount", "-t", kind, drive.path, mount)
        for group in groups[:2]:
            name = f"files of {group.name} on {kind}"
            soak.start(name, on_files(mount, group, group.name), 0.1)
        soak.start(f"metadata on {kind}", metadata(mount), 0.2)
        soak.start(f"memory pressure on {kind}", pressure(mount, on_files_group), 0.5)
    soak.start("a crowd of cgroups", crowd(crowded, machine.polled), 2.0)
    soak.start("discards", discards(machine.raw), 0.2)
    soak.start("polled reads", polled(machine.polled, groups[1]), 0.2)
    soak.start("polled reads that no task reaps", polled_for_ever(machine.polled, groups[2]), 0.5)
    soak.start("swap", swapping(swap_group), 0.5)
    soak.start("disks", brief_disk(groups[2]), 1.0)
    soak.start("busy processors", busy, 3.0)
    for disk in machine.faulty:
        for group in groups[:2]:
            soak.start(f"requests of {group.name} that fail", faulty(disk, group), 0.2)


def start_changes(soak: Soak, machine: Machine, groups: list[Cgroup]) -> None:
    disks = machine.all
    soak.start("switches", switch(disks), 0.2)
    soak.start("nr_requests", tags(disks), 0.5)
    soak.start("hardware queues", hardware_queues(machine.null), 2.0)
    soak.start("tunables", tunables(disks), 0.1)
    soak.start("weights", weights(groups, disks), 0.05)
    soak.start("cgroups", brief_cgroup(disks), 0.2)
    soak.start("reports", reports, 0.2)
    soak.start("faults of scsi_debug", scsi_faults, 2.0)
    if _PROCESSOR.exists() and kernel_version() != _NO_HOTPLUG:
        soak.start("processors offline", processors, 3.0)


def check_disk(soak: Soak, disk: Disk, group: Cgroup) -> None:
    """Checks that no request is left, under the present scheduler and then under each other."""
    # The scheduler in force has seen the churn; the others see the disk that it left.
    if disk.scheduler not in OF_THE_KERNEL:
        check_settled(disk)
    for name in ours(disk):
        disk.scheduler = name
        checked(disk, group, 0)(random.Random(soak.seed))
        check_settled(disk)
    soak.steps["requests"] += sum(int(read(disk.sysfs / "stat").split()[n]) for n in (0, 4))
    disk.scheduler = "none"


def swapped_out() -> int:
    """Pages since the boot."""
    pairs = (line.split() for line in read("/proc/vmstat").splitlines())
    return next(int(count) for name, count in pairs if name == "pswpout")


def main() -> int:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    agent.be_patient()
    log = KernelLog(whole=True)
    soak = Soak(seconds, seed)
    run("modprobe", "bfq")
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        machine = Machine(stack)
        groups = [enter(Cgroup(name, 10**n)) for n, name in enumerate(GROUPS, 1)]
        others = [enter(Cgroup(name, 100)) for name in ("squeezed", "swapping", "crowded")]
        run("mkswap", machine.swap.path)
        run("swapon", machine.swap.path)
        for disk in machine.faulty:
            inject(machine.raw, requeue_inject=NULL_BLK_FAULTS["requeue_inject"])
            inject(disk, **NULL_BLK_FAULTS)
        start_loads(soak, machine, groups, others)
        start_changes(soak, machine, groups)
        soak.join()
        write(SCSI_DEBUG / "opts", 0)
        for disk in machine.faulty:
            inject(machine.raw, requeue_inject=0)
            inject(disk, requeue_inject=0, timeout_inject=0)
        soak.steps["pages swapped out"] = swapped_out()
        run("swapoff", machine.swap.path)
        for kind, drive in machine.files.items():
            run("umount", Path("/run/soak") / kind)
            run(*CHECKS[kind], drive.path)
        for number, disk in enumerate(machine.all):
            check_disk(soak, disk, groups[number % len(groups)])
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
