# SPDX-License-Identifier: GPL-2.0
"""The mends for a text that is no TOML, from the line at which the parser stopped, and for names
that no disk can have.

An administrator writes /etc/mqfair.conf rarely, and by the habits of other files: INI, systemd, C.
"""

import re
from collections.abc import Iterator

from mqfair.machine.blockdev import NUMBER, TAG, link_of_tag
from mqfair.text.output import shortened

# The quotes that word processors and web pages put in place of ".
_CURLED = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
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
_PAIR = re.compile(r"([\w-]+)\s*([=:])\s*(.+)")


def not_toml(text: str, path: str, message: str) -> str:
    """The line for the @message of tomllib about @text: place, line, reason and mend."""
    at = re.search(r"\(at line (\d+), column \d+\)", message)
    lines = text.splitlines()
    line = int(at[1]) if at else len(lines)
    shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    reason = message.partition(" (at ")[0]
    return f"{path}:{line}: {shortened(shown)!r} is no TOML ({reason}): {_mend(shown, reason)}"


def _mend(shown: str, reason: str) -> str:
    if reason.startswith("Cannot overwrite"):
        return "a table has each key once: remove one, or begin another table with its [[…]]"
    if shown.startswith((";", "//")) or re.search(r"[\"\d]\s*(;|//)", shown):
        return "a comment begins with #"
    found = _PAIR.fullmatch(shown)
    if found is None:
        return 'write key = "text" or key = number'
    key, _, value = found.groups()
    bare = value.strip(_CURLED + "\"' ;,")
    straight = "straight " if set(value) & set(_CURLED) else ""
    if "\\" in bare and "'" not in bare:
        # Such as the names of units: in single quotes a backslash is itself.
        return f"write {key} = '{bare}', in {straight}single quotes"
    if re.fullmatch(r"-?\d+", bare):
        return f"write {key} = {bare}"
    usable = bool(bare) and '"' not in bare
    return (
        f'write {key} = "{bare}", in {straight}quotes'
        if usable
        else 'write key = "text" or key = number'
    )


def is_mount(match: str) -> bool:
    """Whether @match is a path of a file system, and so of the disks below it."""
    return match.startswith("/") and not match.startswith("/dev/")


def never_a_disk(section: str, key: str, text: str) -> str:
    """The mend for a name that no disk can ever have; empty for any other."""
    return next(_reasons(section, key, text), "")


def _reasons(section: str, key: str, text: str) -> Iterator[str]:
    tag = TAG.fullmatch(text)
    parts = [part for part in re.split(r"[|,\s]+", text) if part]
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
