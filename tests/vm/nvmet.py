# SPDX-License-Identifier: GPL-2.0
"""A target of NVMe over TCP in the guest, and its disk with several paths to it on loopback."""

from __future__ import annotations

import contextlib
import fcntl
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from guestlib import Disk, modprobe, read, wait_until, write

_CONFIG = Path("/sys/kernel/config/nvmet")
_NQN = "nqn.2024-01.org.example:mqfair"
_FIRST_PORT = 4420
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_IFREQ = struct.Struct("16sh14x")


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        asked = _IFREQ.pack(b"lo", 0)
        flags = _IFREQ.unpack(fcntl.ioctl(sock, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(sock, _SIOCSIFFLAGS, _IFREQ.pack(b"lo", flags | _IFF_UP))


@contextlib.contextmanager
def target(backing: Disk, ports: int) -> Iterator[None]:
    """@backing as a namespace of one subsystem, at @ports ports."""
    for name in ("nvmet", "nvmet-tcp", "nvme-tcp"):
        modprobe(name)
    loopback_up()
    subsystem = _CONFIG / "subsystems" / _NQN
    namespace = subsystem / "namespaces" / "1"
    folders = [_CONFIG / "ports" / str(n) for n in range(1, ports + 1)]
    subsystem.mkdir()
    write(subsystem / "attr_allow_any_host", 1)
    namespace.mkdir()
    write(namespace / "device_path", backing.path)
    write(namespace / "enable", 1)
    for n, folder in enumerate(folders):
        folder.mkdir()
        for name, value in (
            ("trtype", "tcp"),
            ("adrfam", "ipv4"),
            ("traddr", "127.0.0.1"),
            ("trsvcid", _FIRST_PORT + n),
        ):
            write(folder / f"addr_{name}", value)
        (folder / "subsystems" / _NQN).symlink_to(subsystem)
    try:
        yield
    finally:
        for folder in folders:
            (folder / "subsystems" / _NQN).unlink()
            folder.rmdir()
        write(namespace / "enable", 0)
        namespace.rmdir()
        subsystem.rmdir()


class Controller:
    """A connection to the port number @port, which makes one path. @options are those of the
    kernel, such as queue_size."""

    def __init__(self, port: int, **options: object) -> None:
        words = f"transport=tcp,traddr=127.0.0.1,trsvcid={_FIRST_PORT + port},nqn={_NQN}"
        words += "".join(f",{name}={value}" for name, value in options.items())
        with open("/dev/nvme-fabrics", "r+b", buffering=0) as file:  # noqa: PTH123 -- unbuffered
            file.write(words.encode())
            said = file.read(200).decode()
        found = re.search(r"instance=(\d+)", said)
        assert found, said
        self._number = found[1]
        wait_until(self._paths, f"nvme{self._number} has a path")

    def _paths(self) -> list[str]:
        return [path.name for path in Path("/sys/block").glob(f"nvme*c{self._number}n1")]

    @property
    def path(self) -> Disk:
        """The hidden disk, which has request queues."""
        return Disk(self._paths()[0])

    @property
    def head(self) -> Disk:
        """The disk of all paths, which has none."""
        return Disk(re.sub(r"c\d+", "", self.path.name))

    def disconnect(self) -> None:
        file = Path(f"/sys/class/nvme/nvme{self._number}/delete_controller")
        if file.exists():
            write(file, 1)


def _subsystem() -> Path:
    """The target as the host sees it; a drive of the guest is a subsystem of its own."""
    found = Path("/sys/class/nvme-subsystem").iterdir()
    return next(one for one in found if read(one / "subsysnqn") == _NQN)


@contextlib.contextmanager
def connected(backing: Disk, paths: int, **options: object) -> Iterator[list[Controller]]:
    """Controllers with a path each to @backing, used in turn."""
    with target(backing, paths), contextlib.ExitStack() as stack:
        found = []
        for port in range(paths):
            found.append(Controller(port, **options))
            stack.callback(found[-1].disconnect)
        write(_subsystem() / "iopolicy", "round-robin")
        wait_until(found[0].head.path.exists, f"{found[0].head.path} exists")
        yield found
