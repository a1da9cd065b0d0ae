# SPDX-License-Identifier: GPL-2.0
"""The program sim-run: it is built when it is first needed, and runs one description."""

import contextlib
import fcntl
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mqfair.text.errors import Failure

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "build" / "sim-release"
# Of an installation without the sources: `make install-sim` puts it beside the packages, and a
# wheel has it beside this file.
INSTALLED = (ROOT / "sim-run", Path(__file__).with_name("sim-run"))

Process = subprocess.Popen[str]

_PACKAGES = {"meson": "meson", "ninja": "ninja-build"}


class WrongDescriptionError(Failure):
    """sim-run does not accept the description."""


def ensure(folder: Path = FOLDER, building: Callable[[], object] = lambda: None) -> Path:
    """The path of sim-run, without sanitizers, from the current sources. @building is called
    before it is built, unless it is of these sources already. Raises Failure if it cannot be
    built."""
    if not (ROOT / "meson.build").is_file():
        for path in INSTALLED:
            if path.is_file():
                return path
        raise Failure(
            f"{INSTALLED[0]}: no such file: run `make install-sim` in the sources of mqfair, or"
            " `mqfair sim` there"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{folder}: {error.strerror}: use a checkout that can be written") from error
    with _locked(folder):
        if not _is_current(folder):
            building()
        try:
            _compile(folder)
        except Failure:
            # A checkout that was copied or moved has a build folder of the old place.
            if not (folder / "build.ninja").is_file():
                raise
            shutil.rmtree(folder / "meson-private", ignore_errors=True)
            (folder / "build.ninja").unlink()
            _compile(folder)
    return folder / "sim" / "sim-run"


def _compile(folder: Path) -> None:
    if not (folder / "build.ninja").is_file():
        setup = [_tool("meson"), "setup", str(folder), str(ROOT)]
        _build([*setup, "-Dbuildtype=release", "-Db_sanitize=none"])
    _build([_tool("ninja"), "-C", str(folder), "sim/sim-run"])


def _is_current(folder: Path) -> bool:
    if not (folder / "build.ninja").is_file():
        return False
    argv = [_tool("ninja"), "-C", str(folder), "-n", "sim/sim-run"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return "no work to do" in done.stdout


class Processes:
    """The processes of runs. Another thread may end them all, and those that begin later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Process] = set()
        self._ended = False

    def add(self, process: Process) -> None:
        with self._lock:
            self._running.add(process)
            if self._ended:
                process.kill()

    def discard(self, process: Process) -> None:
        with self._lock:
            self._running.discard(process)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            for process in self._running:
                process.kill()


def play(
    program: Path, text: str, running: Processes | None = None, folder: Path | None = None
) -> Any:
    """The figures of the run that @text describes. The run's process is in @running meanwhile.
    @folder has the traces that @text names. Raises Failure."""
    running = running or Processes()
    with subprocess.Popen(
        [program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as process:
        running.add(process)
        try:
            figures, errors = process.communicate(text)
        finally:
            running.discard(process)
    return outcome(process.returncode, figures, errors, str(program))


def outcome(status: int, figures: str, errors: str, program: str) -> Any:
    """The figures of a run with this exit status of @program. Raises Failure."""
    if status == 0:
        return json.loads(figures)
    said = errors.strip().removeprefix("sim-run: ")
    if status < 0:
        said = f"signal {-status} ended the program {program}: memory may be short"
    raise (WrongDescriptionError if status == 2 else Failure)(said)


def _tool(name: str) -> str:
    """The path of a tool: of the virtual environment first."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        raise Failure(
            f"the simulator cannot be built: {name} is missing: install the package"
            f" {_PACKAGES[name]}, or run `make sim`"
        )
    return found


def _build(argv: Sequence[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-2000:]
        raise Failure(f"the simulator cannot be built: {' '.join(argv)}: {said}")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two programs that build at the same time wait for each other."""
    with (folder / ".mqfair-lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
