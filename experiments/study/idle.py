# SPDX-License-Identifier: GPL-2.0
"""Shares of two sizes of requests under two budget schedulers, with and without an early end.

The small tenant has requests of 4 KiB and the large one requests of more. Both have equal weights
and as many requests. With work_conserving=1 a round ends early once the drive is taken for idle.
"""

from dataclasses import replace

from experiments.markdown import lines
from experiments.study.scene import KIB, PRO_980, SIZES, Player, Scene, interval

SCHEDULERS = ("kyber-fair", "wdt")
LARGE_KIB = (4, 8, 16, 64)
SEEDS = 3


def scene(large_kib: int) -> Scene:
    small, large = SIZES.tenants
    return replace(SIZES, tenants=(small, replace(large, bytes=large_kib * KIB)))


# The rows of a scheduler: words, and tunables. A tenant has 128 requests.
RULES = (
    ("full rounds", ":isolation=0:work_conserving=0"),
    ("early end", ":isolation=0"),
    ("early end, D = 64", ":isolation=0:depth=64"),
    ("early end, D = 128", ":isolation=0:depth=128"),
    ("defaults", ""),
)


def cells(player: Player, which: str) -> list[str]:
    """The share of the small tenant in percent, and the total relative to `none`, by size."""
    found = []
    for kib in LARGE_KIB:
        runs = player.seeds(which, scene(kib), PRO_980, SEEDS)
        base = player.seeds("none", scene(kib), PRO_980, SEEDS)
        share = interval([100 * one.part("small") for one in runs])
        total = interval(
            [one.bytes_per_s / other.bytes_per_s for one, other in zip(runs, base, strict=True)]
        )
        found.append(f"{share.mean:.1f}, {total.mean:.2f}")
    return found


def tables(player: Player) -> dict[str, str]:
    rows = []
    rows.append(["`none`", *cells(player, "none")])
    for name in SCHEDULERS:
        for words, tunables in RULES:
            rows.append([f"`{name}`, {words}", *cells(player, name + tunables)])
    rows.append(["`sfq`, D = 128", *cells(player, "sfq:depth=128")])
    head = ("980pro", *(f"{kib} KiB" for kib in LARGE_KIB))
    return {"study-idle": lines(head, rows)}
