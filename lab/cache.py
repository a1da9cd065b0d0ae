"""The cache folder for everything fetched or derived, and locks in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def cache_dir() -> Path:
    """$MQFAIR_CACHE, else the folder mqfair in the user's cache folder; created if missing."""
    configured = os.environ.get("MQFAIR_CACHE")
    if configured:
        path = Path(configured).expanduser().absolute()
    else:
        base = os.environ.get("XDG_CACHE_HOME")
        path = (Path(base) if base else Path.home() / ".cache") / "mqfair"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock on @path against other processes; creates @path if missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces @path. A reader sees the old content or all of the new, even after a crash."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
