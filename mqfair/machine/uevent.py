# SPDX-License-Identifier: GPL-2.0
"""Events of devices and modules, as the kernel and udevd announce them by netlink."""

import contextlib
import errno
import socket
import struct
from collections.abc import Iterator

_KOBJECT_UEVENT = 15
# The kernel's own messages, and those of udevd, which come when the links in /dev exist.
_GROUPS = 1 | 2
_BUFFER = 1 << 16
_LOST = "lost"

# The header of udevd's messages: a mark, two numbers, and the offset of the words.
_UDEVD = b"libudev\0"
_OFFSET_AT = 16
_OFFSET = struct.Struct("=I")


class Uevents:
    """A netlink socket; raises OSError where there is none, as in some containers."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK,
            socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC,
            _KOBJECT_UEVENT,
        )
        try:
            self._socket.bind((0, _GROUPS))
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> Iterator[set[str]]:
        """The words of each message so far, such as SUBSYSTEM=block and DEVNAME=nvme0n1."""
        while True:
            try:
                yield _words(self._socket.recv(_BUFFER))
            except BlockingIOError:
                return
            except OSError as error:
                # The socket's buffer was full: anything may have happened.
                if error.errno != errno.ENOBUFS:
                    raise
                yield {_LOST}

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()


def _words(data: bytes) -> set[str]:
    """udevd's messages have a header, which says where the words begin."""
    if data.startswith(_UDEVD) and len(data) >= _OFFSET_AT + _OFFSET.size:
        data = data[_OFFSET.unpack_from(data, _OFFSET_AT)[0] :]
    return set(data.decode(errors="replace").split("\0"))


def of_module(words: set[str], name: str) -> bool:
    """Whether a message is about the module @name. The kernel's own messages name its path."""
    return _LOST in words or f"DEVPATH=/module/{name}" in words


def of_disk(words: set[str]) -> bool:
    """Whether a message is about a block device."""
    return _LOST in words or "SUBSYSTEM=block" in words
