# SPDX-License-Identifier: GPL-2.0
"""Signals that end the program: one interruption that cleans up, and a guardian for SIGKILL."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def _heeded(heed: Callable[[bool], None]) -> Iterator[None]:
    """Calls @heed at each ending signal of the block, with whether it is the first. A thread that
    is not the main one gets no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        first, came = not came, True
        heed(first)

    before = {one: signal.signal(one, handle) for one in ENDING}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """The first ending signal during the block raises KeyboardInterrupt. Later ones are ignored, so
    that they do not end the clean-up: `timeout -s INT` sends two, and so does an impatient user."""

    def heed(first: bool) -> None:
        if first:
            raise KeyboardInterrupt

    with _heeded(heed):
        yield


@contextlib.contextmanager
def ending_at_ease() -> Iterator[Callable[[], bool]]:
    """The block gets a function that tells whether an ending signal has come, and ends by itself
    when nothing is half done. A second signal raises KeyboardInterrupt."""
    came = False

    def heed(first: bool) -> None:
        nonlocal came
        came = True
        if not first:
            raise KeyboardInterrupt

    with _heeded(heed):
        yield lambda: came


def die_with_parent() -> None:
    """For a child process before it starts its program: the kernel kills it with its parent."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def guarded(restore: Callable[[], None]) -> Iterator[None]:
    """If this program is killed during the block, a guardian process calls @restore.

    The guardian waits at the end of a pipe. The kernel closes the pipe when this program dies. A
    program that lives writes to the pipe first, and restores its settings itself.
    """
    reader, writer = os.pipe()
    guardian = os.fork()
    if guardian == 0:
        _guard(reader, writer, restore)
    os.close(reader)
    try:
        yield
    finally:
        os.write(writer, b".")
        os.close(writer)
        os.waitpid(guardian, 0)


def _guard(reader: int, writer: int, restore: Callable[[], None]) -> None:
    """The guardian's life. It has a session of its own, so that Ctrl-C does not reach it."""
    try:
        os.setsid()
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)
        os.close(writer)
        if not os.read(reader, 1):
            restore()
    finally:
        os._exit(0)
