# SPDX-License-Identifier: GPL-2.0
"""The place where the runs of a bench are played: this machine, or another one behind the same
three calls. A run depends on its description alone, so the place changes no figure."""

import importlib.util
import os
import re
from pathlib import Path
from typing import Any, Protocol

from mqfair.bench.simulated import program
from mqfair.text.errors import Failure, UsageError

# Dask, which a machine that only simulates here does not need.
PACKAGE = "distributed"
ADDRESS = re.compile(r"(tcp|tls|ucx|ws|wss)://\S+:\d+")


def check_cluster(address: str) -> None:
    """Raises UsageError for an address of no scheduler, and Failure if Dask is missing."""
    if not ADDRESS.fullmatch(address):
        raise UsageError(f"--cluster {address}: use the scheduler's address, as tcp://HOST:8786")
    if importlib.util.find_spec(PACKAGE) is None:
        raise Failure(
            f"--cluster: Python package {PACKAGE} missing: apt install python3-{PACKAGE} (Debian,"
            " Ubuntu), or pip install 'mqfair[cluster]' in a virtual environment"
        )


class Player(Protocol):
    """@at_once runs are played at the same time, each by a thread in play()."""

    at_once: int

    def play(self, text: str) -> Any:
        """The figures of the run that @text describes. Raises Failure."""

    def end(self) -> None:
        """Ends all runs, and those that begin later."""


class Here:
    """Each run is a process of @binary on this machine. @folder has the traces."""

    def __init__(self, binary: Path, folder: Path, at_once: int) -> None:
        self.at_once = at_once or os.cpu_count() or 1
        self._binary = binary
        self._folder = folder
        self._running = program.Processes()

    def play(self, text: str) -> Any:
        return program.play(self._binary, text, self._running, self._folder)

    def end(self) -> None:
        self._running.end()
