# SPDX-License-Identifier: GPL-2.0
"""mqfair follow with real cgroups: io.weight and io.bfq.weight, the events of the kernel's own
files, modules that come and go, and the time for many cgroups."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from fairlib import SMALL_GUEST, TIMED, done, tenants
from guestlib import Fio, NullBlk, modprobe, read, rmmod, run, slow, time_limit, write

guest = SMALL_GUEST

ROOT = Path(__file__).resolve().parents[2]
CGROUPS = Path("/sys/fs/cgroup")
WEIGHT = "io.mqfair.weight"
# An emulated processor takes seconds to start Python.
PATIENCE_S = 120
# For thousands of cgroups, and for the looks for those that starve: these take at most 1 % of a
# processor, so an emulated one looks rarely.
LONG_S = 300
MANY = 1000


def becomes(condition: Callable[[], bool], name: str, patience_s: float = PATIENCE_S) -> float:
    """The seconds until @condition holds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < patience_s, f"{name}: nothing within {patience_s} s"
        time.sleep(0.002)
    return time.monotonic() - began


@contextlib.contextmanager
def following(*options: str) -> Iterator[list[str]]:
    """The service and its lines, from the end of its first pass on. It must end cleanly."""
    program = subprocess.Popen(
        [sys.executable, "-m", "mqfair", "follow", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
    )  # fmt: skip
    lines: list[str] = []
    reader = threading.Thread(target=collect, args=(program.stdout, lines), daemon=True)
    reader.start()
    try:
        becomes(lambda: has(lines, "follows ") or program.poll() is not None, "the first pass")
        yield lines
    finally:
        program.send_signal(signal.SIGTERM)
        program.wait()
        reader.join()
        print("\n".join(lines[-30:]))
    assert program.returncode == 0


def collect(source: IO[str], lines: list[str]) -> None:
    lines.extend(line.strip() for line in source)


def has(lines: Sequence[str], words: str) -> bool:
    return any(words in line for line in lines)


@contextlib.contextmanager
def tree(*names: str) -> Iterator[Path]:
    """A cgroup with children that have the io controller."""
    top = CGROUPS / "follow"
    write(CGROUPS / "cgroup.subtree_control", "+io")
    top.mkdir()
    write(top / "cgroup.subtree_control", "+io")
    try:
        for name in names:
            (top / name).mkdir()
        yield top
    finally:
        for folder in sorted(top.rglob("*/"), reverse=True):
            folder.rmdir()
        top.rmdir()


def default(group: Path) -> str:
    return read(group / WEIGHT).splitlines()[0]


@slow
def test_weights_arrive_as_cgroups_come_and_change() -> None:
    with tree("early") as top:
        write(top / "early/io.weight", "default 900")
        with following():
            assert default(top / "early") == "default 900"
            write(top / "early/io.weight", "default 300")
            becomes(lambda: default(top / "early") == "default 300", "a change")
            new = top / "new"
            new.mkdir()
            write(new / "io.weight", "50")
            becomes(lambda: default(new) == "default 50", "a new cgroup")
            # The files of the child come with the controller, without an event.
            child = new / "child"
            child.mkdir()
            assert not (child / WEIGHT).exists()
            write(new / "cgroup.subtree_control", "+io")
            write(child / "io.weight", "70")
            becomes(lambda: default(child) == "default 70", "a child")
            # By hand, and back.
            write(new / WEIGHT, "default 77")
            write(new / "io.weight", "60")
            write(top / "early/io.weight", "default 310")
            becomes(lambda: default(top / "early") == "default 310", "another change")
            assert default(new) == "default 77"
            write(new / WEIGHT, "default 100")
            becomes(lambda: default(new) == "default 60", "the weight after default")
            # A removed cgroup and its successor.
            child.rmdir()
            child.mkdir()
            write(child / "io.weight", "80")
            becomes(lambda: default(child) == "default 80", "a successor")


@slow
def test_weights_come_back_with_the_module() -> None:
    with tree("a") as top, following():
        write(top / "a/io.weight", "default 900")
        becomes(lambda: default(top / "a") == "default 900", "a change")
        rmmod("mqfair")
        assert not (top / "a" / WEIGHT).exists()
        modprobe("mqfair")
        becomes(lambda: default(top / "a") == "default 900", "the module's return")


@slow
def test_the_weights_of_bfq() -> None:
    """A runtime of containers prefers io.bfq.weight where it exists."""
    modprobe("bfq")
    with tree("c") as top, following():
        write(top / "c/io.bfq.weight", "500")
        becomes(lambda: default(top / "c") == "default 500", "io.bfq.weight")


@slow
def test_many_cgroups() -> None:
    names = [f"g{n}" for n in range(MANY)]
    with tree(*names) as top:
        groups = [top / name for name in names]
        for group in groups:
            write(group / "io.weight", "200")
        began = time.monotonic()
        with following() as lines:
            print(f"first pass, with Python's start: {time.monotonic() - began:.1f} s")
            assert [default(group) for group in groups] == ["default 200"] * MANY
            assert f"and {MANY - 20} more weights written" in lines
            for group in groups:
                write(group / "io.weight", "300")
            took = becomes(lambda: all(default(one) == "default 300" for one in groups), "all")
            print(f"all changed: {took:.2f} s after the last write")


# 250 requests a second, of which the light cgroup gets one in 40 s.
STARVING = {**TIMED, "completion_nsec": 16_000_000, "hw_queue_depth": 4, "submit_queues": 1}


@slow
@time_limit(1000)
def test_a_cgroup_that_starves_is_told() -> None:
    with NullBlk(**STARVING) as disk, tenants(heavy=10000, light=1) as groups:
        heavy, light = groups
        disk.scheduler = "mqfq"
        with following() as lines:
            greedy = Fio(disk, heavy, iodepth=32, thread=1, runtime=600)
            becomes(lambda: done(heavy, disk) > 100, "the heavy cgroup")
            modest = Fio(disk, light, iodepth=32, thread=1, runtime=600)
            told = f"{disk.name}: light starves: "
            took = becomes(lambda: has(lines, told), "the warning", LONG_S)
            print(f"figure: told {took:.1f} s after the start of fio")
            assert not has(lines, "heavy starves")
            greedy.stop()
            becomes(lambda: has(lines, f"{disk.name}: light starves no more"), "its end", LONG_S)
            modest.stop()


RULES = """
[[device]]
match = "nullb7"
scheduler = "ifq"
tunables = { depth = 48 }

[[weight]]
cgroup = "follow/a"
weight = 300
device = "nullb7"
"""


def mqfair(*argv: str) -> str:
    return run(sys.executable, "-m", "mqfair", *argv).stdout


@slow
def test_the_rules_stay_in_force() -> None:
    """A disk that comes, a scheduler that is switched away, the user's own choice, and the module's
    return."""
    os.chdir(ROOT)
    file = Path("/tmp/mqfair.conf")
    file.write_text(RULES)
    with tree("a") as top, following("--config", str(file)):
        for _ in range(2):
            with NullBlk(**TIMED) as disk:
                check_disk(disk, top / "a" / WEIGHT)


def check_disk(disk: NullBlk, weights: Path) -> None:
    def depth() -> str:
        return disk.tunable("depth").split()[0]

    becomes(lambda: disk.scheduler == "ifq", "the scheduler of a new disk")
    becomes(lambda: depth() == "48", "its depth")
    becomes(lambda: read(weights).splitlines()[1:] == [f"{disk.number} 300"], "a weight")
    for rival in ("none", "mq-deadline"):
        write(f"/sys/block/{disk.name}/queue/scheduler", rival)
        becomes(lambda: disk.scheduler == "ifq", f"ifq after {rival}")
        becomes(lambda: depth() == "48", "the depth")
    mqfair("disable", disk.name)
    time.sleep(1)
    assert disk.scheduler == "none"
    rmmod("mqfair")
    modprobe("mqfair")
    becomes(lambda: len(read(weights).splitlines()) == 2, "the weight")
    assert disk.scheduler == "none"
    mqfair("enable", disk.name, "--scheduler", "ifq")
    write(f"/sys/block/{disk.name}/queue/scheduler", "none")
    becomes(lambda: disk.scheduler == "ifq" and depth() == "48", "the rule")
    mqfair("disable", disk.name)
