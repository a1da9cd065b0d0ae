# SPDX-License-Identifier: GPL-2.0
"""Cgroups that starve: requests of theirs wait for the scheduler, and none was dispatched for a
second.

The figures are those of sched/flows in debugfs: one file for each disk. io.stat does not tell them,
because it counts the time of a wait when the wait ends. One look cannot tell a cgroup that starves
from a busy one, so two looks follow each other, and then a pause.
"""

import time
from dataclasses import dataclass, field

from mqfair.machine import kmod
from mqfair.machine.blockdev import all_disks
from mqfair.machine.fs import Fs
from mqfair.watch.sample import DEBUGFS

STARVED_S = 1.0
# The second look comes after this time.
CONFIRM_S = 1.1
EVERY_S = 5.0
# A look takes at most this part of a processor, unless the pause would be longer than PAUSE_MOST_S.
# In a guest of a busy host the time of a look has that of the host's other work in it.
CPU_MOST = 0.01
PAUSE_MOST_S = 30.0

# Disk and path of a cgroup.
Key = tuple[str, str]


@dataclass(frozen=True)
class Waits:
    """A cgroup of which requests wait: their number, and the number of those dispatched so far."""

    queued: int
    dispatched: int


def parse(text: str) -> dict[str, Waits]:
    """The cgroups in sched/flows of which requests wait."""
    found = {}
    for line in text.splitlines():
        # Most cgroups wait for nothing, and there may be thousands.
        if " queued=0 " in line:
            continue
        path, _, figures = line.partition(" weight=")
        pairs = dict(word.split("=", 1) for word in figures.split() if "=" in word)
        queued = int(pairs.get("queued", 0))
        if queued > 0:
            found[path.lstrip("/") or "/"] = Waits(queued, int(pairs.get("ios", 0)))
    return found


@dataclass
class Starved:
    """Looks at all disks with an mqfair scheduler. @at is the time of the next look, in seconds of
    the monotonic clock; None while the module is not loaded."""

    fs: Fs
    at: float | None = None
    # The dispatched requests of a cgroup that waits, and the time at which they were seen first.
    _since: dict[Key, tuple[int, float]] = field(default_factory=dict)
    _told: set[Key] = field(default_factory=set)
    _confirms: bool = False

    def start(self) -> None:
        """Begins to look once the module is loaded."""
        if self.at is None and kmod.loaded(self.fs):
            self.at = time.monotonic()

    def look(self) -> list[str]:
        """One look, and its words. Sets the time of the next one."""
        if not kmod.loaded(self.fs):
            self.at = None
            return []
        now, used = time.monotonic(), time.thread_time()
        found = self._waiting()
        lines = self._judged(found, now)
        pause = min(max(EVERY_S, (time.thread_time() - used) / CPU_MOST), PAUSE_MOST_S)
        self._confirms = bool(found) and not self._confirms
        self.at = time.monotonic() + (CONFIRM_S if self._confirms else pause)
        return lines

    def _waiting(self) -> dict[Key, Waits]:
        found: dict[Key, Waits] = {}
        for disk in all_disks(self.fs):
            text = self.fs.file(f"{DEBUGFS}/{disk.name}/sched/flows").read()
            for path, waits in parse((text or b"").decode(errors="replace")).items():
                found[disk.name, path] = waits
        return found

    def _judged(self, found: dict[Key, Waits], now: float) -> list[str]:
        lines = []
        since: dict[Key, tuple[int, float]] = {}
        told: set[Key] = set()
        for key, waits in found.items():
            before = self._since.get(key)
            if before is None or before[0] != waits.dispatched:
                before = (waits.dispatched, now)
            since[key] = before
            seconds = now - before[1]
            if seconds < STARVED_S:
                continue
            told.add(key)
            if key not in self._told:
                disk, path = key
                lines.append(
                    f"warning: {disk}: {path} starves: {waits.queued} of its requests wait, and"
                    f" none was dispatched for {seconds:.1f} s: `mqfair check {disk} {path}`"
                )
        lines += [f"{disk}: {path} starves no more" for disk, path in sorted(self._told - told)]
        self._since, self._told = since, told
        return lines
