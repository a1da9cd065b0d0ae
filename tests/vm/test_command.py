# SPDX-License-Identifier: GPL-2.0
"""The command on a real kernel: programs that run at the same time, and the life of weights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from fairlib import SMALL_GUEST, TIMED, ours, tenants
from guestlib import PYTHON, NullBlk, modprobe, read, rmmod, run

guest = SMALL_GUEST

ROOT = Path(__file__).resolve().parents[2]
SAID = re.compile(r"nullb7: (\S+) \(was (\S+)\)  (.*)")


def mqfair(*argv: str) -> list[str]:
    os.chdir(ROOT)
    return [sys.executable, "-m", "mqfair", *argv]


def test_each_of_several_enables_reports_the_truth() -> None:
    """The lines of the programs form a chain from the first scheduler to the one in force."""
    with NullBlk(**TIMED) as disk:
        disk.scheduler = "none"
        names = ours(disk)[:4]
        programs = [
            subprocess.Popen(
                mqfair("enable", disk.name, "--scheduler", name),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for name in names
        ]
        said = [program.communicate()[0] for program in programs]
        print("".join(said))
        assert [program.returncode for program in programs] == [0] * len(names)
        steps = dict(SAID.match(text).group(2, 1) for text in said)
        place = "none"
        for _ in names:
            place = steps[place]
        assert place == disk.scheduler
        disk.scheduler = "none"


JOB = """[global]
ioengine=libaio
direct=1
rw=randread
iodepth=16
ramp_time=200ms
runtime=500ms
[a]
cgroup=a
"""


def test_a_bench_of_a_drive_restores_modules_and_tunables() -> None:
    """It loads mqfair.ko and Kyber, and the drive has a scheduler with a tunable of its own."""
    with NullBlk(**TIMED) as disk, tempfile.NamedTemporaryFile("w", suffix=".fio") as job:
        job.write(JOB)
        job.flush()
        rmmod("mqfair")
        try:
            disk.scheduler = "mq-deadline"
            disk.set_tunable("fifo_batch", 5)
            disk.set_queue("nr_requests", 24)
            before = modules()
            words = ("--schedulers", "none,kyber,mqfq", "--device", f"/dev/{disk.name}")
            argv = mqfair("bench", job.name, *words)
            print(run(os.environ[PYTHON], *argv[1:]).stdout)
            assert disk.scheduler == "mq-deadline"
            assert (disk.tunable("fifo_batch"), disk.queue("nr_requests")) == ("5", "24")
            assert modules() == before
        finally:
            modprobe("mqfair")


def modules() -> set[str]:
    return {line.split()[0] for line in Path("/proc/modules").read_text().splitlines()}


def test_weights_end_with_the_module_and_disable_says_so() -> None:
    with NullBlk(**TIMED) as disk, tenants(prod=900, batch=100):
        disk.scheduler = "mqfq"
        said = run(*mqfair("disable", disk.name)).stdout
        print(said)
        assert "note: 1 cgroup has weights or goals in the module: `modprobe -r mqfair`" in said
        rmmod("mqfair")
        modprobe("mqfair")
        assert read("/sys/fs/cgroup/prod/io.mqfair.weight") == "default 100"
        assert "note" not in run(*mqfair("disable", disk.name)).stdout
