# SPDX-License-Identifier: GPL-2.0
"""Carries weights from io.weight, and from rules, to io.mqfair.weight.

systemd (IOWeight=) and the runtimes of containers write io.weight, which the kernel reserves for
iocost. A mirror reads it for each cgroup and writes the same weights to io.mqfair.weight.

It never overwrites a weight that was set by hand. A weight counts as set by hand if it is neither
the default nor the weight that the mirror wrote last. So the mirror remembers the weights that it
wrote. A weight by hand that equals the default cannot be told from one that the mirror has not set
yet; a rule for the cgroup keeps such a weight.

For each cgroup the mirror does the same thing whatever has happened to it: sync() reads both files
and writes the difference. Events only say for which cgroup, so a lost or doubled event does no harm
as long as scan() follows a loss.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mqfair.follow import unit_files
from mqfair.follow.unit_files import UnitFiles
from mqfair.machine import inotify
from mqfair.machine.cgroup import WEIGHT_DEFAULT, WEIGHT_FILE, WEIGHT_MAX, WEIGHT_MIN, Cgroup
from mqfair.text.errors import Failure

DEFAULT = "default"
IO_WEIGHT = "io.weight"
BFQ_WEIGHT = "io.bfq.weight"
SOURCES = (IO_WEIGHT, BFQ_WEIGHT)
CONTROLLERS = "cgroup.subtree_control"

# systemd alone writes to the cgroups of these units; a runtime of containers writes to scopes too.
_SYSTEMDS = (".service", ".slice")
# systemd maps 100..10000 to BFQ's 100..1000.
_BFQ_STEP = (WEIGHT_MAX - WEIGHT_DEFAULT) // (1000 - WEIGHT_DEFAULT)

# Nothing asks for such a default.
_NO_WEIGHT = (0, WEIGHT_DEFAULT)

# A close after a write, and not a modification: the kernel announces its own changes of
# cgroup.events and memory.events as modifications, some of them hundreds of times a second.
_MASK = inotify.CLOSE_WRITE | inotify.CREATE | inotify.DELETE

Weights = dict[str, int]
# The weights that rules give the cgroup with a path, by `default` or MAJ:MIN.
Rules = Callable[[str], Mapping[str, int]]


@dataclass(frozen=True)
class Change:
    """A weight that was written; @key is `default` or MAJ:MIN."""

    path: str
    key: str
    old: int | None
    new: int | None
    source: str

    def __str__(self) -> str:
        on = "" if self.key == DEFAULT else f" on {self.key}"
        old = DEFAULT if self.old is None else self.old
        new = DEFAULT if self.new is None else self.new
        return f"{self.path}{on}: {old} -> {new} ({self.source})"


@dataclass(frozen=True)
class ByHand:
    """A weight that was set by hand and differs from the wanted one, and so stays."""

    path: str
    key: str
    weight: int
    wanted: int | None
    source: str

    def __str__(self) -> str:
        on = "" if self.key == DEFAULT else f" on {self.key}"
        wanted = DEFAULT if self.wanted is None else self.wanted
        return f"{self.path}{on}: stays at {self.weight}, set by hand ({self.source}: {wanted})"


@dataclass(frozen=True)
class Wanted:
    """The weights of one cgroup, and the file or rule that asks for them."""

    weights: Mapping[str, int]
    source: str


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Mapping[str, int]:
    """The lines `default N` and `MAJ:MIN N` of a weight file. A number alone is the default; BFQ of
    older kernels writes it so."""
    found: Weights = {}
    for line in text.splitlines():
        words = line.split()
        if words and words[-1].isdecimal() and len(words) <= 2:
            number = min(max(int(words[-1]), WEIGHT_MIN), WEIGHT_MAX)
            found[words[0] if len(words) == 2 else DEFAULT] = number
    return found


def of_bfq(path: str, weights: Mapping[str, int], alone: bool) -> Mapping[str, int]:
    """The weights that io.bfq.weight stands for. systemd presses IOWeight= 100..10000 into BFQ's
    100..1000, which is undone where io.weight, with the true value, does not exist."""
    if not alone or not path.endswith(_SYSTEMDS):
        return weights
    return {
        key: WEIGHT_DEFAULT + (weight - WEIGHT_DEFAULT) * _BFQ_STEP
        if weight > WEIGHT_DEFAULT
        else weight
        for key, weight in weights.items()
    }


def asked(group: Cgroup) -> Wanted | None:
    """The weights that io.weight or io.bfq.weight asks for; None without these files. Only a weight
    that differs from the default counts in io.bfq.weight beside io.weight."""
    fs, folder = group.fs, group.directory
    text = fs.glance(f"{folder}/{IO_WEIGHT}")
    weights = parse(text) if text is not None else {}
    if any(weight != WEIGHT_DEFAULT for weight in weights.values()):
        return Wanted(weights, IO_WEIGHT)
    bfq_text = fs.glance(f"{folder}/{BFQ_WEIGHT}")
    if bfq_text is None:
        return Wanted(weights, IO_WEIGHT) if text is not None else None
    bfq = of_bfq(group.path, parse(bfq_text), alone=text is None)
    if text is None or any(weight != WEIGHT_DEFAULT for weight in bfq.values()):
        return Wanted(bfq, BFQ_WEIGHT)
    return Wanted(weights, IO_WEIGHT)


def with_units(found: Wanted | None, devices: Mapping[str, int]) -> Wanted | None:
    """@found, with the weights for @devices that the files of the unit have. The kernel's own lines
    come before them."""
    missing = {
        key: weight for key, weight in devices.items() if not found or key not in found.weights
    }
    if not missing:
        return found
    if found is None:
        return Wanted(missing, unit_files.SOURCE)
    default = found.weights.get(DEFAULT, WEIGHT_DEFAULT) == WEIGHT_DEFAULT
    alone = default and len(found.weights) <= 1
    source = unit_files.SOURCE if alone else f"{found.source}, {unit_files.SOURCE}"
    return Wanted({**found.weights, **missing}, source)


def no_rules(_path: str) -> Mapping[str, int]:
    return {}


def no_weight(_path: str) -> int | None:
    return None


@dataclass
class Mirror:
    """The mirror of all cgroups below @root. @mirrored has the weights that it wrote last."""

    root: Cgroup
    rules: Rules = no_rules
    weak: Callable[[str], int | None] = no_weight
    units: UnitFiles | None = None
    rules_name: str = "rule"
    mirrors: bool = True
    watches: inotify.Inotify | None = None
    mirrored: dict[str, Weights] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    # By path and key, as @mirrored.
    by_hand: dict[str, dict[str, ByHand]] = field(default_factory=dict)
    by_hand_changed: bool = False
    errors: list[str] = field(default_factory=list)
    unwatched: OSError | None = None
    count: int = 0
    _path_of: dict[int, str] = field(default_factory=dict)
    _watch_of: dict[str, int] = field(default_factory=dict)

    # -- the tree

    def scan(self) -> None:
        """Visits all cgroups, and forgets those that are gone."""
        if self.units is not None:
            self.units.read()
        self.count = 0
        self.by_hand.clear()
        self.by_hand_changed = True
        seen = set(self._visit(""))
        for path in [path for path in self.mirrored if path not in seen]:
            del self.mirrored[path]

    def _folder(self, path: str) -> str:
        fs, root = self.root.fs, self.root.mount
        return str(fs.host_path(f"{root}/{path}")) if path else str(fs.host_path(root))

    def _visit(self, top: str) -> list[str]:
        """Watches and synchronizes the cgroup @top and all below it. The watch comes first, so no
        change is missed between the two."""
        base = self._folder("")
        waiting = [top]
        seen = []
        while waiting:
            path = waiting.pop()
            folder = f"{base}/{path}" if path else base
            self._watch(path, folder)
            try:
                # Two links: the folder has no subfolders. This saves the listing of most cgroups.
                leaf = os.stat(folder).st_nlink == 2  # noqa: PTH116 -- a Path for each costs more
                below = [] if leaf else _subdirs(folder)
            except OSError:
                continue
            seen.append(path)
            self.count += 1
            if path:
                self.sync(path)
            prefix = f"{path}/" if path else ""
            waiting += [prefix + name for name in below]
        return seen

    def _watch(self, path: str, folder: str) -> None:
        if self.watches is None:
            return
        try:
            watch = self.watches.add(folder, _MASK)
        except FileNotFoundError:
            return
        except OSError as error:
            self.unwatched = error
            return
        self._path_of[watch] = path
        self._watch_of[path] = watch

    def _forget(self, path: str) -> None:
        """The kernel keeps the watch of a removed cgroup, and with it the memory of its folder."""
        watch = self._watch_of.pop(path, None)
        if watch is not None and self.watches is not None:
            del self._path_of[watch]
            self.watches.remove(watch)
        self.mirrored.pop(path, None)
        if self.by_hand.pop(path, None):
            self.by_hand_changed = True

    # -- events

    def handle(self) -> None:
        """Acts on the events that have arrived. After a loss of events everything is visited."""
        if self.watches is None:
            return
        # By path; true if a file may ask for another weight than before.
        touched: dict[str, bool] = {}
        for event in self.watches.read():
            if event.mask & inotify.OVERFLOW:
                self.rewatch()
                return
            path = self._path_of.get(event.watch)
            if path is None or event.mask & inotify.IGNORED:
                continue
            self._note(path, event, touched)
        for path, asks in touched.items():
            if asks and self.units is not None:
                self.units.refresh(path)
            if asks or not self._as_left(path):
                self.sync(path)

    def _note(self, path: str, event: inotify.Event, touched: dict[str, bool]) -> None:
        if event.mask & inotify.ISDIR:
            child = f"{path}/{event.name}" if path else event.name
            if event.mask & inotify.CREATE:
                self._visit(child)
            else:
                self._forget(child)
                touched.pop(child, None)
        elif event.name in SOURCES and path:
            touched[path] = True
        elif event.name == WEIGHT_FILE and path:
            touched.setdefault(path, False)
        elif event.name == CONTROLLERS:
            # The files of the io controller come and go in the children, without an event there.
            prefix = f"{path}/" if path else ""
            touched.update((prefix + name, True) for name in _subdirs(self._folder(path)))

    def _as_left(self, path: str) -> bool:
        """Whether the cgroup has the weights that the mirror left in it. Each write of the mirror
        is an event too, and this costs one file where sync() reads two. Without it a write that the
        kernel refuses would be tried again at its own event, without end."""
        if path in self.by_hand:
            return False
        text = self.root.fs.glance(f"{self.root.mount}/{path}/{WEIGHT_FILE}")
        if text is None:
            return False
        has = dict(parse(text))
        if has.get(DEFAULT) == WEIGHT_DEFAULT:
            del has[DEFAULT]
        return has == self.mirrored.get(path, {})

    def rewatch(self) -> None:
        """Begins anew after a loss: a watch may be missing, or may belong to a removed cgroup."""
        if self.watches is not None:
            self.watches.close()
            self.watches = inotify.Inotify()
        self._path_of.clear()
        self._watch_of.clear()
        self.scan()

    def stays(self) -> Iterator[ByHand]:
        """All weights that stay because they were set by hand."""
        for keys in self.by_hand.values():
            yield from keys.values()

    # -- one cgroup

    def wanted(self, path: str) -> Wanted | None:
        """The weights for a cgroup: those of a rule, and for all other keys those of io.weight.
        None if neither says anything."""
        ruled = self.rules(path)
        if DEFAULT in ruled:
            return Wanted(ruled, self.rules_name)
        group = Cgroup(self.root.fs, self.root.mount, path)
        found = asked(group) if self.mirrors else None
        if self.mirrors and self.units is not None:
            found = with_units(found, self.units.weights(path))
        weak = self.weak(path)
        if weak is not None and (found is None or found.weights.get(DEFAULT, 0) in _NO_WEIGHT):
            found = Wanted({**(found.weights if found else {}), DEFAULT: weak}, self.rules_name)
        if not ruled:
            return found
        return Wanted({**(found.weights if found else {}), **ruled}, self.rules_name)

    def sync(self, path: str) -> None:
        """Reads both files of a cgroup, and writes the difference."""
        stayed = self.by_hand.pop(path, None)
        self._carry(path)
        if self.by_hand.get(path) != stayed:
            self.by_hand_changed = True

    def _carry(self, path: str) -> None:
        file = f"{self.root.mount}/{path}/{WEIGHT_FILE}"
        text = self.root.fs.glance(file)
        if text is None:
            self.mirrored.pop(path, None)
            return
        has = dict(parse(text))
        last = self.mirrored.get(path, {})
        wanted = self.wanted(path) or Wanted({}, "nothing asks for a weight")
        if not last and not wanted.weights:
            return
        kept: Weights = {}
        for key in sorted({*wanted.weights, *last}, key=lambda key: (key != DEFAULT, key)):
            written = self._settle(path, key, has, last.get(key), wanted)
            if written is not None:
                kept[key] = written
        if kept:
            self.mirrored[path] = kept
        else:
            self.mirrored.pop(path, None)

    def _settle(
        self, path: str, key: str, has: Weights, last: int | None, wanted: Wanted
    ) -> int | None:
        """Brings one weight to the wanted one, unless it was set by hand. Returns the weight that
        counts as the mirror's own from now on; None if there is none."""
        own = has.get(key)
        want = wanted.weights.get(key)
        base = has.get(DEFAULT, WEIGHT_DEFAULT)
        if key == DEFAULT:
            own, want = base, WEIGHT_DEFAULT if want is None else want
            untouched = own == WEIGHT_DEFAULT
            holds = own == want
        else:
            untouched = own is None
            # The kernel may drop a device's weight that equals the default.
            holds = (base if own is None and want is not None else own) == want
        if holds:
            return want if want != WEIGHT_DEFAULT or key != DEFAULT else None
        if not untouched and own != last:
            assert own is not None
            stays = ByHand(path, key, own, want, wanted.source)
            self.by_hand.setdefault(path, {})[key] = stays
            return None
        if not self._write(path, key, want):
            return last
        self.changes.append(Change(path, key, own, want, wanted.source))
        has[key] = want if want is not None else base
        return want

    def _write(self, path: str, key: str, weight: int | None) -> bool:
        file = f"{self.root.mount}/{path}/{WEIGHT_FILE}"
        try:
            self.root.fs.write(file, f"{key} {DEFAULT if weight is None else weight}")
        except Failure as failure:
            # The cgroup may have been removed since the file was read.
            if self.root.fs.exists(file):
                self.errors.append(str(failure))
            return False
        return True


def _subdirs(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def disagreement(
    group: Cgroup, number: str | None, units: UnitFiles
) -> tuple[int, int, str] | None:
    """The weight that io.weight, or the files of a unit, ask for on the device @number, the weight
    in force, and the place that asks; None if they agree. A default weight asks for nothing."""
    text = group.fs.glance(group.file(WEIGHT_FILE))
    own = asked(group)
    wanted = with_units(own, units.weights(group.path))
    if text is None or wanted is None:
        return None
    weight, used = (_on(number, one) for one in (wanted.weights, parse(text)))
    of_unit = number is not None and number in wanted.weights
    source = wanted.source
    if own is not None:
        source = unit_files.SOURCE if of_unit and number not in own.weights else own.source
    return None if weight in (used, WEIGHT_DEFAULT) else (weight, used, source)


def _on(number: str | None, weights: Mapping[str, int]) -> int:
    default = weights.get(DEFAULT, WEIGHT_DEFAULT)
    return weights.get(number, default) if number else default
