# SPDX-License-Identifier: GPL-2.0
"""The time, memory and processor time of `mqfair follow` on a tree of folders and files.

    python3 -m experiments.follow --cgroups 10000 --repeat 5 --json build/follow.json

The tree stands for the cgroup file system, in memory (/dev/shm). It has as many slices as the
square root of the number of cgroups. The files are ordinary ones, so the kernel's own part of the
work in cgroups is left out; tests/vm/test_follow.py measures in a guest. A disk has a flow for each
cgroup, with no request waiting, for the looks at cgroups that starve. At the end all cgroups are
removed and made again, one by one, each with its weight at once.

The times depend on other load of this machine. The processor times do so far less.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mqfair.text.output import table

ROOT = Path(__file__).resolve().parents[1]
# The service saves its state after the last change; that is not idle time.
SETTLE_S = 3
# A cgroup has about as many files; only four of them matter here.
OTHER_FILES = 60
WEIGHTS = ("io.mqfair.weight", "io.weight")
TICKS = os.sysconf("SC_CLK_TCK")
FLOWS = "sys/kernel/debug/block/nvme0n1/sched/flows"
FLOW = "/{} weight=200 share_ppm=100 position=8412 queued=0 outstanding=0 ios=1231 bytes=5042176\n"


def build(root: Path, count: int) -> list[Path]:
    """A machine with @count cgroups, each with io.weight of 100."""
    for path, text in (
        ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
        ("proc/sys/kernel/osrelease", "6.1.0\n"),
        ("sys/module/mqfair/refcnt", "0\n"),
        ("run/.keep", ""),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    slices = max(1, round(count**0.5))
    folders = [root / f"sys/fs/cgroup/s{n}.slice" for n in range(slices)]
    folders += [folders[n % slices] / f"c{n}.service" for n in range(count - slices)]
    for folder in folders:
        folder.mkdir(parents=True)
        for n in range(OTHER_FILES):
            (folder / f"other.{n}").touch()
        for name in WEIGHTS:
            (folder / name).write_text("default 100\n")
    top = root / "sys/fs/cgroup"
    for path, text in (
        ("sys/block/nvme0n1/size", "1000\n"),
        (FLOWS, "".join(FLOW.format(folder.relative_to(top)) for folder in folders)),
    ):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    return folders


def make_anew(folders: Sequence[Path], weight: int) -> None:
    """Cgroups without other files: the kernel announces no file of a new cgroup."""
    for folder in folders:
        folder.mkdir()
        for name, number in zip(WEIGHTS, (100, weight), strict=True):
            (folder / name).write_text(f"default {number}\n")


def set_all(folders: Sequence[Path], weight: int) -> None:
    for folder in folders:
        (folder / "io.weight").write_text(f"default {weight}\n")


def wait_for(folders: Sequence[Path], weight: int) -> float:
    """The time at which all cgroups have the weight; the last folder that lacks it is looked at
    again and again."""
    left = list(folders)
    while left:
        if (left[-1] / "io.mqfair.weight").read_text().split()[1:] == [str(weight)]:
            left.pop()
        else:
            time.sleep(0.001)
    return time.monotonic()


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def following(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The service on the tree @root, after its first pass."""
    env = {**os.environ, "MQFAIR_ROOT": str(root), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "mqfair", "follow"]
    # A pipe would be full after a few hundred changes.
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(argv, env=env, stdout=said) as service,
    ):
        while b"follows " not in os.pread(said.fileno(), 1 << 20, 0):
            assert service.poll() is None, "mqfair follow ended"
            time.sleep(0.01)
        yield service
        service.terminate()


def costs(
    pid: int, folders: Sequence[Path], weight: int, change: Callable[[Sequence[Path], int], None]
) -> tuple[float, float, float]:
    """@change gives @folders a new @weight. The times are those from its end until the weights are
    in force, of @change alone, and of the service @pid on a processor. It has settled before."""
    time.sleep(SETTLE_S)
    before = cpu_s(pid)
    began = time.monotonic()
    change(folders, weight)
    written = time.monotonic()
    after = wait_for(folders, weight) - written
    time.sleep(SETTLE_S)
    return after, written - began, cpu_s(pid) - before


def measure(count: int, idle_s: float) -> dict[str, float]:
    """One run: all times in seconds."""
    found: dict[str, float] = {}
    root = Path(tempfile.mkdtemp(prefix="mqfair-follow-", dir="/dev/shm"))
    try:
        folders = build(root, count)
        set_all(folders, 200)
        began = time.monotonic()
        with following(root) as service:
            found["start, all weights new"] = time.monotonic() - began
            found["its processor time"] = cpu_s(service.pid)
            wait_for(folders, 200)
            single = []
            for n in range(20):
                began = time.monotonic()
                set_all(folders[n : n + 1], 300)
                single.append(wait_for(folders[n : n + 1], 300) - began)
            found["one change"] = statistics.median(single)
            set_all(folders, 400)
            wait_for(folders, 400)
            after, alone, used = costs(service.pid, folders, 500, set_all)
            found["all change, after the last write"] = after
            found["all change, the writes alone"] = alone
            found["all change, processor time"] = used
            before = cpu_s(service.pid)
            time.sleep(idle_s)
            found["processor time while idle"] = cpu_s(service.pid) - before
            found["memory, MiB"] = resident_mib(service.pid)
            for folder in reversed(folders):
                shutil.rmtree(folder)
            after, alone, used = costs(service.pid, folders, 600, make_anew)
            found["all new, after the last"] = after
            found["all new, the making alone"] = alone
            found["all new, processor time"] = used
    finally:
        shutil.rmtree(root)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="experiments.follow", description=__doc__.split("\n")[0])
    parser.add_argument("--cgroups", type=int, default=10_000, help="default %(default)s")
    parser.add_argument("--repeat", type=int, default=5, help="default %(default)s")
    parser.add_argument(
        "--idle", type=float, default=30, metavar="S", help="idle time (default %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    args = parser.parse_args(argv)
    runs = [measure(args.cgroups, args.idle) for _ in range(args.repeat)]
    rows = []
    for name in runs[0]:
        values = sorted(run[name] for run in runs)
        cells = [f"{value:.3f}" for value in (values[0], statistics.median(values), values[-1])]
        rows.append([name, *cells])
    print("\n".join(table(["seconds", "least", "median", "greatest"], rows)))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"cgroups": args.cgroups, "runs": runs}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
