# SPDX-License-Identifier: GPL-2.0
"""The lists of tested kernels agree, and DKMS refuses the kernels outside of them."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

import lab
from lab import matrix
from lab.errors import LabError
from mqfair.machine import dkms, kmod

sys.path.insert(0, str(ROOT / "kernel" / "btf"))

import tested

PACKAGES = ("kernel/dkms.conf", "kernel/ssd/dkms.conf")


def test_every_list_of_kernels_is_the_same():
    assert dkms.OLDEST == tested.OLDEST == matrix.series()[0]
    assert matrix.series()[-1] == dkms.NEWEST
    assert kmod.TESTED == tested.TESTED == tuple(lab.KERNELS)


@pytest.mark.parametrize("judge", [kmod.is_tested, tested.is_tested])
def test_a_release_belongs_to_its_series(judge):
    assert all(map(judge, ("6.1.0-56-amd64", "6.12.95+deb12-amd64", "7.2.13", "7.2-uml")))
    assert not any(map(judge, ("6.10.3", "6.11.0-8-generic", "6.18.2", "7.21.0", "5.15.0")))


def refused_by_dkms(package, release):
    """The decision of dkms, which is a test of bash."""
    script = '. "$1"; [[ ! $2 =~ $BUILD_EXCLUSIVE_KERNEL ]]'
    argv = ["bash", "-c", script, "bash", str(ROOT / package), release]
    return subprocess.run(argv, check=False).returncode == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_dkms_refuses_kernels_outside_the_tested_range(package):
    for release in ("6.1.0-56-amd64", "6.12.95+deb12-amd64", "6.18.2-1-generic", "7.3.4"):
        assert not refused_by_dkms(package, release), release
    for release in ("5.15.0-91-generic", "6.0.12", "7.4.0", "7.20.1", "8.0.0", "61.2.0"):
        assert refused_by_dkms(package, release), release


@pytest.mark.parametrize("package", PACKAGES)
def test_dkms_accepts_the_kernels_of_the_compile_tests_and_no_others(package):
    assert matrix.accepted(ROOT / package) == matrix.series()
    for series in matrix.series():
        assert not refused_by_dkms(package, f"{series}.0-1-generic"), series


def test_a_range_that_differs_from_the_compile_tests_is_named(monkeypatch):
    monkeypatch.setattr(matrix, "ROWS", matrix.ROWS[1:])
    with pytest.raises(LabError, match=r"kernel/dkms.conf: .* differ in Linux 6\.1: correct one"):
        matrix.check_range()


@pytest.mark.parametrize("package", PACKAGES)
def test_dkms_names_the_file_that_lifts_the_refusal(package):
    text = (ROOT / package).read_text()
    (name,) = re.findall(r'^PACKAGE_NAME="(.*)"$', text, re.MULTILINE)
    assert f"/etc/dkms/{name}.conf" in text
