# SPDX-License-Identifier: GPL-2.0
"""The part of io_uring that submits polled reads and never reaps them."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

_SETUP, _ENTER = 425, 426
_SETUP_IOPOLL = 1
_OP_READ = 22
_OFFSET_SQES = 0x10000000
_SQE_BYTES = 64

_libc = ctypes.CDLL(None, use_errno=True)


def _system_call(number: int, *arguments: object) -> int:
    result = _libc.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


class PolledReads:
    """@count direct reads of single pages of @path, too far apart to be merged. No task reaps their
    completions."""

    def __init__(self, path: os.PathLike[str], count: int) -> None:
        parameters = bytearray(120)
        struct.pack_into("<2I", parameters, 8, _SETUP_IOPOLL, 0)
        self._count = count
        self._file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self._pages = mmap.mmap(-1, count * mmap.PAGESIZE)
        buffer = (ctypes.c_char * len(parameters)).from_buffer(parameters)
        self._ring = _system_call(_SETUP, count, buffer)
        entries = struct.unpack_from("<I", parameters, 0)[0]
        _, self._tail, _, _, _, _, self._array = struct.unpack_from("<7I", parameters, 40)
        self._indices = mmap.mmap(self._ring, self._array + 4 * entries, mmap.MAP_SHARED)
        self._sqes = mmap.mmap(
            self._ring, entries * _SQE_BYTES, mmap.MAP_SHARED, offset=_OFFSET_SQES
        )

    def submit(self) -> int:
        """Submits all reads; returns the number that the kernel accepted."""
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))
        for n in range(self._count):
            to = address + n * mmap.PAGESIZE
            sqe = struct.pack(
                "<BBHiQQIIQ", _OP_READ, 0, 0, self._file, n << 20, to, mmap.PAGESIZE, 0, n
            )
            self._sqes[n * _SQE_BYTES : (n + 1) * _SQE_BYTES] = sqe.ljust(_SQE_BYTES, b"\0")
            struct.pack_into("<I", self._indices, self._array + 4 * n, n)
        struct.pack_into("<I", self._indices, self._tail, self._count)
        return _system_call(_ENTER, self._ring, self._count, 0, 0, None, 0)
