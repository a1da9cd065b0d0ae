# SPDX-License-Identifier: GPL-2.0
"""The block devices below a path: those of the file system that holds it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mqfair.machine.fs import Fs

_ESCAPE = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """@number is MAJ:MIN, empty if the table has none. Some file systems have one without a block
    device; then @source may name one."""

    number: str
    point: str
    kind: str
    source: str


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)


def _table(fs: Fs) -> Iterator[Mount]:
    for line in (fs.glance("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        words, more = left.split(), right.split()
        if len(words) >= 5 and len(more) >= 2:
            yield Mount(words[2], _plain(words[4]), more[0], _plain(more[1]))


def _old_table(fs: Fs) -> Iterator[Mount]:
    for line in (fs.glance("/proc/self/mounts") or "").splitlines():
        words = line.split()
        if len(words) >= 3:
            yield Mount("", _plain(words[1]), words[2], _plain(words[0]))


def mount_of(fs: Fs, path: str) -> Mount | None:
    """The mount that holds @path: the one with the longest name, and the last of equal ones."""
    place = fs.resolve(path)
    best = None
    for mount in list(_table(fs)) or _old_table(fs):
        point = mount.point.rstrip("/")
        inside = place == point or place.startswith(f"{point}/")
        if inside and (best is None or len(point) >= len(best.point.rstrip("/"))):
            best = mount
    return best


def links_below(fs: Fs, path: str) -> list[str]:
    """The entries in /sys of the block devices of the file system that holds @path. Several for a
    btrfs over several; none for a file system without a block device."""
    mount = mount_of(fs, path)
    links = [f"/sys/dev/block/{mount.number}"] if mount and mount.number else []
    if mount and mount.source.startswith("/dev/"):
        number = fs.block_number(mount.source)
        name = fs.resolve(mount.source).rpartition("/")[2]
        links.append(f"/sys/dev/block/{number}" if number else f"/sys/class/block/{name}")
    links.append(f"/sys/dev/block/{fs.backing_number(path)}")
    found = next((link for link in links if fs.exists(link)), None)
    if found is None:
        return []
    return _with_btrfs(fs, found)


def _with_btrfs(fs: Fs, link: str) -> list[str]:
    own = fs.resolve(link).rpartition("/")[2]
    for name in fs.names("/sys/fs/btrfs"):
        devices = fs.names(f"/sys/fs/btrfs/{name}/devices")
        if own in devices:
            return [f"/sys/class/block/{one}" for one in devices]
    return [link]
