# SPDX-License-Identifier: GPL-2.0
"""experiments/isolation_tables.py: the tables of the document, made of results of a moment."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path

import pytest

from experiments import isolation, isolation_tables, markdown
from experiments.isolation_curve import Point
from experiments.isolation_results import RESULTS, Results
from experiments.isolation_run import SIMULATED
from experiments.isolation_tables import TABLES

DOCUMENT = Path(__file__).resolve().parents[2] / "doc" / "measurements" / "isolation.md"


class Known:
    """A backend that knows its schedulers and cannot run them."""

    scope = SIMULATED

    def tunables(self, scheduler):
        return ["depth", "isolation"]


def points_of(panel_labels, seeds):
    """The slowdowns of the seeds are 1, 2 and 9, so their median is not their mean."""
    three = tuple([1.0, 2.0, 9.0][:seeds] or [1.0])
    return [
        asdict(Point(label, role, three, three, three, three, three, three, three, three))
        for label, role in panel_labels
    ]


def result_of(name, folder):
    """Writes a result as `experiments.isolation` would."""
    args = isolation.parser().parse_args(shlex.split(RESULTS[name]))
    isolation.settle(args)
    panels = [
        {
            "case": unit.case.name,
            "window": window,
            "drive": asdict(unit.drive),
            "points": points_of([(one.label, one.role) for one in unit.settings], 3),
            "curve": [[0.5, 1.0], [1.0, 4.0]],
        }
        for unit in isolation.units_of(args, Known())
        for window in [one.name for one in unit.case.windows] or ["all"]
    ]
    (folder / f"{name}.json").write_text(json.dumps({"panels": panels}))


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_made_of_its_result(name, tmp_path):
    one = TABLES[name]
    for result in one.results.split(","):
        result_of(result, tmp_path)
    found = one.made(Results(tmp_path)).splitlines()
    assert len(found) > 2
    assert {line.count("|") for line in found} == {len(one.head) + 1}
    assert all(len(cell.split()) <= 15 for line in found for cell in line.split("|"))


def test_a_figure_is_the_median_over_the_seeds(tmp_path):
    result_of("writers", tmp_path)
    assert "| none | 2.00 at 2.000 | 2.00 at 2.000 |" in TABLES["writers"].made(Results(tmp_path))


def test_tables_are_written_to_their_places(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("# A\n\n<!-- one -->\nold\n<!-- end -->\n\nb\n\n<!-- two -->\n<!-- end -->\n")
    markdown.put(path, {"one": "| new |\n"})
    assert path.read_text() == (
        "# A\n\n<!-- one -->\n| new |\n<!-- end -->\n\nb\n\n<!-- two -->\n<!-- end -->\n"
    )


def test_a_table_without_a_place_changes_nothing(tmp_path, capsys):
    path = tmp_path / "a.md"
    path.write_text("<!-- first -->\nold\n<!-- end -->\n")
    for name in ("first", "writers"):
        result_of(name, tmp_path)
    argv = ["first", "writers", "--folder", str(tmp_path), "--document", str(path)]
    assert isolation_tables.main(argv) == 2
    assert "no place for writers" in capsys.readouterr().err
    assert path.read_text() == "<!-- first -->\nold\n<!-- end -->\n"


def test_a_wrong_name_is_refused_with_the_names_there_are(capsys):
    assert isolation_tables.main(["frist"]) == 2
    assert "no table 'frist': use goals, first, " in capsys.readouterr().err


@pytest.mark.parametrize("name", TABLES)
def test_the_document_has_a_place_and_a_command_for_each_table(name):
    text = DOCUMENT.read_text()
    assert f"<!-- {name} -->\n" in text
    commands = [line.split() for line in text.splitlines() if "isolation_tables " in line]
    assert any(name in words for words in commands)
