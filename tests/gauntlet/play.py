# SPDX-License-Identifier: GPL-2.0
"""Plays descriptions with sim-run, several at once, and keeps the figures: a run is played once."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from mqfair.bench.simulated import program
from mqfair.text.errors import Failure

Figures = dict[str, Any]


class Player:
    """@binary is sim-run. Figures are kept in @folder, by the binary and the description."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self._binary = binary
        self._version = hashlib.sha256(binary.read_bytes()).hexdigest()
        self._folder = folder
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def play(self, text: str) -> Figures:
        """Raises Failure with the message of sim-run and the description."""
        key = hashlib.sha256(f"{self._version}\n{text}".encode()).hexdigest()
        path = self._folder / key[:2] / key[2:]
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if path.exists():
                return json.loads(path.read_text())
            try:
                figures = program.play(self._binary, text)
            except Failure as error:
                raise Failure(f"{error}\n{text}") from error
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.partial")
            partial.write_text(json.dumps(figures))
            partial.replace(path)
            return figures
