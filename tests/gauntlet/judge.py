# SPDX-License-Identifier: GPL-2.0
"""Judges the runs of a scene: what each tenant is due, and which promise a scheduler breaks.

*met* is the part of its due that a tenant got, in the currency that flatters the scheduler: bytes
or drive time. A tenant is robbed only if both say so.

A tenant that waits for each answer gets less beside others than alone, under any scheduler. Shares
by weight also change the mix of requests, and so the work that the drive can do. So the bounds of
P2 to P6 are what is possible: the figures of the best of some fixed depths, in the order of start
tags and without isolation. The best of nine runs is so by chance in part, and the same depth with
other seeds does less. So a bound is the weakest of some runs of that depth.

A promise is judged in a *span* of the run: the measured time, or for P5 a time after a change.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

from due import Node, due
from play import Figures, Player
from scene import Load, Scene, Tenant

# The depth of a load that saturates a drive with the mix of a tenant.
SATURATING = 1024
# The fixed depths of which the best is what is possible.
DEPTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512)

# A fault is held against the best depth with so many other seeds.
OTHER_SEEDS = 2

P1_ERROR = 0.02
P2_LEAST = 0.8
P3_LOSS = 0.06 + 0.02
P3_IDLE_LOSS = 0.01
# A scheduler may be this much worse than the best fixed depth.
WORSE = 1.05
# A tenant that needs this part of the drive's time needs little.
P4_LITTLE = 0.05
# A total that differs by this part is the same.
P4_SAME = 0.01
# The mean of so many latencies is compared, and the 99th percentile of so many.
P4_MEANS = 100
P4_TAILS = 1000
# sim-run gives a percentile in steps of a sixteenth (sim/stats.h).
P4_STEP = 1 + 1 / 16
# Latencies after which the shares are right again, and after which the others have all of the rest.
P5_COME = 20
P5_LEFT = 100
P5_MOST_MS = 2000
# The span of P5 is this part of the run, or the rest of it.
P5_PART = 8
P6_GAIN = 0.05
P7_TICKS = 2000
# Thousandths of the time in which a tenant with a backlog has a request waiting: all. While it has
# none, the others may take the whole window.
BACKLOGGED = 1000


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
class Span:
    """From @first to @end in milliseconds since the start of the run."""

    first: int
    end: int

    @property
    def ms(self) -> int:
        return self.end - self.first


@dataclasses.dataclass(frozen=True)
class Known:
    """The offer of a scene in @span, under no scheduler, by tenant. @price is drive time per byte,
    @budget the drive time in use per second. The others are bytes per second. @alone are those of a
    tenant alone, and @shared those under none. @dues are those that a tenant is due, with bytes as
    currency and with drive time. @later is the same for the span of P5."""

    span: Span
    price: dict[str, float]
    alone: dict[str, float]
    shared: dict[str, float]
    budget: float
    dues: tuple[dict[str, float], dict[str, float]]
    later: Known | None = None

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


def measured(scene: Scene) -> Span:
    return Span(scene.warm_ms, scene.warm_ms + scene.run_ms)


def rates_of(scene: Scene, figures: Figures, span: Span) -> dict[str, float]:
    """The bytes per second of each tenant in @span."""
    if span == measured(scene):
        return {t.name: figures["flows"][t.name]["bytes_per_s"] for t in scene.loaded}
    steps = slice(span.first // scene.step_ms, span.end // scene.step_ms)
    return {
        t.name: sum(one["bytes"] for one in figures["flows"][t.name]["series"][steps])
        * 1000
        / span.ms
        for t in scene.loaded
    }


def after_change(scene: Scene, figures: Figures) -> Span | None:
    """The span of P5: it begins when the promised latencies are over. A latency is the mean of all
    requests under none, with these @figures. None if the run ends too early."""
    if not scene.change:
        return None
    flows = figures["flows"].values()
    ios = sum(flow["ios"] for flow in flows)
    mean_ms = sum(flow["ios"] * flow["mean_ns"] for flow in flows) / max(1, ios) / 1e6
    wait_ms = P5_LEFT * mean_ms if scene.change.leaves else min(P5_COME * mean_ms, P5_MOST_MS)
    steps = math.ceil((scene.change.at_ms + wait_ms) / scene.step_ms)
    end = measured(scene).end
    first = steps * scene.step_ms
    length = math.ceil(end / P5_PART / scene.step_ms) * scene.step_ms
    return Span(first, first + length) if first + length <= end else None


def saturating(scene: Scene, tenant: Tenant) -> Tenant:
    """@tenant with its mix of requests, and as many of them as the drive takes."""
    calm = dict.fromkeys(
        ("queue", "move_ms", "think_us", "pace_ns", "arrivals", "on_ms", "off_ms", "burst_ios",
         "start_ms", "stop_ms")
    )  # fmt: skip
    return tenant.with_words(**calm, queues=scene.queues, depth=SATURATING)


def know(scene: Scene, player: Player) -> Known:
    """Plays none, each kind of tenant alone, and each kind at saturation."""
    none = player.play(scene.play_text("none"))
    span = after_change(scene, none)
    later = _know(scene, player, none, span) if span else None
    return dataclasses.replace(_know(scene, player, none, measured(scene)), later=later)


def _know(scene: Scene, player: Player, none: Figures, span: Span) -> Known:
    shared = rates_of(scene, none, span)
    alone: dict[Load, float] = {}
    price: dict[Load, float] = {}
    for tenant in scene.loaded:
        if tenant.kind in alone:
            continue
        found = player.play(scene.play_text("none", only=[tenant.name]))
        alone[tenant.kind] = rates_of(_only(scene, tenant), found, span)[tenant.name]
        full = scene.replace_tenant(saturating(scene, tenant))
        most = player.play(full.play_text("none", only=[tenant.name]))
        rate = max(most["flows"][tenant.name]["bytes_per_s"], alone[tenant.kind])
        price[tenant.kind] = 1 / rate if rate else 0.0
    prices = {t.name: price[t.kind] for t in scene.loaded}
    demands = {t.name: alone[t.kind] for t in scene.loaded}
    budget = sum(shared[name] * prices[name] for name in prices)
    return Known(span, prices, demands, shared, budget, dues(scene, demands, prices, budget))


def _only(scene: Scene, tenant: Tenant) -> Scene:
    return dataclasses.replace(scene, tenants=(tenant,))


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
        rounded = got[name] + granule(tenant) * 1000 / known.span.ms
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
    got = rates_of(scene, figures, known.span)
    total = known.drive_time(got) / known.budget if known.budget else 1.0
    return Outcome(figures, got, met_of(scene, known, got), total)


class Possible:
    """The runs of the fixed depths, played when they are asked for first. A run is named by its
    depth."""

    def __init__(self, scene: Scene, known: Known, player: Player) -> None:
        self._scene = scene
        self._known = known
        self._player = player

    @functools.cached_property
    def runs(self) -> dict[int, Outcome]:
        return {depth: self._play(depth, 0) for depth in depths(self._scene)}

    def _play(self, depth: int, other: int) -> Outcome:
        scene = dataclasses.replace(self._scene, seed=self._scene.seed + other)
        text = scene.play_text("mqfq", [f"set depth {depth}", "set isolation 0"])
        return outcome(scene, self._known, self._player.play(text))

    def all_of(self, depth: int) -> list[Outcome]:
        """The run of @depth, and those with other seeds."""
        others = [self._play(depth, other) for other in range(1, OTHER_SEEDS + 1)]
        return [self.runs[depth], *others]

    @property
    def fullest(self) -> int:
        """The depth with the largest total."""
        return max(self.runs, key=lambda depth: self.runs[depth].total)

    @property
    def total(self) -> float:
        return min(1.0, self.runs[self.fullest].total)

    @property
    def best(self) -> int:
        """The depth with the best worst tenant of those that lose no more of the largest total than
        the promise allows."""
        least = self.total * (1 - P3_LOSS)
        allowed = [depth for depth, run in self.runs.items() if run.total >= least]
        return max(allowed, key=lambda depth: self.runs[depth].worst)


def depths(scene: Scene) -> list[int]:
    """The fixed depths up to the first that bounds nothing: the driver has no more tags, or the
    tenants no more requests."""
    host = dict(scene.host)
    tags = host.get("tags", 0) * host.get("tag_maps", scene.queues)
    most_bytes = host.get("most_bytes", 0)
    requests = 0
    for tenant in scene.loaded:
        parts = -(-granule(tenant) // 2 // most_bytes) if most_bytes else 1
        requests += int(tenant.words["depth"]) * parts
    most = min(tags or requests, requests)
    return [depth for depth in DEPTHS if depth < 2 * most]


def judge(
    scene: Scene, known: Known, scheduler: str, player: Player, settings: Sequence[str] = ()
) -> Verdict:
    figures = player.play(scene.play_text(scheduler, settings))
    run = outcome(scene, known, figures)
    can = Possible(scene, known, player)
    faults = [*backlogged(scene, figures), *ticks(figures), *slowed(scene, known, run, can)]
    if _in_doubt(run):
        faults += robbed(run, can) + gains(known, run, can) + lost(scene, known, run, can)
    if known.later:
        faults += adapts(scene, known.later, figures, player)
    return Verdict(scheduler, run.met, run.total, tuple(faults))


def _in_doubt(run: Outcome) -> bool:
    return run.worst < P2_LEAST or run.total < 1 - P3_IDLE_LOSS


def robbed(run: Outcome, can: Possible) -> list[Fault]:
    """P2: no tenant misses its due by more than the worst one of the best fixed depth."""
    bound = min(P2_LEAST, can.runs[can.best].worst / WORSE)
    if run.worst < bound:
        bound = min(bound, *(other.worst / WORSE for other in can.all_of(can.best)))
    return [Fault("P2", name, part, bound) for name, part in run.met.items() if part < bound]


def lost(scene: Scene, known: Known, run: Outcome, can: Possible) -> list[Fault]:
    """P3: the drive is in use as under none, or as under the fixed depth that uses it most, less
    the price of isolation. There is no price if the worst tenant does not gain."""
    none_worst = min(met_of(scene, known, known.shared).values())
    gained = run.worst > none_worst * WORSE
    kept = 1 - (P3_LOSS if gained else P3_IDLE_LOSS)
    bound = can.total * kept
    if run.total < bound:
        bound = min(bound, *(other.total * kept for other in can.all_of(can.fullest)))
    return [Fault("P3", "", run.total, bound)] if run.total < bound else []


def slowed(scene: Scene, known: Known, run: Outcome, can: Possible) -> list[Fault]:
    """P4: a tenant that needs little waits no longer than under the best fixed depth with the same
    total, neither on average nor in the 99th percentile."""
    small = [t.name for t in scene.loaded if needs_little(known, t.name, run)]
    if not small:
        return []
    least = min(run.total, can.runs[can.fullest].total) * (1 - P4_SAME)
    best = min(
        (depth for depth, other in can.runs.items() if other.total >= least),
        key=lambda depth: max(_latency(can.runs[depth], name, "mean_ns") for name in small),
    )
    faults = []
    for name in small:
        found = [("mean_ns", WORSE)]
        if run.figures["flows"][name]["ios"] >= P4_TAILS:
            found.append(("p99_ns", P4_STEP))
        for figure, factor in found:
            mine = _latency(run, name, figure)
            slower = mine / max(1, _latency(can.runs[best], name, figure))
            if slower > factor:
                slower = min(mine / max(1, _latency(o, name, figure)) for o in can.all_of(best))
            if slower > factor:
                faults.append(Fault("P4", name, slower, factor))
                break
    return faults


def needs_little(known: Known, name: str, run: Outcome) -> bool:
    """Is the tenant due all it asks for, and is this a small part of the drive's time?"""
    demand = known.alone[name]
    return (
        0 < demand * known.price[name] <= P4_LITTLE * known.budget
        and min(parts[name] for parts in known.dues) >= demand * (1 - P4_SAME)
        and run.figures["flows"][name]["ios"] >= P4_MEANS
    )


def _latency(run: Outcome, name: str, figure: str) -> float:
    """Infinite if too few requests were done: a tenant that is starved has no short latency."""
    flow = run.figures["flows"][name]
    return flow[figure] if flow["ios"] >= P4_MEANS else math.inf


def adapts(scene: Scene, later: Known, figures: Figures, player: Player) -> list[Fault]:
    """P5: soon after a change P2 holds. A little later than a tenant has left, the others have all
    of its part."""
    run = outcome(scene, later, figures)
    if not _in_doubt(run):
        return []
    can = Possible(scene, later, player)
    left = scene.change is not None and scene.change.leaves
    found = lost(scene, later, run, can) if left else robbed(run, can)
    return [dataclasses.replace(fault, promise="P5") for fault in found]


def gains(known: Known, run: Outcome, can: Possible) -> list[Fault]:
    """P6: no tenant takes 5 % of the drive beyond its due, and beyond what the best depth gives."""
    faults = []
    for name, rate in run.got.items():
        wanted = max(can.runs[can.best].got[name], *(parts[name] for parts in known.dues))
        extra = (rate - wanted) * known.price[name] / known.budget
        if extra > P6_GAIN:
            wanted = max(wanted, *(other.got[name] for other in can.all_of(can.best)))
            extra = (rate - wanted) * known.price[name] / known.budget
        if extra > P6_GAIN:
            faults.append(Fault("P6", name, extra, P6_GAIN))
    return faults


def backlogged(scene: Scene, figures: Figures) -> list[Fault]:
    """P1: among siblings that all kept a backlog, the costs that were charged are by weight.

    A request is not divided. So two tenants may differ by one request of each, per unit of its
    weight (Goyal et al., SFQ, 1996, theorem 1). A second one is for the ends of the measured time.
    The sum over the siblings bounds how far a tenant is from all of them. Urgent requests go before
    their turn, and other tenants may pay for them. So a tenant with urgent requests is not judged.
    """
    flows = figures["flows"]
    keep = {
        t.name
        for t in scene.loaded
        if flows[t.name]["backlog_permille"] >= BACKLOGGED and "urgent" not in t.words
    }
    faults = []
    for parent in {t.parent for t in scene.loaded}:
        siblings = [t for t in scene.loaded if t.parent == parent and t.name in keep]
        cost = sum(flows[t.name]["cost"] for t in siblings)
        weight = sum(t.weight for t in siblings)
        if not cost:
            continue  # Their group is due less than a request, or P2 is broken.
        two = {t.name: _two_requests(t, flows[t.name]) for t in siblings}
        two_of_all = sum(two.values())
        for t in siblings:
            error = abs(flows[t.name]["cost"] * weight / (cost * t.weight) - 1)
            bound = P1_ERROR + (two[t.name] * weight / t.weight + two_of_all) / cost
            if error > bound:
                faults.append(Fault("P1", t.name, error, bound))
    return faults


def _two_requests(tenant: Tenant, flow: dict[str, Any]) -> float:
    """What two requests of @tenant cost: their bytes, or more where a scheduler charges more."""
    return max(granule(tenant), 2 * flow["cost"] / max(1, flow["ios"]))


def granule(tenant: Tenant) -> int:
    """Bytes by which a rate may differ at the ends of the measured time: two requests."""
    words = tenant.words
    if "sizes" in words:
        return 2 * max(int(pair.split("/")[0]) for pair in str(words["sizes"]).split(","))
    return 2 * max(4096, int(str(words["bytes"]).rpartition("-")[2]))


def ticks(figures: Figures) -> list[Fault]:
    rate = figures["totals"]["ticks_per_s"]
    return [Fault("P7", "", rate, P7_TICKS)] if rate > P7_TICKS else []
