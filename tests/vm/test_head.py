# SPDX-License-Identifier: GPL-2.0
"""Verbs that measure or record, for a disk of NVMe multipath: its head has the node and the number,
and its hidden paths have the request queues. test_calibrate.py calibrates a path."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, Load, mqfair, tenants
from guestlib import PYTHON, Cgroup, Disk, Fio, NullBlk, every_kernel, read
from nvmet import Controller, connected
from recorder import Recorder, requests

guest = SMALL_GUEST

ROOT = Path(__file__).resolve().parents[2]
DRIVE = {"irqmode": 2, "completion_nsec": 8_000_000, "submit_queues": 1, "hw_queue_depth": 4}
REQUESTS = 100
# One request at a time, so that fio's log has the order of the head. Some are split.
READS = {"ioengine": "psync", "iodepth": None, "rw": "randread", "bsrange": "4k-512k"}
BENCH = "[a]\nrw=randread\ndirect=1\nruntime=1\ncgroup=a\n"


def refused(*argv: str) -> str:
    """The one line with which the command refuses @argv; the bench has told its time before."""
    done = subprocess.run(
        [os.environ[PYTHON], "-m", "mqfair", *argv],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(argv, done.returncode, done.stdout, done.stderr)
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("mqfair: ")] == lines[-1:]
    return lines[-1]


def paths_of(controllers: list[Controller]) -> list[Disk]:
    return [one.path for one in controllers]


@contextlib.contextmanager
def shared_head() -> Iterator[tuple[Disk, list[Disk], list[Cgroup], Path]]:
    """A head, its two paths with a scheduler, its two tenants, and a folder for results."""
    with (
        tempfile.TemporaryDirectory() as name,
        NullBlk(**DRIVE) as drive,
        tenants(one=100, two=300) as groups,
        connected(drive, 2) as controllers,
    ):
        head = controllers[0].head
        mqfair("enable", head.name)
        yield head, paths_of(controllers), groups, Path(name)


def test_a_trace_of_a_head_has_the_requests_of_all_paths_once() -> None:
    with shared_head() as (head, paths, groups, folder):
        with Recorder(head, folder / "all.trace") as recorder:
            logs = {group: folder / f"{group.name}.log" for group in groups}
            loads = [
                Fio(head, group, number_ios=REQUESTS, write_iolog=log, **READS)
                for group, log in logs.items()
            ]
            for load in loads:
                load.result()
            status, said = recorder.end(signal.SIGINT)
        assert status == 130 and f"has {2 * REQUESTS} requests" in said, said
        for group, log in logs.items():
            sent = requests(log)
            assert requests(folder / "all.trace", group.name) == sent
            assert len(sent) == REQUESTS
        for path in paths:
            assert int(read(path.sysfs / "stat").split()[0]) >= REQUESTS // 2
            assert f"mqfair record {head.name} --trace" in refused(
                "record", path.name, "--trace", "--out", str(folder / "path.trace")
            )


@every_kernel
def test_samples_of_a_head_have_the_cgroups_of_each_path() -> None:
    with shared_head() as (head, paths, groups, folder):
        names = [path.name for path in paths]
        file = folder / "samples.jsonl"
        with Load(head, groups):
            said = mqfair("record", head.name, "--out", str(file), "--seconds", "3", "--json")
        summary = json.loads(said)
        assert (sorted(summary["disks"]), summary["cgroups"]) == (sorted(names), len(groups))


def test_a_bench_and_a_qualification_refuse_a_head_with_one_line() -> None:
    with (
        tempfile.NamedTemporaryFile("w", suffix=".fio") as job,
        NullBlk(**DRIVE) as drive,
        connected(drive, 1) as controllers,
    ):
        job.write(BENCH)
        job.flush()
        head, path = controllers[0].head, controllers[0].path
        before = path.scheduler
        bench = ("bench", job.name, "--device", str(head.path), "--schedulers", "none,mqfq")
        for argv in (bench, ("qualify", head.name, "--out", f"{job.name}.results")):
            said = refused(*argv)
            assert f"{head.name} is a head of NVMe multipath" in said
            assert "nvme_core.multipath=N" in said
        assert path.scheduler == before


def test_the_calibration_of_several_paths_is_refused() -> None:
    """The way out that the line names works."""
    with NullBlk(**DRIVE) as drive, connected(drive, 2) as controllers:
        head, paths = controllers[0].head, paths_of(controllers)
        before = [path.scheduler for path in paths]
        for named in (head, *paths):
            said = refused("enable", named.name, "--calibrate")
            assert f"{head.name} sends reads to several paths" in said
            assert "leave out --calibrate" in said
        assert [path.scheduler for path in paths] == before
        mqfair("enable", head.name)
        assert all("auto" in path.tunable("depth") for path in paths)
