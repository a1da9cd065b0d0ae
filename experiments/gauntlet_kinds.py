# SPDX-License-Identifier: GPL-2.0
"""Counts the scenes of the gauntlet in which a scheduler breaks a promise, by kind of scene.

The file tests/gauntlet/known.json has the promises that each scheduler breaks in 300 drawn scenes.
This command draws these scenes again to learn of which kinds they are, and plays none. A scene is
of several kinds.

    python3 -m experiments.gauntlet_kinds
    python3 -m experiments.gauntlet_kinds --document doc/isolation.md
"""

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.isolation_run import OURS, ROOT
from experiments.markdown import lines, put
from mqfair.text.errors import UsageError

GAUNTLET = ROOT / "tests" / "gauntlet"
KNOWN = GAUNTLET / "known.json"
SCENES = 300
# A scene with so many tenants has many.
MANY = 16
# P2, P3 and P4 are the promises that isolation has to weigh.
WEIGHED = ("P2", "P3", "P4")
PROMISES = ("P1", "P2", "P3", "P4", "P5", "P6", "P7")

# The class Scene of tests/gauntlet/scene.py. Its folder is no package, so no import names it.
Scene = Any


def _words(scene: Scene) -> list[dict[str, Any]]:
    return [tenant.words for tenant in scene.loaded]


def is_volume(scene: Scene) -> bool:
    return any(line.startswith("device ") for line in scene.drive)


def writes(scene: Scene) -> bool:
    return any(int(words.get("write", 0)) or "discard" in words for words in _words(scene))


def has_little_demand(scene: Scene) -> bool:
    """Whether a tenant keeps one request, or thinks, or sends at a rate."""
    return any(
        words["depth"] == 1 or "think_us" in words or "pace_ns" in words for words in _words(scene)
    )


def tenants_change(scene: Scene) -> bool:
    return any("start_ms" in words or "stop_ms" in words for words in _words(scene))


def changes(scene: Scene) -> bool:
    return bool(scene.actions) or tenants_change(scene)


KINDS: Mapping[str, Callable[[Scene], bool]] = {
    "all": lambda scene: True,
    "flash, reads alone": lambda scene: not is_volume(scene) and not writes(scene),
    "flash, with writes": lambda scene: not is_volume(scene) and writes(scene),
    "volume of 250 to 4,000 IOPS": is_volume,
    "2 to 4 tenants": lambda scene: len(scene.loaded) <= 4,
    "16 or more tenants": lambda scene: len(scene.loaded) >= MANY,
    "a tenant with one request, pauses or a rate": has_little_demand,
    "the drive changes": lambda scene: bool(scene.actions),
    "a tenant comes or leaves": tenants_change,
    "nothing changes": lambda scene: not changes(scene),
}

Known = Mapping[str, Sequence[str]]


def known() -> dict[str, list[str]]:
    """The promises that are broken, by "SEED SCHEDULER"."""
    return {name: text.split() for name, text in json.loads(KNOWN.read_text()).items()}


def scenes() -> dict[int, Scene]:
    if str(GAUNTLET) not in sys.path:
        sys.path.insert(0, str(GAUNTLET))
    draw = importlib.import_module("draw").draw
    return {seed: draw(seed) for seed in range(SCENES)}


def broken(seeds: Sequence[int], scheduler: str, found: Known, promises: Sequence[str]) -> int:
    """The number of @seeds in which @scheduler breaks one of @promises."""
    return sum(bool(set(found.get(f"{seed} {scheduler}", ())) & set(promises)) for seed in seeds)


def by_kind(drawn: Mapping[int, Scene], found: Known) -> list[list[str]]:
    """A row for each kind: its scenes, and the percentage in which each scheduler breaks one of
    the promises that isolation weighs."""
    rows = []
    for name, is_one in KINDS.items():
        seeds = [seed for seed, scene in drawn.items() if is_one(scene)]
        parts = [broken(seeds, scheduler, found, WEIGHED) / len(seeds) for scheduler in OURS]
        rows.append([name, str(len(seeds)), *(f"{part * 100:.0f}" for part in parts)])
    return rows


def by_promise(drawn: Mapping[int, Scene], found: Known) -> list[list[str]]:
    """A row for each scheduler: the percentage of scenes in which it breaks each promise."""
    seeds = list(drawn)
    return [
        [f"`{scheduler}`"]
        + [
            f"{broken(seeds, scheduler, found, one) / len(seeds) * 100:.0f}"
            for one in [*((promise,) for promise in PROMISES), PROMISES]
        ]
        for scheduler in OURS
    ]


def tables() -> dict[str, str]:
    drawn, found = scenes(), known()
    return {
        "gauntlet-kinds": lines(("scene", "number", *OURS), by_kind(drawn, found)),
        "gauntlet-promises": lines(("scheduler", *PROMISES, "any"), by_promise(drawn, found)),
    }


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        prog="gauntlet_kinds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--document", type=Path, metavar="FILE", help="write the tables there")
    args = options.parse_args(argv)
    text = tables()
    for name, one in text.items():
        print(f"{name}:\n\n{one}")
    try:
        if args.document:
            put(args.document, text)
    except UsageError as error:
        print(f"gauntlet_kinds: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
