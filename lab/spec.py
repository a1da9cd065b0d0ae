# SPDX-License-Identifier: GPL-2.0
"""What a guest is made of, and what the words of a command line mean by it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from lab.errors import SpecError

Accel = Literal["auto", "kvm", "tcg"]

MAX_CPUS = 8
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclasses.dataclass(frozen=True)
class Drive:
    """An emulated NVMe drive.

    @backing is "file" (a sparse temporary file, gone with the guest), "null" (takes
    writes and forgets them) or the path of an image, which is written to.
    @latency_ns delays each request of a "null" drive; @iops caps any drive.
    @mdts limits a request to 4 KiB << mdts.
    """

    size: int = 1 << 30
    queues: int = 2
    backing: str = "file"
    latency_ns: int = 0
    iops: int = 0
    mdts: int = 7

    def __post_init__(self) -> None:
        _require(self.size >= 1 << 20, f"nvme size={self.size}: at least 1M")
        _require(self.size % 4096 == 0, f"nvme size={self.size}: a multiple of 4K")
        _require(1 <= self.queues <= 64, f"nvme queues={self.queues}: 1 to 64")
        _require(0 <= self.mdts <= 12, f"nvme mdts={self.mdts}: 0 (no limit) to 12")
        _require(self.iops >= 0, f"nvme iops={self.iops}: 0 (no limit) or more")
        _require(
            self.latency_ns == 0 or self.backing == "null",
            f"nvme latency={self.latency_ns}ns: only backing=null can be delayed",
        )


@dataclasses.dataclass(frozen=True)
class HostDir:
    """A host folder that the guest sees at the same path as it is now, not as a copy."""

    path: Path
    read_only: bool = False


@dataclasses.dataclass(frozen=True)
class GuestSpec:
    """A guest.

    @cpus are spread over @sockets, with @threads per core.
    @accel "auto" is KVM where a probe boot of this kernel succeeds, else emulation.
    @icount makes one instruction one nanosecond of guest time, so that guest
    clocks count instructions exactly; one CPU, emulated.
    @plugin is what QEMU's -plugin is given: "FILE.so,NAME=VALUE"; with @icount only.
    @modules are built kernel modules: `modprobe NAME` and their aliases work in
    the guest; with @load_modules they are loaded, in order, before the command.
    @append goes to the kernel's command line.
    @timeout_s ends the guest, boot included; @silence_s ends it earlier when the
    running command has written nothing for that long.
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

    def __post_init__(self) -> None:
        _require(1 <= self.cpus <= MAX_CPUS, f"cpus={self.cpus}: 1 to {MAX_CPUS}")
        _require(self.sockets >= 1 and self.threads >= 1, "sockets and threads: at least 1")
        _require(
            self.cpus % (self.sockets * self.threads) == 0,
            f"cpus={self.cpus}: no multiple of sockets={self.sockets} x threads={self.threads}",
        )
        _require(self.memory_mb >= 512, f"memory={self.memory_mb}M: at least 512M")
        _require(self.timeout_s > 0, f"timeout={self.timeout_s}: more than 0 seconds")
        _require(self.silence_s is None or self.silence_s > 0, f"silence={self.silence_s}: over 0")
        _require(self.accel in ("auto", "kvm", "tcg"), f"accel={self.accel}: auto, kvm or tcg")
        if self.icount:
            _require(self.cpus == 1, f"icount with cpus={self.cpus}: counting needs 1 CPU")
            _require(self.accel != "kvm", "icount with accel=kvm: counting needs emulation")
        _require(self.icount or not self.plugin, f"plugin={self.plugin}: needs icount")
        for module in self.modules:
            _require(module.is_file(), f"{module}: no such module; build it with 'make module'")
        for shared in self.host_dirs:
            _require(shared.path.is_dir(), f"{shared.path}: no such folder to share")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SpecError(message)


def parse_size(text: str) -> int:
    """Bytes, of a number with an optional k, M, G or T (powers of 1024)."""
    match = re.fullmatch(r"(\d+)([kmgt]?)(?:i?b)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise SpecError(f"'{text}': not a size; write it like 512M or 1G")
    return int(match.group(1)) * _UNITS[match.group(2).lower()]


def parse_duration_ns(text: str) -> int:
    """Nanoseconds, of a number with a unit ns, us, ms or s."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text.strip())
    if match is None:
        raise SpecError(f"'{text}': not a duration; write it like 100us or 1ms")
    return round(float(match.group(1)) * _NANOSECONDS[match.group(2)])


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise SpecError(f"'{text}': not a number")
    return int(text)


_DRIVE_KEYS: dict[str, tuple[str, Callable[[str], int | str]]] = {
    "size": ("size", parse_size),
    "queues": ("queues", _parse_count),
    "backing": ("backing", str),
    "latency": ("latency_ns", parse_duration_ns),
    "iops": ("iops", _parse_count),
    "mdts": ("mdts", _parse_count),
}


def parse_drive(text: str) -> Drive:
    """A drive, of words like "size=1G,queues=2,backing=null,latency=1ms"."""
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
