# SPDX-License-Identifier: GPL-2.0
"""Plays scenes of the gauntlet, and tells which promises the schedulers break.

    make gauntlet                             # 300 scenes, all schedulers
    make gauntlet ARGS="--seeds 1000-1999 --schedulers mqfq"
    make gauntlet ARGS="--seeds 17 --shrink"  # the least scene like 17 that breaks a promise
    make gauntlet ARGS=--known                # the scenes of known.json, as in `make test`
    make gauntlet ARGS="--known --write"      # state the promises that these break today

known.json names the promises that each scheduler breaks in some scenes. With --known, a promise
that it does not name is a failure. A mend of a scheduler removes entries. Only a change of the
scenes, of the judge or of the simulated host may add one.

Runs are kept in build/gauntlet, so that a second call goes on where the first one ended. Exit
status: 0 no promise is broken, 1 some are, 2 a wrong argument.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

from draw import draw  # noqa: E402
from judge import Verdict, judge, know  # noqa: E402
from play import Player  # noqa: E402
from scene import Scene  # noqa: E402
from shrink import shrink  # noqa: E402

from mqfair.bench.simulated import program  # noqa: E402
from mqfair.schedulers import SCHEDULERS  # noqa: E402
from mqfair.text.errors import Failure  # noqa: E402

FOLDER = ROOT / "build/gauntlet"
KNOWN = HERE / "known.json"
KNOWN_SEEDS = "0-39"


def seeds_of(text: str) -> list[int]:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}': write N or N-M, such as 0-299")
    first = int(match[1])
    last = int(match[2] or first)
    if last < first:
        raise argparse.ArgumentTypeError(f"'{text}': the lesser seed comes first")
    return list(range(first, last + 1))


def schedulers_of(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if not name:
            raise argparse.ArgumentTypeError(f"'{text}': a name is empty")
    return names


def shown(seed: int, scene: Scene, verdict: Verdict) -> str:
    worst: dict[str, str] = {}
    for fault in verdict.faults:
        word = f"{fault.promise} {fault.tenant} {fault.value:.3g}".replace("  ", " ")
        worst.setdefault(fault.promise, word)
    text = ", ".join(worst.values()) or "kept"
    return (
        f"{seed:6} {verdict.scheduler:10} {len(scene.loaded):2} tenants, "
        f"worst {verdict.worst:.2f}, total {verdict.total:.2f}: {text}"
    )


def table(verdicts: list[Verdict], names: list[str]) -> str:
    """Scenes that break each promise, by scheduler."""
    counts: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in names}
    scenes: collections.Counter[str] = collections.Counter()
    for verdict in verdicts:
        scenes[verdict.scheduler] += 1
        promises = {fault.promise for fault in verdict.faults}
        counts[verdict.scheduler].update(promises)
        counts[verdict.scheduler]["any"] += bool(promises)
        counts[verdict.scheduler]["far"] += any(fault.far for fault in verdict.faults)
    columns = ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "any", "far"]
    lines = ["scheduler   scenes " + "".join(f"{column:>6}" for column in columns)]
    for name in names:
        cells = "".join(f"{counts[name][column]:6}" for column in columns)
        lines.append(f"{name:10} {scenes[name]:7} {cells}")
    return "\n".join(lines)


def smallest(
    scene: Scene, scheduler: str, player: Player, settings: list[str], promises: set[str]
) -> Scene:
    def breaks(smaller: Scene) -> bool:
        found = judge(smaller, know(smaller, player), scheduler, player, settings).faults
        return bool(promises & {fault.promise for fault in found})

    return shrink(scene, breaks)


Judged = tuple[int, Scene, list[Verdict]]


def judge_all(
    seeds: list[int], schedulers: list[str], player: Player, settings: list[str], jobs: int
) -> Iterator[Judged | Failure]:
    """The verdicts of each scene as it is done, @jobs at once; or why it could not be played."""

    def one(seed: int) -> Judged:
        scene = draw(seed)
        known = know(scene, player)
        return seed, scene, [judge(scene, known, s, player, settings) for s in schedulers]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(one, seed) for seed in seeds]):
            error = future.exception()
            if isinstance(error, Failure):
                yield error
            else:
                yield future.result()


def main() -> int:
    parser = argparse.ArgumentParser(prog="gauntlet", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("0-299"), metavar="N-M")
    parser.add_argument("--schedulers", type=schedulers_of, default=list(SCHEDULERS))
    parser.add_argument("--set", action="append", default=[], metavar="'NAME VALUE'", dest="sets")
    parser.add_argument("--shrink", action="store_true", help="print the least scene that fails")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--known", action="store_true", help="fail for what is not in known.json")
    parser.add_argument("--write", action="store_true", help="with --known: write known.json")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all verdicts")
    arguments = parser.parse_args()
    if arguments.known:
        arguments.seeds = seeds_of(KNOWN_SEEDS)
    settings = [f"set {one}" for one in arguments.sets]
    player = Player(program.ensure(), FOLDER)
    known = json.loads(KNOWN.read_text()) if arguments.known and not arguments.write else {}
    verdicts: list[Verdict] = []
    broken: dict[str, str] = {}
    failed = False
    seeds, names = arguments.seeds, arguments.schedulers
    for judged in judge_all(seeds, names, player, settings, arguments.jobs):
        if isinstance(judged, Failure):
            print(judged, file=sys.stderr)
            failed = True
            continue
        seed, scene, found = judged
        for verdict in found:
            verdicts.append(verdict)
            print(shown(seed, scene, verdict), flush=True)
            promises = {fault.promise for fault in verdict.faults}
            if not promises:
                continue
            name = f"{seed} {verdict.scheduler}"
            broken[name] = " ".join(sorted(promises))
            new = promises - set(known.get(name, "").split())
            failed = failed or bool(new)
            if new and arguments.known and not arguments.write:
                print(f"gauntlet: {name}: not known: {', '.join(sorted(new))}")
            if arguments.shrink:
                least = smallest(scene, verdict.scheduler, player, settings, promises)
                print(least.play_text(verdict.scheduler, settings))
    print(table(verdicts, names))
    in_order = sorted(broken.items(), key=lambda item: (int(item[0].split()[0]), item[0]))
    text = json.dumps(dict(in_order), indent=1) + "\n"
    if arguments.json:
        arguments.json.write_text(text)
    if arguments.known and arguments.write:
        KNOWN.write_text(text)
        return 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
