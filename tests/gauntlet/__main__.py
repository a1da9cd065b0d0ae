# SPDX-License-Identifier: GPL-2.0
"""Plays scenes of the gauntlet, and tells which promises the schedulers break.

    make gauntlet                             # 300 scenes, all schedulers
    make gauntlet ARGS="--seeds 1000-1999 --schedulers mqfq"
    make gauntlet ARGS="--seeds 17 --shrink"  # the least scene like 17 that breaks a promise
    make gauntlet ARGS="--scenes my.txt"      # a scene of a file
    make gauntlet ARGS=--known                # the scenes of `make test`: 40, and those of scenes/
    make gauntlet ARGS="--known --write"      # state the promises that these break today
    make gauntlet ARGS="--held-back --seeds 0-2999 --out new.jsonl"   # hours; it can go on later
    make gauntlet ARGS="--compare old.jsonl new.jsonl"                # a table of both

known.json names the promises that each scheduler breaks in some scenes. With --known, a promise
that it does not name is a failure. A mend of a scheduler removes entries. Only a change of the
scenes, of the judge or of the simulated host may add one. `make test-slow` plays the first 300.

--shrink writes the least scene to build/gauntlet-scenes/, where `mqfair sim` and sim-run take it.
A copy in tests/gauntlet/scenes/ is a test.

Runs are kept in build/gauntlet, so that a second call goes on where the first one ended. With --out
only verdicts are kept. Exit status: 0 no promise is broken, 1 some are, 2 a wrong argument.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import record  # noqa: E402
import scene as scenes  # noqa: E402
from draw import draw, held_back  # noqa: E402
from judge import Verdict, judge, know  # noqa: E402
from play import Player  # noqa: E402
from scene import Scene  # noqa: E402
from shrink import shrink  # noqa: E402

from mqfair.bench.simulated import program  # noqa: E402
from mqfair.schedulers import SCHEDULERS  # noqa: E402
from mqfair.text.errors import Failure  # noqa: E402

FOLDER = ROOT / "build/gauntlet"
LEAST = ROOT / "build/gauntlet-scenes"
KEPT = HERE / "scenes"
KNOWN = HERE / "known.json"
# Forty. Three seeds in between take a third of the time of all, and are left to test-slow.
KNOWN_SEEDS = "0-26,28-30,32-38,40-42"
SEEDS = "0-299"


def seeds_of(text: str) -> list[int]:
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise argparse.ArgumentTypeError(f"'{part}': write N or N-M, such as 0-299")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise argparse.ArgumentTypeError(f"'{part}': the lesser seed comes first")
        found += range(first, last + 1)
    return found


def schedulers_of(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if not name:
            raise argparse.ArgumentTypeError(f"'{text}': a name is empty")
    return names


def shown(name: str, scene: Scene, verdict: Verdict) -> str:
    worst: dict[str, str] = {}
    for fault in verdict.faults:
        word = f"{fault.promise} {fault.tenant} {fault.value:.3g}".replace("  ", " ")
        worst.setdefault(fault.promise, word)
    text = ", ".join(worst.values()) or "kept"
    return (
        f"{name:>6} {verdict.scheduler:10} {len(scene.loaded):2} tenants, "
        f"worst {verdict.worst:.2f}, total {verdict.total:.2f}: {text}"
    )


def smallest(
    scene: Scene, scheduler: str, player: Player, settings: list[str], promises: set[str]
) -> Scene:
    def breaks(smaller: Scene) -> bool:
        found = judge(smaller, know(smaller, player), scheduler, player, settings).faults
        return bool(promises & {fault.promise for fault in found})

    return shrink(scene, breaks)


Drawn = Mapping[str, Callable[[], Scene]]
Judged = tuple[str, Scene, list[Verdict]]


def scenes_of(arguments: argparse.Namespace) -> Drawn:
    """The scenes that the arguments name, by their names. A seed is the name of a drawn scene."""
    files = list(arguments.scenes)
    seeds = arguments.seeds
    if arguments.known:
        files += sorted(KEPT.glob("*.txt"))
        seeds = seeds or seeds_of(KNOWN_SEEDS)
    elif not files:
        seeds = seeds or seeds_of(SEEDS)
    drawn = held_back if arguments.held_back else draw
    found: dict[str, Callable[[], Scene]] = {
        file.stem: lambda file=file: scenes.parse(file.read_text()) for file in files
    }
    return found | {str(seed): lambda seed=seed: drawn(seed) for seed in seeds or []}


def judge_all(
    drawn: Drawn,
    schedulers: list[str],
    player: Callable[[], Player],
    settings: list[str],
    jobs: int,
) -> Iterator[Judged | Failure]:
    """The verdicts of each scene as it is judged, @jobs at once; or why it could not be played."""

    def one(name: str) -> Judged:
        scene, own = drawn[name](), player()
        known = know(scene, own)
        return name, scene, [judge(scene, known, s, own, settings) for s in schedulers]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(one, name) for name in drawn]
        try:
            for future in concurrent.futures.as_completed(waiting):
                error = future.exception()
                if isinstance(error, Failure):
                    yield error
                else:
                    yield future.result()
        finally:
            # After Ctrl-C, or a fault here, no other scene begins.
            pool.shutdown(wait=False, cancel_futures=True)


def head_of(arguments: argparse.Namespace, binary: Path) -> dict[str, object]:
    """The first line of a record."""
    sources = b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))
    return {
        "program": hashlib.sha256(binary.read_bytes()).hexdigest(),
        "judge": hashlib.sha256(sources).hexdigest(),
        "set of scenes": "held back" if arguments.held_back else "drawn",
        "schedulers": arguments.schedulers,
        "settings": arguments.sets,
    }


def in_order(known: Mapping[str, str]) -> dict[str, str]:
    """@known by seed; scenes with names come last."""

    def key(item: tuple[str, str]) -> tuple[float, str]:
        name = item[0].split()[0]
        return (int(name) if name.isdecimal() else float("inf"), item[0])

    return dict(sorted(known.items(), key=key))


class Progress:
    """Tells how far a run of hours is."""

    def __init__(self, left: int, of: int) -> None:
        self._left, self._begun, self._all = left, left, of
        self._start = time.monotonic()

    def step(self) -> str:
        self._left -= 1
        each_s = (time.monotonic() - self._start) / (self._begun - self._left)
        minutes = self._left * each_s / 60
        return f"{self._all - self._left} of {self._all} scenes, {minutes:.0f} minutes are left"


def main() -> int:
    parser = argparse.ArgumentParser(prog="gauntlet", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=seeds_of, metavar="N-M,..", help=f"default {SEEDS}")
    parser.add_argument("--scenes", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--held-back", action="store_true", help="other seeds and shapes")
    parser.add_argument("--schedulers", type=schedulers_of, default=list(SCHEDULERS))
    parser.add_argument("--set", action="append", default=[], metavar="'NAME VALUE'", dest="sets")
    parser.add_argument("--shrink", action="store_true", help="write the least scene that fails")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--known", action="store_true", help="fail for what is not in known.json")
    parser.add_argument("--write", action="store_true", help="with --known: write known.json")
    parser.add_argument("--out", type=Path, metavar="FILE", help="add the verdicts to FILE")
    parser.add_argument(
        "--compare", type=Path, nargs=2, metavar="FILE", help="print both as a table"
    )
    arguments = parser.parse_args()
    if arguments.compare:
        before, after = (record.read(path)[1] for path in arguments.compare)
        print(record.compared(before, after))
        return 0
    try:
        return play(arguments)
    except Failure as error:
        print(f"gauntlet: {error}", file=sys.stderr)
        return 2


def play(arguments: argparse.Namespace) -> int:
    settings = [f"set {one}" for one in arguments.sets]
    binary = program.ensure()
    kept = record.Record(arguments.out, head_of(arguments, binary))
    everything = scenes_of(arguments)
    drawn = {name: one for name, one in everything.items() if name not in kept.scenes}
    progress = Progress(len(drawn), len(everything))
    known = json.loads(KNOWN.read_text()) if arguments.known else {}
    failed = False

    def player() -> Player:
        return Player(binary, None if arguments.out else FOLDER)

    for judged in judge_all(drawn, arguments.schedulers, player, settings, arguments.jobs):
        if isinstance(judged, Failure):
            print(judged, file=sys.stderr)
            failed = True
            continue
        name, scene, found = judged
        kept.add(name, found)
        for verdict in found:
            print(shown(name, scene, verdict))
            promises = {fault.promise for fault in verdict.faults}
            new = promises - set(known.get(f"{name} {verdict.scheduler}", "").split())
            failed = failed or bool(new)
            if new and arguments.known and not arguments.write:
                print(f"gauntlet: {name} {verdict.scheduler}: not known: {', '.join(sorted(new))}")
            if promises and arguments.shrink:
                least = smallest(scene, verdict.scheduler, player(), settings, promises)
                LEAST.mkdir(parents=True, exist_ok=True)
                file = LEAST / f"{name}-{verdict.scheduler}.txt"
                file.write_text(least.play_text(verdict.scheduler, settings))
                print(f"{file}:\n{file.read_text()}")
        if arguments.out:
            print(progress.step())
        sys.stdout.flush()
    print(record.table(kept.scenes))
    if arguments.known and arguments.write:
        write_known(known, kept.scenes)
        return 0
    return int(failed)


def write_known(known: Mapping[str, str], found: Mapping[str, record.Broken]) -> None:
    """Replaces the entries of the scenes that were @found."""
    kept = {key: value for key, value in known.items() if key.split()[0] not in found}
    for name, by_scheduler in found.items():
        for scheduler, promises in by_scheduler.items():
            words = " ".join(promise for promise in promises if promise != "far")
            if words:
                kept[f"{name} {scheduler}"] = words
    KNOWN.write_text(json.dumps(in_order(kept), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
