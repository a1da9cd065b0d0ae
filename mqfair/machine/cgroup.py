# SPDX-License-Identifier: GPL-2.0
"""Control groups, version 2: names, controllers, weights and io.stat."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure

WEIGHT_FILE = "io.mqfair.weight"
LATENCY_FILE = "io.mqfair.latency"
WEIGHT_MIN = 1
WEIGHT_MAX = 10000
WEIGHT_DEFAULT = 100
STAT_PREFIX = "mqfair."


@dataclass(frozen=True)
class Weights:
    """The content of io.mqfair.weight: `default N`, then a line `MAJ:MIN N` for each device with
    another weight."""

    default: int = WEIGHT_DEFAULT
    devices: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Weights":
        entries = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
        default = int(entries.pop("default", WEIGHT_DEFAULT))
        return cls(default, {number: int(weight) for number, weight in entries.items()})

    def on(self, number: str | None) -> int:
        return self.devices.get(number, self.default) if number else self.default


@dataclass(frozen=True)
class Cgroup:
    """A cgroup at @path below the cgroup2 mount @mount; the root's path is empty."""

    fs: Fs
    mount: str
    path: str = ""

    @property
    def name(self) -> str:
        return self.path or "/"

    @property
    def directory(self) -> str:
        return f"{self.mount}/{self.path}" if self.path else self.mount

    def file(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def text(self, name: str) -> str | None:
        return self.fs.read_if_any(self.file(name))

    def words(self, name: str) -> list[str]:
        return (self.text(name) or "").split()

    @property
    def parent(self) -> "Cgroup | None":
        if not self.path:
            return None
        return Cgroup(self.fs, self.mount, self.path.rpartition("/")[0])

    def ancestors(self) -> list["Cgroup"]:
        """The cgroups from the root down to the parent."""
        parent = self.parent
        return [] if parent is None else [*parent.ancestors(), parent]

    def children(self) -> list["Cgroup"]:
        prefix = f"{self.path}/" if self.path else ""
        names = self.fs.subdirs(self.directory)
        return [Cgroup(self.fs, self.mount, prefix + name) for name in names]

    def siblings(self) -> list["Cgroup"]:
        parent = self.parent
        return [] if parent is None else [c for c in parent.children() if c.path != self.path]

    def walk(self) -> Iterator["Cgroup"]:
        """This cgroup and all below it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()

    def weights(self) -> Weights | None:
        text = self.text(WEIGHT_FILE)
        return None if text is None else Weights.parse(text)

    def stat(self) -> dict[str, dict[str, str]]:
        """The key=value pairs of io.stat, by device number."""
        return self._pairs("io.stat")

    def goals(self) -> dict[str, dict[str, str]]:
        """The key=value pairs of io.mqfair.latency, by device number."""
        return self._pairs(LATENCY_FILE)

    def _pairs(self, name: str) -> dict[str, dict[str, str]]:
        lines = (line.split() for line in (self.text(name) or "").splitlines())
        return {
            words[0]: dict(word.split("=", 1) for word in words[1:] if "=" in word)
            for words in lines
            if words
        }

    def controls(self, controller: str) -> bool:
        """True if @controller is enabled for this cgroup."""
        return controller in self.words("cgroup.controllers")


def _mounts(fs: Fs) -> Iterator[tuple[str, str, list[str]]]:
    """(mount point, type, options) of every mount."""
    for line in fs.read("/proc/self/mounts").splitlines():
        words = line.split()
        if len(words) >= 4:
            point = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), words[1])
            yield point, words[2], words[3].split(",")


def v1_blkio_mount(fs: Fs) -> str | None:
    """The cgroup v1 mount that has the io controller (named blkio there). The controller is then
    not available in v2."""
    for point, kind, options in _mounts(fs):
        if kind == "cgroup" and "blkio" in options:
            return point
    return None


def root_cgroup(fs: Fs) -> Cgroup:
    """The root of the first cgroup2 mount; raises Failure if there is none."""
    for point, kind, _ in _mounts(fs):
        if kind == "cgroup2":
            return Cgroup(fs, point.rstrip("/"))
    raise Failure(
        "no cgroup v2 hierarchy in /proc/self/mounts: boot with systemd.unified_cgroup_hierarchy=1"
        " or mount -t cgroup2 none /sys/fs/cgroup"
    )


def levels_without(group: Cgroup, controller: str) -> list[Cgroup]:
    """The ancestors, from the root, that do not enable @controller for their children."""
    return [a for a in group.ancestors() if controller not in a.words("cgroup.subtree_control")]
