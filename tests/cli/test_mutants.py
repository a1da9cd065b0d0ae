# SPDX-License-Identifier: GPL-2.0
"""The tables of mutants fit the sources, although `make test` does not run the mutants."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted((ROOT / "tests" / "mutate").glob("*.toml"))


def load() -> ModuleType:
    path = ROOT / "tests" / "mutate.py"
    spec = importlib.util.spec_from_file_location("mutate", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look themselves up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


mutate = load()


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
