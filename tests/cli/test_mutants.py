# SPDX-License-Identifier: GPL-2.0
"""The tables of mutants fit the sources, although `make test` does not run the mutants."""

from pathlib import Path

import pytest
from conftest import ROOT, loaded

TABLES = sorted((ROOT / "tests" / "mutate").glob("*.toml"))


mutate = loaded("tests/mutate.py", "mutate")


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_mutants_text_is_there_once(table: Path) -> None:
    mutate.load(table).by_hand()


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_equivalent_mutant_is_made_on_one_line(table: Path) -> None:
    mutate.load(table).mechanical()


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_every_file_has_mechanical_mutants(table: Path) -> None:
    for file in mutate.load(table).files:
        assert list(mutate.mutations_of(file)), file
