# SPDX-License-Identifier: GPL-2.0
"""The specification of a guest, and the parsers of its command-line words."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from lab.errors import SpecError

Accel = Literal["auto", "kvm", "tcg"]

MAX_CPUS = 8
# The namespaces and controllers of a drive.
MAX_PARTS = 8
BUSES = ("nvme", "virtio-blk", "virtio-scsi")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclasses.dataclass(frozen=True)
class Drive:
    """An emulated drive on @bus, by default NVMe.

    @backing is "file" (a sparse temporary file that ends with the guest), "null" (discards writes),
    or the path of an image, which is written to. @latency_ns delays each request of a "null" drive.
    @iops limits any drive. @mdts limits a request to 4 KiB << mdts on NVMe.

    An NVMe drive has @namespaces, which are disks of @size / @namespaces each. More than one of
    @controllers reach the same namespaces, so that the guest has a head of multipath for each.
    """

    size: int = 1 << 30
    queues: int = 2
    backing: str = "file"
    latency_ns: int = 0
    iops: int = 0
    mdts: int = 7
    bus: str = "nvme"
    namespaces: int = 1
    controllers: int = 1

    def __post_init__(self) -> None:
        _require(self.size >= 1 << 20, f"nvme size={self.size}: use at least 1M")
        _require(self.size % 4096 == 0, f"nvme size={self.size}: use a multiple of 4K")
        _require(1 <= self.queues <= 64, f"nvme queues={self.queues}: use 1 to 64")
        _require(0 <= self.mdts <= 12, f"nvme mdts={self.mdts}: use 0 (no limit) to 12")
        _require(self.iops >= 0, f"nvme iops={self.iops}: use 0 (no limit) or more")
        _require(self.bus in BUSES, f"nvme bus={self.bus}: use {', '.join(BUSES)}")
        for name in ("namespaces", "controllers"):
            number = getattr(self, name)
            _require(1 <= number <= MAX_PARTS, f"nvme {name}={number}: use 1 to {MAX_PARTS}")
            _require(
                number == 1 or self.bus == "nvme",
                f"nvme {name}={number}: only a drive with bus=nvme has more than one",
            )
        _require(
            self.size % (4096 * self.namespaces) == 0,
            f"nvme size={self.size}: use a multiple of 4K for each of {self.namespaces} namespaces",
        )
        _require(
            self.latency_ns == 0 or self.backing == "null",
            f"nvme latency={self.latency_ns}ns: only a drive with backing=null has a latency",
        )


@dataclasses.dataclass(frozen=True)
class HostDir:
    """A host folder that is mounted at the same path in the guest; it is not a copy."""

    path: Path
    read_only: bool = False


@dataclasses.dataclass(frozen=True)
class GuestSpec:
    """A guest; the constructor raises SpecError for an impossible one.

    @cpus are spread over @sockets, with @threads per core.
    @accel "auto" is KVM if a probe boot of this kernel succeeds, else emulation.
    @icount makes one instruction one nanosecond of guest time, so that guest clocks count
    instructions exactly, and no processor is slow on a busy host. It needs emulated processors,
    which take turns: time goes on with the instructions of all.
    @plugin is the argument of QEMU's -plugin, "FILE.so,NAME=VALUE"; it needs @icount.
    @modules are built kernel modules. `modprobe NAME` and their aliases work in the guest. With
    @load_modules they are loaded, in order, before the command.
    @append is added to the kernel's command line.
    @timeout_s limits the whole life of the guest. @silence_s ends the guest when its command has
    written nothing for that time. In the boot, the console counts, and at most 180 s.
    @machine is a whole Debian of lab/debian.py, with systemd, udev and a kernel of its own. Its
    root replaces the host's, so only @host_dirs are seen of the host.
    """

    cpus: int = 2
    sockets: int = 1
    threads: int = 1
    memory_mb: int = 2048
    drives: tuple[Drive, ...] = ()
    accel: Accel = "auto"
    icount: bool = False
    plugin: str = ""
    kernel: str | None = None
    append: str = ""
    timeout_s: float = 600.0
    silence_s: float | None = None
    host_dirs: tuple[HostDir, ...] = ()
    modules: tuple[Path, ...] = ()
    load_modules: bool = True
    machine: str = ""

    def __post_init__(self) -> None:
        _require(1 <= self.cpus <= MAX_CPUS, f"cpus={self.cpus}: use 1 to {MAX_CPUS}")
        _require(
            self.sockets >= 1 and self.threads >= 1,
            f"sockets={self.sockets}, threads={self.threads}: use at least 1",
        )
        _require(
            self.cpus % (self.sockets * self.threads) == 0,
            f"cpus={self.cpus}: use a multiple of sockets={self.sockets} x threads={self.threads}",
        )
        _require(self.memory_mb >= 512, f"memory={self.memory_mb}M: use at least 512M")
        _require(self.timeout_s > 0, f"timeout={self.timeout_s}: use more than 0 seconds")
        _require(
            self.silence_s is None or self.silence_s > 0,
            f"silence={self.silence_s}: use more than 0 seconds",
        )
        _require(self.accel in ("auto", "kvm", "tcg"), f"accel={self.accel}: use auto, kvm or tcg")
        if self.icount:
            _require(self.accel != "kvm", "icount with accel=kvm: use auto or tcg")
        _require(self.icount or not self.plugin, f"plugin={self.plugin}: add icount")
        if self.machine:
            _require(self.kernel is None, f"kernel={self.kernel}: a machine has its own")
            _require(not self.modules, f"modules with machine={self.machine}: load them in the job")
        for module in self.modules:
            _require(module.is_file(), f"{module}: no such module: run `make module`")
        for shared in self.host_dirs:
            _require(shared.path.is_dir(), f"{shared.path}: no such folder to share: create it")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SpecError(message)


def parse_size(text: str) -> int:
    """The bytes in @text, a number with an optional k, M, G or T (powers of 1024)."""
    match = re.fullmatch(r"(\d+)([kmgt]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise SpecError(f"'{text}': not a size: write it like 512M or 1G")
    return int(match.group(1)) * _UNITS[match.group(2).lower()]


def parse_duration_ns(text: str) -> int:
    """The nanoseconds in @text, a number with the unit ns, us, ms or s."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text.strip())
    if match is None:
        raise SpecError(f"'{text}': not a duration: write it like 100us or 1ms")
    return round(float(match.group(1)) * _NANOSECONDS[match.group(2)])


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise SpecError(f"'{text}': not a number: write digits")
    return int(text)


_DRIVE_KEYS: dict[str, tuple[str, Callable[[str], int | str]]] = {
    "size": ("size", parse_size),
    "queues": ("queues", _parse_count),
    "backing": ("backing", str),
    "latency": ("latency_ns", parse_duration_ns),
    "iops": ("iops", _parse_count),
    "mdts": ("mdts", _parse_count),
    "bus": ("bus", str),
    "namespaces": ("namespaces", _parse_count),
    "controllers": ("controllers", _parse_count),
}


def parse_drive(text: str) -> Drive:
    """The drive in @text, such as "size=1G,queues=2,backing=null,latency=1ms"."""
    fields: dict[str, int | str] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        if key not in _DRIVE_KEYS or not equals:
            raise SpecError(f"nvme '{word}': write KEY=VALUE with one of {', '.join(_DRIVE_KEYS)}")
        field, parse = _DRIVE_KEYS[key]
        try:
            fields[field] = parse(value)
        except SpecError as error:
            raise SpecError(f"nvme {key}={error}") from error
    return dataclasses.replace(Drive(), **fields)  # type: ignore[arg-type]
