# SPDX-License-Identifier: GPL-2.0
"""Translates a scene for a guest: the virtual SSD, and a fio for each tenant.

A scene has a host of its own. The host of a guest is one CPU with counted time. So the simulator
plays the scene with the CPU time that a request takes in a guest. The drive is stretched SCALE
times, so that this CPU is not the limit, and so are the times of the loads. Times of the scheduler
stay.

fio has no word for some loads, and a guest no room for others. why_not() names the reason.

A tenant's *part* is its bytes over those of all tenants, as the measurements of fidelity have it
(experiments/fidelity.py). There a part must be within 5 % of the simulator's, as medians of several
runs. Here the guest plays once, so its part must be within 5 % of some part between the least and
the greatest of the simulator's seeds. Two requests may lie on either side of the measured time.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence

from draw import KIB, draw
from judge import granule
from scene import Scene, Tenant, Words

from mqfair.drives.model_file import BUILT_IN

SCALE = 100
WARM_MS = 4000
RUN_MS = 20_000
# The seeds of the simulator.
SEEDS = range(1, 6)
# The seeds of the scenes: those of held(10).
SCENES = (36, 55, 62, 80, 112, 135, 173, 183, 215, 252)
# The scenes that are apart under mqfq with its control loop in some runs, and why.
KNOWN_APART = {
    55: "a cause that is not known",
    183: "a control loop with two states",
}
# MOST_SHARE of experiments/fidelity.py.
MOST_OFF = 0.05
MOST_TENANTS = 8
# The memory for data of all requests of all tenants.
BUFFERS = 256 << 20
# kernel/ssd/drive.c: the largest request.
SSD_REQUEST_BYTES = 512 * KIB
# As `mqfair sim` has it for a guest with counted time (mqfair/bench/simulated/drive.py).
HOST = (("wake_ns", 2000), ("submit_ns", 6000), ("complete_ns", 2400))
# The words of a load that fio does not have, and how a report names them.
_NOT_IN_FIO = {
    "discard": "discards",
    "urgent": "metadata",
    "move_ms": "moving tasks",
    "on_ms": "loads that are on and off",
}
_TIMES = ("think_us", "pace_ns")


def why_not(scene: Scene) -> str:
    """The first reason why no guest plays @scene; empty if one can."""
    return next(_reasons(scene), "")


def _reasons(scene: Scene) -> Iterator[str]:
    name = scene.drive[0].split()
    if name[0] != "drive" or name[1] not in BUILT_IN:
        yield "drives that are no built-in model"
    if any(line.startswith("answers ") for line in scene.drive):
        yield "answers in batches"
    if scene.queues > 1:
        yield "several queues"
    if len(scene.loaded) > MOST_TENANTS:
        yield f"more than {MOST_TENANTS} tenants"
    if scene.change or scene.actions:
        yield "changes while it runs"
    for tenant in scene.loaded:
        yield from _reasons_of_load(tenant.words)
    if sum(int(t.words["depth"]) * granule(t) // 2 for t in scene.loaded) > BUFFERS:
        yield f"more than {BUFFERS >> 20} MiB in requests"


def _reasons_of_load(words: Words) -> Iterator[str]:
    for word, reason in _NOT_IN_FIO.items():
        if word in words:
            yield reason
    if "think_us" in words and "burst_ios" not in words and words["depth"] != 1:
        yield "pauses of each of several requests"
    if "pace_ns" in words and words["write"] not in (0, 1000):
        yield "a pace of reads and writes"


def held(number: int) -> tuple[list[int], collections.Counter[str]]:
    """The first seeds of @number scenes that a guest can play, and how many seeds between were left
    out for each reason."""
    seeds: list[int] = []
    left_out: collections.Counter[str] = collections.Counter()
    for seed in itertools.count():
        reason = why_not(draw(seed))
        if reason:
            left_out[reason] += 1
        else:
            seeds.append(seed)
        if len(seeds) == number:
            break
    return seeds, left_out


def stretched(scene: Scene) -> Scene:
    """@scene on the host of a guest, SCALE times slower than its drive's model, and longer."""
    given = dict(line.split(maxsplit=1) for line in scene.drive)
    factor = SCALE / int(given.pop("time_scale", "1"))
    drive = (*(f"{name} {words}" for name, words in given.items()), f"time_scale {SCALE}")
    host = dict(scene.host) | dict(HOST)
    host["most_bytes"] = min(host["most_bytes"] or SSD_REQUEST_BYTES, SSD_REQUEST_BYTES)
    tenants = tuple(_stretched_load(t, factor) if t.load else t for t in scene.tenants)
    return dataclasses.replace(
        scene,
        drive=drive,
        host=tuple(host.items()),
        tenants=tenants,
        warm_ms=WARM_MS,
        run_ms=RUN_MS,
    )


def _stretched_load(tenant: Tenant, factor: float) -> Tenant:
    words = tenant.words
    times = {name: round(int(words[name]) * factor) for name in _TIMES if name in words}
    # fio takes a completion before it submits again.
    return tenant.with_words(**times, reaped=1)


def ssd(scene: Scene) -> dict[str, str | int]:
    """The settings of the virtual SSD for a stretched @scene."""
    _, model, size_mb, pattern, fill = scene.drive[0].split()
    return {
        "model": model,
        "size_mb": size_mb,
        "fill": fill,
        "fill_pattern": pattern,
        "time_scale": SCALE,
        "queues": 1,
        "hw_depth": dict(scene.host)["tags"],
    }


def path(scene: Scene, tenant: Tenant) -> str:
    """The path of the cgroup of @tenant."""
    above = {t.name: t for t in scene.tenants}.get(tenant.parent)
    return f"{path(scene, above)}/{tenant.name}" if above else tenant.name


def fio(scene: Scene, tenant: Tenant) -> Words:
    """The options of fio for a tenant of a stretched scene.

    With randrepeat every fio takes the same places, whatever its randseed is. So equal tenants
    would read each page together.
    """
    words = tenant.words
    write = int(words["write"])
    order = "" if words.get("order") == "sequential" else "rand"
    way = {0: "read", 1000: "write"}.get(write, "rw")
    options: Words = {"rw": f"{order}{way}", "iodepth": words["depth"], "norandommap": 1}
    options |= {"randrepeat": 0, "randseed": 1000 * scene.seed + scene.loaded.index(tenant)}
    if way == "rw":
        options["rwmixwrite"] = write // 10
    if "sizes" in words:
        options["bssplit"] = str(words["sizes"]).replace(",", ":")
    else:
        options["bs"] = words["bytes"]
    if "think_us" in words:
        options["thinktime"] = words["think_us"]
        options["thinktime_blocks"] = words.get("burst_ios", 1)
        options["thinktime_blocks_type"] = "issue"
    if "pace_ns" in words:
        options["rate_iops"] = round(1e9 / int(words["pace_ns"]))
        if words["arrivals"] == "random":
            options["rate_process"] = "poisson"
    return options


def parts(got: Mapping[str, float]) -> dict[str, float]:
    total = sum(got.values())
    return {name: amount / total for name, amount in got.items()}


@dataclasses.dataclass(frozen=True)
class Compared:
    """The part of a tenant in the guest, and with each seed of the simulator. @least is the part
    that two requests are."""

    tenant: str
    guest: float
    simulated: tuple[float, ...]
    least: float

    @property
    def agrees(self) -> bool:
        low = min(self.simulated) * (1 - MOST_OFF) - self.least
        high = max(self.simulated) * (1 + MOST_OFF) + self.least
        return low <= self.guest <= high

    def __str__(self) -> str:
        low, *_, high = sorted(self.simulated)
        seeds = f"{low:.4f} to {high:.4f}"
        return f"{self.tenant} {self.guest:.4f}, simulated {seeds}, two requests {self.least:.4f}"


def compare(
    scene: Scene, guest: Mapping[str, float], seeds: Sequence[Mapping[str, float]]
) -> Iterator[Compared]:
    """@guest and each of @seeds are the bytes of the tenants in the measured time."""
    ours, theirs = parts(guest), [parts(one) for one in seeds]
    for t in scene.loaded:
        least = granule(t) / sum(guest.values())
        yield Compared(t.name, ours[t.name], tuple(one[t.name] for one in theirs), least)


class ApartError(AssertionError):
    """The parts of some tenants are apart."""


def check(found: Sequence[Compared]) -> None:
    """Raises ApartError if a tenant's part in the guest is not that of the simulator."""
    apart = [str(one) for one in found if not one.agrees]
    if apart:
        raise ApartError("; ".join(apart))
