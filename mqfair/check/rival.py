# SPDX-License-Identifier: GPL-2.0
"""A line that sets the scheduler of a disk, and the ways in which a text names such a file.

A judgement has three values: true, false, and None for one that cannot be made from here.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs

Judgement = bool | None

_SCHEDULER = "queue/scheduler"
# A redirection of a word, or a word that tee writes. The file may be a variable of the shell.
_WRITE = re.compile(
    r"(?:echo|printf)\s+(?:-[neE]+\s+)*(?:--\s+)?[\"']?([A-Za-z][\w-]*)(?:\\+n)?[\"']?\s*"
    r"(?:>{1,2}|\|\s*(?:sudo\s+)?(?:\S*/)?tee(?:\s+-a)?(?=\s))\s*[\"']?([^\s\"';|&)]+)"
)
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\s+([^;\n]*)")
_ASSIGNED = re.compile(r"(?:^|[\s;'\"])(\w+)=(\"[^\"$`]*\"|'[^']*'|[\w./*-]+)")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_PATHS_MOST = 1024
_OPENS = re.compile(r"(?:^|[\s;&|])(?:if|case)\s")
_CLOSES = re.compile(r"(?:^|[\s;&|])(?:fi|esac)(?=$|[\s;&|)])")
_CHAINED = re.compile(r"&&|\|\|")
# The parts of a path that the shell, udev or another program fills in, or that stand for several.
_FILLED_IN = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|`[^`]*`|\$\w+|%\w|\{[^}/]*,[^}/]*\}")
_UNITS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system")


@dataclass(frozen=True)
class Rival:
    """A line that sets the scheduler of a disk to @scheduler, which is empty if it is not known.
    @doubt is the reason why it may do so, empty if it surely does."""

    program: str
    file: str
    line: int
    scheduler: str
    doubt: str = ""


def both(judgements: Iterable[Judgement]) -> Judgement:
    """True if all are true, false if one is false."""
    found = list(judgements)
    if any(one is False for one in found):
        return False
    return None if any(one is None for one in found) else True


def shell_pattern(pattern: str) -> str:
    """@pattern of fnmatch(3) as one of Python, which has no escapes."""
    return re.sub(r"\\(.)", lambda match: f"[{match[1]}]", pattern.replace("[^", "[!"))


def matches(pattern: str, value: str) -> bool:
    return fnmatch.fnmatchcase(value, shell_pattern(pattern))


def _names(disk: Disk) -> Iterator[str]:
    """The paths of the scheduler's file of @disk."""
    yield f"/sys/block/{disk.name}/{_SCHEDULER}"
    yield f"/sys/class/block/{disk.name}/{_SCHEDULER}"
    yield f"{disk.fs.resolve(disk.path)}/{_SCHEDULER}"
    if disk.own_number:
        yield f"/sys/dev/block/{disk.own_number}/{_SCHEDULER}"


def names_file(disk: Disk, path: str) -> Judgement:
    """Whether @path, which may have wildcards, is the file of the scheduler of @disk."""
    plain = os.path.normpath(_FILLED_IN.sub("*", path))
    words = plain.split("/")
    for name in _names(disk):
        parts = name.split("/")
        if len(parts) == len(words) and all(map(matches, words, parts)):
            return None if _FILLED_IN.search(path) else True
    return False


def _variables(text: str) -> dict[str, list[str]]:
    """The words that each variable of a script may have: of a loop over words, or one value."""
    found: dict[str, list[str]] = {}
    for name, value in _ASSIGNED.findall(text):
        found.setdefault(name, []).append(value.strip("\"'"))
    for name, words in _LOOP.findall(text):
        if not re.search(r"[$`]", words):
            found.setdefault(name, []).extend(words.split())
    return found


def _expanded(path: str, variables: dict[str, list[str]]) -> list[str]:
    """@path with each value of its variables; as it is if one has no value that is known."""
    paths = [path]
    for name in set(_VARIABLE.findall(path)):
        values = variables.get(name, [])
        if not values:
            return [path]
        filled = re.compile(rf"\$(?:\{{{name}\}}|{name}\b)")
        paths = [filled.sub(lambda _, v=value: v, one) for one in paths for value in values]  # type: ignore[misc]
    return paths[:_PATHS_MOST]


def written_lines(disk: Disk, text: str) -> Iterator[tuple[int, str, str]]:
    """The lines of a script that write the file of @disk: number, scheduler, and the doubt."""
    bare = [re.sub(r"(?:^|\s)#.*", "", line) for line in text.splitlines()]
    variables = _variables("\n".join(bare))
    # The conditions that are open.
    depth = 0
    for number, line in enumerate(bare, 1):
        for match in _WRITE.finditer(line):
            scheduler, path = match.groups()
            paths = _expanded(path, variables)
            judged = [names_file(disk, one) for one in paths if _SCHEDULER in one]
            before = line[: match.start()]
            if True in judged and not depth + _opened(before) and not _CHAINED.search(before):
                yield number, scheduler, ""
            elif True in judged:
                yield number, scheduler, "it depends on a condition before it"
            elif None in judged:
                yield number, scheduler, f"it depends on {path}"
        depth = max(0, depth + _opened(line))


def _opened(line: str) -> int:
    """The conditions that @line opens, less those that it closes."""
    return len(_OPENS.findall(line)) - len(_CLOSES.findall(line))


def written(disk: Disk, command: str) -> tuple[str, str] | None:
    """The scheduler that a @command writes to the file of @disk, and the doubt about it; None if it
    writes none."""
    return next(((value, doubt) for _, value, doubt in written_lines(disk, command)), None)


def starts(fs: Fs, unit: str) -> Judgement:
    """Whether systemd starts @unit at boot; None for a machine on which systemd does not run. It
    lists dozens of folders, so ask it last, of a unit that would set a scheduler."""
    for top in _UNITS:
        for folder in fs.names(top):
            if folder.endswith((".wants", ".requires")) and unit in fs.names(f"{top}/{folder}"):
                return True
    return False if fs.is_dir("/run/systemd/system") else None


def first_of_each_name(fs: Fs, folders: Iterable[str], suffix: str) -> list[str]:
    """The files of @folders by name. A file of an earlier folder replaces that of the same name in
    a later one, as systemd does for its configuration."""
    found: dict[str, str] = {}
    for folder in folders:
        for name in fs.names(folder):
            if name.endswith(suffix):
                found.setdefault(name, f"{folder}/{name}")
    return [found[name] for name in sorted(found)]


def properties(disk: Disk, number: str | None) -> dict[str, str] | None:
    """The properties of a device in the database of udev; None if it has none there."""
    text = disk.fs.glance(f"/run/udev/data/b{number}") if number else None
    if text is None:
        return None
    pairs = (line[2:].partition("=") for line in text.splitlines() if line.startswith("E:"))
    return {key: value for key, _, value in pairs}
