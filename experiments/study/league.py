# SPDX-License-Identifier: GPL-2.0
"""The league table: every scheduler in five scenes on two drives, on a host with prices."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.markdown import lines
from experiments.study.scene import (
    BURST_MS,
    BURSTS,
    DRIVES,
    LIGHT,
    SIZES,
    WEIGHTS,
    WRITES,
    Drive,
    Figures,
    Interval,
    Player,
    Scene,
    interval,
)
from mqfair.bench.simulated.drive import FAST_REQUEST_NS
from mqfair.bench.simulated.prices import PRICES
from mqfair.bench.variant import IOCOST, NONE, THROTTLE
from mqfair.schedulers import SCHEDULERS

DEADLINE, KYBER, BFQ, SFQ, FLASHFQ = "mq-deadline", "kyber", "bwf2q", "sfq", "flashfq"
# SFQ(D) with its default depth and with twice that, the first depth of mqfq's slots.
DEEP = f"{SFQ}:depth=128"
# mqfq at a price near that of iocost, which goes on at 95 % of the clock.
DEAR = "mqfq:isolation=20"
# Targets of 250 us for weight 1000 and of 2.5 ms for 100. An idle drive takes 60 to 90 us.
IOLATENCY = "iolatency:target_us=2500"
LABELS = (
    NONE,
    DEADLINE,
    KYBER,
    BFQ,
    IOCOST,
    IOLATENCY,
    THROTTLE,
    SFQ,
    DEEP,
    FLASHFQ,
    *SCHEDULERS,
    DEAR,
)
# Of the two drives.
SEEDS = {"980pro": 5, "p4500": 3}
# The returning tenant has its share when it had this part of its due in each ms of a window.
NEAR, WINDOW_MS = 0.9, 5


@dataclass(frozen=True)
class Row:
    """The figures of one scheduler on one drive; a total is relative to that of `none`."""

    label: str
    worst: dict[str, Interval]
    total: dict[str, Interval]
    p99_us: Interval
    returns_ms: Interval | None


def returns_ms(found: Figures, scene: Scene) -> float | None:
    """The mean time from a return of the subject until it has its share; None if it has it in less
    than half of its bursts. The warm-up ends with a pause, so the series begins with a burst."""
    subject = scene.tenants[0]
    period = 2 * BURST_MS
    own = found.flows[subject.name].series
    every = [sum(step) for step in zip(*(one.series for one in found.flows.values()), strict=True)]
    starts = range(0, len(own), period)
    times = []
    for start in starts:
        for at in range(start, start + BURST_MS - WINDOW_MS + 1):
            mine, all_bytes = sum(own[at : at + WINDOW_MS]), sum(every[at : at + WINDOW_MS])
            if mine >= NEAR * scene.due(subject.name) * all_bytes > 0:
                times.append(at - start)
                break
    return sum(times) / len(times) if len(times) * 2 > len(starts) else None


def row(player: Player, label: str, where: Drive) -> Row:
    seeds = SEEDS[where.name]
    worst, total = {}, {}
    for scene in (WEIGHTS, SIZES, WRITES, LIGHT, BURSTS):
        plain = player.seeds(NONE, scene, where, seeds)
        found = player.seeds(label, scene, where, seeds)
        worst[scene.name] = interval([one.worst(scene) for one in found])
        total[scene.name] = interval(
            [one.bytes_per_s / base.bytes_per_s for one, base in zip(found, plain, strict=True)]
        )
    reader = LIGHT.tenants[0].name
    light = player.seeds(label, LIGHT, where, seeds)
    returns = [returns_ms(one, BURSTS) for one in player.seeds(label, BURSTS, where, seeds)]
    known = [one for one in returns if one is not None]
    return Row(
        label,
        worst,
        total,
        interval([one.flows[reader].p99_ns / 1000 for one in light]),
        interval(known) if len(known) == len(returns) else None,
    )


def rows(player: Player, where: Drive) -> list[Row]:
    return [row(player, label, where) for label in LABELS]


HEAD = (
    "scheduler",
    "weights: part of due",
    "total",
    "sizes: part of due",
    "total",
    "light: p99, µs",
    "total",
    "bursts: ms",
    "total",
    "writes: part of due",
    "total",
)


def table(found: Sequence[Row]) -> str:
    return lines(
        HEAD,
        [
            [
                f"`{one.label}`",
                one.worst["weights"].text(2),
                one.total["weights"].text(2),
                one.worst["sizes"].text(2),
                one.total["sizes"].text(2),
                one.p99_us.text(0),
                one.total["light"].text(2),
                one.returns_ms.text(0) if one.returns_ms else "never",
                one.total["bursts"].text(2),
                one.worst["writes"].text(2),
                one.total["writes"].text(2),
            ]
            for one in found
        ],
    )


def cpu_table() -> str:
    """The CPU time of a request beyond that of `none`, and the most of the lock in a second."""
    cells = []
    for label in (one for one in LABELS[1:] if ":" not in one):
        own = PRICES.get(label)
        if own is None:
            cells.append([f"`{label}`", "not counted", "not counted", ""])
            continue
        locked_ns = own.locked_ns(FAST_REQUEST_NS)
        cells.append(
            [
                f"`{label}`",
                str(own.instructions),
                str(own.own_ns(FAST_REQUEST_NS)),
                f"{1e6 / locked_ns:.0f}" if locked_ns else "",
            ]
        )
    head = ("scheduler", "instructions", "ns", "lock: thousand requests/s at most")
    return lines(head, cells)


def tables(player: Player) -> dict[str, str]:
    found = {f"study-league-{where.name}": table(rows(player, where)) for where in DRIVES}
    return {**found, "study-cpu": cpu_table()}
