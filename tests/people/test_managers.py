# SPDX-License-Identifier: GPL-2.0
"""dockerd, containerd with a pod, LXC and libvirt, of both Debians, in guests without systemd."""

import json
import os
import re

import in_managers
import pytest
from conftest import ROOT, built_module, go

import lab
from lab import debian
from lab.cache import cache_dir

GUEST_S = 1800.0


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The plugin, and the program that stands for kubelet."""
    folder = tmp_path_factory.mktemp("nri")
    for name, source in (("mqfair-nri", "."), ("pod", "./pod")):
        done = go("build", "-o", str(folder / name), source)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module", params=debian.MACHINES)
def results(request, programs):
    """The results of in_managers.py by name, and the reason why one may be missing."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a machine")
    debian.ensure(request.param)
    modules = (built_module(),)
    spec = lab.GuestSpec(cpus=2, memory_mb=3072, modules=modules, timeout_s=GUEST_S)
    program = str(ROOT / "tests/people/in_managers.py")
    root = cache_dir() / "machines" / request.param / "root"
    argv = ["/usr/bin/python3", "-B", program, str(root), str(programs)]
    env = {"PYTHONPATH": str(ROOT)}
    done = lab.run(spec, argv, env=env, stream=False)
    found = {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}
    return found, f"{done.trouble()}\n{done.stderr}"


@pytest.mark.parametrize("name", in_managers.TESTS)
def test_the_weights_arrive(results, name, capsys):
    found, trouble = results
    result = found.get(name, {"reason": "not run", "output": trouble})
    with capsys.disabled():
        for figure in re.findall(r"^FIGURE (.*)", result["output"], re.M):
            print(f"\nfigure: {figure}")
    assert not result["reason"], result["output"]
