# SPDX-License-Identifier: GPL-2.0
"""`mqfair record --trace` writes the requests that fio has sent, and the simulator replays them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlib import SMALL_GUEST, mqfq, tenants
from guestlib import PYTHON, Fio, NullBlk, cases, every_kernel, fio, run, wait_until, write

guest = SMALL_GUEST

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mqfair.traces.reader import Trace  # noqa: E402

TRACING = Path("/sys/kernel/tracing")
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


class Recorder:
    """The command, which records @disk for the time of a block or until it is ended."""

    def __init__(self, disk: NullBlk, out: Path) -> None:
        if not (TRACING / "instances").exists():
            run("mount", "-t", "tracefs", "tracefs", TRACING)
        argv = [sys.executable, "-m", "mqfair", "record", disk.name, "--trace", "--out", str(out)]
        self.process = subprocess.Popen(
            [*argv, "--seconds", "3600"], cwd=ROOT, text=True, stderr=subprocess.PIPE
        )
        self.instance = TRACING / "instances" / f"mqfair-{self.process.pid}"
        self._out = out
        wait_until(self._records, "the command records")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def _records(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()[1]
        # A new instance is on at once. The command opens its file at last.
        switches = ("events/block/block_bio_queue/enable", "tracing_on")
        with contextlib.suppress(OSError):
            on = [(self.instance / name).read_text().strip() for name in switches]
            return on == ["1", "1"] and self._out.exists()
        return False

    def end(self, how: signal.Signals) -> tuple[int, str]:
        """The exit status and the words of the command."""
        self.process.send_signal(how)
        said = self.process.communicate()[1]
        return self.process.returncode, said


@contextlib.contextmanager
def recording(folder: Path) -> Iterator[tuple[NullBlk, Recorder]]:
    with NullBlk(**DRIVE) as disk, Recorder(disk, folder / "all.trace") as recorder:
        yield disk, recorder


def requests(path: Path, source: str | None = None) -> list[tuple[str, int, int]]:
    """Operation, offset and bytes of each request in their order."""
    found = Trace(str(path)).requests()
    return [(one.op, one.offset, one.bytes) for one in found if source in (None, one.source)]


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


@every_kernel
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
