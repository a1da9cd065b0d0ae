# SPDX-License-Identifier: GPL-2.0
"""RPM packages, and the wheel of the command for PyPI."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from mqfair import __version__


def call(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def rpms(tmp_path_factory):
    """rpmlint has found neither an error nor a warning in them."""
    folder = tmp_path_factory.mktemp("rpm")
    call(ROOT / "packaging/rpm/build", folder)
    return folder


def contents(package):
    return set(call("rpm", "-qp", "--list", package).splitlines())


def test_the_rpm_of_the_command(rpms):
    package = rpms / f"mqfair-{__version__}-1.noarch.rpm"
    assert {
        "/etc/mqfair.conf",
        "/usr/bin/mqfair",
        "/usr/lib/mqfair/mqfair/__main__.py",
        "/usr/lib/systemd/system/mqfair.service",
        "/usr/lib/udev/rules.d/99-mqfair.rules",
        "/usr/share/bash-completion/completions/mqfair",
        "/usr/share/man/man8/mqfair-top.8.gz",
    } <= contents(package)
    assert call("rpm", "-qp", "--configfiles", package).split() == ["/etc/mqfair.conf"]


def test_the_rpm_of_the_module_has_the_sources_that_dkms_builds(rpms):
    found = contents(rpms / f"mqfair-dkms-{__version__}-1.noarch.rpm")
    folder = f"/usr/src/mqfair-{__version__}"
    for room in ("kernel", "sched"):
        for source in (ROOT / room).rglob("*.[ch]"):
            inner = source.relative_to(ROOT)
            if not inner.is_relative_to("kernel/ssd"):
                assert f"{folder}/{inner}" in found
    assert {f"{folder}/dkms.conf", f"{folder}/kernel/build"} <= found
    assert not [name for name in found if "ssd/" in name]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A virtual environment with the wheel alone; twine has checked the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    call(ROOT / "packaging/wheel", sys.executable, folder / "dist")
    (wheel,) = (folder / "dist").glob("*.whl")
    call(sys.executable, "-m", "venv", folder / "venv")
    call(folder / "venv/bin/pip", "install", "-q", "--no-index", wheel)
    return folder / "venv"


def site_packages(environment):
    (place,) = environment.glob("lib/python3*/site-packages")
    return place


def test_the_wheel_installs_a_command_that_runs(installed, tmp_path):
    command = installed / "bin/mqfair"
    assert call(command, "--version", cwd=tmp_path).startswith(f"mqfair {__version__}\n")
    assert "--scheduler" in call(command, "enable", "--help", cwd=tmp_path)
    place = site_packages(installed)
    for room, target in (("mqfair", "mqfair"), ("lab", "mqfair/private/lab")):
        for file in (ROOT / room).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and file.name != "bootstrap":
                assert (place / target / file.relative_to(ROOT / room)).exists(), file


DESCRIPTION = """scheduler mqfq
set depth 16
device 2 80000 500
flow a weight 300
flow b weight 100
load a depth 64 bytes 4096
load b depth 64 bytes 4096
warm_ms 100
run_ms 1000
"""
PLAY = """
import sys
from mqfair.bench.simulated import program
flows = program.play(program.ensure(), sys.stdin.read())["flows"]
print(program.ensure(), flows["a"]["bytes"] / flows["b"]["bytes"])
"""


def test_the_wheel_has_the_simulator(installed, tmp_path):
    done = subprocess.run(
        [installed / "bin/python", "-c", PLAY],
        input=DESCRIPTION,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    place, ratio = done.stdout.split()
    assert Path(place) == site_packages(installed) / "mqfair/bench/simulated/sim-run"
    assert float(ratio) == pytest.approx(3, rel=0.01)
    # A program of shared libraries names the one that loads them.
    assert "INTERP" not in call("readelf", "--program-headers", place)


def test_the_wheel_leaves_the_name_lab_to_other_projects(installed, tmp_path):
    place = site_packages(installed)
    record = (place / f"mqfair-{__version__}.dist-info/RECORD").read_text()
    names = {line.partition("/")[0] for line in record.splitlines()}
    assert names == {"..", "mqfair", f"mqfair-{__version__}.dist-info"}
    (place / "lab").mkdir()
    (place / "lab/__init__.py").write_text("OTHER = True\n")
    assert "--machine" in call(installed / "bin/mqfair", "lab", "exec", "--help", cwd=tmp_path)
    call(installed / "bin/python", "-c", "import mqfair, lab; assert lab.OTHER", cwd=tmp_path)
