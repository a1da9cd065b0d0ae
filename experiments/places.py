# SPDX-License-Identifier: GPL-2.0
"""Shares of tenants with tasks on different CPUs, over all places of the tasks, simulated.

Four tenants have the weights of examples/four-cgroups.fio, and two tasks each. The device has 64
slots of 64 ms, and a hardware queue for each of two CPUs, with 32 tags and 64 scheduler tags. Each
task is on either CPU with the same probability, and stays there. So a tenant has both tasks on one
CPU, or one on each: 81 places in all.

Two rows are computed. `max-min` divides the slots of each place so that the least share by weight
is as great as possible, then the next. `exact` has shares by weight and leaves slots empty. A row
has means over the places, by their probability. The total is relative to all slots.

    python3 -m experiments.places
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.isolation_curve import jain
from experiments.isolation_run import OURS, Simulator
from experiments.markdown import lines, put
from mqfair.text.errors import Failure, UsageError

WEIGHTS = (100, 250, 500, 1000)
TAGS = 32
# The block layer's default.
SCHED_TAGS = 2 * TAGS
DEPTH = 32
SLOT_MS = 64
SLOTS = 2 * TAGS
WARM_MS = 500
RUN_MS = 6000
# The queues of a tenant, with their probability.
QUEUES = (((0, 0), 0.25), ((1, 1), 0.25), ((0, 1), 0.5))
HEAD = ("", "shares, %", "Jain", "total")

Slots = Sequence[float]


@dataclass(frozen=True)
class Place:
    """@queues has the queues of both tasks of each tenant."""

    queues: tuple[tuple[int, int], ...]
    chance: float

    def confined_to(self, queue: int) -> set[int]:
        """The tenants with both tasks at @queue."""
        return {number for number, own in enumerate(self.queues) if own == (queue, queue)}


def places() -> Iterator[Place]:
    for some in itertools.product(QUEUES, repeat=len(WEIGHTS)):
        chance = 1.0
        for _, one in some:
            chance *= one
        yield Place(tuple(queues for queues, _ in some), chance)


def _limits(place: Place) -> list[tuple[set[int], int]]:
    """The tenants of each set have at most so many slots together. Two tasks keep 64 requests, so
    a tenant alone can fill all slots of its queues."""
    everyone = set(range(len(WEIGHTS)))
    return [(place.confined_to(0), TAGS), (place.confined_to(1), TAGS), (everyone, SLOTS)]


def max_min(place: Place) -> list[float]:
    """Slots of each tenant. They grow by weight until a limit stops some, then the others grow."""
    found: dict[int, float] = {}
    while len(found) < len(WEIGHTS):
        level, stopped = min(
            (
                (most - sum(found.get(one, 0.0) for one in some)) / sum(WEIGHTS[i] for i in free),
                sorted(free),
            )
            for some, most in _limits(place)
            if (free := some - set(found))
        )
        found.update({one: level * WEIGHTS[one] for one in stopped})
    return [found[one] for one in range(len(WEIGHTS))]


def exact(place: Place) -> list[float]:
    """Slots of each tenant by weight, as many as the tightest limit allows."""
    level = min(most / sum(WEIGHTS[i] for i in some) for some, most in _limits(place) if some)
    return [level * weight for weight in WEIGHTS]


def description(place: Place, scheduler: str) -> str:
    text = [f"scheduler {scheduler}", "queues 2", f"tags {TAGS}", f"sched_tags {SCHED_TAGS}"]
    text += [f"device {SLOTS} {SLOT_MS * 1_000_000} 0", f"warm_ms {WARM_MS}", f"run_ms {RUN_MS}"]
    text += [f"flow t{number} weight {weight}" for number, weight in enumerate(WEIGHTS)]
    text += [
        f"load t{number} queue {queue} depth {DEPTH} bytes 4096"
        for number, queues in enumerate(place.queues)
        for queue in queues
    ]
    return "\n".join(text) + "\n"


def simulated(simulator: Simulator, place: Place, scheduler: str) -> list[float]:
    """Slots of each tenant, by Little's law."""
    flows: Mapping[str, Mapping[str, float]]
    flows = simulator.describe(description(place, scheduler))["flows"]
    return [flows[f"t{number}"]["iops"] * SLOT_MS / 1000 for number in range(len(WEIGHTS))]


def row(name: str, found: Sequence[tuple[Place, Slots]]) -> list[str]:
    total = [sum(slots) for _, slots in found]
    chances = [place.chance for place, _ in found]
    whole = sum(chance * one for chance, one in zip(chances, total, strict=True))
    mean = [
        sum(place.chance * slots[one] for place, slots in found) / whole
        for one in range(len(WEIGHTS))
    ]
    index = jain([part / weight for part, weight in zip(mean, WEIGHTS, strict=True)])
    shares = ", ".join(f"{100 * part:.1f}" for part in mean)
    return [name, shares, f"{index:.4f}", f"{whole / SLOTS:.3f}"]


def table(simulator: Simulator) -> str:
    every = list(places())
    due = [weight / sum(WEIGHTS) * SLOTS for weight in WEIGHTS]
    rows = [
        row("due", [(place, due) for place in every]),
        row("max-min", [(place, max_min(place)) for place in every]),
        row("exact", [(place, exact(place)) for place in every]),
        *(
            row(name, [(place, simulated(simulator, place, name)) for place in every])
            for name in OURS
        ),
    ]
    return lines(HEAD, rows)


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(
        prog="places", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--build", type=Path, default=Simulator.folder, metavar="FOLDER")
    options.add_argument(
        "--document", type=Path, metavar="FILE", help="write the table at <!-- places --> of FILE"
    )
    args = options.parse_args(argv)
    try:
        simulator = Simulator(args.build)
        simulator.prepare()
        text = table(simulator)
        if args.document:
            put(args.document, {"places": text})
        else:
            print(text, end="")
    except (UsageError, Failure) as error:
        print(f"places: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
