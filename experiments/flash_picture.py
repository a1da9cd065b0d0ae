# SPDX-License-Identifier: GPL-2.0
"""Draws Jain's index of bytes and of device time from documents of experiments.flash_shares.

    python3 -m experiments.flash_picture doc/flash-shares.png build/flash-shares.json ...

A case that is in several documents becomes one panel with the schedulers of all of them.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import harness
from mqfair.bench.fairness import jain
from mqfair.bench.picture import caption
from mqfair.bench.result import Document
from mqfair.text.errors import UsageError
from mqfair.text.palette import FAINT, STYLE

BYTES = "#9aa7b2"
TIME = "#d1495b"
COLUMNS = 2

# Panels[case][scheduler]: Jain's index of bytes and of device time.
Panels = dict[str, dict[str, tuple[float, float]]]


def jains_of(document: Document) -> Panels:
    """The panels of one document, with medians of the repeats."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    busy = {
        (one["case"], one["scheduler"], one["repeat"]): one["cgroups"]
        for one in document["busy_us"]
    }
    for result in document["results"]:
        for run in result["runs"]:
            key = (result["job"], run["scheduler"], run["repeat"])
            if key not in busy:
                continue
            of_time = jain([busy[key][one["name"]] / one["due"] for one in run["cgroups"]])
            labels = found.setdefault(result["job"], {})
            labels.setdefault(run["scheduler"], []).append((run["jain"], of_time))
    return {
        case: {
            label: (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs))
            for label, pairs in labels.items()
        }
        for case, labels in found.items()
    }


def merged(documents: Sequence[Document]) -> Panels:
    panels: Panels = {}
    for document in documents:
        for case, labels in jains_of(document).items():
            panels.setdefault(case, {}).update(labels)
    return panels


def draw(panels: Panels, where: Document, path: Path) -> None:
    with mpl.rc_context(STYLE):
        rows = math.ceil(len(panels) / COLUMNS)
        tallest = max(map(len, panels.values()))
        size = (11, (0.3 * tallest + 1.0) * rows + 1.2)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True)
        for one, (case, labels) in zip(axes.flat, panels.items(), strict=False):
            _draw_panel(one, labels)
            one.set_title(case, loc="left", fontsize=10.5, fontweight="bold")
        for one in axes.flat[len(panels) :]:
            one.set_visible(False)
        for one in axes[-1]:
            one.set_xlabel("Jain's index")
        handles, names = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        figure.suptitle(
            f"Fairness between tenants of a virtual SSD that collects garbage\n{caption(where)}",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        figure.savefig(path, dpi=150)


def _draw_panel(axes: Axes, labels: dict[str, tuple[float, float]]) -> None:
    places = range(len(labels))
    of_bytes = [pair[0] for pair in labels.values()]
    of_time = [pair[1] for pair in labels.values()]
    axes.hlines(places, of_bytes, of_time, color=FAINT, linewidth=2)
    axes.scatter(of_bytes, places, color=BYTES, s=42, label="of bytes", zorder=3)
    axes.scatter(
        of_time, places, color=TIME, s=42, marker="D", label="of the drive's time", zorder=4
    )
    axes.set_yticks(list(places), list(labels))
    axes.invert_yaxis()
    axes.set_xlim(right=1.01)
    axes.axvline(1.0, color=FAINT, linewidth=0.8)
    axes.grid(axis="x", color=FAINT, linewidth=0.8)


def run(args: argparse.Namespace) -> int:
    documents: list[Document] = []
    for path in args.documents:
        try:
            documents.append(json.loads(path.read_text()))
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{path}: {error}: name a file written by experiments.flash_shares --json"
            ) from error
        if "busy_us" not in documents[-1]:
            raise UsageError(
                f"{path}: no busy_us in it: name a file written by experiments.flash_shares --json"
            )
    draw(merged(documents), documents[0]["results"][0]["where"], args.picture)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="experiments.flash_picture", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("picture", type=Path, help="PNG or SVG to write")
    parser.add_argument(
        "documents", type=Path, nargs="+", help="files written by flash_shares --json"
    )
    return harness.main(parser, run)


if __name__ == "__main__":
    sys.exit(main())
