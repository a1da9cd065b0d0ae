# SPDX-License-Identifier: GPL-2.0
"""The only door to /sys, /proc and the cgroup file system.

Every path is absolute, as the running kernel names it. A root other than / (environment variable
MQFAIR_ROOT) is put in front of it, so that a copy of another machine's tree can be examined. Every
write is recorded; a dry run only records it.
"""

import errno
import os
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mqfair.text.errors import Failure, UsageError

ROOT_VARIABLE = "MQFAIR_ROOT"
_GLANCE = 1 << 16

# The kernel answers EBUSY while another task reconfigures the same tag set, which takes
# milliseconds. Six tries over 1.55 s outlast it and end soon after a real deadlock.
BUSY_DELAYS_S = (0.05, 0.1, 0.2, 0.4, 0.8)

HINTS: Mapping[int, str] = {
    errno.EACCES: "run as root",
    errno.EPERM: "run as root, outside of a container",
    errno.EROFS: "the mount is read-only: run outside of the container",
    errno.EINVAL: "the kernel does not accept this value",
    errno.ERANGE: "the kernel does not accept this value",
    errno.ENODEV: "the device was removed",
    errno.ENOENT: "the file was removed, or this kernel does not have it",
    errno.EOPNOTSUPP: "this kernel does not support it for this device",
    errno.ENOMEM: "the kernel is out of memory: try a smaller value",
}


# A file of the kernel is rarely longer; a longer one takes more than one system call.
READ_BYTES = 16384


class KernelFile:
    """A file that is read again and again. Its place is found once, so that a later read costs
    three system calls and no more."""

    __slots__ = ("place",)

    def __init__(self, place: str) -> None:
        self.place = place

    def read(self) -> bytes | None:
        """The content, or None if the file is gone or this user may not read it."""
        try:
            fd = os.open(self.place, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            content = chunk = os.read(fd, READ_BYTES)
            while len(chunk) == READ_BYTES:
                chunk = os.read(fd, READ_BYTES)
                content += chunk
            return content
        except OSError:
            return None
        finally:
            os.close(fd)


@dataclass(frozen=True)
class Write:
    path: str
    value: str

    def __str__(self) -> str:
        return f"write '{self.value}' to '{self.path}'"


def describe(error: OSError, hints: Mapping[int, str]) -> str:
    """The error's text and, if there is one for its number, a hint from @hints or HINTS."""
    code = error.errno or 0
    hint = hints.get(code) or HINTS.get(code)
    reason = os.strerror(code)
    return f"{reason}: {hint}" if hint else reason


class Fs:
    """Reads and writes kernel files below one root."""

    def __init__(self, root: str | None = None, *, dry_run: bool = False) -> None:
        chosen = os.environ.get(ROOT_VARIABLE, "/") if root is None else root
        self.root = os.path.realpath(chosen)
        if not os.path.isdir(self.root):  # noqa: PTH112 -- no Path is at hand
            raise UsageError(f"{ROOT_VARIABLE}={chosen}: no such folder: unset it for this machine")
        self._prefix = self.root.rstrip("/")
        self.dry_run = dry_run
        self.writes: list[Write] = []

    def host_path(self, path: str) -> Path:
        return Path(self.root) / path.lstrip("/")

    def file(self, path: str) -> KernelFile:
        return KernelFile(str(self.host_path(path)))

    def exists(self, path: str) -> bool:
        return self.host_path(path).exists()

    def is_dir(self, path: str) -> bool:
        return self.host_path(path).is_dir()

    def names(self, path: str) -> list[str]:
        """The sorted entries of a directory; empty if it does not exist."""
        try:
            return sorted(entry.name for entry in self.host_path(path).iterdir())
        except OSError:
            return []

    def subdirs(self, path: str) -> list[str]:
        """The sorted names of the directories in a directory, without symbolic links; empty if it
        does not exist."""
        try:
            with os.scandir(self.host_path(path)) as entries:
                return sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        except OSError:
            return []

    def resolve(self, path: str) -> str:
        """@path with symbolic links followed, as the kernel names it."""
        real = self.host_path(path).resolve()
        try:
            return f"/{real.relative_to(self.root)}"
        except ValueError:
            return str(real)

    def block_number(self, path: str) -> str | None:
        """MAJ:MIN of a block device node; None for any other file."""
        return self._number(path, node=True)

    def backing_number(self, path: str) -> str | None:
        """MAJ:MIN of the device that holds a file; None if the file is not accessible."""
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
        """The text of a file; raises Failure if it cannot be read."""
        try:
            return self._load(path)
        except OSError as error:
            raise Failure(f"cannot read {path}: {describe(error, {})}") from error

    def read_if_any(self, path: str) -> str | None:
        """The text of a file, or None if the file is absent or does not apply to this device.
        Raises Failure if permission is denied."""
        try:
            return self._load(path)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise Failure(f"cannot read {path}: {describe(error, {})}") from error
            return None

    def glance(self, path: str) -> str | None:
        """The text of a small file, or None if it cannot be read. For thousands of files: three
        system calls, and no more Python than they need. A NUL, which no path may have, is replaced,
        since words of the text may become paths."""
        try:
            fd = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.read(fd, _GLANCE).decode(errors="replace").replace("\0", "\ufffd")
        except OSError:
            return None
        finally:
            os.close(fd)

    def bytes_if_any(self, path: str) -> bytes | None:
        """The content of a file, or None if it cannot be read."""
        try:
            return self.host_path(path).read_bytes()
        except OSError:
            return None

    def write(self, path: str, value: str, hints: Mapping[int, str] | None = None) -> None:
        """Writes @value in one system call and retries while the kernel answers EBUSY.

        Raises Failure if the kernel refuses. @hints take precedence over HINTS in its message.
        """
        self.writes.append(Write(path, value))
        if self.dry_run:
            return
        try:
            self._store_patiently(path, value)
        except OSError as error:
            advice = dict(hints or {})
            advice.setdefault(
                errno.EBUSY,
                f"busy in all {len(BUSY_DELAYS_S) + 1} tries over {sum(BUSY_DELAYS_S):.1f} s:"
                " another program is reconfiguring the device, try again later",
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
        # No O_CREAT: a missing kernel file is an error.
        fd = os.open(self._prefix + path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode())
        finally:
            os.close(fd)
