# SPDX-License-Identifier: GPL-2.0
"""The text that an owner of a delegated cgroup may write: any key and any value, while disks and
cgroups come and go, harms no other cgroup, and each file takes its own syntax alone."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, mqfq
from guestlib import (
    CGROUP_ROOT,
    Cgroup,
    NullBlk,
    cases,
    every_kernel,
    read,
    slow_for,
    write,
)

guest = SMALL_GUEST

OWNER = 1000
FILES = ("io.mqfair.weight", "io.mqfair.latency")
# The errors that the two files have for a text or a disk.
REFUSALS = {errno.EINVAL, errno.ENODEV}
VALUES = {
    "io.mqfair.weight": ("100", "1", "10000", "default", "0", "10001", "x", ""),
    "io.mqfair.latency": ("target=1ms", "target=none", "target=1us pct=99", "target=0", "x", ""),
}


@contextlib.contextmanager
def delegated(name: str) -> Iterator[Cgroup]:
    """A cgroup with a child "child", and an unprivileged owner of both, as systemd delegates."""
    with Cgroup(name) as group:
        write(group.path / "cgroup.subtree_control", "+io")
        child = group.path / "child"
        child.mkdir()
        for path in (group.path, child, *(group.path / file for file in DELEGATED)):
            os.chown(path, OWNER, OWNER)
        for file in child.iterdir():
            os.chown(file, OWNER, OWNER)
        try:
            yield group
        finally:
            child.rmdir()


DELEGATED = ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control")


# --- a fuzzer --------------------------------------------------------------------------------


def numbers_of_disks() -> list[str]:
    """Of disks, partitions and hidden paths, as far as /sys has them."""
    found = []
    for path in Path("/sys/class/block").iterdir():
        with contextlib.suppress(OSError):
            found.append(read(path / "dev"))
    return found


def any_key(rng: random.Random, known: list[str]) -> str:
    """A key valid as text: of a disk that is there, has gone or is being made, or of none."""
    kind = rng.randrange(4)
    if kind == 0:
        return "0:0"
    if kind == 1 and known:
        return rng.choice(known)
    major = rng.choice((0, 7, 8, 252, 253, 254, 259, rng.randrange(1 << 12), 1 << 32))
    return f"{major}:{rng.choice((0, 1, rng.randrange(64), (1 << 20) - 1, 1 << 20))}"


def result(path: Path, text: str) -> int:
    """The errno of a write, or 0."""
    try:
        write(path, text)
    except OSError as error:
        return error.errno
    return 0


def fuzz(directory: Path, seed: int, until: float) -> list[int]:
    """Writes keys and values until then. Returns the errno of each write; 0 is success."""
    rng = random.Random(seed)
    outcomes = []
    known: list[str] = []
    while time.monotonic() < until:
        if len(outcomes) % 200 == 0:
            known = (numbers_of_disks() + known)[:100]
        file = rng.choice(FILES)
        text = f"{any_key(rng, known)} {rng.choice(VALUES[file])}"
        outcomes.append(result(directory / file, text))
    return outcomes


@dataclasses.dataclass
class Owner:
    """An unprivileged process, and the pipe from which its answer comes."""

    pid: int
    pipe: int

    def answer(self) -> list[int]:
        with os.fdopen(self.pipe, encoding="ascii") as pipe:
            text = pipe.read()
        assert os.waitpid(self.pid, 0)[1] == 0, "the owner's process failed"
        return list(json.loads(text))


def as_owner(action: Callable[[], list[int]]) -> Owner:
    """Runs @action in an unprivileged process, which answers with its result."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return Owner(pid, reader)
    status = 1
    try:
        os.setgroups([])
        os.setgid(OWNER)
        os.setuid(OWNER)
        with os.fdopen(writer, "w", encoding="ascii") as pipe:
            json.dump(action(), pipe)
        status = 0
    finally:
        os._exit(status)


def churn(group: Cgroup, until: float) -> int:
    """Makes and removes disks and cgroups until then. Returns the number of disks."""
    made = 0
    while time.monotonic() < until:
        with NullBlk("nullb8") as disk:
            if made % 2:
                disk.scheduler = "mqfq"
            sub = group.path / "child" / "sub"
            sub.mkdir()
            subprocess.run(["losetup", "--find", disk.path], check=False, capture_output=True)
            subprocess.run(["losetup", "--detach-all"], check=False, capture_output=True)
            sub.rmdir()
        made += 1
    return made


@cases(8, 120)
@slow_for(120)
@every_kernel
def test_any_key_while_disks_come_and_go(seconds: int) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    with NullBlk() as disk, mqfq(disk), delegated("tenant") as group:
        child = group.path / "child"
        write(group.path / "cgroup.subtree_control", "+io")
        until = time.monotonic() + seconds
        owners = [
            as_owner(functools.partial(fuzz, child, seed + number, until)) for number in range(2)
        ]
        made = churn(group, until)
        outcomes = Counter(number for owner in owners for number in owner.answer())
        named = {errno.errorcode.get(number, "taken"): n for number, n in outcomes.items()}
        print(f"{made} disks came and went beside these writes: {named}")
        assert made > 1
        assert outcomes[0] and set(outcomes) - {0} == REFUSALS, named
        # The files still work, for the owner as well.
        write(child / FILES[0], f"{disk.number} 300")
        assert f"{disk.number} 300" in read(child / FILES[0])


# --- syntax ----------------------------------------------------------------------------------


# The last is a digit to Python alone.
BAD_NUMBERS = (
    "+7",
    "-7",
    "0x7",
    "7x",
    "x",
    "7\0junk",
    "7 7",
    "4294967303",
    "\N{ARABIC-INDIC DIGIT SEVEN}",
)


@every_kernel
def test_each_file_takes_digits_alone_and_nothing_after_a_nul() -> None:
    """The kernel's own parsers take a sign, and end at a NUL."""
    with NullBlk(hw_queue_depth=32) as disk, mqfq(disk), Cgroup("group") as group:
        weight, latency = (group.path / file for file in FILES)
        tunable = disk.sysfs / "queue/iosched/depth"
        number = disk.number
        texts = {
            weight: ("{}", "default {}", f"{number} {{}}"),
            latency: (f"{number} target={{}}ms", f"{number} target=1ms pct={{}}"),
            tunable: ("{}", "{} auto"),
            disk.sysfs / "queue/iosched/cost": ("linear {} 0 0 0", "linear 0 0 0 {}"),
        }
        for file, forms in texts.items():
            for form in forms:
                for good in (form.format(7), form.format(7) + "\n", form.format(7) + "\0"):
                    assert not result(file, good), f"{file.name}: {good!r}"
                for bad in BAD_NUMBERS:
                    text = form.format(bad)
                    got = result(file, text)
                    assert got == errno.EINVAL, f"{file.name}: {text!r}: {got}"
        for file in (weight, latency):
            for key in ("+8:0", "8:+0", "8:0\0", ":", "8:", ":0", "8:0:0", "0x8:0"):
                got = result(file, f"{key} {'7' if file == weight else 'target=1ms'}")
                assert got == errno.EINVAL, f"{file.name}: {key!r}: {got}"


# --- rights ----------------------------------------------------------------------------------


@every_kernel
def test_an_owner_writes_the_files_of_children_alone() -> None:
    """The rows of the table "Delegated cgroups" of doc/production.md."""
    with NullBlk() as disk, mqfq(disk), delegated("tenant") as group:
        texts = {FILES[0]: f"{disk.number} 10000", FILES[1]: f"{disk.number} target=1ms"}

        def attempts() -> list[int]:
            return [
                result(directory / file, text)
                for directory in (group.path, group.path / "child")
                for file, text in texts.items()
            ]

        # Its own files belong to root.
        assert as_owner(attempts).answer() == [errno.EACCES, errno.EACCES, 0, 0]


@contextlib.contextmanager
def nsdelegate() -> Iterator[None]:
    """Cgroup namespaces are bounds of delegation."""
    subprocess.run(["mount", "-o", "remount,nsdelegate", CGROUP_ROOT], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount", CGROUP_ROOT], check=True)


@every_kernel
def test_a_container_does_not_raise_its_own_weight() -> None:
    """Root in a cgroup namespace, mounted with nsdelegate, writes the files of children, and not
    those of the namespace's own root."""
    script = """
        mount -t cgroup2 none /mnt && mkdir /mnt/inside || exit 3
        echo $$ > /mnt/inside/cgroup.procs || exit 4
        echo +io > /mnt/cgroup.subtree_control || exit 5
        echo 10000 > /mnt/io.mqfair.weight && exit 6
        echo "$1 target=1ms" > /mnt/io.mqfair.latency && exit 7
        echo 10000 > /mnt/child/io.mqfair.weight || exit 8
        echo "$1 target=1ms" > /mnt/child/io.mqfair.latency || exit 9"""
    with NullBlk() as disk, mqfq(disk), nsdelegate(), delegated("container") as group:
        write(group.path / "cgroup.subtree_control", "-io")
        shell = ["unshare", "--cgroup", "--mount", "/bin/sh", "-c", script, "sh", disk.number]
        assert subprocess.run(group.command(shell), check=False).returncode == 0
        assert read(group.path / FILES[0]) == "default 100"
        assert read(group.path / "child" / FILES[0]) == "default 10000"
        (group.path / "inside").rmdir()
