# SPDX-License-Identifier: GPL-2.0
"""The plugin for container runtimes, against the other side of its library."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT

from lab.cache import cache_dir


@pytest.mark.parametrize("words", [("vet", "./..."), ("test", "-count=1", "./...")])
def test_the_plugin(words):
    assert shutil.which("go"), "run lab/bootstrap nri"
    cache = cache_dir() / "go"
    env = {**os.environ, "GOCACHE": str(cache / "build"), "GOMODCACHE": str(cache / "modules")}
    argv = ["go", *words]
    done = subprocess.run(
        argv, cwd=ROOT / "contrib/nri", env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
