# SPDX-License-Identifier: GPL-2.0
"""Keeps the schedulers and tunables of /etc/mqfair.conf in force on the disks that are here.

Everything that can take them away ends in an event: a new disk, a write to queue/scheduler, the
return of the module. At each of them the disks of the rules are compared with the rules. A tunable
that was changed by hand stays until such an event on any disk of the rules. A path of NVMe
multipath comes without an event: while a rule names such a disk, the caller looks every 10 s.

A disk for which `mqfair disable` or `mqfair enable` chose another scheduler is left alone, until
`mqfair enable` chooses that of the rule, or the machine restarts (chosen_by_hand.py).
"""

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field, replace

from mqfair.follow.config import Config, DeviceRule, folders, has_heads
from mqfair.machine import inotify
from mqfair.machine.blockdev import Disk, keeps, paths_or_self, setting
from mqfair.machine.fs import Fs
from mqfair.machine.lock import BusyError, locked
from mqfair.text.errors import Failure, UsageError
from mqfair.tune import chosen_by_hand
from mqfair.tune.enable import Enabler, Plan, SwitchedError

# The attempts for a disk at one event: a program may switch it while its tunables are written.
TRIES = 2
# A program that switches the scheduler back as often as this has won, until PAUSE_S have passed.
SWITCHES_MOST = 5
WITHIN_S = 60.0

_QUEUE_MASK = inotify.CLOSE_WRITE
_LINKS_MASK = inotify.CREATE | inotify.MOVED_TO


@dataclass
class Keeper:
    """The disks of the rules, and the words about them."""

    fs: Fs
    config: Config
    watches: inotify.Inotify | None = None
    words: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    busy: bool = False
    # Paths of NVMe multipath may come, without an event.
    has_heads: bool = False
    looked: bool = False
    # The scheduler of each disk at the last look at which its rule was in force.
    _in_force: dict[str, str] = field(default_factory=dict)
    _times: dict[str, list[float]] = field(default_factory=dict)
    _watched: dict[str, int] = field(default_factory=dict)

    def disks(self) -> list[tuple[Disk, DeviceRule]]:
        """Each disk with the first rule that names it."""
        found: dict[str, tuple[Disk, DeviceRule]] = {}
        for rule in self.config.devices:
            for disk in rule.disks(self.fs):
                found.setdefault(disk.name, (disk, rule))
        return list(found.values())

    def keep(self, only: Disk | None = None) -> None:
        """Brings all disks, or the disk @only, to their rules.

        The events of the own writes are dropped, and then all disks are looked at once more, so
        that a switch by another program in between is not missed.
        """
        self.busy = False
        self.looked = True
        self.has_heads = has_heads(self.fs, self.config)
        wanted = None if only is None else {disk.name for disk in paths_or_self(only)}
        failed: set[str] = set()
        tries: Counter[str] = Counter()
        while True:
            pairs = [pair for pair in self.disks() if wanted is None or pair[0].name in wanted]
            if wanted is None:
                here = {disk.name for disk, _ in pairs}
                self._in_force = {key: one for key, one in self._in_force.items() if key in here}
            self._watch([disk for disk, _ in pairs])
            wrote = False
            for disk, rule in pairs:
                if disk.name in failed:
                    continue
                try:
                    wrote = self._keep(disk, rule) or wrote
                except SwitchedError:
                    wrote = True
                except BusyError as error:
                    failed.add(disk.name)
                    self.busy = True
                    self.notes.append(f"{error}; tried again later")
                except (Failure, UsageError) as error:
                    wrote = True
                    tries[disk.name] += 1
                    if tries[disk.name] >= TRIES:
                        failed.add(disk.name)
                        self.errors.append(f"{rule.place}: {error}")
            if not wrote or self.fs.dry_run:
                return
            self.handle()

    def _keep(self, disk: Disk, rule: DeviceRule) -> bool:
        """Brings one disk to its rule; true if that needed a write."""
        chosen = chosen_by_hand.chosen(disk)
        if chosen not in (None, rule.scheduler):
            self.notes.append(
                f"{disk.name}: {chosen} was chosen by hand: `mqfair enable {disk.name} --scheduler"
                f" {rule.scheduler}` returns it to {rule.place}"
            )
            return False
        if _missing(disk, rule) is None:
            self._in_force[disk.name] = rule.scheduler
            return False
        with locked(disk, patient=False):
            plan = _missing(disk, rule)
            if plan is None:
                return False
            selector = disk.require_selector()
            before = self._in_force.pop(disk.name, None)
            if selector.active != rule.scheduler == before:
                self.words.append(
                    f"warning: {disk.name} lost {rule.scheduler} to {selector.active}:"
                    f" `mqfair check {disk.name}` names rivals"
                )
            if selector.active != rule.scheduler and self._fought(disk):
                self.busy = True
                raise Failure(
                    f"{disk.name} was switched away from {rule.scheduler} {SWITCHES_MOST} times in"
                    f" {WITHIN_S:.0f} s: `mqfair check {disk.name}` names the rival"
                )
            enabler = Enabler(disk, plan)
            enabler.run()
        self._in_force[disk.name] = rule.scheduler
        was = f" (was {selector.active})" if selector.active != rule.scheduler else ""
        values = "".join(f", {name} {value}" for name, value in plan.tunables.items())
        self.words.append(f"{disk.name}: {rule.scheduler}{was}{values} ({rule.place})")
        return True

    def _fought(self, disk: Disk) -> bool:
        """Whether this would be one switch too many; counts it if not."""
        now = time.monotonic()
        times = [one for one in self._times.get(disk.name, []) if now - one < WITHIN_S]
        self._times[disk.name] = times
        if len(times) >= SWITCHES_MOST:
            return True
        times.append(now)
        return False

    # -- events

    def _watch(self, disks: list[Disk]) -> None:
        """Watches the queues of the disks, and the folders in which links to disks appear. A watch
        of a queue that is gone is ended: the kernel does not end it."""
        if self.watches is None:
            return
        masks = {f"{disk.path}/queue": _QUEUE_MASK for disk in disks}
        masks |= dict.fromkeys(folders(self.config), _LINKS_MASK)
        for path in [path for path in self._watched if path not in masks]:
            self.watches.remove(self._watched.pop(path))
        for path, mask in masks.items():
            with contextlib.suppress(OSError):
                self._watched[path] = self.watches.add(str(self.fs.host_path(path)), mask)

    def handle(self) -> bool:
        """Reads the events; true if one of them may concern a rule."""
        if self.watches is None:
            return False
        found = False
        for event in self.watches.read():
            links = event.mask & (_LINKS_MASK | inotify.OVERFLOW)
            found = found or bool(links) or event.name in ("scheduler", "nr_requests")
        return found

    def all_words(self) -> tuple[list[str], ...]:
        return self.words, self.notes, self.errors


def _missing(disk: Disk, rule: DeviceRule) -> Plan | None:
    """The settings of @rule that are not in force; None if all are."""
    plan = Plan(rule.scheduler, rule.tunables, rule.nr_requests)
    if disk.require_selector().active != rule.scheduler:
        return plan
    present = disk.tunables()
    missing = {
        name: value
        for name, value in rule.tunables.items()
        if name not in present or not keeps(setting(present[name], value), value)
    }
    tags = rule.nr_requests if rule.nr_requests not in (None, disk.nr_requests()) else None
    return replace(plan, tunables=missing, nr_requests=tags) if missing or tags else None
