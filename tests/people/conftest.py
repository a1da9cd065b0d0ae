# SPDX-License-Identifier: GPL-2.0
"""The suite of the programs that people use beside the command: a terminal, Prometheus, a browser.

The machine made of files is that of tests/cli.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.cache import cache_dir

ROOT = Path(__file__).resolve().parents[2]


def _load_machine():
    place = ROOT / "tests/cli/conftest.py"
    spec = importlib.util.spec_from_file_location("cli_conftest", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules["cli_conftest"] = module
    spec.loader.exec_module(module)
    return module.Machine


Machine = _load_machine()

FIGURES = (
    "{number} rbytes={bytes} wbytes=0 rios={ios} wios=0 dbytes=0 dios=0 mqfair.weight={weight}"
    " mqfair.share_ppm={share} mqfair.bytes={bytes} mqfair.ios={ios} mqfair.wait_us={wait}"
    " mqfair.short_ms={short} mqfair.service_us=310 mqfair.slowdown_percent={slowdown}"
    " mqfair.ahead=-123 mqfair.p50_us=640 mqfair.p99_us=2500 mqfair.goal_us=0"
    " mqfair.part_ppm={part} mqfair.inside_x100=400 mqfair.waiting_x100=900"
    " mqfair.cost_inside=4096 mqfair.done={ios} mqfair.drive_us={drive} mqfair.cost={bytes}"
)
PRESSURE = """\
some avg10=46.80 avg60=31.29 avg300=9.52 total={us}
full avg10=43.51 avg60=28.72 avg300=8.72 total={us}
"""
STATE = (
    "threshold 65536\nwindow 40\nwindow_tried 40\nwindow_trials 7\nisolation_loss_permille 20"
    "\nisolation_met_ppm 910000\ndepth 128\nwakes 5\nnull_dispatches 0\nwatchdog 0"
)


class Cluster:
    """A machine with pods of containers on two drives. Each step adds to all counters."""

    def __init__(self, root: Path, pods: int, containers: int) -> None:
        self.root = root
        self.machine = Machine(root)
        self.machine.install_module()
        self.machine.disk(active="mqfq")
        self.machine.disk("nvme1n1", "259:1", active="ifq")
        for disk in ("nvme0n1", "nvme1n1"):
            self.machine.put(f"/sys/kernel/debug/block/{disk}/sched/state", STATE)
        for pod in range(pods):
            self.machine.cgroup(f"pods.slice/pod{pod:03}", subtree="io", weight="default 300")
        self.names = [
            f"pods.slice/pod{pod:03}/container-{one:02}"
            for pod in range(pods)
            for one in range(containers)
        ]
        for name in self.names:
            self.machine.cgroup(name)
        self.steps = 0
        self.step()

    def step(self) -> None:
        self.steps += 1
        for index, name in enumerate(self.names):
            lines = [self._line(index, number) for number in ("259:0", "259:1")]
            self.machine.put(f"/sys/fs/cgroup/{name}/io.stat", "\n".join(lines))
            us = 1000 * self.steps * (index % 40)
            self.machine.put(f"/sys/fs/cgroup/{name}/io.pressure", PRESSURE.format(us=us))
        done = self.steps * 1000
        for disk in ("nvme0n1", "nvme1n1"):
            self.machine.put(f"/sys/block/{disk}/stat", f"{done} 0 {8 * done} 5 {'0 ' * 13}")

    def _line(self, index: int, number: str) -> str:
        ios = 1 + self.steps * (index % 40)
        return FIGURES.format(
            number=number, bytes=4096 * ios, ios=ios, weight=100 + index, share=20000, part=20000,
            wait=900 * ios, drive=310 * ios, short=20 * self.steps if index % 7 == 0 else 0,
            slowdown=100 + index,
        )  # fmt: skip

    def env(self) -> dict[str, str]:
        return {**os.environ, "MQFAIR_ROOT": str(self.root), "PYTHONPATH": str(ROOT)}

    def command(self, *argv: str, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mqfair", *argv],
            capture_output=True, text=True, check=False, timeout=120, env=self.env(), cwd=ROOT,
            **options,
        )  # fmt: skip


@pytest.fixture
def cluster(tmp_path):
    """Two pods with five containers each."""
    return Cluster(tmp_path, 2, 5)


@pytest.fixture
def large_cluster():
    """500 containers, on a file system in memory, as cgroupfs is one."""
    root = Path(f"/dev/shm/mqfair-people-{os.getpid()}")
    try:
        yield Cluster(root, 25, 20)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def require(program: str) -> str:
    """The place of a program that the suite needs; `make test-people` installs it."""
    place = shutil.which(program)
    assert place, f"{program} is missing: run lab/bootstrap people"
    return place


def built_module(*kernel: str) -> Path:
    """The module for a kernel of the lab."""
    argv = ["/usr/bin/python3", "-m", "lab", "module", *kernel]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT)
    return ROOT / done.stdout.strip()


def go(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs go in contrib/nri. Its programs need no library, so that any machine can run them."""
    assert shutil.which("go"), "run lab/bootstrap nri"
    cache = cache_dir() / "go"
    env = {
        **os.environ, "GOCACHE": str(cache / "build"), "GOMODCACHE": str(cache / "modules"),
        "CGO_ENABLED": "0",
    }  # fmt: skip
    return subprocess.run(
        ["go", *words], cwd=ROOT / "contrib/nri", env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
