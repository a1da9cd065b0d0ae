# SPDX-License-Identifier: GPL-2.0
"""A chroot of another suite, with the compiler and the C library that a newer kernel needs.

The build programs in the headers of Linux 7.2 are linked to a newer C library than Debian 12 has,
and the kernel is configured for gcc-16. The chroot is made once, by debootstrap:

    <cache>/chroots/<suite>/
    <cache>/chroots/<suite>/.packages    the packages that were asked for

A command in it sees the machine's /proc and /dev, and the folders that the caller names. They are
mounted in a namespace of that command, so no mount is left behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from lab import packages, tools
from lab.cache import cache_dir, locked
from lab.errors import LabError

# The tools of kernel/build, and those that build a whole kernel.
_PACKAGES = ("bc", "bison", "bpftool", "flex", "kmod", "libelf-dev", "make", "pahole", "python3")

_ENTER = """\
set -e
root=$1
shift
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ "$1" != -- ]; do
	mkdir -p "$root$1"
	mount --bind "$1" "$root$1"
	shift
done
shift
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
exec chroot "$root" "$@"
"""


def ensure(suite: str, compiler: str) -> Path:
    """The chroot of @suite with @compiler; made if it is not in the cache."""
    wanted = sorted({*_PACKAGES, compiler})
    root = cache_dir() / "chroots" / suite
    marker = root / ".packages"
    with locked(root.parent / ".lock"):
        present = marker.read_text().split() if marker.exists() else []
        if set(wanted) <= set(present):
            return root
        if os.geteuid() != 0:
            raise LabError(f"{root}: only root can make this chroot: run this command once as root")
        _make(suite, sorted({*wanted, *present}), root)
    return root


def _make(suite: str, wanted: Sequence[str], root: Path) -> None:
    started = time.monotonic()
    tools.say(f"making a chroot of {suite} with {', '.join(wanted)} (a minute, once)")
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=root.parent))
    try:
        include = f"--include={','.join(wanted)}"
        # The mounts of a debootstrap that was killed end with this namespace, before rmtree comes.
        argv = ["unshare", "--mount", "debootstrap", "--variant=minbase", include, suite]
        tools.run([*argv, str(partial), packages.mirror()], profile="kernels")
        shutil.rmtree(partial / "var/cache/apt/archives", ignore_errors=True)
        (partial / ".packages").write_text("\n".join(wanted) + "\n")
        partial.chmod(0o755)
        shutil.rmtree(root, ignore_errors=True)
        partial.rename(root)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    tools.say(f"made the chroot in {time.monotonic() - started:.0f} s")


def command(root: Path, argv: Sequence[str], folders: Sequence[Path]) -> list[str]:
    """The command line that runs @argv in the chroot, with the machine's @folders in it."""
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    enter = ["unshare", "--mount", *as_root, "--", "/bin/sh", "-c", _ENTER, "sh", str(root)]
    return [*enter, *map(str, folders), "--", *argv]
