# SPDX-License-Identifier: GPL-2.0
"""The scenes of the study, their runs in the simulator, and the due of each tenant by arithmetic.

A run is one scheduler, one scene, one drive and one seed. Its figures are kept in build/study/,
under a hash of the description and of the program, so an interrupted study goes on where it was.
"""

import hashlib
import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mqfair.bench.device import parse_device
from mqfair.bench.simulated import drive as drives
from mqfair.bench.simulated import model, program
from mqfair.bench.simulated.prices import price
from mqfair.bench.simulated.session import WAKE_NS
from mqfair.bench.variant import IOCOST, NONE, THROTTLE, scheduler_of, tunables_of
from mqfair.drives import model_file

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "study"
KIB = 1024
CPUS = 8
# The part of what `none` does that static limits divide. An administrator leaves a rest.
LIMITED = 0.9
# The 97.5th percentile of Student's distribution, by the number of values.
_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


@dataclass(frozen=True)
class Tenant:
    """@jobs tasks, each on one CPU, have @depth requests of @bytes outstanding. @writes are a
    thousandth each. With @pauses (on, off) the tenant is silent for `off` ms after each `on`."""

    name: str
    weight: int
    depth: int
    bytes: int
    jobs: int = 4
    writes: int = 0
    pauses: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        text = f"depth {self.depth} bytes {self.bytes} write {self.writes} reaped 1"
        if self.pauses:
            text += " on_ms {} off_ms {}".format(*self.pauses)
        return text


@dataclass(frozen=True)
class Scene:
    """The first of @tenants is the *subject*. Times are ms. With @step there are figures of each
    interval of that length."""

    name: str
    tenants: tuple[Tenant, ...]
    warm_ms: int = 1000
    run_ms: int = 600
    step: int = 0

    def due(self, name: str) -> float:
        """The part of all bytes that the tenant @name is due, if all have requests all the time."""
        weights = {one.name: one.weight for one in self.tenants}
        return weights[name] / sum(weights.values())


@dataclass(frozen=True)
class Drive:
    """A drive of `mqfair sim`, or one of flash/ with the fields of @own."""

    name: str
    own: model_file.Model | None = None

    @property
    def planes(self) -> int:
        return (self.own or model_file.built_in(self.name)).all_planes

    def statements(self) -> tuple[drives.Drive, tuple[str, ...]]:
        text = f"ssd:model={self.name},size_mb=1024,fill=100,fill_pattern=random,hw_depth=1023"
        found = drives.drive(drives.unstretched(parse_device(text)), CPUS, {})
        if self.own is None:
            return found, found.statements
        lines = [line.replace(f"drive {self.name} ", "drive own ") for line in found.statements]
        return found, (f"model own {self.own.words}", *lines)


PRO_980, P4500 = Drive("980pro"), Drive("p4500")
DRIVES = (PRO_980, P4500)

WEIGHTS = Scene("weights", tuple(Tenant(f"w{w}", w, 32, 4 * KIB) for w in (100, 250, 500, 1000)))
SIZES = Scene("sizes", (Tenant("small", 100, 32, 4 * KIB), Tenant("large", 100, 32, 64 * KIB)))
LIGHT = Scene(
    "light",
    (Tenant("reader", 1000, 1, 4 * KIB, jobs=1), Tenant("greedy", 100, 32, 64 * KIB)),
    run_ms=2000,
)
BURST_MS = 100
BURSTS = Scene(
    "bursts",
    (
        Tenant("returning", 800, 64, 4 * KIB, pauses=(BURST_MS, BURST_MS)),
        Tenant("steady", 200, 64, 4 * KIB),
    ),
    run_ms=800,
    step=1,
)
WRITES = Scene(
    "writes",
    (Tenant("reader", 100, 32, 4 * KIB), Tenant("writer", 100, 32, 16 * KIB, writes=1000)),
    run_ms=1000,
)


@dataclass(frozen=True)
class Flow:
    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: float
    series: tuple[int, ...]


@dataclass(frozen=True)
class Figures:
    flows: Mapping[str, Flow]
    report: Mapping[str, int]

    @property
    def bytes_per_s(self) -> float:
        return sum(one.bytes_per_s for one in self.flows.values())

    def part(self, name: str) -> float:
        return self.flows[name].bytes_per_s / self.bytes_per_s

    def worst(self, scene: Scene) -> float:
        """The least part of its due that a tenant has."""
        return min(self.part(one.name) / scene.due(one.name) for one in scene.tenants)


def _figures(found: Any) -> Figures:
    flows = {
        name: Flow(
            one["iops"],
            one["bytes_per_s"],
            one["mean_ns"],
            one["p99_ns"],
            tuple(step["bytes"] for step in one.get("series", ())),
        )
        for name, one in found["flows"].items()
    }
    return Figures(flows, found["report"])


@dataclass
class Player:
    """Plays runs one after the other. @tell is called with the number of runs that were played."""

    tell: Callable[[int], None] = lambda _number: None
    binary: Path = field(default_factory=program.ensure)
    played: int = 0
    _rates: dict[tuple[str, ...], Mapping[str, int]] = field(default_factory=dict)
    _version: str = ""

    def figures(self, text: str) -> Any:
        """The figures of the run that @text describes: played now or in an earlier study."""
        if not self._version:
            self._version = hashlib.sha256(self.binary.read_bytes()).hexdigest()
        name = hashlib.sha256(f"{self._version}\n{text}".encode()).hexdigest()[:32]
        kept = KEPT / f"{name}.json"
        if kept.is_file():
            return json.loads(kept.read_text())
        found = program.play(self.binary, text)
        for one in found["flows"].values():
            one.pop("histogram", None)
        KEPT.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.replace(kept)
        self.played += 1
        self.tell(self.played)
        return found

    def play(self, label: str, scene: Scene, where: Drive, seed: int = 1) -> Figures:
        return _figures(self.figures(self._description(label, scene, where, seed)))

    def seeds(self, label: str, scene: Scene, where: Drive, seeds: int) -> list[Figures]:
        return [self.play(label, scene, where, seed) for seed in range(1, seeds + 1)]

    def alone(self, scene: Scene, where: Drive) -> Flow:
        """The subject of @scene without the others, under `none`."""
        name = scene.tenants[0].name
        return self.play(NONE, replace(scene, tenants=scene.tenants[:1]), where).flows[name]

    def _description(self, label: str, scene: Scene, where: Drive, seed: int) -> str:
        name = scheduler_of(label)
        drive, statements = where.statements()
        lines = [f"scheduler {name}"]
        lines += [f"set {key} {value}" for key, value in tunables_of(label).items()]
        lines += self._measured(name, scene, where)
        lines += [*_host(name, drive, seed), *statements]
        tags = drive.sched_tags(name, tunables_of(label).get("depth"))
        lines += [f"sched_tags {tags}", f"warm_ms {scene.warm_ms}", f"run_ms {scene.run_ms}"]
        lines += ["audit end", *([f"series {scene.step}"] if scene.step else ())]
        lines += [f"flow {one.name} weight {one.weight}" for one in scene.tenants]
        jobs = [one for one in scene.tenants for _ in range(one.jobs)]
        lines += [f"load {one.name} queue {n % CPUS} {one.words}" for n, one in enumerate(jobs)]
        return "\n".join(lines) + "\n"

    def _measured(self, name: str, scene: Scene, where: Drive) -> list[str]:
        """The settings that an administrator finds by a measurement under `none`."""
        if name == IOCOST:
            return model.settings(self._iocost(where))
        if name == THROTTLE:
            weights = sum(one.weight for one in scene.tenants)
            rate = self.play(NONE, replace(scene, step=0), where).bytes_per_s
            return [f"set kib_per_weight {round(LIMITED * rate / weights / KIB)}"]
        return []

    def _iocost(self, where: Drive) -> Mapping[str, int]:
        drive, statements = where.statements()
        if statements not in self._rates:
            head = [*_host(NONE, drive, 1), "flow probe weight 100", *statements]
            head.append(f"sched_tags {drive.sched_tags(NONE, None)}")
            self._rates[statements] = model.rates(
                head,
                lambda number, words: f"load probe queue {number % CPUS} {words}",
                "probe",
                self.figures,
            )
        return self._rates[statements]


def _host(scheduler: str, drive: drives.Drive, seed: int) -> list[str]:
    """The statements of a host with prices, as those of `mqfair sim --priced`."""
    return [
        f"seed {seed}",
        f"queues {CPUS}",
        f"wake_ns {WAKE_NS}",
        *price(scheduler, True).statements(drive.request_ns),
    ]


# --- numbers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % confidence interval, from Student's distribution."""

    mean: float
    half: float

    def text(self, digits: int) -> str:
        shown = f"{self.mean:.{digits}f}"
        half = f"{self.half:.{digits}f}"
        return shown if float(half) == 0 else f"{shown} ± {half}"


def interval(values: Sequence[float]) -> Interval:
    if len(values) < 2:
        return Interval(values[0], 0.0)
    return Interval(
        statistics.mean(values),
        _T[len(values)] * statistics.stdev(values) / math.sqrt(len(values)),
    )
