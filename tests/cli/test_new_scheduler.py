# SPDX-License-Identifier: GPL-2.0
"""sched/new.py makes a scheduler from the worked example, in a copy of the sources."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from mqfair import schedulers


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "sched", tmp_path / "sched")
    (tmp_path / "mqfair").mkdir()
    shutil.copy(ROOT / "mqfair" / "schedulers.py", tmp_path / "mqfair")
    return tmp_path


def new(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(tree / "sched" / "new.py"), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_lists_follow_from_policies_def() -> None:
    assert new(ROOT, "--check").returncode == 0
    assert "mqfq" in schedulers.SCHEDULERS and schedulers.EXAMPLES == ("drr", "sfq")


def test_a_new_scheduler_is_entered_everywhere(tree: Path) -> None:
    done = new(tree, "edf-2")
    assert done.returncode == 0, done.stderr
    text = (tree / "sched/edf_2/edf_2.c").read_text()
    assert "edf_2_ops" in text and '"edf-2"' in text and "drr_" not in text
    policies = (tree / "sched/core/policies.def").read_text()
    assert policies.index('SCHEDULER(edf_2, "edf-2")') < policies.index("EXAMPLE(drr")
    assert '"edf-2"' in (tree / "mqfair/schedulers.py").read_text()


@pytest.mark.parametrize(
    "name", ["EDF", "2edf", "e--f", "edf_2", "mqfq", "drr", "kyber", "e" * 16, "flow", "fifo"]
)
def test_a_bad_name_changes_nothing(tree: Path, name: str) -> None:
    before = (tree / "sched/core/policies.def").read_text()
    rooms = sorted((tree / "sched").iterdir())
    done = new(tree, name)
    assert done.returncode == 2
    assert name in done.stderr and len(done.stderr.splitlines()) == 1
    assert (tree / "sched/core/policies.def").read_text() == before
    assert sorted((tree / "sched").iterdir()) == rooms


def test_no_name_is_a_usage_error(tree: Path) -> None:
    assert new(tree).returncode == 2
