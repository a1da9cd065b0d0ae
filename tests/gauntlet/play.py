# SPDX-License-Identifier: GPL-2.0
"""Plays descriptions with sim-run, several at once, and keeps the figures: a run is played once."""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

Figures = dict[str, Any]


class PlayError(Exception):
    """sim-run refused a description or failed. The text has its message and the description."""


class Player:
    """@binary is sim-run. Figures are kept in @folder, by the binary and the description."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._version = hashlib.sha256(binary.read_bytes()).hexdigest()
        self._folder = folder
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self.played = 0

    def play(self, text: str) -> Figures:
        key = hashlib.sha256(f"{self._version}\n{text}".encode()).hexdigest()
        path = self._folder / key[:2] / key[2:]
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if path.exists():
                return json.loads(path.read_text())
            figures = self._run(text)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.partial")
            partial.write_text(json.dumps(figures))
            partial.replace(path)
            return figures

    def _run(self, text: str) -> Figures:
        argv = [str(self._binary)]
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        self.played += 1
        if done.returncode:
            raise PlayError(f"{done.stderr.strip()}\n{text}")
        return json.loads(done.stdout)
