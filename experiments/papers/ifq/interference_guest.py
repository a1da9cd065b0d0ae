# SPDX-License-Identifier: GPL-2.0
"""The guest half of interference.py: the users of figure 5, and one that turns heavy and back.

    python3 -m experiments.papers.ifq.interference_guest weights|turns FOLDER WINDOW_MS WINDOWS

It writes FOLDER/samples.json: the scheduler's state and flows, sampled every SAMPLE_S.
"""

import itertools
import json
import mmap
import os
import random
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mqfair.bench import cgroups
from mqfair.machine.blockdev import find_disk
from mqfair.machine.fs import Fs
from mqfair.tune.enable import Enabler, Plan

IFQ = "ifq"

BLOCK = 512 << 10
DEVICE = Path("/dev/nullb0")
# 500 requests a second in 8 slots; a block is one request.
NULL_BLK = (
    "nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=16000000 submit_queues=1"
    " hw_queue_depth=8 max_sectors=1024 gb=16 poll_queues=0"
)
DEVICE_BYTES = 16 << 30
CONTINUOUS_THREADS = 16
LEADER_BYTES = 20_000_000
FOLLOWER_BYTES = 10_000_000
FOLLOWER_THREADS = 20
BEATS_PER_S = 10
# The turning user: the pause between its requests while it is light, and the length of a turn.
LIGHT_PAUSE_S = 0.02
TURN_WINDOWS = 12
SAMPLE_S = 0.05
SAMPLES = "samples.json"


class Shared:
    """The length of a turn, and the bytes that user 1 has read, in memory shared with user 2."""

    def __init__(self, turn_s: float) -> None:
        self.turn_s = turn_s
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        with self._lock:
            struct.pack_into("Q", self._memory, 0, self.value() + size)

    def value(self) -> int:
        return int(struct.unpack_from("Q", self._memory, 0)[0])


class Reader:
    """Reads random blocks one at a time, with direct I/O."""

    def __init__(self) -> None:
        self._fd = os.open(DEVICE, os.O_RDONLY | os.O_DIRECT)
        self._buffer = mmap.mmap(-1, BLOCK)
        self._random = random.Random(threading.get_ident())

    def read(self) -> None:
        block = self._random.randrange(DEVICE_BYTES // BLOCK)
        if os.preadv(self._fd, [self._buffer], block * BLOCK) != BLOCK:
            raise OSError(f"{DEVICE}: a short read")


def in_threads(count: int, work: Callable[[Reader], None]) -> None:
    threads = [threading.Thread(target=lambda: work(Reader())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def continuous(shared: Shared) -> None:
    def work(reader: Reader) -> None:
        while True:
            reader.read()
            shared.add(BLOCK)

    in_threads(CONTINUOUS_THREADS, work)


def following(shared: Shared) -> None:
    due = threading.Semaphore(0)

    def work(reader: Reader) -> None:
        while True:
            due.acquire()
            reader.read()

    def lead() -> None:
        asked = 0
        while True:
            bursts = shared.value() // LEADER_BYTES
            while asked < bursts * FOLLOWER_BYTES // BLOCK:
                due.release()
                asked += 1
            time.sleep(0.005)

    threading.Thread(target=lead).start()
    in_threads(FOLLOWER_THREADS, work)


def steady(_shared: Shared) -> None:
    reader = Reader()
    start = time.monotonic()
    for beat in itertools.count(1):
        reader.read()
        time.sleep(max(0.0, start + beat / BEATS_PER_S - time.monotonic()))


def turning(shared: Shared) -> None:
    """Reads light and heavy by turns, light first."""
    start = time.monotonic()
    threads = itertools.count()

    def heavy() -> bool:
        return int((time.monotonic() - start) / shared.turn_s) % 2 == 1

    def work(reader: Reader) -> None:
        first = next(threads) == 0
        while True:
            if first or heavy():
                reader.read()
            if not heavy():
                time.sleep(LIGHT_PAUSE_S)

    in_threads(CONTINUOUS_THREADS, work)


# WORKS[experiment][cgroup].
WORKS: Mapping[str, Mapping[str, Callable[[Shared], None]]] = {
    "weights": {"user1": continuous, "user2": following, "user3": steady},
    "turns": {"user1": continuous, "user2": turning},
}


def spawn(group: Path, work: Callable[[Shared], None], shared: Shared) -> int:
    """Forks a child that enters @group and works until it is killed; returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        work(shared)
    finally:
        os._exit(1)


def one_sample(debugfs: Path) -> dict[str, Any] | None:
    """The window's number and the figures of each user; None if the window ended meanwhile."""

    def window() -> int:
        lines = (debugfs / "state").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("window_number "))

    before = window()
    flows: dict[str, Any] = {}
    for line in (debugfs / "flows").read_text().splitlines():
        path, *words = line.split()
        flows[path.rsplit("/", 1)[-1]] = {
            name: int(value) for name, _, value in (word.partition("=") for word in words)
        }
    return {"window": before, "flows": flows} if window() == before else None


def measure(out: Path, experiment: str, window_ms: int, windows: int) -> None:
    """Runs the users of @experiment and records @windows windows."""
    fs = Fs()
    subprocess.run(["modprobe", "null_blk", *NULL_BLK.split()], check=True)
    disk = find_disk(fs, str(DEVICE))
    fs.write(disk.scheduler_file, IFQ)
    Enabler(disk, Plan(IFQ, {"window_ms": str(window_ms)}, None)).run()
    shared = Shared(TURN_WINDOWS * window_ms / 1000)
    works = WORKS[experiment]
    samples: list[dict[str, Any]] = []
    with (
        cgroups.io_controller(fs) as own,
        cgroups.tree(own, dict.fromkeys(works, 100)) as groups,
    ):
        for name, work in works.items():
            spawn(fs.host_path(groups[name].directory), work, shared)
        first = None
        while first is None or samples[-1]["window"] < first + windows:
            time.sleep(SAMPLE_S)
            sample = one_sample(Path("/sys/kernel/debug/block") / DEVICE.name / "sched")
            if sample is None or not all(name in sample["flows"] for name in works):
                continue
            first = sample["window"] if first is None else first
            samples.append(sample)
    (out / SAMPLES).write_text(json.dumps(samples))


def main(argv: Sequence[str]) -> int:
    experiment, out, window_ms, windows = argv
    measure(Path(out), experiment, int(window_ms), int(windows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
