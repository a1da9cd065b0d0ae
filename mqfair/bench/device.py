# SPDX-License-Identifier: GPL-2.0
"""The value of --device, and the checks before a drive of this host is written to.

``null:``, ``nvme:`` and ``ssd:`` are drives that the bench makes in the guest; a path is a drive of
this host. A drive in use is always refused. A drive with contents is refused without
--destroy-data.
"""

import errno
import json
import math
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.errors import SpecError
from lab.spec import Drive, parse_drive
from mqfair.bench import ssd
from mqfair.machine.blockdev import find_disk, find_disks, is_pattern
from mqfair.machine.fs import Fs, describe
from mqfair.text.errors import Failure, UsageError
from mqfair.text.numbers import is_number

# 64 slots of 16 ms give 4000 I/O per second, so the device is the bottleneck and not an emulated
# CPU. The queues share the slots, as in real drives. With slots per queue, a full queue could not
# use the free slots of another one, under any scheduler.
_DEFAULT = (
    "null:irqmode=2,completion_nsec=16000000,submit_queues={queues},hw_queue_depth=64,"
    "shared_tag_bitmap=1,gb=4,poll_queues=0"
)

# Parameters of the null_blk module and their ranges. Values that give a drive without a scheduler
# (queue_mode 0 and 1, no_sched) are left out, as is nr_devices, which is 1.
NULL_PARAMETERS: Mapping[str, tuple[int, int]] = {
    "queue_mode": (2, 2),
    "submit_queues": (1, 256),
    "poll_queues": (0, 256),
    "use_per_node_hctx": (0, 1),
    "home_node": (0, 1023),
    "irqmode": (0, 2),
    "completion_nsec": (0, 10_000_000_000),
    "hw_queue_depth": (1, 10240),
    "bs": (512, 4096),
    "gb": (1, 65536),
    "blocking": (0, 1),
    "shared_tags": (0, 1),
    "shared_tag_bitmap": (0, 1),
    "memory_backed": (0, 1),
    "discard": (0, 1),
    "cache_size": (0, 65536),
    "mbps": (0, 1_000_000),
    "max_sectors": (0, 65536),
    "virt_boundary": (0, 1),
    "fua": (0, 1),
    "rotational": (0, 1),
    "zoned": (0, 1),
    "zone_size": (1, 1_048_576),
    "zone_capacity": (0, 1_048_576),
    "zone_nr_conv": (0, 65536),
    "zone_max_open": (0, 65536),
    "zone_max_active": (0, 65536),
    "zone_append_max_sectors": (0, 65536),
}
NULL = "null"
NVME = "nvme"
SSD = "ssd"
DRIVE = "drive"
# The block layer's limit for a driver that states none, such as null_blk without max_sectors.
# Larger I/Os are split.
NULL_REQUEST_BYTES = 255 * 512
# null_blk's irqmode: a timer completes each request after completion_nsec.
NULL_TIMER = 2


def default_device(cpus: int) -> str:
    """The default drive: with two queues if there are two CPUs for them."""
    return _DEFAULT.format(queues=min(cpus, 2))


DEFAULT_DEVICE = default_device(2)


@dataclass(frozen=True)
class Device:
    """A value of --device; @text is the user's text.

    The kind decides which other field is set: @parameters (null_blk), @drive (emulated NVMe drive),
    @settings (virtual SSD) or @path (a drive of this host).
    """

    kind: str
    text: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    drive: Drive | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    path: str | None = None


def parse_device(text: str, *, read: bool = True) -> Device:
    """The device of --device @text; raises UsageError. Without @read a file that it names is not
    opened."""
    kind, colon, rest = text.partition(":")
    if colon and kind == NULL:
        return Device(NULL, text, parameters=_null_parameters(text, rest))
    if colon and kind == NVME:
        try:
            return Device(NVME, text, drive=parse_drive(rest))
        except SpecError as error:
            raise UsageError(f"--device {text}: {error}") from error
    if colon and kind == SSD:
        return Device(SSD, text, settings=ssd.parse_settings(text, rest, read=read))
    if text.startswith("/dev/"):
        return Device(DRIVE, text, path=text)
    raise UsageError(
        f"--device {text}: not a device: use null:NAME=N,..., nvme:size=1G,queues=N or"
        " ssd:model=NAME,... for a drive in the guest, /dev/NAME or 'nvme*n1' for one of this host"
    )


def parse_devices(texts: Sequence[str]) -> list[Device]:
    """The devices of all --device options, each once. A pattern such as nvme*n1 stands for drives
    of this host, as in `mqfair enable`. Raises UsageError."""
    found: dict[str, Device] = {}
    for text in texts:
        of_a_guest = text.partition(":")[0] in (NULL, NVME, SSD)
        names = [text]
        if is_pattern(text) and not of_a_guest:
            names = [f"/dev/{disk.name}" for disk in find_disks(Fs(), [text])]
        for name in names:
            found.setdefault(name, parse_device(name))
    return list(found.values())


def in_words(text: str) -> str:
    """The device of --device @text in words, for the caption of a picture."""
    device = parse_device(text, read=False)
    if device.kind == NULL:
        return _null_in_words(device)
    if device.kind == SSD:
        return ssd.in_words(device.settings)
    return f"emulated NVMe drive ({text})" if device.kind == NVME else text


def _null_in_words(device: Device) -> str:
    queues = device.parameters.get("submit_queues", 1)
    several = f" and {queues} queues" if queues > 1 else ""
    slots = null_slots(device)
    if device.parameters.get("irqmode", 1) != NULL_TIMER:
        return f"null_blk drive that completes at once, with {slots} slots{several}"
    milliseconds = device.parameters.get("completion_nsec", 10_000) / 1e6
    return f"null_blk drive with {slots} slots of {milliseconds:g} ms{several}"


def _null_parameters(text: str, rest: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in filter(None, rest.split(",")):
        name, _, value = word.partition("=")
        if name not in NULL_PARAMETERS:
            known = ", ".join(NULL_PARAMETERS)
            raise UsageError(f"--device {text}: unknown parameter '{name}': use {known}")
        if name in found:
            raise UsageError(f"--device {text}: {name} is given twice: give it once")
        least, most = NULL_PARAMETERS[name]
        if not is_number(value, least, most):
            raise UsageError(f"--device {text}: {name}={value}: use a number in {least}..{most}")
        found[name] = int(value)
    return found


def null_capacity_iops(device: Device) -> float | None:
    """The IOPS that slots and completion time allow; None for a drive without such a limit."""
    parameters = device.parameters
    if device.kind != NULL or parameters.get("irqmode") != NULL_TIMER:
        return None
    return null_slots(device) * 1e9 / parameters.get("completion_nsec", 10_000)


def null_slots(device: Device) -> int:
    """The number of slots of a null_blk drive, over all queues."""
    shared = device.parameters.get("shared_tag_bitmap", 0)
    queues = 1 if shared else device.parameters.get("submit_queues", 1)
    return queues * device.parameters.get("hw_queue_depth", 64)


def null_requests(device: Device, iops: float, bytes_per_s: float) -> float:
    """The requests per second of the drive at @iops I/Os of equal size: large ones are split."""
    if not iops:
        return 0.0
    sectors = device.parameters.get("max_sectors", 0)
    most = sectors * 512 if sectors else NULL_REQUEST_BYTES
    return iops * max(1, math.ceil(bytes_per_s / iops / most))


def check_drive(path: str, *, destroy_data: bool, reads_only: bool = False) -> None:
    """Raises UsageError for a drive in use and, unless @destroy_data, for one with contents. With
    @reads_only both are right."""
    disk = find_disk(Fs(), path)
    if disk.partition:
        raise UsageError(
            f"{path} is a partition: schedulers act on whole drives: use /dev/{disk.name}"
        )
    disk.require_selector()
    if reads_only:
        return
    _require_unused(path)
    contents = _contents(path)
    if contents and not destroy_data:
        raise UsageError(
            f"{path} is not empty ({', '.join(contents)}): use another drive,"
            " or --destroy-data to overwrite its data"
        )


@dataclass(frozen=True)
class _Node:
    name: str
    mountpoints: tuple[str, ...]


def _require_unused(path: str) -> None:
    for node in _lsblk(path):
        if node.mountpoints:
            raise UsageError(
                f"{node.name} is in use at {', '.join(node.mountpoints)}: unmount it first"
            )
        _open_exclusively(node.name)


def _open_exclusively(path: str) -> None:
    """Raises UsageError for a drive that is mounted, used as swap, or part of md or dm."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise UsageError(
                f"{path} is in use: stop its user (swap, md, LVM, another program)"
            ) from error
        raise Failure(f"cannot open {path}: {describe(error, {})}") from error


def _contents(path: str) -> list[str]:
    listing = _output("wipefs", "--noheadings", "--output", "TYPE", path)
    signatures = [f"signature {name}" for name in sorted(set(listing.split()))]
    return signatures + [node.name for node in _lsblk(path)[1:]]


def _lsblk(path: str) -> list[_Node]:
    """The drive, then its partitions and the devices stacked on it."""
    columns = "NAME,MOUNTPOINTS"
    tree = json.loads(_output("lsblk", "--json", "--paths", "--output", columns, path))
    return list(_flatten(tree["blockdevices"]))


def _flatten(nodes: list[dict[str, Any]]) -> Iterator[_Node]:
    for node in nodes:
        yield _Node(node["name"], tuple(place for place in node["mountpoints"] if place))
        yield from _flatten(node.get("children", []))


def _output(*argv: str) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    except FileNotFoundError as error:
        raise Failure(f"{argv[0]} is missing: install the package util-linux") from error
    if done.returncode != 0:
        raise Failure(f"{' '.join(argv)}: {done.stderr.strip() or 'failed'}")
    return done.stdout
