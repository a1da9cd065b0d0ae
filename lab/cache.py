"""The one folder that holds everything fetched or derived, and locks in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def cache_dir() -> Path:
    """$MQFAIR_CACHE, else mqfair in the user's cache folder; created when missing."""
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
    """Hold an exclusive lock on @path (created when missing) against other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_atomically(path: Path, data: bytes) -> None:
    """Readers see the old content or all of the new, also after a crash in between."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
