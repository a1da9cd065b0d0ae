# SPDX-License-Identifier: GPL-2.0
"""The mends for names that no disk can have."""

import re
from collections.abc import Iterator

from mqfair.machine.blockdev import NUMBER, TAG, link_of_tag

# The characters of the kernel's names of disks, and of patterns.
_DISK_NAME = re.compile(r"[\w!.*?\[\]^-]+")
# Names that partitions have, and no whole disk; and the controllers of NVMe. A set of characters in
# brackets is left to the kernel's names.
_PARTITION = re.compile(
    r"((?:nvme|mmcblk|loop|nbd|zd|md|rbd)[^p\[]*)p.*|((?:sd|vd|hd)[^0-9\[]+)\d.*"
)
_CONTROLLER = re.compile(r"nvme\d+")
_PART = re.compile(r"-part[\d*]+$")
_USE_NAME = "use a kernel name such as nvme*n1, or a path such as /dev/disk/by-id/nvme-*"


def is_mount(match: str) -> bool:
    """Whether @match is a path of a file system, and so of the disks below it."""
    return match.startswith("/") and not match.startswith("/dev/")


def never_a_disk(section: str, key: str, text: str) -> str:
    """The mend for a name that no disk can ever have; empty for any other."""
    return next(_reasons(section, key, text), "")


def _reasons(section: str, key: str, text: str) -> Iterator[str]:
    tag = TAG.fullmatch(text)
    parts = [part for part in re.split(r"[|,\s]+", text) if part]
    if "\0" in text:
        yield "no path has a NUL: leave it out"
    if tag is not None:
        yield f"write {key} = '{link_of_tag(tag)}'"
    if text.startswith("/sys/") or ("/" in text and not text.startswith("/")):
        yield _USE_NAME
    if is_mount(text):
        if re.search(r"[*?\[]", text):
            yield "use the path of one file system, without * and ?"
        return
    if len(parts) > 1:
        yield f"a rule has one name: write a [[{section}]] for each of {', '.join(parts)}"
    if _PART.search(text):
        yield f'a partition has no scheduler: use "{_PART.sub("", text)}"'
    if text.startswith("/"):
        return
    if NUMBER.fullmatch(text):
        yield (
            "numbers change at a restart: use the kernel's name of the disk, see"
            f" readlink /sys/dev/block/{text}"
        )
    part = _PARTITION.fullmatch(text)
    if part is not None:
        yield f'a partition has no scheduler: use "{(part[1] or part[2]).rstrip("[")}"'
    if _CONTROLLER.fullmatch(text):
        yield f'this is a controller: use "{text}n*" for its disks'
    if not _DISK_NAME.fullmatch(text):
        yield "no disk has such a name: use one of /sys/block, with * and ?"
