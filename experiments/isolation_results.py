# SPDX-License-Identifier: GPL-2.0
"""The results behind the tables of doc/measurements/isolation.md: each is a run of
experiments.isolation, and a file of a folder.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.isolation_cases import PAUSES_MS
from experiments.isolation_curve import Point
from experiments.isolation_run import OURS
from mqfair.text.errors import Failure

FOLDER = Path("build") / "isolation"


@dataclass(frozen=True)
class Seen:
    """A panel of a result: the points by label, and the curve."""

    case: str
    drive: str
    window: str
    points: Mapping[str, Point]
    curve: list[tuple[float, float]]

    def __getitem__(self, label: str) -> Point:
        return self.points[label]


def read(path: Path) -> list[Seen]:
    """The panels of the result in @path. JSON has null for an infinite value."""

    def values(found: Any) -> Any:
        if isinstance(found, list):
            return tuple(float("inf") if one is None else one for one in found)
        return found

    return [
        Seen(
            one["case"],
            f"{one['drive']['model']}, {one['drive']['fill']}",
            one["window"],
            {
                point["label"]: Point(**{name: values(it) for name, it in point.items()})
                for point in one["points"]
            },
            [(total, slowdown) for total, slowdown in one["curve"]],
        )
        for one in json.loads(path.read_text())["panels"]
    ]


_VARIANTS = (
    "A-reader16k,A-depth4,A-reader16k-depth4,A-1to1,A-100to1,A-others16k,A-others128k,A-mixed,"
    "A-jobs2,A-jobs8,A-jobs8-mixed-1to1"
)
RARE = ",".join(f"A-every-{pause}ms" for pause in PAUSES_MS)
_B = "B,B-depth8,B-depth16,B-depth32,B-all8,B-2to1,B-100to1"
_STRICT = ",".join(f"{name}:isolation=25" for name in OURS)
_FULL = "full-2,full-4,full-16,full-64,full-4-sizes"
_WRITERS = "mqfq,mqfq:isolation=20,mqfq:isolation=50"

# The arguments of experiments.isolation by result.
RESULTS: Mapping[str, str] = {
    "first": "--cases A --seeds 3 --no-sweep",
    "curve": "--cases A --models 980pro,p4500 --fills sequential,random --seeds 2",
    "variants": f"--cases {_VARIANTS} --schedulers mqfq --models 980pro,p4500 --fills random "
    "--seeds 3 --no-sweep",
    "against-curve": "--cases A-depth4,A-mixed,A-jobs2,cgroups --schedulers mqfq --models 980pro "
    "--fills random --seeds 1",
    "b": f"--cases {_B} --schedulers mqfq,mqfq:isolation=25 --models 980pro --fills random "
    "--seeds 2 --no-sweep",
    "b-schedulers": f"--cases B --schedulers {','.join(OURS)},{_STRICT} --fills random --seeds 1 "
    "--no-sweep",
    "full": f"--cases {_FULL} --schedulers mqfq --fills random --seeds 1 --no-sweep",
    "start512": "--cases A --models 980pro --fills random --seeds 3 --no-sweep "
    "--schedulers 'mqfq,mqfq:depth=512,mqfq:depth=512 auto'",
    "visits": "--cases visits --schedulers mqfq --models 980pro,p4500 --fills random --seeds 2 "
    "--no-sweep",
    "bursts": "--cases bursts,bursts-50 --schedulers mqfq --fills random --seeds 3 --no-sweep",
    "stall": "--cases stall,throttled --schedulers mqfq --models 980pro,p4500 --fills random "
    "--seeds 2 --no-sweep",
    "rare": f"--cases {RARE} --schedulers mqfq --models 980pro,p4500 --fills random --seeds 2 "
    "--no-sweep",
    "storm": "--cases storm --schedulers mqfq --fills steady --seeds 3 --no-sweep",
    "adversaries": "--cases pretender,cgroups,cgroups-pretend --schedulers mqfq "
    "--models 980pro,p4500 --fills random --seeds 3 --no-sweep",
    "writers": f"--cases A-writers-4k,A-writers-64k --schedulers {_WRITERS},"
    "mqfq:depth=8:isolation=0,mqfq:depth=32:isolation=0 --models 980pro --fills steady "
    "--seeds 2 --no-sweep",
    "host": "--cases A --schedulers mqfq --models 980pro,p4500 --fills sequential,random "
    "--seeds 2 --no-sweep --ftl host",
    "literature": "--cases A --schedulers sfq,sfq:depth=16,sfq:depth=24,stf,flashfq,bwf2q,cfq,"
    "cfq:realtime_weight=1000,iocost,throttle:kib_per_weight=29000,mqfq,mqfq:isolation=8 "
    "--models 980pro --fills random --seeds 5 --no-sweep",
}
# The results that come with a picture beside the file.
PICTURES = ("curve",)


@dataclass
class Results:
    """Measures a result that is not in @folder yet."""

    folder: Path
    _read: dict[str, list[Seen]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> list[Seen]:
        if name not in self._read:
            path = self.folder / f"{name}.json"
            if not path.is_file():
                self._measure(name, path)
            self._read[name] = read(path)
        return self._read[name]

    def _measure(self, name: str, path: Path) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        words = [*shlex.split(RESULTS[name]), "--json", str(path)]
        if name in PICTURES:
            words += ["--picture", str(path.with_suffix(".png"))]
        print(f"experiments.isolation {shlex.join(words)}", file=sys.stderr, flush=True)
        argv = [sys.executable, "-m", "experiments.isolation", *words]
        status = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False).returncode
        # Status 1 with a result says that a goal was missed.
        if not path.is_file():
            raise Failure(f"{name}: experiments.isolation ended with status {status}")
