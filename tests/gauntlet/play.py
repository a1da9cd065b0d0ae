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
    """@binary is sim-run. Figures are kept in @folder, by the binary and the description, or else
    in memory."""

    def __init__(self, binary: Path, folder: Path | None) -> None:
        self._binary = binary
        self._version = hashlib.sha256(binary.read_bytes()).hexdigest()
        self._kept: dict[str, Figures] = {}
        self._folder = folder
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def play(self, text: str) -> Figures:
        """Raises Failure with the message of sim-run and the description."""
        key = hashlib.sha256(f"{self._version}\n{text}".encode()).hexdigest()
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if self._folder is None:
                if key not in self._kept:
                    self._kept[key] = self._play(text)
                return self._kept[key]
            path = self._folder / key[:2] / key[2:]
            if path.exists():
                return json.loads(path.read_text())
            figures = self._play(text)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f"{path.name}.partial")
            partial.write_text(json.dumps(figures))
            partial.replace(path)
            return figures

    def _play(self, text: str) -> Figures:
        try:
            return program.play(self._binary, text)
        except Failure as error:
            raise Failure(f"{error}\n{text}") from error
