# SPDX-License-Identifier: GPL-2.0
"""Terms of two papers, varied in the papers' own experiments (experiments/papers).

hWA-BC raises a cost by alpha times the part of invalid pages. WDT expects the 80th percentile of
the demand of some intervals. A history of one interval has no deviation, so no percentile.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from experiments.harness import runs_of, total_bytes
from experiments.markdown import lines
from experiments.papers.hwabc.figures import GARBAGE, HWABC
from experiments.papers.sources import Options
from experiments.papers.sources import Scene as PaperScene
from experiments.papers.wdt.figures import MOVING
from mqfair.bench.result import CaseResult, RunResult
from mqfair.bench.variant import NONE

SEEDS = 3
WDT = "wdt:isolation=0"
ALPHAS = (0, 10, 50)
HISTORIES = (1, 4, 16, 32)
TERMS = (
    *(f"history={one}" for one in HISTORIES),
    "total=meet",
    "work_conserving=0:history=1",
    "work_conserving=0",
)


def _played(scene: PaperScene, labels: Sequence[str]) -> CaseResult:
    (case,) = replace(scene, schedulers=tuple(labels)).play(Options(seeds=SEEDS))
    return case


def _text(values: Sequence[float], digits: int) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    shown = f"{statistics.median(values):.{digits}f}"
    return shown if low == high else f"{shown} ({low} … {high})"


def _megabytes(runs: Sequence[RunResult], name: str) -> list[float]:
    return [next(one for one in run.cgroups if one.name == name).bytes_per_s / 1e6 for run in runs]


def alpha_table() -> str:
    labels = [f"{HWABC}:alpha_pct={alpha}" for alpha in ALPHAS]
    case = _played(GARBAGE, labels)
    rows = []
    words = ("`none`", *(f"`hwabc`, alpha {alpha / 100:g}" for alpha in ALPHAS))
    for word, label in zip(words, (NONE, *labels), strict=True):
        runs = runs_of(case, label)
        reader, writer = _megabytes(runs, "reader"), _megabytes(runs, "writer")
        both = [one + other for one, other in zip(reader, writer, strict=True)]
        rows.append([word, _text(reader, 1), _text(writer, 1), _text(both, 1)])
    return lines(("", "reader, MB/s", "writer", "both"), rows)


def history_table() -> str:
    labels = [f"{WDT}:{term}" for term in TERMS]
    case = _played(MOVING, labels)
    base = [total_bytes(run) for run in runs_of(case, NONE)]
    rows = []
    for term, label in zip(TERMS, labels, strict=True):
        runs = runs_of(case, label)
        totals = [total_bytes(run) / other for run, other in zip(runs, base, strict=True)]
        heavy = [
            next(one.lat_ns["p99"] for one in run.cgroups if one.name == "w1000") / 1e6
            for run in runs
        ]
        jain = [run.jain for run in runs]
        rows.append([f"`{term}`", _text(totals, 3), _text(jain, 3), _text(heavy, 0)])
    head = (f"`{WDT}` with", "total / none", "Jain's index", "p99 of the heaviest, ms")
    return lines(head, rows)


def tables() -> dict[str, str]:
    return {"study-alpha": alpha_table(), "study-history": history_table()}
