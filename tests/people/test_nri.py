# SPDX-License-Identifier: GPL-2.0
"""The plugin for container runtimes, against the other side of its library."""

import pytest
from conftest import go


@pytest.mark.parametrize("words", [("vet", "./..."), ("test", "-count=1", "./...")])
def test_the_plugin(words):
    done = go(*words)
    assert done.returncode == 0, done.stdout + done.stderr
