# SPDX-License-Identifier: GPL-2.0
"""Keeps the consoles of failed guests below build/consoles/, the latest FILES of them."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import lab

FOLDER = Path(__file__).resolve().parents[2] / "build" / "consoles"
FILES = 40

_number = itertools.count(1)


def path_of(name: str) -> Path:
    """A new file for the console of guest @name, which keep() writes when the guest has ended."""
    safe = re.sub(r"[^\w.+-]+", "-", name).strip("-")[:80]
    return FOLDER / f"{safe}-{os.getpid()}-{next(_number)}.log"


def keep(path: Path, result: lab.GuestResult) -> None:
    """Writes the whole console of @result, and its kernel log. Removes the oldest files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = result.console
    if not result.died and not result.timed_out:
        text += f"\n--- kernel log\n{result.dmesg}"
    path.write_text(text, errors="replace")
    for old in sorted(FOLDER.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-FILES]:
        old.unlink(missing_ok=True)
