# SPDX-License-Identifier: GPL-2.0
"""The tables of mutants fit the sources: run by hand, they would rot unseen."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = ("tests/sim/mutate.py", "tests/flash/mutate.py")


def load(table: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(table.replace("/", "_")[:-3], ROOT / table)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look themselves up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("table", TABLES)
def test_every_mutants_text_is_there_once(table: str) -> None:
    wrong = [
        f"{mutation.name}: {found} times in {mutation.file}"
        for mutation in load(table).MUTATIONS
        if (found := (ROOT / mutation.file).read_text().count(mutation.old)) != 1
    ]
    assert not wrong
