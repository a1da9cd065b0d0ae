# SPDX-License-Identifier: GPL-2.0
"""`mqfair record --trace` writes the requests that fio has sent, and the simulator replays them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, mqfq, tenants
from guestlib import PYTHON, Fio, NullBlk, cases, fio, run, wait_until, write
from recorder import Recorder, requests

guest = SMALL_GUEST

ROOT = Path(__file__).resolve().parents[2]
DRIVE = {
    "irqmode": 2,
    "completion_nsec": 1_000_000,
    "submit_queues": 2,
    "hw_queue_depth": 16,
    "max_sectors": 64,
}
# The same in the simulator, where requests may be larger.
SIMULATED = "null:irqmode=2,completion_nsec=1000000,submit_queues=2,hw_queue_depth=16,gb=1"
REQUESTS = 300
# One request at a time, so that fio's log has the order of the drive. Some are split.
READS = {"rw": "randread", "bsrange": "4k-256k"}
WRITES = {"rw": "randwrite", "bs": "8k", "fsync": 16}
JOB = """\
[global]
direct=1
ioengine=psync
ramp_time=0
runtime=600
numjobs=4
"""


@contextlib.contextmanager
def recording(folder: Path) -> Iterator[tuple[NullBlk, Recorder]]:
    with NullBlk(**DRIVE) as disk, Recorder(disk, folder / "all.trace") as recorder:
        yield disk, recorder


def replayed(folder: Path, names: list[str]) -> dict[str, tuple[int, int]]:
    """The requests and bytes that the simulator replays for each cgroup."""
    parts = folder / "parts"
    run(sys.executable, "-m", "mqfair", "trace", folder / "all.trace", "--split", parts)
    sections = (f"[{name}]\ncgroup={name}\nread_iolog={name}.trace\n" for name in names)
    (parts / "j.fio").write_text(JOB + "".join(sections))
    raw = folder / "raw"
    argv = ("sim", parts / "j.fio", "--schedulers", "mqfq", "--device", SIMULATED, "--raw", raw)
    run(os.environ[PYTHON], "-m", "mqfair", *argv)
    flows = json.loads((raw / "000" / "run.json").read_text())["flows"]
    return {f"g{n}": (flows[f"g{n}"]["ios"], flows[f"g{n}"]["bytes"]) for n in range(len(names))}


def test_a_recorded_load_is_replayed() -> None:
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as name, tenants(reads=100, writes=300) as (reads, writes):
        folder = Path(name)
        with recording(folder) as (disk, recorder), mqfq(disk):
            loads = [
                Fio(
                    disk,
                    group,
                    ioengine="psync",
                    iodepth=None,
                    number_ios=REQUESTS,
                    write_iolog=folder / f"{group.name}.log",
                    **options,
                )
                for group, options in ((reads, READS), (writes, WRITES))
            ]
            done = [load.result()["jobs"][0] for load in loads]
            status, said = recorder.end(signal.SIGINT)
        assert (status, said) == (
            130,
            f"mqfair: interrupted; {folder}/all.trace has {2 * REQUESTS} requests\n",
        )
        for group in ("reads", "writes"):
            sent = requests(folder / f"{group}.log")
            assert requests(folder / "all.trace", group) == sent, group
            assert len(sent) == REQUESTS
        sizes = [done[0]["read"]["io_bytes"], done[1]["write"]["io_bytes"]]
        found = list(replayed(folder, ["reads", "writes"]).values())
        assert found == [(REQUESTS, size) for size in sizes]


@cases(signal.SIGTERM, signal.SIGKILL)
def test_an_ended_command_leaves_no_instance(how: signal.Signals) -> None:
    with tempfile.TemporaryDirectory() as name, recording(Path(name)) as (disk, recorder):
        fio(disk, number_ios=10)
        recorder.end(how)
        wait_until(lambda: not recorder.instance.exists(), "the instance is removed")


def test_lost_requests_are_counted() -> None:
    with tempfile.TemporaryDirectory() as name, recording(Path(name)) as (disk, recorder):
        write(recorder.instance / "buffer_size_kb", "4")
        recorder.process.send_signal(signal.SIGSTOP)
        fio(disk, number_ios=4000)
        recorder.process.send_signal(signal.SIGCONT)
        status, said = recorder.end(signal.SIGINT)
        print(said)
        assert status == 130
        has, lost = (int(word) for word in said.replace(";", "").split() if word.isdecimal())
        assert lost > 0 and has + lost == 4000, said
