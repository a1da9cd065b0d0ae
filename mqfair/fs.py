# SPDX-License-Identifier: GPL-2.0
"""The only door to /sys, /proc and the cgroup file system.

Every path is absolute as the running kernel names it; a root other than / (environment variable
MQFAIR_ROOT) is put in front of it, so that a copy of another machine's tree can be examined.
Every write is recorded; in a dry run it is recorded only.
"""

import errno
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mqfair.errors import Failure

ROOT_VARIABLE = "MQFAIR_ROOT"

# The kernel answers EBUSY while somebody else reconfigures the same tag set, which takes
# milliseconds: six tries over 1.55 s outlast that without hanging on a real deadlock.
BUSY_DELAYS_S = (0.05, 0.1, 0.2, 0.4, 0.8)

HINTS: Mapping[int, str] = {
    errno.EACCES: "run as root",
    errno.EPERM: "run as root, outside of a container",
    errno.EROFS: "it is mounted read-only here: run outside of the container",
    errno.EINVAL: "the kernel does not take this value",
    errno.ERANGE: "the kernel does not take this value",
    errno.ENODEV: "the device has gone",
    errno.ENOENT: "it has gone or this kernel does not have it",
    errno.EOPNOTSUPP: "this kernel does not support it here",
    errno.ENOMEM: "the kernel is out of memory: try a smaller value",
}


@dataclass(frozen=True)
class Write:
    path: str
    value: str

    def __str__(self) -> str:
        return f"write '{self.value}' to '{self.path}'"


def describe(error: OSError, hints: Mapping[int, str]) -> str:
    code = error.errno or 0
    hint = hints.get(code) or HINTS.get(code)
    reason = os.strerror(code)
    return f"{reason}: {hint}" if hint else reason


class Fs:
    """Reads and writes kernel files below one root."""

    def __init__(self, root: str | None = None, *, dry_run: bool = False) -> None:
        chosen = os.environ.get(ROOT_VARIABLE, "/") if root is None else root
        self.root = os.path.realpath(chosen)
        self.dry_run = dry_run
        self.writes: list[Write] = []

    def host_path(self, path: str) -> Path:
        return Path(self.root) / path.lstrip("/")

    def exists(self, path: str) -> bool:
        return self.host_path(path).exists()

    def is_dir(self, path: str) -> bool:
        return self.host_path(path).is_dir()

    def names(self, path: str) -> list[str]:
        """Sorted entries of a directory; empty when it is not there."""
        try:
            return sorted(entry.name for entry in self.host_path(path).iterdir())
        except OSError:
            return []

    def subdirs(self, path: str) -> list[str]:
        """Sorted names of the real directories in a directory; empty when it is not there."""
        try:
            with os.scandir(self.host_path(path)) as entries:
                return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except OSError:
            return []

    def resolve(self, path: str) -> str:
        """The path with symbolic links followed, still named as the kernel names it."""
        real = self.host_path(path).resolve()
        try:
            return f"/{real.relative_to(self.root)}"
        except ValueError:
            return str(real)

    def block_number(self, path: str) -> str | None:
        """MAJ:MIN of a block device node, None for anything else."""
        return self._number(path, node=True)

    def backing_number(self, path: str) -> str | None:
        """MAJ:MIN of the device that holds a file, None when the file cannot be seen."""
        return self._number(path, node=False)

    def _number(self, path: str, *, node: bool) -> str | None:
        try:
            status = self.host_path(path).stat()
        except (OSError, ValueError):
            return None
        if node and not stat.S_ISBLK(status.st_mode):
            return None
        device = status.st_rdev if node else status.st_dev
        return f"{os.major(device)}:{os.minor(device)}"

    def read(self, path: str) -> str:
        try:
            return self._load(path)
        except OSError as error:
            raise Failure(f"cannot read {path}: {describe(error, {})}") from error

    def read_if_any(self, path: str) -> str | None:
        """The text, or None when the file is absent or does not apply here."""
        try:
            return self._load(path)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise Failure(f"cannot read {path}: {describe(error, {})}") from error
            return None

    def write(self, path: str, value: str, hints: Mapping[int, str] | None = None) -> None:
        """Writes in one system call; retries while busy; `hints` overrides the usual advice."""
        self.writes.append(Write(path, value))
        if self.dry_run:
            return
        try:
            self._store_patiently(path, value)
        except OSError as error:
            advice = dict(hints or {})
            advice.setdefault(
                errno.EBUSY,
                f"still so after {len(BUSY_DELAYS_S) + 1} tries in {sum(BUSY_DELAYS_S):.1f} s:"
                " something else is reconfiguring it, try again later",
            )
            reason = describe(error, advice)
            raise Failure(f"cannot write '{value}' to {path}: {reason}") from error

    def _store_patiently(self, path: str, value: str) -> None:
        for delay in BUSY_DELAYS_S:
            try:
                return self._store(path, value)
            except OSError as error:
                if error.errno != errno.EBUSY:
                    raise
            time.sleep(delay)
        return self._store(path, value)

    def _load(self, path: str) -> str:
        return self.host_path(path).read_text(encoding="utf-8", errors="replace")

    def _store(self, path: str, value: str) -> None:
        # Without O_CREAT: a kernel file that is missing must stay an error.
        fd = os.open(self.host_path(path), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)
