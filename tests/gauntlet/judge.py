# SPDX-License-Identifier: GPL-2.0
"""Judges the runs of a scene: what each tenant is due, and which promise a scheduler breaks.

*met* is the part of its due that a tenant got, in the currency that flatters the scheduler: bytes
or drive time. A tenant is robbed only if both say so.

A tenant that waits for each answer gets less beside others than alone, under any scheduler. Shares
by weight also change the mix of requests, and so what the drive can do. So the bounds of P2 and P3
are what is possible: the worst tenant's part and the total under the best of some fixed depths, in
the order of start tags and without isolation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from due import Node, due
from play import Figures, Player
from scene import Load, Scene, Tenant

# The depth of a load that saturates a drive with the mix of a tenant.
SATURATING = 1024
# The fixed depths of which the best is what is possible.
DEPTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512)

P1_ERROR = 0.02
P2_LEAST = 0.8
P3_LOSS = 0.06 + 0.02
P3_IDLE_LOSS = 0.01
# A scheduler may be this much worse than the best fixed depth.
P4_WORSE = 1.05
P6_GAIN = 0.05
P7_TICKS = 2000
# A tenant kept a backlog if it had a request waiting for this part of the time.
BACKLOGGED = 990


@dataclasses.dataclass(frozen=True)
class Fault:
    """Promise @promise of the scheduler is broken for @tenant: @value where @bound is due."""

    promise: str
    tenant: str
    value: float
    bound: float

    @property
    def far(self) -> bool:
        """The promise is missed by more than twice its bound."""
        if self.promise in ("P2", "P3"):
            return 1 - self.value > 2 * (1 - self.bound)
        return self.value > 2 * self.bound


@dataclasses.dataclass(frozen=True)
class Known:
    """What a scene offers, under no scheduler, by tenant. @price is drive time per byte, @budget
    the drive time in use per second. @shared and @dues are bytes per second: what each tenant gets
    under none, and what it is due with bytes as currency and with drive time."""

    price: dict[str, float]
    shared: dict[str, float]
    budget: float
    dues: tuple[dict[str, float], dict[str, float]]

    def drive_time(self, rates: dict[str, float]) -> float:
        return sum(rates[name] * price for name, price in self.price.items())


@dataclasses.dataclass(frozen=True)
class Verdict:
    scheduler: str
    met: dict[str, float]
    total: float
    faults: tuple[Fault, ...]

    @property
    def worst(self) -> float:
        return min(self.met.values())


def rates_of(scene: Scene, figures: Figures) -> dict[str, float]:
    return {t.name: figures["flows"][t.name]["bytes_per_s"] for t in scene.loaded}


def saturating(scene: Scene, tenant: Tenant) -> Tenant:
    """@tenant with its mix of requests, and as many of them as the drive takes."""
    calm = dict.fromkeys(
        ("queue", "move_ms", "think_us", "pace_ns", "arrivals", "on_ms", "off_ms", "burst_ios",
         "start_ms", "stop_ms")
    )  # fmt: skip
    return tenant.with_words(**calm, queues=scene.queues, depth=SATURATING)


def know(scene: Scene, player: Player) -> Known:
    """Plays none, each kind of tenant alone, and each kind at saturation."""
    shared = rates_of(scene, player.play(scene.play_text("none")))
    alone: dict[Load, float] = {}
    price: dict[Load, float] = {}
    for tenant in scene.loaded:
        if tenant.kind in alone:
            continue
        found = player.play(scene.play_text("none", only=[tenant.name]))
        alone[tenant.kind] = found["flows"][tenant.name]["bytes_per_s"]
        full = scene.replace_tenant(saturating(scene, tenant))
        most = player.play(full.play_text("none", only=[tenant.name]))
        rate = max(most["flows"][tenant.name]["bytes_per_s"], alone[tenant.kind])
        price[tenant.kind] = 1 / rate if rate else 0.0
    prices = {t.name: price[t.kind] for t in scene.loaded}
    demands = {t.name: alone[t.kind] for t in scene.loaded}
    budget = sum(shared[name] * prices[name] for name in prices)
    return Known(prices, shared, budget, dues(scene, demands, prices, budget))


def dues(
    scene: Scene, demands: dict[str, float], prices: dict[str, float], budget: float
) -> tuple[dict[str, float], dict[str, float]]:
    """The bytes per second that each tenant is due, with bytes as currency and with drive time."""
    in_bytes, in_time = [], []
    for t in scene.present:
        demand, price = demands.get(t.name, 0.0), prices.get(t.name, 0.0)
        in_bytes.append(Node(t.name, t.weight, t.parent, demand, price))
        in_time.append(Node(t.name, t.weight, t.parent, demand * price))
    times = due(in_time, budget)
    return due(in_bytes, budget), {
        name: time / prices[name] if prices[name] else 0.0 for name, time in times.items()
    }


def met_of(scene: Scene, known: Known, got: dict[str, float]) -> dict[str, float]:
    """The part of its due that each tenant got. One request more or less is no difference."""
    found = {}
    for tenant in scene.loaded:
        name = tenant.name
        wanted = min(parts[name] for parts in known.dues)
        rounded = got[name] + granule(tenant) * 1000 / scene.run_ms
        found[name] = max(got[name], min(wanted, rounded)) / wanted if wanted else 1.0
    return found


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One run, beside what is known of its scene."""

    figures: Figures
    got: dict[str, float]
    met: dict[str, float]
    total: float

    @property
    def worst(self) -> float:
        return min(self.met.values())


def outcome(scene: Scene, known: Known, figures: Figures) -> Outcome:
    got = rates_of(scene, figures)
    total = known.drive_time(got) / known.budget if known.budget else 1.0
    return Outcome(figures, got, met_of(scene, known, got), total)


@dataclasses.dataclass(frozen=True)
class Possible:
    """The runs of the fixed depths: the largest total, and the run with the best worst tenant of
    those that lose no more of it than the promise allows."""

    total: float
    best: Outcome


def possible(scene: Scene, known: Known, player: Player) -> Possible:
    runs = []
    for depth in DEPTHS:
        text = scene.play_text("mqfq", [f"set depth {depth}", "set isolation 0"])
        runs.append(outcome(scene, known, player.play(text)))
    total = min(1.0, max(run.total for run in runs))
    allowed = [run for run in runs if run.total >= total * (1 - P3_LOSS)]
    return Possible(total, max(allowed, key=lambda run: run.worst))


def judge(
    scene: Scene, known: Known, scheduler: str, player: Player, settings: Sequence[str] = ()
) -> Verdict:
    run = outcome(scene, known, player.play(scene.play_text(scheduler, settings)))
    faults = [*backlogged(scene, run.figures), *ticks(run.figures)]
    if run.worst < P2_LEAST or run.total < 1 - P3_IDLE_LOSS:
        can = possible(scene, known, player)
        faults += robbed(run, can) + gains(known, run, can) + lost(scene, known, run, can)
    return Verdict(scheduler, run.met, run.total, tuple(faults))


def robbed(run: Outcome, can: Possible) -> list[Fault]:
    """P2: no tenant misses its due by more than the worst one of the best fixed depth."""
    bound = min(P2_LEAST, can.best.worst / P4_WORSE)
    return [Fault("P2", name, part, bound) for name, part in run.met.items() if part < bound]


def lost(scene: Scene, known: Known, run: Outcome, can: Possible) -> list[Fault]:
    """P3: the drive is in use as under none, or as under the fixed depth that uses it most, less
    the price of isolation. There is no price if the worst tenant does not gain."""
    none_worst = min(met_of(scene, known, known.shared).values())
    gained = run.worst > none_worst * P4_WORSE
    bound = can.total * (1 - (P3_LOSS if gained else P3_IDLE_LOSS))
    return [Fault("P3", "", run.total, bound)] if run.total < bound else []


def gains(known: Known, run: Outcome, can: Possible) -> list[Fault]:
    """P6: no tenant takes 5 % of the drive beyond its due, and beyond what the best depth gives."""
    faults = []
    for name, rate in run.got.items():
        wanted = max(can.best.got[name], *(parts[name] for parts in known.dues))
        extra = (rate - wanted) * known.price[name] / known.budget
        if extra > P6_GAIN:
            faults.append(Fault("P6", name, extra, P6_GAIN))
    return faults


def backlogged(scene: Scene, figures: Figures) -> list[Fault]:
    """P1: among siblings that all kept a backlog, the costs that were charged are by weight."""
    flows = figures["flows"]
    keep = {t.name for t in scene.loaded if flows[t.name]["backlog_permille"] >= BACKLOGGED}
    faults = []
    for parent in {t.parent for t in scene.loaded}:
        siblings = [t for t in scene.loaded if t.parent == parent and t.name in keep]
        cost = sum(flows[t.name]["cost"] for t in siblings)
        weight = sum(t.weight for t in siblings)
        for t in siblings:
            error = abs(flows[t.name]["cost"] * weight / (cost * t.weight) - 1) if cost else 1.0
            # One request is one request, however small the share.
            least = granule(t) * weight / (cost * t.weight) if cost else 0.0
            if error > P1_ERROR + least:
                faults.append(Fault("P1", t.name, error, P1_ERROR + least))
    return faults


def granule(tenant: Tenant) -> int:
    """Bytes by which a rate may differ at the ends of the measured time: two requests."""
    words = tenant.words
    if "sizes" in words:
        return 2 * max(int(pair.split("/")[0]) for pair in str(words["sizes"]).split(","))
    return 2 * max(4096, int(str(words["bytes"]).rpartition("-")[2]))


def ticks(figures: Figures) -> list[Fault]:
    rate = figures["totals"]["ticks_per_s"]
    return [Fault("P7", "", rate, P7_TICKS)] if rate > P7_TICKS else []
