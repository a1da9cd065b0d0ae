# SPDX-License-Identifier: GPL-2.0
"""The command line of QEMU for one guest."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from lab.cache import cache_dir
from lab.errors import SpecError
from lab.spec import Drive, GuestSpec

QEMU = "qemu-system-x86_64"

# - clocksource, tsc: the kernel considers an emulated TSC unsynchronised, and each read of another
#   clock exits to the host.
# - no_timer_check: on a busy host an emulated timer fails the kernel's test, and the kernel panics.
# - panic, oops: with -no-reboot the guest ends at once.
_KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=7 panic=-1 oops=panic clocksource=tsc tsc=reliable"
    " no_timer_check cgroup_no_v1=all log_buf_len=1M random.trust_cpu=on"
)

# Some boots of emulated guests with several CPUs stood still, with all CPUs busy. So the initramfs
# starts all CPUs but the first. That also takes 2 to 3 s less.
_ONE_CPU_AT_FIRST = "maxcpus=1"

# QEMU translates code once for each virtual address. With random addresses it would translate the
# code of a program and of its libraries again at each start.
_SAME_ADDRESSES = "norandmaps"


@dataclasses.dataclass(frozen=True)
class Share:
    """A host folder behind a 9p mount tag."""

    tag: str
    path: Path
    read_only: bool


@dataclasses.dataclass(frozen=True)
class Channels:
    """File descriptors that QEMU inherits, each one end of a socket pair."""

    console: int
    control: int
    stdout: int
    stderr: int
    monitor: int
    terminal: int | None = None


@dataclasses.dataclass(frozen=True)
class Boot:
    """The kernel that QEMU starts, and the acceleration."""

    kernel: Path
    initramfs: Path
    accel: Literal["kvm", "tcg"]


def command_line(
    spec: GuestSpec,
    boot: Boot,
    shares: list[Share],
    channels: Channels,
    drive_fds: list[int | None],
) -> list[str]:
    """QEMU's command line. @drive_fds has for each drive an open temporary file, or None if the
    drive needs none."""
    argv = [QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    argv += ["-machine", "pc", "-nic", "none", "-m", f"{spec.memory_mb}M"]
    argv += _processor(spec, boot.accel)
    argv += ["-kernel", str(boot.kernel), "-initrd", str(boot.initramfs)]
    words = [_KERNEL_ARGUMENTS]
    if boot.accel == "tcg" and spec.cpus > 1:
        words.append(_ONE_CPU_AT_FIRST)
    if boot.accel == "tcg":
        words.append(_SAME_ADDRESSES)
    if spec.machine:
        words.append("lab.machine")
    if spec.append:
        words.append(spec.append)
    argv += ["-append", " ".join(words)]
    argv += _channel_arguments(channels)
    for share in shares:
        options = ",readonly=on" if share.read_only else ""
        path = str(share.path).replace(",", ",,")
        argv += [
            "-fsdev",
            f"local,id={share.tag},path={path},security_model=none,multidevs=remap{options}",
            "-device",
            f"virtio-9p-pci,fsdev={share.tag},mount_tag={share.tag}",
        ]
    for number, (drive, fd) in enumerate(zip(spec.drives, drive_fds, strict=True)):
        argv += _drive_arguments(number, drive, fd)
    return argv


def _processor(spec: GuestSpec, accel: Literal["kvm", "tcg"]) -> Iterator[str]:
    if spec.icount:
        yield from ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off")
        if spec.plugin:
            yield from ("-plugin", spec.plugin)
    elif accel == "kvm":
        yield from ("-accel", "kvm")
    else:
        yield from ("-accel", "tcg,thread=multi")
    cores = spec.cpus // (spec.sockets * spec.threads)
    yield from ("-cpu", _model(spec, accel))
    yield from (
        "-smp",
        f"{spec.cpus},sockets={spec.sockets},cores={cores},threads={spec.threads}",
    )


def _model(spec: GuestSpec, accel: Literal["kvm", "tcg"]) -> str:
    if accel == "kvm":
        return "host"
    # The emulated AMD processor has no CPUID leaf for hardware threads. The Intel one is not the
    # default, because its mitigations cost instructions on each exit from the kernel.
    return "max,vendor=GenuineIntel" if spec.threads > 1 else "max"


def _channel_arguments(channels: Channels) -> Iterator[str]:
    yield from ("-chardev", f"socket,id=console,fd={channels.console}")
    yield from ("-serial", "chardev:console")
    yield from ("-chardev", f"socket,id=monitor,fd={channels.monitor}")
    yield from ("-mon", "chardev=monitor,mode=control")
    yield from ("-device", "virtio-serial-pci")
    ports = {"control": channels.control, "stdout": channels.stdout, "stderr": channels.stderr}
    for name, fd in ports.items():
        yield from ("-chardev", f"socket,id={name},fd={fd}")
        yield from ("-device", f"virtserialport,chardev={name},name={name}")
    if channels.terminal is not None:
        yield from ("-chardev", f"socket,id=terminal,fd={channels.terminal}")
        yield from ("-device", "virtconsole,chardev=terminal")


def open_backing(drive: Drive) -> int | None:
    """An unnamed temporary file for a drive with backing "file"; None for other drives."""
    if drive.backing != "file":
        return None
    folder = cache_dir() / "drives"
    folder.mkdir(exist_ok=True)
    fd = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.ftruncate(fd, drive.size)
    return fd


def _drive_arguments(number: int, drive: Drive, fd: int | None) -> Iterator[str]:
    node = f"drive{number}"
    if fd is not None:
        yield from ("-add-fd", f"fd={fd},set={number + 1}")
        yield from ("-blockdev", _file_node(node, f"/dev/fdset/{number + 1}"))
    elif drive.backing == "null":
        options = f",latency-ns={drive.latency_ns}" if drive.latency_ns else ""
        yield from (
            "-blockdev",
            f"driver=null-co,node-name={node},size={drive.size},read-zeroes=on{options}",
        )
    else:
        if not Path(drive.backing).is_file():
            raise SpecError(f"nvme backing={drive.backing}: no such file: use 'file' or 'null'")
        yield from ("-blockdev", _file_node(node, drive.backing))
    if drive.iops:
        yield from ("-object", f"throttle-group,id=cap{number},x-iops-total={drive.iops}")
        yield from (
            "-blockdev",
            f"driver=throttle,node-name=capped{number},throttle-group=cap{number},file={node}",
        )
        node = f"capped{number}"
    devices = {"nvme": _nvme, "virtio-blk": _virtio_blk, "virtio-scsi": _virtio_scsi}
    yield from devices[drive.bus](number, drive, node)


def serial(number: int) -> str:
    """The serial number of the guest's drive @number, from 0."""
    return f"lab{number}"


def _nvme(number: int, drive: Drive, node: str) -> Iterator[str]:
    options = f"serial={serial(number)},max_ioqpairs={drive.queues},mdts={drive.mdts}"
    if drive.namespaces == drive.controllers == 1:
        yield from ("-device", f"nvme,{options.replace(',', f',drive={node},', 1)}")
        return
    # Linux makes a head of multipath for each namespace of a controller in a subsystem.
    subsystem = f",subsys=subsystem{number}" if drive.controllers > 1 else ""
    if subsystem:
        yield from ("-device", f"nvme-subsys,id=subsystem{number},nqn=lab{number}")
    for controller in range(drive.controllers):
        yield from ("-device", f"nvme,{options},id=nvme{number}-{controller}{subsystem}")
    shared = "on" if subsystem else "off"
    size = drive.size // drive.namespaces
    for space in range(1, drive.namespaces + 1):
        part = f"{node}-{space}"
        yield from (
            "-blockdev",
            f"driver=raw,node-name={part},file={node},offset={size * (space - 1)},size={size}",
            "-device",
            f"nvme-ns,drive={part},bus=nvme{number}-0,nsid={space},shared={shared},share-rw=on",
        )


def _virtio_blk(number: int, drive: Drive, node: str) -> Iterator[str]:
    options = f"serial={serial(number)},drive={node},num-queues={drive.queues}"
    yield from ("-device", f"virtio-blk-pci,{options}")


def _virtio_scsi(number: int, drive: Drive, node: str) -> Iterator[str]:
    yield from ("-device", f"virtio-scsi-pci,id=scsi{number},num_queues={drive.queues}")
    # The guest reads the name of the product in sysfs, and the serial number as bytes only.
    name = f"serial={serial(number)},product={serial(number)}"
    yield from ("-device", f"scsi-hd,bus=scsi{number}.0,drive={node},{name}")


def _file_node(node: str, path: str) -> str:
    escaped = path.replace(",", ",,")
    return f"driver=file,node-name={node},filename={escaped},discard=unmap"
