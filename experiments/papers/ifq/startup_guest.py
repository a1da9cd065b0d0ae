# SPDX-License-Identifier: GPL-2.0
"""The guest half of startup.py: records and replays the start-up of a program.

python3 -m experiments.papers.ifq.startup_guest record IMAGE FOLDER COMMAND...
python3 -m experiments.papers.ifq.startup_guest replay TRACE FOLDER REPEATS SCHEDULER...
"""

import contextlib
import csv
import itertools
import json
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqfair.bench import cgroups
from mqfair.bench.variant import OURS
from mqfair.machine.blockdev import Disk, find_disk
from mqfair.machine.cgroup import Cgroup
from mqfair.machine.fs import Fs
from mqfair.tune.enable import Enabler, Plan

DEVICE = Path("/dev/nullb0")
TRACEFS = Path("/sys/kernel/tracing")
MOUNTED = Path("/run/startup")
TRACE = "startup.csv"
RUNS = "startup.json"
SECTOR = 512
COLUMNS = ("after", "think_us", "sector", "sectors")

# The recording drive keeps its data and has a slot for each concurrent request of a start-up.
RECORDED_ON = "memory_backed=1 gb=1 hw_queue_depth=64 completion_nsec=100000"
# The replaying drive serves 2000 requests per second in 8 slots.
REPLAYED_ON = "gb=4 hw_queue_depth=8 completion_nsec=4000000"
NULL_BLK = "nr_devices=1 queue_mode=2 irqmode=2 submit_queues=1 poll_queues=0 max_sectors=256"

APPLICATION = "application"
HEAVY = tuple(f"heavy{number}" for number in range(1, 5))
HEAVY_FIO = (
    "fio --name=heavy --thread --rw=randread --bs=64k --direct=1 --ioengine=libaio --iodepth=16"
    f" --norandommap --gtod_reduce=1 --filename={DEVICE} --time_based --runtime=3600"
)
# ifq's window is half a second. After this time its weights are those of steady readers.
SETTLE_S = 2.0


def load_drive(parameters: str) -> None:
    subprocess.run(["modprobe", "null_blk", *NULL_BLK.split(), *parameters.split()], check=True)


# -------------------------------------------------------------------------- record


@dataclass(frozen=True)
class Issue:
    """A request of a start-up. It was issued @think_us after the completion of request @after, the
    last completion before it; -1 is the beginning."""

    after: int
    think_us: int
    sector: int
    sectors: int


@contextlib.contextmanager
def traced() -> Iterator[None]:
    events = [TRACEFS / "events/block" / name for name in ("block_rq_issue", "block_rq_complete")]
    (TRACEFS / "buffer_size_kb").write_text("16384")
    for event in events:
        (event / "enable").write_text("1")
    (TRACEFS / "trace").write_text("")
    yield
    for event in events:
        (event / "enable").write_text("0")


_EVENT = re.compile(
    r"(?P<s>\d+)\.(?P<us>\d{6}): block_rq_(?P<what>issue|complete): \d+,\d+ R\w* .*?"
    r"(?P<sector>\d+) \+ (?P<sectors>\d+) "
)


def issues_of(lines: Sequence[str], start_us: int) -> list[Issue]:
    """The reads in @lines of a trace of the block events; @start_us is the program's start."""
    found: list[Issue] = []
    out: dict[int, int] = {}
    last, last_us = -1, start_us
    for line in lines:
        event = _EVENT.search(line)
        if not event:
            continue
        now_us = int(event["s"]) * 1_000_000 + int(event["us"])
        sector = int(event["sector"])
        if event["what"] == "issue":
            out[sector] = len(found)
            found.append(Issue(last, now_us - last_us, sector, int(event["sectors"])))
        elif sector in out:
            last, last_us = out.pop(sector), now_us
    return found


def run_in(root: Path, command: list[str]) -> None:
    """Runs @command with @root as its root. A helper program of the guest would read its own files
    first, so there is none."""
    pid = os.fork()
    if not pid:
        try:
            os.chroot(root)
            os.chdir("/")
            os.execv(command[0], command)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"{' '.join(command)} failed: see above")


def record(image: Path, out: Path, command: list[str]) -> None:
    """Puts @image on a drive, runs @command from it with cold caches, and writes its reads."""
    load_drive(RECORDED_ON)
    with image.open("rb") as source, DEVICE.open("wb") as drive:
        shutil.copyfileobj(source, drive, 1 << 20)
    MOUNTED.mkdir()
    subprocess.run(["mount", "-t", "ext4", "-o", "noatime", str(DEVICE), str(MOUNTED)], check=True)
    Path("/proc/sys/vm/drop_caches").write_text("3")
    (TRACEFS / "trace_clock").write_text("mono")
    with traced():
        start_us = time.monotonic_ns() // 1000
        run_in(MOUNTED, command)
    found = issues_of((TRACEFS / "trace").read_text().splitlines(), start_us)
    with (out / TRACE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((one.after, one.think_us, one.sector, one.sectors) for one in found)


def read_trace(path: Path) -> list[Issue]:
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [Issue(*map(int, row)) for row in rows]


# -------------------------------------------------------------------------- replay


class Replay:
    """Issues each request its think time after the completion of the request that it follows.
    Requests that follow the same request are issued concurrently."""

    def __init__(self, trace: Sequence[Issue]) -> None:
        self._trace = trace
        self._followers: dict[int, list[int]] = {}
        for number, issue in enumerate(trace):
            self._followers.setdefault(issue.after, []).append(number)
        self._buffers = threading.local()
        self._left = threading.Semaphore(0)

    def run(self) -> float:
        """Seconds from the beginning until all have completed."""
        start = time.monotonic()
        self._follow(-1, start)
        for _ in self._trace:
            self._left.acquire()
        return time.monotonic() - start

    def _follow(self, number: int, completed: float) -> None:
        while True:
            followers = self._followers.get(number)
            if not followers:
                return
            first, *others = followers
            for other in others:
                threading.Thread(target=self._lead, args=(other, completed)).start()
            number, completed = first, self._issue(first, completed)

    def _lead(self, number: int, completed: float) -> None:
        self._follow(number, self._issue(number, completed))

    def _issue(self, number: int, completed: float) -> float:
        issue = self._trace[number]
        time.sleep(max(0.0, completed + issue.think_us / 1e6 - time.monotonic()))
        self._read(issue.sector * SECTOR, issue.sectors * SECTOR)
        self._left.release()
        return time.monotonic()

    def _read(self, offset: int, size: int) -> None:
        if not hasattr(self._buffers, "fd"):
            self._buffers.fd = os.open(DEVICE, os.O_RDONLY | os.O_DIRECT)
            self._buffers.memory = mmap.mmap(-1, 1 << 20)
        with memoryview(self._buffers.memory)[:size] as buffer:
            if os.preadv(self._buffers.fd, [buffer], offset) != size:
                raise OSError(f"{DEVICE}: a short read")


def procs(group: Cgroup) -> str:
    return group.file("cgroup.procs")


def start_up(fs: Fs, group: Cgroup, trace: Sequence[Issue]) -> float:
    """Replays @trace in a new process in @group; returns the seconds it took."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            fs.write(procs(group), str(os.getpid()))
            os.write(write_end, repr(Replay(trace).run()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        said = pipe.read()
    if os.waitpid(pid, 0)[1] or not said:
        raise RuntimeError("the replay failed: see above")
    return float(said)


@contextlib.contextmanager
def heavy_readers(fs: Fs, groups: Sequence[Cgroup]) -> Iterator[list[int]]:
    """Starts a heavy reader in each of @groups and stops them; yields their process groups."""
    readers = [
        subprocess.Popen(
            ["sh", "-c", f'echo $$ > "$0" && exec {HEAVY_FIO}', fs.host_path(procs(group))],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        for group in groups
    ]
    try:
        while not all(bytes_read(fs, group) for group in groups):
            time.sleep(0.1)
        pids = [reader.pid for reader in readers]
        signal_all(pids, signal.SIGSTOP)
        yield pids
    finally:
        for reader in readers:
            os.killpg(reader.pid, signal.SIGKILL)
            reader.wait()


def signal_all(pids: Sequence[int], what: signal.Signals) -> None:
    for pid in pids:
        os.killpg(pid, what)


def bytes_read(fs: Fs, group: Cgroup) -> int:
    return sum(
        int(word.removeprefix("rbytes="))
        for word in fs.read(group.file("io.stat")).split()
        if word.startswith("rbytes=")
    )


def choose(fs: Fs, disk: Disk, scheduler: str) -> None:
    """Selects @scheduler for @disk; one of ours as `mqfair enable` does."""
    fs.write(disk.scheduler_file, scheduler)
    if scheduler in OURS:
        Enabler(disk, Plan(scheduler, {}, None)).run()


def one_run(
    fs: Fs, trace: Sequence[Issue], groups: Mapping[str, Cgroup], readers: Sequence[int]
) -> dict[str, float]:
    application, *heavy = (groups[name] for name in (APPLICATION, *HEAVY))
    alone_s = start_up(fs, application, trace)
    signal_all(readers, signal.SIGCONT)
    time.sleep(SETTLE_S)
    before = sum(bytes_read(fs, group) for group in heavy)
    shared_s = start_up(fs, application, trace)
    after = sum(bytes_read(fs, group) for group in heavy)
    signal_all(readers, signal.SIGSTOP)
    return {
        "alone_s": alone_s,
        "shared_s": shared_s,
        "heavy_bytes_per_s": (after - before) / shared_s,
    }


def replay(trace_file: Path, out: Path, repeats: int, schedulers: Sequence[str]) -> None:
    fs = Fs()
    load_drive(REPLAYED_ON)
    disk = find_disk(fs, str(DEVICE))
    trace = read_trace(trace_file)
    runs = []
    with (
        cgroups.io_controller(fs) as own,
        cgroups.tree(own, dict.fromkeys((APPLICATION, *HEAVY), 100)) as groups,
        heavy_readers(fs, [groups[name] for name in HEAVY]) as readers,
    ):
        # The first replay loads its own code from the guest's root; it is not measured.
        start_up(fs, groups[APPLICATION], trace)
        for repeat, scheduler in itertools.product(range(repeats), schedulers):
            choose(fs, disk, scheduler)
            run = one_run(fs, trace, groups, readers)
            runs.append({"scheduler": scheduler, "repeat": repeat, **run})
            print(runs[-1], flush=True)
    (out / RUNS).write_text(json.dumps(runs))


def main(argv: Sequence[str]) -> int:
    what, first, out, *rest = argv
    if what == "record":
        record(Path(first), Path(out), rest)
    else:
        repeats, *schedulers = rest
        replay(Path(first), Path(out), int(repeats), schedulers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
