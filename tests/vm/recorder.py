# SPDX-License-Identifier: GPL-2.0
"""A running `mqfair record --trace` in the guest, and the requests in its file."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from guestlib import Disk, run, wait_until

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mqfair.traces.reader import Trace  # noqa: E402

TRACING = Path("/sys/kernel/tracing")


class Recorder:
    """The command, which records @disk for the time of a block or until it is ended."""

    def __init__(self, disk: Disk, out: Path) -> None:
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


def requests(path: Path, source: str | None = None) -> list[tuple[str, int, int]]:
    """Operation, offset and bytes of each request in their order."""
    found = Trace(str(path)).requests()
    return [(one.op, one.offset, one.bytes) for one in found if source in (None, one.source)]
