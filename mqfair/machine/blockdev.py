# SPDX-License-Identifier: GPL-2.0
"""Block devices in sysfs: names, schedulers, tunables, and the disks below a stacked device."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mqfair.machine import mounts
from mqfair.machine.fs import Fs
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import UsageError

# The range of queue/nr_requests: the kernel raises smaller values and cuts greater ones
# (MAX_SCHED_RQ).
# Those of the kernel, by the names in queue/scheduler.
KERNEL_SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
NR_REQUESTS_MIN = 4
NR_REQUESTS_MAX = 2048

NUMBER = re.compile(r"\d+:\d+")
# What udev makes links to, in /dev/disk/by-label and beside it.
TAG = re.compile(r"(LABEL|UUID|PARTLABEL|PARTUUID)=(.+)")
_NVME_HEAD = re.compile(r"(nvme\d+)(n\d+)")
_NVME_PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")


def active_word(text: str) -> str:
    """The active value in the text of a kernel file: the word in brackets, else the first word."""
    bracketed = re.search(r"\[([^\]]+)\]", text)
    return bracketed.group(1) if bracketed else (text.split() or [""])[0]


def setting(text: str, like: str) -> str:
    """The part of a kernel file's text to compare with a written value @like.

    A tunable that is set to auto reads back as `auto` with the chosen number.
    """
    words = text.split()
    if len(like.split()) > 1:
        return " ".join(words)
    return "auto" if "auto" in words else active_word(text)


def keeps(found: str, written: str) -> bool:
    """True if a file that reads back @found, by setting(), has kept the value @written.

    An automatic depth that began with N may have changed already.
    """
    return found == written or (written.endswith(" auto") and found.endswith(" auto"))


@dataclass(frozen=True)
class Selector:
    """The content of queue/scheduler. The order of the names differs between kernels."""

    active: str
    available: tuple[str, ...]

    @property
    def ours(self) -> bool:
        return self.active in SCHEDULERS


@dataclass(frozen=True)
class Disk:
    """A whole disk. @partition is the partition that the user named, if any."""

    fs: Fs
    name: str
    partition: str | None = None

    @property
    def path(self) -> str:
        return f"/sys/block/{self.name}"

    @property
    def scheduler_file(self) -> str:
        return self.queue("scheduler")

    @property
    def head(self) -> "Disk | None":
        """The head nvmeXnZ of a path nvmeXcYnZ of NVMe multipath; None for any other disk."""
        path = _NVME_PATH.fullmatch(self.name)
        head = Disk(self.fs, f"{path[1]}{path[2]}") if path else None
        return head if head is not None and self.fs.exists(head.path) else None

    @property
    def number(self) -> str | None:
        """MAJ:MIN by which the files of cgroups name the disk: the head's for a path of NVMe
        multipath."""
        own = self.own_number
        head = self.head if own is None else None
        return head.own_number if head is not None else own

    @property
    def own_number(self) -> str | None:
        """MAJ:MIN; None for a path of NVMe multipath, which is hidden and has no node."""
        text = self.fs.read_if_any(f"{self.path}/dev")
        return text.strip() if text else None

    def queue(self, attribute: str) -> str:
        return f"{self.path}/queue/{attribute}"

    def tunable(self, name: str) -> str:
        return self.queue(f"iosched/{name}")

    def selector(self) -> Selector | None:
        """None if the device takes no scheduler. Bio-based devices have no such file, or, on Linux
        6.1, a file that reads `none` without brackets."""
        text = self.fs.read_if_any(self.scheduler_file)
        if text is None or "[" not in text:
            return None
        return Selector(active_word(text), tuple(re.findall(r"[\w-]+", text)))

    def require_selector(self) -> Selector:
        """The selector; raises UsageError if the device takes no scheduler."""
        selector = self.selector()
        if selector is None:
            raise UsageError(self._why_unschedulable())
        return selector

    def _why_unschedulable(self) -> str:
        if is_head(self) and not multipath_paths(self):
            return (
                f"{self.name} is a head of NVMe multipath, and /sys/block has no path of it: see"
                " nvme list-subsys, and name it again when a path is back"
            )
        if is_head(self):
            paths = " ".join(path.name for path in multipath_paths(self))
            return (
                f"{self.name} is a head of NVMe multipath: this verb needs one queue with a node in"
                f" /dev, and its paths {paths} have none: use another drive, or boot with"
                " nvme_core.multipath=N"
            )
        disks = [disk.name for disk in lowest(self) if disk != self]
        hint = f"name the disks below it: {' '.join(disks)}" if disks else "choose a blk-mq disk"
        return f"{self.name} takes no scheduler ({self.scheduler_file}): {hint}"

    def tunables(self) -> dict[str, str]:
        names = self.fs.names(self.queue("iosched"))
        texts = {name: self.fs.read_if_any(self.tunable(name)) for name in names}
        return {name: text.strip() for name, text in texts.items() if text is not None}

    def nr_requests(self) -> int | None:
        text = self.fs.read_if_any(self.queue("nr_requests"))
        return int(text) if text and text.strip().isdigit() else None

    def hardware_depth(self) -> int | None:
        """The slots of one hardware queue. All queues of a device have the same number."""
        text = self.fs.read_if_any(f"{self.path}/mq/0/nr_tags")
        return int(text) if text and text.strip().isdigit() else None

    def queue_count(self) -> int:
        """The number of hardware queues for ordinary I/O.

        Polling queues and read queues have higher numbers and serve the same CPUs again. But a
        queue's kind is not in sysfs. So a queue counts if it serves a CPU that no lower queue
        serves.
        """
        queues = [name for name in self.fs.subdirs(f"{self.path}/mq") if name.isdigit()]
        served: set[str] = set()
        count = 0
        for queue in sorted(queues, key=int):
            text = self.fs.read_if_any(f"{self.path}/mq/{queue}/cpu_list") or ""
            cpus = set(text.replace(",", " ").split())
            count += not cpus <= served
            served |= cpus
        return count


def find_disk(fs: Fs, text: str) -> Disk:
    """The disk named @text: /dev/nvme0n1, nvme0n1, MAJ:MIN, a symbolic link, or a partition by any
    of these. A path outside of /dev, or a tag such as LABEL=data, means the disk below its file
    system. Raises UsageError if there is none, or more than one."""
    if not is_indirect(fs, text):
        return find_device(fs, text)
    disks = heads(disks_below(fs, text))
    if len(disks) > 1:
        names = " ".join(disk.name for disk in disks)
        raise UsageError(f"'{text}' is on {len(disks)} disks: name one of {names}")
    return disks[0]


def is_indirect(fs: Fs, text: str) -> bool:
    """Whether @text names a file system, by a tag or by a path in it, and no device."""
    if TAG.fullmatch(text):
        return True
    return "/" in text and fs.exists(text) and not fs.resolve(text).startswith("/dev/")


def disks_below(fs: Fs, text: str) -> list[Disk]:
    """The disks at the bottom of the devices that is_indirect() @text names. Raises UsageError if
    there is none."""
    found: dict[str, Disk] = {}
    for link in _links_of(fs, text):
        device = _disk_of(fs, link)
        for low in lowest(device):
            found.setdefault(low.name, device if low.name == device.name else low)
    return list(found.values())


def _links_of(fs: Fs, text: str) -> list[str]:
    """The entries in /sys of the devices that is_indirect() @text names, one at least."""
    tag = TAG.fullmatch(text)
    if tag is not None:
        place = link_of_tag(tag)
        entry = _class_entry(fs, place)
        if entry is None:
            raise UsageError(f"unknown device '{text}': no {place}: see lsblk -o NAME,{tag[1]}")
        return [entry]
    links = mounts.links_below(fs, text)
    if not links:
        mount = mounts.mount_of(fs, text)
        kind = f" ({mount.kind} of {mount.source})" if mount else ""
        raise UsageError(
            f"'{text}' is on no block device that is visible from here{kind}: name a disk"
        )
    return links


def link_of_tag(tag: re.Match[str]) -> str:
    """The link of udev for a match of TAG; other characters than a few are written in hexadecimal
    there."""
    name = "".join(
        one if one.isalnum() or one in "#+-.:=@_" else "".join(f"\\x{b:02x}" for b in one.encode())
        for one in tag[2]
    )
    return f"/dev/disk/by-{tag[1].lower()}/{name}"


def find_device(fs: Fs, text: str) -> Disk:
    """find_disk(), but for a file system the device that holds it, be it a disk or a stacked
    device."""
    if is_indirect(fs, text):
        return _disk_of(fs, _links_of(fs, text)[0])
    link = _class_entry(fs, text)
    if link is None:
        known = " ".join(disk.name for disk in all_disks(fs)) or "none"
        mend = _meant(text) or f"not in /sys/class/block; disks here: {known}"
        raise UsageError(f"unknown device '{text}': {mend}")
    return _disk_of(fs, link)


def _meant(text: str) -> str:
    """The mend for a word that stands where a device is expected; empty if it may be one."""
    if text in SCHEDULERS:
        return f"it is a scheduler: write --scheduler {text}"
    if text in KERNEL_SCHEDULERS:
        return f"it is a scheduler of the kernel: mqfair disable DEVICE --to {text}"
    if "," in text:
        return f"write the names with spaces between them: {' '.join(text.split(','))}"
    found = re.fullmatch(r"(depth|cost|threshold.kb|nr.requests)=(\w+)", text)
    return f"write --{found[1].replace('_', '-')} {found[2]}" if found else ""


def is_pattern(text: str) -> bool:
    return any(one in text for one in "*?[")


def find_disks(fs: Fs, texts: Sequence[str]) -> list[Disk]:
    """The disks named @texts, each once. A name may be a pattern of kernel names, as in nvme*n1.
    The head of NVMe multipath stands for its paths. Raises UsageError for a name or a pattern
    without a disk."""
    found: dict[str, Disk] = {}
    for text in texts:
        if not is_pattern(text):
            indirect = is_indirect(fs, text)
            for disk in disks_below(fs, text) if indirect else [find_device(fs, text)]:
                for path in paths_or_self(disk):
                    found.setdefault(path.name, path)
            continue
        names = [disk.name for disk in all_disks(fs)]
        matching = fnmatch.filter(names, text.removeprefix("/dev/"))
        if not matching:
            known = " ".join(names) or "none"
            raise UsageError(f"no device matches '{text}': disks here: {known}")
        for one in matching:
            for path in paths_or_self(Disk(fs, one)):
                found.setdefault(path.name, path)
    return list(found.values())


def _class_entry(fs: Fs, text: str) -> str | None:
    if NUMBER.fullmatch(text):
        return _existing(fs, f"/sys/dev/block/{text}")
    if "/" not in text:
        return _existing(fs, f"/sys/class/block/{text}") if text not in ("", ".", "..") else None
    number = fs.block_number(text)
    if number:
        return _existing(fs, f"/sys/dev/block/{number}")
    if not fs.exists(text):
        return None
    return _existing(fs, f"/sys/class/block/{fs.resolve(text).rpartition('/')[2]}")


def _existing(fs: Fs, path: str) -> str | None:
    return path if fs.exists(path) else None


def _disk_of(fs: Fs, link: str) -> Disk:
    parent, _, name = fs.resolve(link).rpartition("/")
    if fs.exists(f"{link}/partition"):
        return Disk(fs, parent.rpartition("/")[2], partition=name)
    return Disk(fs, name)


def all_disks(fs: Fs) -> Iterator[Disk]:
    """Every disk with a size above 0; loop and zram devices that are not in use have size 0."""
    for name in fs.names("/sys/block"):
        size = fs.read_if_any(f"/sys/block/{name}/size")
        if size is None or size.strip() != "0":
            yield Disk(fs, name)


def multipath_paths(disk: Disk) -> list[Disk]:
    """The path devices nvmeXcYnZ of an NVMe multipath head nvmeXnZ, which own its queues."""
    head = _NVME_HEAD.fullmatch(disk.name)
    if head is None:
        return []
    path = re.compile(rf"{head.group(1)}c\d+{head.group(2)}")
    return [Disk(disk.fs, name) for name in disk.fs.names("/sys/block") if path.fullmatch(name)]


def is_head(disk: Disk) -> bool:
    """Whether @disk is a head of NVMe multipath, with or without paths."""
    return _NVME_HEAD.fullmatch(disk.name) is not None and disk.selector() is None


def paths_or_self(disk: Disk) -> list[Disk]:
    """The paths of a head of NVMe multipath, and any other disk itself. A head without a path is
    returned itself, too."""
    return (multipath_paths(disk) if is_head(disk) else []) or [disk]


def heads(disks: Iterable[Disk]) -> list[Disk]:
    """@disks, each once, with heads of NVMe multipath in the place of their paths."""
    found: dict[str, Disk] = {}
    for disk in disks:
        found.setdefault((disk.head or disk).name, disk.head or disk)
    return list(found.values())


def below(disk: Disk) -> list[Disk]:
    """The disks directly under a stacked device."""
    slaves = [
        _disk_of(disk.fs, f"/sys/class/block/{name}")
        for name in disk.fs.names(f"{disk.path}/slaves")
        if disk.fs.exists(f"/sys/class/block/{name}")
    ]
    return slaves or (multipath_paths(disk) if is_head(disk) else [])


def above(disk: Disk) -> Disk | None:
    """The device with a scheduler of its own, such as request-based dm-multipath, that sends its
    requests to @disk past the scheduler of @disk; None if there is none."""
    fs = disk.fs
    parts = [f"{disk.path}/{name}" for name in fs.subdirs(fs.resolve(disk.path))]
    holders = [
        Disk(fs, name) for part in [disk.path, *parts] for name in fs.names(f"{part}/holders")
    ]
    return next((one for one in holders if one.selector() is not None), None)


def device_slots(disk: Disk) -> int | None:
    """The requests that @disk takes at once; None if that is not known. Those of request-based
    dm-multipath go to its paths, which take fewer than it has slots."""
    paths = (device_slots(path) for path in below(disk))
    known = [slots for slots in paths if slots is not None]
    if known:
        return sum(known)
    depth = disk.hardware_depth()
    return None if depth is None else depth * disk.queue_count()


def lowest(disk: Disk) -> list[Disk]:
    """The disks with the schedulers that order this device's I/O: the device itself if it has
    one."""
    if disk.selector() is not None:
        return [disk]
    found: dict[str, Disk] = {}
    for under in below(disk):
        found.update((low.name, Disk(low.fs, low.name)) for low in lowest(under))
    return list(found.values()) or [disk]


def loop_backing(disk: Disk) -> tuple[str, Disk | None] | None:
    """The file behind a loop device, and its disk if that is visible from here. None for a device
    that is not a loop device."""
    text = disk.fs.read_if_any(f"{disk.path}/loop/backing_file")
    if text is None:
        return None
    file = text.strip()
    number = disk.fs.block_number(file) or disk.fs.backing_number(file)
    link = _existing(disk.fs, f"/sys/dev/block/{number}") if number else None
    return file, _disk_of(disk.fs, link) if link else None


def require_number(disk: Disk) -> str:
    """MAJ:MIN of @disk; raises UsageError if it has no number."""
    number = disk.number
    if number is None:
        raise UsageError(
            f"{disk.name} has no device number ({disk.path}/dev) and takes no weight of its own:"
            " set the cgroup's default weight"
        )
    return number
