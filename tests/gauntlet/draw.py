# SPDX-License-Identifier: GPL-2.0
"""Draws scenes from a seed: the same seed gives the same scene, on any machine.

draw() has listed numbers, such as depths of powers of two, and is for daily use. held_back()
decides whether a mended scheduler is better. Its numbers are any in the same ranges. Its shapes
differ: trees are deeper, a change meets several tenants, and requests have any size in a range.

Two kinds of scenes are drawn on purpose, each in one of EACH seeds: quiet children, and answers in
batches. A kind has numbers of its own, so a seed without it is the same scene as before the kind.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence

from scene import Load, Scene, Tenant

from mqfair.drives.model_file import built_in

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
QUIET_WEIGHTS = (500, 1000, 2000, 10000)
BUSY_WEIGHTS = (1, 10, 50, 100)
MOST_TENANTS = 64
DIES = (4, 8, 16, 32, 64, 128, 256)
# The erase blocks of a drive of DRIVE_MIB, if they are smaller than those of the model.
BLOCKS = 2048
# Of so many seeds one has a kind of scene that is drawn on purpose.
EACH = 8
# A batch of answers that is never full.
ANY_BATCH = 65536


# The words of a load. None stands for a word that it does not have.
Words = dict[str, str | int | None]
# What a load of plain requests does not have: pauses, a rate, metadata, discards.
STEADY: Words = dict.fromkeys(
    ("think_us", "pace_ns", "arrivals", "on_ms", "off_ms", "burst_ios", "urgent", "discard")
)


class Numbers(random.Random):
    """Draws each number from a list."""

    free = False

    def number(self, listed: Sequence[int]) -> int:
        return self.choice(listed)

    def likely(self, part: float) -> bool:
        return self.random() < part


class FreeNumbers(Numbers):
    """Draws any number between the least and the greatest of a list, even in their logarithm. A 0
    of the list keeps its part."""

    free = True

    def number(self, listed: Sequence[int]) -> int:
        above = [value for value in listed if value]
        if not self.likely(len(above) / len(listed)):
            return 0
        return round(math.exp(self.uniform(math.log(min(above)), math.log(max(above)))))


@dataclasses.dataclass(frozen=True)
class Drive:
    """@slower: how much slower it is than a fast drive, and so its tenants."""

    lines: tuple[str, ...]
    slower: float
    flash: bool = True
    scale: int = 1


def draw(seed: int) -> Scene:
    return _draw(Numbers, f"gauntlet {seed}", seed)


def held_back(seed: int) -> Scene:
    return _draw(FreeNumbers, f"held back {seed}", seed)


def _draw(numbers: type[Numbers], name: str, seed: int) -> Scene:
    def of_kind(kind: str) -> Numbers | None:
        own = numbers(f"{name}, {kind}")
        return own if own.likely(1 / EACH) else None

    rng = numbers(name)
    drive = _volume(rng) if rng.likely(0.2) else _flash(rng)
    queues = rng.number((1, 1, 2, 4, 8, 16, 64))
    maps = rng.choice([n for n in (1, 2, 4, queues) if n <= queues and queues % n == 0])
    tags = rng.number((32, 64, 128, 256, 1023))
    host = (
        ("queues", queues),
        ("sockets", 2 if queues >= 16 and queues % 2 == 0 and rng.likely(0.5) else 1),
        ("tags", tags),
        ("tag_maps", maps),
        ("sched_tags", rng.choice((tags, 2 * tags))),
        ("most_bytes", rng.choice((0, 128 * KIB, 256 * KIB))),
        ("wake_ns", rng.number((0, 2000, 20000))),
        ("submit_ns", rng.number((0, 2000, 6000))),
        ("complete_ns", rng.number((0, 1000, 2400))),
    )
    if rng.free and rng.likely(0.3):
        host += (("fetch", rng.number((8, 32, 128))),)
    tenants = _tenants(rng, queues, drive)
    if own := of_kind("quiet children"):
        tenants = _quiet_children(own, queues, drive)
    if own := of_kind("batches"):
        drive = _in_batches(own, drive)
    # Adaptation has two seconds. A scene of fast drives is short, because it has many requests.
    scene = Scene(drive.lines, host, tenants, (), 2000, 1000 if drive.flash else 8000)
    return _changed(rng, drive, dataclasses.replace(scene, seed=1 + seed % 1000))


# --------------------------------------------------------------------- drives


def _volume(rng: Numbers) -> Drive:
    """A volume of few requests per second."""
    slots = rng.number((1, 4, 16, 64))
    iops = rng.number((250, 400, 1000, 4000))
    lines = (f"device {slots} {slots * 1_000_000_000 // iops} {rng.number((0, 1000, 10000))}",)
    return Drive(lines, 20.0, flash=False)


def _flash(rng: Numbers) -> Drive:
    if rng.likely(0.2):
        dies = rng.number(DIES)
        name, lines = "own", [f"model own {_fields(dies)}"]
    else:
        dies, name, lines = 0, rng.choice(MODELS), []
    fill = rng.choice(FILLS)
    lines.append(f"drive {name} {DRIVE_MIB} {fill} {rng.number((50, 85, 100))}")
    # A drive of a million requests a second is slowed, so that a scene takes seconds.
    scale = 1
    if name == "fabric" or dies >= 64:
        scale = rng.choice((5, 20))
    elif rng.likely(0.2):
        scale = rng.number((2, 5, 20))
    if scale > 1:
        lines.append(f"time_scale {scale}")
    if rng.free and rng.likely(0.2):
        lines.append(f"write_times {rng.choice((2, 4))}")
    return Drive(tuple(lines), float(scale), scale=scale)


def _in_batches(rng: Numbers, drive: Drive) -> Drive:
    """@drive with answers in batches: an NVMe drive tells up to so many ends together, after some
    100 us at most; a virtual disk after a time alone, and a volume behind a network after ms."""
    if drive.flash:
        batch = rng.number((4, 16, 64, ANY_BATCH))
        wait_us = rng.number((100, 200, 1000)) * drive.scale
    else:
        batch, wait_us = ANY_BATCH, rng.number((1000, 2000, 5000, 10000))
    return dataclasses.replace(drive, lines=(*drive.lines, f"answers {batch} {wait_us}"))


def _fields(dies: int) -> str:
    """The fields of a drive like the P4500 with @dies dies. With many dies the erase blocks are
    smaller, so that each die has some, and the controller is faster, so that the dies matter."""
    model = built_in("p4500")
    channels = max(n for n in range(1, 17) if dies % n == 0)
    units = model["block_programs"]
    while units > 1 and dies * units > BLOCKS // 2:
        units //= 2
    changes = {
        "channels": channels,
        "dies": dies // channels,
        "block_programs": units,
        "erase_ns": model["erase_ns"] * units // model["block_programs"],
        "command_ns": 400,
    }
    return dataclasses.replace(model, values={**model.values, **changes}).words


# -------------------------------------------------------------------- changes


# How often, in a hundred scenes; the last two are for drives of flash.
CHANGES = {"": 60, "start_ms": 12, "stop_ms": 12, "stall 100": 4, "retime": 8, "throttle": 4}


def _changed(rng: Numbers, drive: Drive, scene: Scene) -> Scene:
    """@scene with a change two seconds before the measured time, or a drive that throttles."""
    what = rng.choices(list(CHANGES), list(CHANGES.values()))[0]
    if not what or (not drive.flash and what in ("retime", "throttle")):
        return scene
    if what == "throttle":
        times, hot = range(500, 3000, rng.number((250, 500))), rng.number((150, 300))
        lines = [f"at {ms} retime {100 if n % 2 else hot}" for n, ms in enumerate(times)]
        return dataclasses.replace(scene, actions=tuple(lines))
    if what == "retime":
        # Twenty times slower, or ten times faster.
        far = 10 if drive.scale >= 5 else 2000
        what = f"retime {rng.choice((20, 50, 200, 300, far))}"
    return _with_change(rng, drive, scene, what)


def _with_change(rng: Numbers, drive: Drive, scene: Scene, what: str) -> Scene:
    """@scene in which @what happens, a word of some tenants' loads or an action."""
    # The measured time of a volume is long, because a hundred latencies are.
    at_ms, run_ms = (1000, scene.run_ms) if drive.flash else (2000, 40_000)
    scene = dataclasses.replace(scene, warm_ms=at_ms + 2000, run_ms=run_ms)
    if not what.endswith("_ms"):
        return dataclasses.replace(scene, actions=(f"at {at_ms} {what}",))
    most = max(1, len(scene.loaded) // 2) if rng.free else 1
    for tenant in rng.sample(scene.loaded, rng.randint(1, most)):
        scene = scene.replace_tenant(tenant.with_words(**{what: at_ms}))
    return scene


# -------------------------------------------------------------------- tenants


def _tenants(rng: Numbers, queues: int, drive: Drive) -> tuple[Tenant, ...]:
    """Up to 64 tenants of some kinds, in a tree of up to three levels, or five."""
    number = round(math.exp(rng.uniform(math.log(2), math.log(MOST_TENANTS if rng.free else 24))))
    if rng.likely(0.1):
        number = MOST_TENANTS
    kinds = [_load(rng, queues, drive) for _ in range(min(number, rng.randint(1, 4)))]
    if drive.flash and rng.likely(0.1):
        # Garbage collection goes on.
        kinds[0].update(write=1000, depth=64, discard=None, order=None)
    chosen = list(range(len(kinds))) + [
        rng.randrange(len(kinds)) for _ in range(number - len(kinds))
    ]
    groups = _groups(rng) if number > 2 and rng.likely(0.5) else ()
    parents = ["", *(group.name for group in groups)]
    equal = rng.likely(0.3)
    spread = rng.choice((WEIGHTS[2:7], WEIGHTS))
    tenants = []
    for n, kind in enumerate(chosen):
        weight = 100 if equal else rng.number(spread)
        parent = rng.choice(parents)
        tenants.append(Tenant(f"t{n}", weight, parent, _placed(kinds[kind], n, queues)))
    scene = Scene((), (), (*groups, *tenants))
    return tuple(scene.present)


def _placed(kind: Words, n: int, queues: int) -> Load:
    """The load of tenant @n with the words of @kind, on its queues."""
    words = {name: value for name, value in kind.items() if value is not None}
    if words.pop("pinned"):
        words["queue"] = n % queues
    else:
        words["queues"] = queues
    return tuple(words.items())


def _groups(rng: Numbers) -> tuple[Tenant, ...]:
    groups = [Tenant(f"g{n}", rng.number(WEIGHTS[2:7])) for n in range(rng.randint(1, 3))]
    names = "hijk" if rng.free else "h"
    for name in names:
        if rng.likely(0.5):
            parent = groups[-1] if rng.free else rng.choice(groups)
            groups.append(Tenant(name, rng.number(WEIGHTS[2:7]), parent.name))
    return tuple(groups)


# ------------------------------------------------------------- quiet children


def _quiet_children(rng: Numbers, queues: int, drive: Drive) -> tuple[Tenant, ...]:
    """One to three groups that each have a quiet child of great weight and busy ones of small
    weight, beside a busy tenant outside. A group may have another such group in it. What a quiet
    child leaves is due to its siblings. Most scenes have busy tenants of one kind, so that a due in
    bytes is the due in drive time."""
    kinds = [_busy(rng, queues, drive) for _ in range(rng.choice((1, 1, 1, 2)))]
    tenants: list[Tenant] = []

    def add(weight: int, parent: str, kind: Words | None) -> str:
        name = f"g{len(tenants)}" if kind is None else f"t{len(tenants)}"
        load = () if kind is None else _placed(kind, len(tenants), queues)
        tenants.append(Tenant(name, weight, parent, load))
        return name

    def add_group(weight: int, parent: str) -> None:
        group = add(weight, parent, None)
        add(rng.number(QUIET_WEIGHTS), group, _quiet(rng, queues, drive))
        for _ in range(rng.randint(1, 2)):
            add(rng.number(BUSY_WEIGHTS), group, rng.choice(kinds))
        if not parent and rng.likely(0.3):
            add_group(rng.number(BUSY_WEIGHTS), group)

    for _ in range(rng.randint(1, 3)):
        add_group(rng.number(WEIGHTS[2:7]), "")
    add(rng.number(WEIGHTS[2:7]), "", rng.choice(kinds))
    return tuple(tenants)


def _quiet(rng: Numbers, queues: int, drive: Drive) -> Words:
    """A load of one request at a time: a few in a second, or bursts with long pauses. What it asks
    for alone is what it asks for beside others, though each request takes longer."""
    words = _load(rng, queues, drive)
    a_second = rng.number((5, 20, 100, 500) if drive.flash else (5, 10, 20))
    times: list[Words] = [
        {"pace_ns": 1_000_000_000 // a_second, "arrivals": rng.choice(("even", "random"))},
        {"think_us": 1_000_000 // a_second},
        {"burst_ios": rng.number((2, 4, 8)), "think_us": 1000 * rng.number((100, 200, 500))},
    ]
    small = {"bytes": rng.choice(SIZES[:5]), "sizes": None, "depth": 1}
    return {**words, **STEADY, **small, "write": rng.choice((0, 0, 0, 1000)), **rng.choice(times)}


def _busy(rng: Numbers, queues: int, drive: Drive) -> Words:
    """A load with a backlog."""
    return {**_load(rng, queues, drive), **STEADY, "depth": rng.number((32, 64, 128, 256, 512))}


def _load(rng: Numbers, queues: int, drive: Drive) -> Words:
    """The words of a load, and `pinned`: on one queue, or on all of them."""
    words: Words = {"pinned": int(queues == 1 or rng.likely(0.5))}
    words["depth"] = rng.number((1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512))
    if rng.likely(0.2):
        words["sizes"] = rng.choice(MIXES)
    elif rng.free:
        least = rng.number(SIZES) // 512 * 512
        words["bytes"] = f"{least}-{min(rng.choice((1, 2, 4)) * least, SIZES[-1])}"
    else:
        words["bytes"] = rng.choice(SIZES)
    words["write"] = rng.choice((0, 0, 0, 0, 300, 500, 1000))
    if rng.likely(0.3):
        words["order"] = "sequential"
    if rng.likely(0.08):
        words["urgent"] = rng.number((50, 300, 1000))
    elif rng.likely(0.06):
        words["discard"] = 1
    if not words["pinned"] and rng.likely(0.3):
        words["move_ms"] = rng.number((1, 10, 100))
    words.update(_times(rng, drive.slower))
    return words


def _times(rng: Numbers, slower: float) -> Words:
    """The words of a load that does not submit all the time; none for most loads."""
    shape = rng.random()
    if shape < 0.12:
        return {"think_us": round(rng.number((50, 200, 1000, 10000)) * slower)}
    if shape < 0.24:
        pace_ns = round(rng.number((10_000, 50_000, 200_000, 1_000_000)) * slower)
        return {"pace_ns": pace_ns, "arrivals": rng.choice(("even", "random"))}
    if shape < 0.3:
        return {"on_ms": rng.number((5, 20, 100)), "off_ms": rng.number((5, 20, 100))}
    if shape < 0.36:
        # Like a commit: a burst of writes, then a pause.
        pause_us = round(1000 * slower)
        return {"burst_ios": rng.number((4, 16, 64)), "think_us": pause_us, "write": 1000}
    return {}
