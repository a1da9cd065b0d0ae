# SPDX-License-Identifier: GPL-2.0
"""Whole Debian machines: root folders with systemd, udev and a kernel, for guests that boot them.

A guest on the host's root has no systemd of its own. These roots have one, and the compiler and
headers that DKMS needs:

    <cache>/machines/<name>/root/        made by debootstrap, once
    <cache>/machines/<name>/vmlinux      ELF taken out of the root's own kernel
    <cache>/machines/<name>/.recipe      the suite and packages of it

A guest sees its root read-only under a writable tmpfs, as it sees the host's root otherwise.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab import chroot, kernel, packages, tools
from lab.cache import cache_dir, locked, write_atomically
from lab.errors import LabError, SpecError
from lab.tree import KernelTree

# The machines by name, with their suites.
MACHINES = {"debian12": "bookworm", "debian13": "trixie"}
_PACKAGES = (
    "bash-completion",
    "bpftool",
    "ca-certificates",
    "dbus",
    "dkms",
    "fio",
    "iproute2",
    "kmod",
    "linux-headers-amd64",
    "linux-image-amd64",
    "procps",
    "python3",
    "python3-matplotlib",
    "python3-numpy",
    "python3-rich",
    "systemd-sysv",
    "udev",
)
# debootstrap does not get their order right, so apt installs them.
_LATER = (
    "crun",
    "docker.io",
    "libvirt-clients",
    "libvirt-daemon-driver-lxc",
    "libvirt-daemon-system",
    "lxc",
    "podman",
    "runc",
)
# Debian 12 has the command docker in docker.io.
_LATER_OF = {"trixie": ("docker-cli",)}
_INSTALL = """\
set -e
export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt-get -q update
apt-get -q -y --no-install-recommends install "$@"
apt-get clean
rm /usr/sbin/policy-rc.d
# The managers of containers start when a test wants them.
for unit in /etc/systemd/system/*.wants/*; do
	case ${unit##*/} in
	containerd.* | docker.* | libvirt* | lxc* | virt*) rm "$unit" ;;
	esac
done
# The first boot would ask for these.
echo mqfair > /etc/hostname
: > /etc/fstab
passwd -d root
systemctl set-default multi-user.target
systemctl mask apt-daily.timer apt-daily-upgrade.timer systemd-networkd-wait-online.service
"""


def ensure(name: str) -> KernelTree:
    """The machine @name, with its own kernel; made if it is not in the cache. A path is that of a
    changed machine."""
    if name.startswith("/"):
        return tree_of(Path(name))
    if name not in MACHINES:
        raise SpecError(f"machine '{name}': unknown: choose one of {', '.join(MACHINES)}")
    base = cache_dir() / "machines" / name
    recipe = base / ".recipe"
    with locked(base.parent / ".lock"):
        if not recipe.exists() or recipe.read_text() != _recipe(name):
            if os.geteuid() != 0:
                raise LabError(f"{base}: only root can make this machine: run this once as root")
            _make(name, base)
    return tree_of(base)


@contextlib.contextmanager
def changed(name: str, folders: Sequence[Path]) -> Iterator[Machine]:
    """A copy of the machine @name for changes; the machine in the cache stays as it is. Commands in
    the copy see @folders of the host. The copy ends with the context."""
    ensure(name)
    base = cache_dir() / "machines" / name
    copy = Path(tempfile.mkdtemp(prefix=".copy-", dir=base.parent))
    try:
        # dpkg, DKMS and depmod replace files. Logs and the data bases that are written in place are
        # copied, and all others are links to the machine's own.
        tools.run(["cp", "-al", str(base / "root"), str(copy / "root")])
        for place in ("root/var", "root/etc"):
            shutil.rmtree(copy / place)
            tools.run(["cp", "-a", str(base / place), str(copy / place)])
        (copy / "vmlinux").symlink_to(base / "vmlinux")
        yield Machine(copy, tuple(folders))
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine outside the cache. A guest boots it with GuestSpec(machine=str(base))."""

    base: Path
    folders: tuple[Path, ...]

    @property
    def root(self) -> Path:
        return self.base / "root"

    def call(self, *argv: str) -> tuple[int, str]:
        """The status and the output of a command in a chroot of the machine."""
        done = subprocess.run(
            chroot.command(self.root, argv, self.folders),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return done.returncode, done.stdout


def tree_of(base: Path) -> KernelTree:
    root = base / "root"
    (image,) = (root / "boot").glob("vmlinuz-*")
    release = image.name.removeprefix("vmlinuz-")
    return KernelTree(
        release=release,
        vmlinuz=image,
        vmlinux=base / "vmlinux",
        modules_dir=root / "lib/modules" / release,
        headers_build_dir=root / f"usr/src/linux-headers-{release}",
        root=root,
    )


def _recipe(name: str) -> str:
    return "\n".join([MACHINES[name], *_PACKAGES, *_later(MACHINES[name]), _INSTALL])


def _later(suite: str) -> tuple[str, ...]:
    return _LATER + _LATER_OF.get(suite, ())


def _make(name: str, base: Path) -> None:
    suite = MACHINES[name]
    started = time.monotonic()
    tools.say(f"making a machine of {suite} (4 minutes, once)")
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=base.parent))
    try:
        root = partial / "root"
        include = f"--include={','.join(_PACKAGES)}"
        # The mounts of a debootstrap that was killed end with this namespace, before rmtree comes.
        argv = [
            "unshare",
            "--mount",
            "debootstrap",
            "--variant=minbase",
            include,
            suite,
            str(root),
            packages.mirror(),
        ]
        tools.run(argv, profile="people")
        install = ["/bin/sh", "-c", _INSTALL, "sh", *_later(suite)]
        tools.run(chroot.command(root, install, []), profile="people")
        (image,) = (root / "boot").glob("vmlinuz-*")
        (partial / "vmlinux").write_bytes(kernel.extract_vmlinux(image.read_bytes()))
        partial.chmod(0o755)
        write_atomically(partial / ".recipe", _recipe(name).encode())
        shutil.rmtree(base, ignore_errors=True)
        partial.rename(base)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    tools.say(f"made the machine in {time.monotonic() - started:.0f} s")
