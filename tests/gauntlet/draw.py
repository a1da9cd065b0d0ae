# SPDX-License-Identifier: GPL-2.0
"""Draws scenes from a seed: the same seed gives the same scene, on any machine."""

from __future__ import annotations

import math
import random

from scene import Scene, Tenant

MODELS = ("p3700", "p4500", "980pro", "980pro", "fabric")
FILLS = ("sequential", "random", "steady")
DRIVE_MIB = 256
KIB = 1024
SIZES = (
    512,
    1 * KIB,
    4 * KIB,
    8 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    1024 * KIB,
)
MIXES = ("4096/70,65536/30", "4096/90,262144/10", "512/20,4096/60,131072/20", "16384/50,32768/50")
WEIGHTS = (1, 10, 50, 100, 200, 500, 1000, 10000)
MOST_TENANTS = 64


def draw(seed: int) -> Scene:
    rng = random.Random(f"gauntlet {seed}")
    slow = rng.random() < 0.2
    queues = rng.choice((1, 1, 2, 4, 8, 16, 64))
    maps = rng.choice([n for n in (1, 2, 4, queues) if n <= queues and queues % n == 0])
    tags = rng.choice((32, 64, 128, 256, 1023))
    drive, factor = _volume(rng) if slow else _flash(rng)
    host = (
        ("queues", queues),
        ("sockets", 2 if queues >= 16 and rng.random() < 0.5 else 1),
        ("tags", tags),
        ("tag_maps", maps),
        ("sched_tags", rng.choice((tags, 2 * tags))),
        ("most_bytes", rng.choice((0, 128 * KIB, 256 * KIB))),
        ("wake_ns", rng.choice((0, 2000, 20000))),
        ("submit_ns", rng.choice((0, 2000, 6000))),
        ("complete_ns", rng.choice((0, 1000, 2400))),
    )
    tenants = _tenants(rng, queues, factor)
    # Adaptation has two seconds. A scene of fast drives is short, because it has many requests.
    warm, run = (2000, 8000) if slow else (2000, 1000)
    actions = () if slow else _actions(rng)
    if actions:
        warm += 1000
    return Scene(drive, host, tenants, actions, warm, run, seed=1 + seed % 1000)


def _volume(rng: random.Random) -> tuple[tuple[str, ...], float]:
    """A volume of few requests per second, and the factor of its times beside a fast drive."""
    slots = rng.choice((1, 4, 16, 64))
    iops = rng.choice((250, 400, 1000, 4000))
    return (f"device {slots} {slots * 1_000_000_000 // iops} {rng.choice((0, 1000, 10000))}",), 20.0


def _flash(rng: random.Random) -> tuple[tuple[str, ...], float]:
    model = rng.choice(MODELS)
    fill = rng.choice(FILLS)
    lines = [f"drive {model} {DRIVE_MIB} {fill} {rng.choice((50, 85, 100))}"]
    # The fabric does a million requests a second: it is slowed, so that a scene takes seconds.
    scale = 1
    if model == "fabric":
        scale = rng.choice((5, 20))
        lines.append(f"time_scale {scale}")
    elif rng.random() < 0.2:
        scale = rng.choice((2, 5, 20))
        lines.append(f"time_scale {scale}")
    return tuple(lines), float(scale)


def _actions(rng: random.Random) -> tuple[str, ...]:
    """A change of the drive's speed, or a stall, two seconds before the measured time."""
    kind = rng.random()
    if kind < 0.1:
        return (f"at 1000 retime {rng.choice((20, 50, 200, 300))}",)
    if kind < 0.15:
        return ("at 1000 stall 100",)
    return ()


def _tenants(rng: random.Random, queues: int, factor: float) -> tuple[Tenant, ...]:
    """Up to 64 tenants of up to four kinds, in a tree of up to three levels."""
    number = min(MOST_TENANTS, max(2, round(math.exp(rng.uniform(math.log(2), math.log(24))))))
    if rng.random() < 0.1:
        number = MOST_TENANTS
    kinds = [_load(rng, queues, factor) for _ in range(min(number, rng.randint(1, 4)))]
    chosen = list(range(len(kinds))) + [
        rng.randrange(len(kinds)) for _ in range(number - len(kinds))
    ]
    groups = _groups(rng) if number > 2 and rng.random() < 0.5 else ()
    parents = ["", *(group.name for group in groups)]
    equal = rng.random() < 0.3
    spread = rng.choice((WEIGHTS[2:7], WEIGHTS))
    tenants = []
    for n, kind in enumerate(chosen):
        words = dict(kinds[kind])
        if words.pop("pinned"):
            words["queue"] = n % queues
        else:
            words["queues"] = queues
        weight = 100 if equal else rng.choice(spread)
        parent = rng.choice(parents)
        tenants.append(Tenant(f"t{n}", weight, parent, tuple(words.items())))
    used = {tenant.parent for tenant in tenants}
    used |= {group.parent for group in groups if group.name in used}
    kept = tuple(group for group in groups if group.name in used)
    return kept + tuple(tenants)


def _groups(rng: random.Random) -> tuple[Tenant, ...]:
    groups = [Tenant(f"g{n}", rng.choice(WEIGHTS[2:7])) for n in range(rng.randint(1, 3))]
    if rng.random() < 0.5:
        groups.append(Tenant("h", rng.choice(WEIGHTS[2:7]), rng.choice(groups).name))
    return tuple(groups)


def _load(rng: random.Random, queues: int, factor: float) -> dict[str, str | int]:
    """The words of a load, and `pinned`: on one queue, or on all. @factor: how much slower the
    drive is than a fast one, and so the tenants of the drive."""
    words: dict[str, str | int] = {"pinned": int(queues == 1 or rng.random() < 0.5)}
    depth = rng.choice((1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
    words["depth"] = depth
    if rng.random() < 0.2:
        words["sizes"] = rng.choice(MIXES)
    else:
        words["bytes"] = rng.choice(SIZES)
    words["write"] = rng.choice((0, 0, 0, 0, 300, 500, 1000))
    if rng.random() < 0.3:
        words["order"] = "sequential"
    shape = rng.random()
    if shape < 0.12:
        words["think_us"] = round(rng.choice((50, 200, 1000, 10000)) * factor)
    elif shape < 0.24:
        words["pace_ns"] = round(rng.choice((10_000, 50_000, 200_000, 1_000_000)) * factor)
        words["arrivals"] = rng.choice(("even", "random"))
    elif shape < 0.3:
        words["on_ms"] = rng.choice((5, 20, 100))
        words["off_ms"] = rng.choice((5, 20, 100))
    elif shape < 0.36:
        # Like a commit: a burst of writes, then a pause.
        words.update(burst_ios=rng.choice((4, 16, 64)), think_us=round(1000 * factor), write=1000)
    return words
