# SPDX-License-Identifier: GPL-2.0
"""A scene: a drive, a host, and tenants with weights and loads. It is text that sim-run plays.

The text is that of sim/describe.h. A scene leaves out the scheduler and its tunables, so that every
scheduler plays the same scene.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

Words = dict[str, str | int]
Load = tuple[tuple[str, str | int], ...]


@dataclasses.dataclass(frozen=True)
class Tenant:
    """A cgroup with one load, or a cgroup of others without a load.

    @load has the words of a `load` statement.
    """

    name: str
    weight: int
    parent: str = ""
    load: Load = ()

    @property
    def words(self) -> Words:
        return dict(self.load)

    @property
    def kind(self) -> Load:
        """Its load, on whichever queue. One tenant of a kind tells what each of them gets alone."""
        return tuple((name, value) for name, value in self.load if name != "queue")

    def with_words(self, **changes: str | int | None) -> Tenant:
        """The tenant with changed words; None removes one."""
        words = {**self.words, **changes}
        kept = tuple((name, value) for name, value in words.items() if value is not None)
        return dataclasses.replace(self, load=kept)


@dataclasses.dataclass(frozen=True)
class Change:
    """Tenants come or leave, or the drive changes its speed."""

    at_ms: int
    leaves: bool = False


@dataclasses.dataclass(frozen=True)
class Scene:
    """@host and @drive are statements in the order of the text. Times are milliseconds."""

    drive: tuple[str, ...]
    host: tuple[tuple[str, int], ...]
    tenants: tuple[Tenant, ...]
    actions: tuple[str, ...] = ()
    warm_ms: int = 1000
    run_ms: int = 2000
    seed: int = 1

    @property
    def loaded(self) -> list[Tenant]:
        return [tenant for tenant in self.tenants if tenant.load]

    @property
    def present(self) -> list[Tenant]:
        """The tenants and the groups that have some."""
        kept = self._with_ancestors({t.name for t in self.loaded})
        return [t for t in self.tenants if t.name in kept]

    @property
    def change(self) -> Change | None:
        """The only change of the scene; None if it has none, or several at different times."""
        found = {Change(int(t.words["start_ms"])) for t in self.loaded if "start_ms" in t.words}
        found |= {
            Change(int(t.words["stop_ms"]), leaves=True)
            for t in self.loaded
            if "stop_ms" in t.words
        }
        for words in map(str.split, self.actions):
            stalled_ms = int(words[3]) if words[2] == "stall" else 0
            found.add(Change(int(words[1]) + stalled_ms))
        return found.pop() if len(found) == 1 else None

    @property
    def step_ms(self) -> int:
        """The interval of the series that a scene with a change has: an eightieth of the run."""
        return math.gcd(max(50, self.run_ms // 80), self.warm_ms)

    @property
    def queues(self) -> int:
        return dict(self.host)["queues"]

    def play_text(
        self, scheduler: str, settings: Iterable[str] = (), only: Iterable[str] | None = None
    ) -> str:
        """The description of one run. @settings are lines; with @only, other tenants are absent,
        and so are groups without tenants."""
        wanted = {t.name for t in self.loaded} if only is None else set(only)
        kept = self._with_ancestors(wanted)
        lines = [f"scheduler {scheduler}", *settings, f"seed {self.seed}", "audit end"]
        lines += [f"{name} {value}" for name, value in self.host]
        lines += self.drive
        lines += [f"warm_ms {self.warm_ms}", f"run_ms {self.run_ms}"]
        lines += [_flow(tenant) for tenant in self.tenants if tenant.name in kept]
        lines += [_load(tenant) for tenant in self.loaded if tenant.name in wanted]
        lines += self.actions
        if self.change:
            lines.append(f"series {self.step_ms} whole")
        return "\n".join(lines) + "\n"

    def _with_ancestors(self, names: set[str]) -> set[str]:
        parents = {tenant.name: tenant.parent for tenant in self.tenants}
        kept = set()
        for name in names:
            at = name
            while at:
                kept.add(at)
                at = parents[at]
        return kept

    def without(self, name: str) -> Scene:
        """The scene without the tenant @name and all below it."""
        gone = {name}
        for tenant in self.tenants:
            if tenant.parent in gone:
                gone.add(tenant.name)
        kept = tuple(tenant for tenant in self.tenants if tenant.name not in gone)
        return dataclasses.replace(self, tenants=kept)

    def replace_tenant(self, tenant: Tenant) -> Scene:
        changed = tuple(tenant if t.name == tenant.name else t for t in self.tenants)
        return dataclasses.replace(self, tenants=changed)


def _flow(tenant: Tenant) -> str:
    parent = f" parent {tenant.parent}" if tenant.parent else ""
    return f"flow {tenant.name} weight {tenant.weight}{parent}"


def _load(tenant: Tenant) -> str:
    return f"load {tenant.name} " + " ".join(f"{name} {value}" for name, value in tenant.load)


# The statements of a host. The statements of a drive are all that parse() does not name.
HOST = (
    "queues", "sockets", "tags", "tag_maps", "sched_tags", "most_bytes", "wake_ns", "submit_ns",
    "complete_ns", "fetch",
)  # fmt: skip
_OF_A_RUN = ("scheduler", "set", "audit", "series")


def parse(text: str) -> Scene:
    """The scene of a description of a run. The scheduler and its tunables are left out."""
    drive, actions = [], []
    tenants: dict[str, Tenant] = {}
    numbers = {"queues": 1}
    for line in (line.partition("#")[0].strip() for line in text.splitlines()):
        name, *words = line.split() or [""]
        if name == "flow":
            values = dict(zip(words[1::2], words[2::2], strict=True))
            weight, parent = int(values["weight"]), values.get("parent", "")
            tenants[words[0]] = Tenant(words[0], weight, parent)
        elif name == "load":
            pairs = zip(words[1::2], words[2::2], strict=True)
            load = tuple((word, int(v) if v.isdecimal() else v) for word, v in pairs)
            tenants[words[0]] = dataclasses.replace(tenants[words[0]], load=load)
        elif name == "at":
            actions.append(line)
        elif name in (*HOST, "warm_ms", "run_ms", "seed"):
            numbers[name] = int(words[0])
        elif name and name not in _OF_A_RUN:
            drive.append(line)
    host = tuple((name, numbers.pop(name)) for name in HOST if name in numbers)
    return Scene(tuple(drive), host, tuple(tenants.values()), tuple(actions), **numbers)
