# SPDX-License-Identifier: GPL-2.0
"""Do the conclusions survive if the model of the drive is wrong? And is the warm-up long enough?

Each number of the 980 PRO that a read feels is changed by a quarter in both directions, one at a
time. The conclusions of the league are judged anew. A seed moves places and wake-ups alone, so its
spread is small; the spread over the models is the honest one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from experiments.markdown import lines
from experiments.study.league import SFQ
from experiments.study.scene import LIGHT, PRO_980, SIZES, WEIGHTS, Drive, Figures, Player, Scene
from mqfair.bench.variant import IOCOST, NONE
from mqfair.drives import model_file

QUARTER = 0.25
# The numbers that a read of a full drive feels. The conclusions are about reads.
FELT = (
    "channels",
    "dies",
    "planes",
    "read_pages",
    "program_pages",
    "command_ns",
    "read_fixed_ns",
    "link_ns",
    "channel_ns",
    "read_ns",
    "read_burst",
)
# Short runs: each model has nine of them, and six more of iocost's probes.
S_WEIGHTS = replace(WEIGHTS, warm_ms=600, run_ms=300)
S_SIZES = replace(SIZES, warm_ms=800, run_ms=400)
S_LIGHT = replace(LIGHT, warm_ms=1000, run_ms=1000)
MQFQ, BUDGET = "mqfq", "kyber-fair"
# A part of a due that counts as all of it, one that counts as fair, and a half.
NEAR, FAIR, HALF = 0.97, 0.8, 0.5
# In ms of warm-up.
WARM = (1000, 2000, 4000, 8000)
WARM_RUN_MS = 500


def models() -> Iterator[tuple[str, model_file.Model]]:
    """The changed models, each with the change in words. A number that must be a power of two is
    halved and doubled. One that the rounding leaves as it was is left out."""
    base = model_file.built_in(PRO_980.name)
    for one in model_file.FIELDS:
        if one.name not in FELT:
            continue
        now = base[one.name]
        steps = (now // 2, now * 2) if one.power else (
            round(now * (1 - QUARTER)), round(now * (1 + QUARTER))
        )  # fmt: skip
        for value in steps:
            changed = replace(base, values={**base.values, one.name: value})
            if (
                value != now
                and one.least <= value <= one.most
                and not any(model_file.wrong(changed))
            ):
                yield f"{one.name} {now} → {value}", changed


@dataclass(frozen=True)
class League:
    """The figures of one seed on one drive. A run is played when it is asked for."""

    player: Player
    where: Drive

    def of(self, label: str, scene: Scene) -> Figures:
        return self.player.play(label, scene, self.where)

    def worst(self, label: str, scene: Scene) -> float:
        return self.of(label, scene).worst(scene)

    def ratio(self, label: str, other: str, scene: Scene) -> float:
        """The bytes of all tenants under @label over those under @other."""
        return self.of(label, scene).bytes_per_s / self.of(other, scene).bytes_per_s

    def p99_ratio(self, label: str, other: str) -> float:
        reader = LIGHT.tenants[0].name
        return (
            self.of(label, S_LIGHT).flows[reader].p99_ns
            / self.of(other, S_LIGHT).flows[reader].p99_ns
        )


@dataclass(frozen=True)
class Conclusion:
    """@value is one number of a league, and the conclusion holds if @holds does for it."""

    words: str
    value: Callable[[League], float]
    holds: Callable[[float], bool]


CONCLUSIONS = (
    Conclusion(
        "Weights: under `sfq` the worst tenant has 0.97 of its due or more",
        lambda one: one.worst(SFQ, S_WEIGHTS),
        lambda value: value >= NEAR,
    ),
    Conclusion(
        "Weights: under `mqfq` it has 0.8 or more",
        lambda one: one.worst(MQFQ, S_WEIGHTS),
        lambda value: value >= FAIR,
    ),
    Conclusion(
        "Sizes: under `mqfq` it has 0.8 or more",
        lambda one: one.worst(MQFQ, S_SIZES),
        lambda value: value >= FAIR,
    ),
    Conclusion(
        "Sizes: under `kyber-fair` it has 0.8 or more",
        lambda one: one.worst(BUDGET, S_SIZES),
        lambda value: value >= FAIR,
    ),
    Conclusion(
        "Sizes: the total of `iocost` is below that of `mqfq` (ratio below 1)",
        lambda one: one.ratio(IOCOST, MQFQ, S_SIZES),
        lambda value: value < 1,
    ),
    Conclusion(
        "Light: p99 under `mqfq` is at most half of that under `none`",
        lambda one: one.p99_ratio(MQFQ, NONE),
        lambda value: value <= HALF,
    ),
    Conclusion(
        "Light: p99 under `mqfq` is below that under `sfq` (ratio below 1)",
        lambda one: one.p99_ratio(MQFQ, SFQ),
        lambda value: value < 1,
    ),
    Conclusion(
        "Light: p99 under `mqfq` is above that under `iocost` (ratio above 1)",
        lambda one: one.p99_ratio(MQFQ, IOCOST),
        lambda value: value > 1,
    ),
)


def sensitivity_table(player: Player) -> str:
    base = League(player, PRO_980)
    others = [(words, League(player, Drive(PRO_980.name, own))) for words, own in models()]
    rows = []
    for one in CONCLUSIONS:
        here = one.value(base)
        values = [(one.value(found), words) for words, found in others]
        held = sum(one.holds(value) for value, _ in values)
        far, words = max(values, key=lambda pair: abs(pair[0] - here))
        rows.append(
            [
                one.words,
                f"{here:.2f}",
                f"{min(values)[0]:.2f} … {max(values)[0]:.2f}",
                f"{held} of {len(values)}",
                f"`{words}`: {far:.2f}" if f"{far:.2f}" != f"{here:.2f}" else "",
            ]
        )
    head = ("conclusion", "980pro", "over the models", "holds in", "farthest model")
    return lines(head, rows)


def warm_table(player: Player) -> str:
    rows = []
    reader = LIGHT.tenants[0].name
    for label in (MQFQ, BUDGET):
        for scene in (WEIGHTS, LIGHT):
            cells = [f"`{label}`, {scene.name}"]
            for warm in WARM:
                later = replace(scene, warm_ms=warm, run_ms=WARM_RUN_MS)
                found = player.play(label, later, PRO_980)
                shown = (
                    f"p99 {found.flows[reader].p99_ns / 1000:.0f} µs"
                    if scene is LIGHT
                    else f"part of due {found.worst(scene):.2f}"
                )
                cells.append(f"{found.bytes_per_s / 1e6:.0f}, {shown}")
            rows.append(cells)
    head = ("MB/s of all", *(f"after {warm // 1000} s" for warm in WARM))
    return lines(head, rows)


def tables(player: Player) -> dict[str, str]:
    return {"study-sensitivity": sensitivity_table(player), "study-warm": warm_table(player)}
