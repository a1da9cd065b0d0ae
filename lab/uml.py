# SPDX-License-Identifier: GPL-2.0
"""User-mode Linux: a kernel that runs as a program of the host. lab/compiled.py compiles it.

Its processors are threads of the host, which execute its code directly and without KVM. So they
race as those of a real machine do, and those of an emulator do less. Its guests have no NVMe drive
and no counted time.

    <cache>/uml/                         a folder for each running guest
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.cache import cache_dir, locked
from lab.errors import SpecError
from lab.spec import GuestSpec
from lab.tree import KernelTree


def check(spec: GuestSpec) -> None:
    """Raises SpecError for a guest that user-mode Linux cannot be."""
    refusals = {
        "--nvme: it has no NVMe drives": spec.drives,
        "--icount: its time cannot be counted": spec.icount,
        f"--accel {spec.accel}: it is a program of the host": spec.accel != "auto",
        "--sockets and --threads: it has plain processors": spec.sockets * spec.threads > 1,
    }
    for refusal, wanted in refusals.items():
        if wanted:
            raise SpecError(f"user-mode Linux: {refusal}: leave it out, or use another kernel")


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """An empty folder for one guest. A program that is killed leaves its folder, and the next guest
    deletes it: the lock of a folder ends with the program."""
    base = cache_dir() / "uml"
    with contextlib.ExitStack() as stack:
        with locked(base / ".lock"):
            for left in [path for path in base.iterdir() if path.is_dir()]:
                _delete_if_left(left)
            folder = Path(tempfile.mkdtemp(dir=base, prefix="guest-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(locked(folder / "lock"))
        yield folder


def _delete_if_left(folder: Path) -> None:
    try:
        with (folder / "lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        # A guest uses it, or has just deleted it.
        return


def command_line(
    spec: GuestSpec, tree: KernelTree, initramfs: Path, channels: dict[str, int], folder: Path
) -> list[str]:
    """The command line of a guest. @channels are file descriptors by name; @folder is empty."""
    lines = [name for name in ("control", "stdout", "stderr", "terminal") if name in channels]
    argv = [str(tree.vmlinuz), f"mem={spec.memory_mb}M", f"ncpus={spec.cpus}", "seccomp=on"]
    argv += [f"initrd={initramfs}", f"uml_dir={folder}/", "umid=guest", "lab.uml"]
    # The guest also reads from its console. Input from /dev/null cannot be polled. The kernel would
    # print this error under a raw spinlock, with allocations that switch lockdep off.
    argv += ["con=null", f"con0=fd:{channels['console']}"]
    argv += [f"ssl{number}=fd:{channels[name]}" for number, name in enumerate(lines)]
    # Without noreboot a guest that panics would start again.
    argv += ["noreboot", "panic=-1", "oops=panic", "loglevel=7", "log_buf_len=1M"]
    argv += ["cgroup_no_v1=all"]
    return [*argv, *spec.append.split()]
