# SPDX-License-Identifier: GPL-2.0
"""Block devices as sysfs shows them: what a name means, what schedules it, what is below it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mqfair.errors import UsageError
from mqfair.fs import Fs

# In the order in which the module lists them; each is a name for queue/scheduler.
SCHEDULERS = ("mqfq", "ifq", "kyber-fair", "wdt", "hwabc")

# MAX_SCHED_RQ of the block layer, and the least that sysfs does not raise by itself.
NR_REQUESTS_MIN = 4
NR_REQUESTS_MAX = 2048

_NUMBER = re.compile(r"\d+:\d+")
_NVME_HEAD = re.compile(r"(nvme\d+)(n\d+)")


def active_word(text: str) -> str:
    """The value in force in a kernel file: the one in brackets, else the first."""
    bracketed = re.search(r"\[([^\]]+)\]", text)
    return bracketed.group(1) if bracketed else (text.split() or [""])[0]


def setting(text: str, like: str) -> str:
    """The part of a kernel file that compares with a written value `like`.

    A tunable under auto shows the number it chose beside the word.
    """
    words = text.split()
    if len(like.split()) > 1:
        return " ".join(words)
    return "auto" if "auto" in words else active_word(text)


@dataclass(frozen=True)
class Selector:
    """What queue/scheduler says; the order of the names differs between kernels."""

    active: str
    available: tuple[str, ...]

    @property
    def ours(self) -> bool:
        return self.active in SCHEDULERS


@dataclass(frozen=True)
class Disk:
    """A whole disk; `partition` names the partition through which it was asked for."""

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
    def number(self) -> str | None:
        """MAJ:MIN; None for the hidden path devices of NVMe multipath, which have no node."""
        text = self.fs.read_if_any(f"{self.path}/dev")
        return text.strip() if text else None

    def queue(self, attribute: str) -> str:
        return f"{self.path}/queue/{attribute}"

    def tunable(self, name: str) -> str:
        return self.queue(f"iosched/{name}")

    def selector(self) -> Selector | None:
        """None when the device takes no scheduler: bio-based devices have no such file, or
        (Linux 6.1) one that says `none` without brackets."""
        text = self.fs.read_if_any(self.scheduler_file)
        if text is None or "[" not in text:
            return None
        return Selector(active_word(text), tuple(re.findall(r"[\w-]+", text)))

    def require_selector(self) -> Selector:
        selector = self.selector()
        if selector is None:
            raise UsageError(self._why_unschedulable())
        return selector

    def _why_unschedulable(self) -> str:
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
        """Slots of one hardware queue; all queues of a device have as many."""
        text = self.fs.read_if_any(f"{self.path}/mq/0/nr_tags")
        return int(text) if text and text.strip().isdigit() else None

    def queue_count(self) -> int:
        """Queues that ordinary I/O goes through.

        Queues for polling, and those for reads alone, come after these and serve the same CPUs
        once more; sysfs does not name their kind.
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
    """Accepts /dev/nvme0n1, nvme0n1, MAJ:MIN, a symbolic link, and partitions of all these."""
    link = _class_entry(fs, text)
    if link is None:
        known = " ".join(disk.name for disk in all_disks(fs)) or "none"
        raise UsageError(f"unknown device '{text}': not in /sys/class/block; disks here: {known}")
    return _disk_of(fs, link)


def _class_entry(fs: Fs, text: str) -> str | None:
    if _NUMBER.fullmatch(text):
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
    """Every disk that holds something: unattached loop and zram devices have size 0."""
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


def below(disk: Disk) -> list[Disk]:
    """The disks directly under a stacked device."""
    slaves = [
        _disk_of(disk.fs, f"/sys/class/block/{name}")
        for name in disk.fs.names(f"{disk.path}/slaves")
        if disk.fs.exists(f"/sys/class/block/{name}")
    ]
    return slaves or multipath_paths(disk)


def lowest(disk: Disk) -> list[Disk]:
    """The disks whose scheduler decides over this device's I/O: itself when it has one."""
    if disk.selector() is not None:
        return [disk]
    found: dict[str, Disk] = {}
    for under in below(disk):
        found.update((low.name, Disk(low.fs, low.name)) for low in lowest(under))
    return list(found.values()) or [disk]


def loop_backing(disk: Disk) -> tuple[str, Disk | None] | None:
    """The file behind a loop device and the disk that holds it, as far as it can be seen."""
    text = disk.fs.read_if_any(f"{disk.path}/loop/backing_file")
    if text is None:
        return None
    file = text.strip()
    number = disk.fs.block_number(file) or disk.fs.backing_number(file)
    link = _existing(disk.fs, f"/sys/dev/block/{number}") if number else None
    return file, _disk_of(disk.fs, link) if link else None


def require_number(disk: Disk) -> str:
    number = disk.number
    if number is None:
        raise UsageError(
            f"{disk.name} has no device number ({disk.path}/dev): a weight cannot be set for it"
            " alone, set the cgroup's default weight"
        )
    return number
