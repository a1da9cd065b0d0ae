# SPDX-License-Identifier: GPL-2.0
"""The rules of udev that set the scheduler of a disk, by playing its events through all rules.

The events are `add` and `change`, of the disk and of each partition. Rules are read in order: jumps
are followed, and properties that a rule sets count for those after it. A condition leaves a doubt
if it needs a program, or a fact that is neither in sysfs nor in the database of udev. A jump in
doubt leaves one on all lines up to its label.
"""

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqfair.check.rival import (
    Judgement,
    Rival,
    both,
    first_of_each_name,
    matches,
    properties,
    written,
    written_lines,
)
from mqfair.machine.blockdev import Disk
from mqfair.machine.fs import Fs

PROGRAM = "udev"
FOLDERS = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)
PAIR = re.compile(r'([A-Z_]+)(?:\{([^}]*)\})?\s*(==|!=|:=|\+=|-=|=)\s*([ei]*)"((?:\\.|[^"\\])*)"')
_ASKS = ("==", "!=")
_SETS = ("=", ":=", "+=")
_SUBSTITUTES = re.compile(r"\$(\w+)(?:\{([^}]*)\})?|%(?:(\w)(?:\{([^}]*)\})?|%)|\$\$")
# A key that is compared with the device or with one parent, the same for all such keys of a line.
_PARENTS = ("KERNELS", "SUBSYSTEMS", "DRIVERS", "ATTRS", "TAGS")
_COMMANDS = ("RUN", "PROGRAM", "IMPORT")
_WORD = "scheduler"
_SCRIPT_FOLDERS = ("/usr/lib/udev", "/lib/udev")


@dataclass(frozen=True)
class Pair:
    """KEY{attribute} operator "value". @fold means that case does not count."""

    key: str
    attribute: str
    operator: str
    fold: bool
    value: str

    def __str__(self) -> str:
        return self.key + (f"{{{self.attribute}}}" if self.attribute else "")


def lines(text: str) -> Iterator[tuple[int, list[Pair]]]:
    """The rules with the number of their first line; a backslash continues a line."""
    first, whole = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        first = first if whole else number
        if line.lstrip().startswith("#"):
            # A remark ends nothing, and is no part of a continued line.
            continue
        if line.endswith("\\"):
            whole += line[:-1]
            continue
        whole += line
        pairs = [
            Pair(key, attribute, operator, "i" in flags, value.replace('\\"', '"'))
            for key, attribute, operator, flags, value in PAIR.findall(whole)
        ]
        if pairs:
            yield first, pairs
        whole = ""


@dataclass
class _Event:
    """An @action on the disk or on its @partition. @env has the properties that rules have set; the
    value None is one that is not known."""

    disk: Disk
    partition: str | None
    action: str
    env: dict[str, str | None] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        fs = self.disk.fs
        self.fs = fs
        self.disk_folder = fs.resolve(self.disk.path)
        self.folder = f"{self.disk_folder}/{self.partition}" if self.partition else self.disk_folder
        self.name = self.partition or self.disk.name
        number = self.disk.own_number
        if self.partition:
            number = (fs.glance(f"{self.folder}/dev") or "").strip() or None
        self.number = number
        self.known = properties(self.disk, number)

    # -- values

    def property(self, name: str) -> str | None:
        if name in self.env:
            return self.env[name]
        own = {
            "ACTION": self.action,
            "SUBSYSTEM": "block",
            "DEVTYPE": "partition" if self.partition else "disk",
            "DEVNAME": f"/dev/{self.name}",
            "DEVPATH": self.folder.removeprefix("/sys"),
        }
        if name in own:
            return own[name]
        if name.startswith("."):
            return ""
        return None if self.known is None else self.known.get(name, "")

    def attribute(self, folder: str, name: str) -> str | None:
        text = self.fs.glance(os.path.normpath(f"{folder}/{name}"))
        return None if text is None else text.strip()

    def filled(self, text: str) -> str:
        """@text with the values of udev's substitutions; * stands for one that is not known."""

        def value(match: re.Match[str]) -> str:
            if match[0] in ("$$", "%%"):
                return match[0][0]
            word = match[1] or match[3]
            name = match[2] or match[4] or ""
            number = (self.number or "*:*").split(":")
            plain = {
                **dict.fromkeys(("kernel", "k"), self.name),
                **dict.fromkeys(("devpath", "p"), self.folder.removeprefix("/sys")),
                **dict.fromkeys(("sys", "S"), "/sys"),
                **dict.fromkeys(("root", "r"), "/dev"),
                **dict.fromkeys(("name",), self.name),
                **dict.fromkeys(("devnode", "tempnode", "N"), f"/dev/{self.name}"),
                **dict.fromkeys(("number", "n"), re.sub(r".*\D", "", self.name)),
                **dict.fromkeys(("major", "M"), number[0]),
                **dict.fromkeys(("minor", "m"), number[-1]),
                **dict.fromkeys(("parent", "P"), self.disk.name if self.partition else "*"),
            }
            if word in plain:
                return plain[word]
            if word in ("env", "E"):
                return self.property(name) or "*"
            if word in ("attr", "s", "sysfs"):
                return self.attribute(self.folder, name) or "*"
            return "*" if match[3] or word in ("id", "driver", "result", "links") else match[0]

        return _SUBSTITUTES.sub(value, text)

    # -- conditions

    def holds(self, pairs: list[Pair]) -> Judgement:
        """Whether all conditions of a line hold. Those of parents hold for one and the same."""
        self.doubts.clear()
        own = [self._judged(pair) for pair in pairs if pair.key not in _PARENTS]
        if any(one is False for one in own):
            return False
        above = [pair for pair in pairs if pair.key in _PARENTS]
        return both((*own, self._has_parent(above) if above else True))

    def _judged(self, pair: Pair) -> Judgement:
        judged = self._ask(pair)
        if judged is None:
            self.doubts.append(str(pair))
        return judged

    def _ask(self, pair: Pair) -> Judgement:
        if pair.operator not in _ASKS:
            return self._import(pair) if pair.key == "IMPORT" else True
        if pair.key == "TEST":
            return self._test(pair)
        value = {
            "ACTION": self.action,
            "KERNEL": self.name,
            "SUBSYSTEM": "block",
            "DEVPATH": self.folder.removeprefix("/sys"),
        }.get(pair.key)
        if pair.key == "ENV":
            value = self.property(pair.attribute)
        elif pair.key == "ATTR":
            return self._attribute(pair)
        elif pair.key == "SYSCTL":
            value = self.attribute("/proc/sys", pair.attribute.replace(".", "/"))
        elif pair.key == "IMPORT":
            return self._import(pair)
        return None if value is None else _compared(pair, value)

    def _attribute(self, pair: Pair) -> Judgement:
        value = self.attribute(self.folder, self.filled(pair.attribute))
        if value is None:
            # udev has differed in this: an absent attribute and !=.
            return False if pair.operator == "==" else None
        if pair.attribute == "queue/scheduler":
            selector = self.disk.selector()
            if selector is None or not selector.ours:
                # The rule may itself have made the value that it asks for.
                return None
        return _compared(pair, value)

    def _test(self, pair: Pair) -> Judgement:
        path = self.filled(pair.value)
        path = path if path.startswith("/") else f"{self.folder}/{path}"
        found = any(glob.iglob(str(self.fs.host_path(path))))  # noqa: PTH207 -- an absolute pattern
        return found == (pair.operator == "==")

    def _import(self, pair: Pair) -> Judgement:
        if pair.attribute != "cmdline":
            return None if pair.attribute in ("program", "file") else True
        words = (self.fs.glance("/proc/cmdline") or "").split()
        for word in words:
            key, _, value = word.partition("=")
            if key == pair.value:
                self.env[pair.value] = value or "1"
                return pair.operator != "!="
        self.env.setdefault(pair.value, "")
        return pair.operator == "!="

    def _has_parent(self, pairs: list[Pair]) -> Judgement:
        folder, found = self.folder, []
        while folder.count("/") > 2:
            found.append(both(self._of_parent(folder, pair) for pair in pairs))
            folder = folder.rpartition("/")[0]
        if True in found:
            return True
        if None in found or not self.fs.exists(f"{self.disk.path}/device"):
            self.doubts += [str(pair) for pair in pairs]
            return None
        return False

    def _of_parent(self, folder: str, pair: Pair) -> Judgement:
        if pair.key == "TAGS":
            return None
        value: str | None = folder.rpartition("/")[2]
        if pair.key == "ATTRS":
            value = self.attribute(folder, self.filled(pair.attribute))
        elif pair.key != "KERNELS":
            link = f"{folder}/{'subsystem' if pair.key == 'SUBSYSTEMS' else 'driver'}"
            value = self.fs.resolve(link).rpartition("/")[2] if self.fs.exists(link) else None
        return False if value is None else _compared(pair, value)

    # -- effects

    def takes(self, pairs: list[Pair], judged: Judgement) -> None:
        """Keeps the properties that a line sets."""
        for pair in pairs:
            if pair.key == "ENV" and pair.operator in _SETS:
                value = self.filled(pair.value)
                sure = judged and pair.operator != "+=" and "*" not in value
                self.env[pair.attribute] = value if sure else None

    def sets(self, pairs: list[Pair]) -> Iterator[tuple[str, str]]:
        """The schedulers that a line writes, each with the doubt about it."""
        file = f"{self.disk_folder}/queue/scheduler"
        for pair in pairs:
            if pair.key == "ATTR" and pair.operator in _SETS:
                path = os.path.normpath(f"{self.folder}/{self.filled(pair.attribute)}")
                if path == file:
                    value = self.filled(pair.value)
                    yield ("", f"it depends on {pair.value}") if "*" in value else (value, "")
            elif pair.key in _COMMANDS and pair.attribute not in ("builtin", "cmdline", "db"):
                yield from self._command(self.filled(pair.value))

    def _command(self, command: str) -> Iterator[tuple[str, str]]:
        found = written(self.disk, command)
        if found is not None:
            yield found
            return
        for _, scheduler, _ in written_lines(self.disk, _script(self.fs, command)):
            yield scheduler, f"it depends on {command.split(maxsplit=1)[0]}"


def _script(fs: Fs, command: str) -> str:
    """The text of the script that a command runs; empty for another program."""
    words = command.split()
    script = words[0].strip("'\"") if words else ""
    places = [script] if "/" in script else [f"{one}/{script}" for one in _SCRIPT_FOLDERS]
    text = next((text for one in places if (text := fs.glance(one))), "")
    return text if text.startswith("#!") else ""


def _compared(pair: Pair, value: str) -> bool:
    patterns = pair.value.split("|")
    if pair.fold:
        patterns, value = [one.lower() for one in patterns], value.lower()
    return any(matches(one, value) for one in patterns) == (pair.operator == "==")


def _of_event(
    event: _Event, files: list[tuple[str, list[tuple[int, list[Pair]]]]]
) -> Iterator[Rival]:
    for file, rules in files:
        skipped_to = ""
        # udev ignores a jump without its label.
        labels_of = {one.value for _, pairs in rules for one in pairs if one.key == "LABEL"}
        # Labels up to which a jump in doubt may have skipped, with the doubt.
        in_doubt: dict[str, str] = {}
        set_in_doubt: set[str] = set()
        for number, pairs in rules:
            labels = [pair.value for pair in pairs if pair.key == "LABEL"]
            ended = [in_doubt.pop(label, None) for label in labels]
            if any(ended) and not in_doubt:
                event.env.update(dict.fromkeys(set_in_doubt))
                set_in_doubt.clear()
            if skipped_to and skipped_to not in labels:
                continue
            skipped_to = ""
            judged = event.holds(pairs)
            if judged is False:
                continue
            doubt = "" if judged else f"it depends on {event.doubts[0]}"
            doubt = next(iter(in_doubt.values()), "") or doubt
            # Behind a jump in doubt all lines up to the label run, or none of them.
            event.takes(pairs, judged)
            if in_doubt:
                set_in_doubt |= {pair.attribute for pair in pairs if pair.key == "ENV"}
            for scheduler, reason in event.sets(pairs):
                yield Rival(PROGRAM, file, number, scheduler, doubt or reason)
            jumps = [pair.value for pair in pairs if pair.key == "GOTO" and pair.value in labels_of]
            if jumps and doubt:
                in_doubt[jumps[-1]] = doubt
            elif jumps:
                skipped_to = jumps[-1]


def _may_set(fs: Fs, text: str, rules: list[tuple[int, list[Pair]]]) -> bool:
    """Whether a file of rules, or a script that it runs, has a word of schedulers. All others can
    be left out: the properties that they set are in udev's database."""
    if _WORD in text:
        return True
    commands = (one.value for _, pairs in rules for one in pairs if one.key in _COMMANDS)
    return any(_WORD in _script(fs, command) for command in set(commands))


def rivals(disk: Disk) -> Iterator[Rival]:
    """The lines that set the scheduler of @disk, each once, and surely if one event is sure."""
    fs = disk.fs
    files = [
        (file, rules)
        for file in first_of_each_name(fs, FOLDERS, ".rules")
        if (text := fs.glance(file)) and _may_set(fs, text, rules := list(lines(text)))
    ]
    names = fs.subdirs(fs.resolve(disk.path))
    partitions = [name for name in names if fs.exists(f"{disk.path}/{name}/partition")]
    found: dict[tuple[str, int], Rival] = {}
    for partition in (None, *partitions):
        for action in ("add", "change"):
            for rival in _of_event(_Event(disk, partition, action), files):
                key = (rival.file, rival.line)
                if key not in found or (found[key].doubt and not rival.doubt):
                    found[key] = rival
    places = [file for file, _ in files]
    yield from sorted(found.values(), key=lambda one: (places.index(one.file), one.line))
