# SPDX-License-Identifier: GPL-2.0
"""DKMS itself refuses the kernels outside the tested range, unless its settings allow them."""

import shutil
import subprocess

import pytest
from conftest import ROOT

from mqfair import __version__

REFUSED = 77  # the exit status of dkms for BUILD_EXCLUSIVE
ACCEPTED = "Your kernel headers for kernel"  # What is said of a kernel that has none.
ALLOW = 'BUILD_EXCLUSIVE_KERNEL=""\n'
# /etc/dkms is a folder of the machine, so dkms gets another one in a namespace of its own.
IN_NAMESPACE = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/dkms && exec "$@"')


@pytest.fixture
def dkms(tmp_path):
    """A function that runs dkms on this checkout; returns its exit status and its messages."""
    source = tmp_path / "src" / f"mqfair-{__version__}"
    for name in ("kernel", "sched"):
        shutil.copytree(ROOT / name, source / name)
    shutil.copy(ROOT / "kernel" / "dkms.conf", source)
    settings = tmp_path / "settings"
    settings.mkdir()
    tree = tmp_path / "tree"
    tree.mkdir()
    trees = ("--sourcetree", tmp_path / "src", "--dkmstree", tree)

    def build(release, allow=""):
        (settings / "mqfair.conf").write_text(allow)
        argv = ["dkms", "build", "-m", "mqfair", "-v", __version__, "-k", release, *trees]
        done = subprocess.run(
            [*IN_NAMESPACE, settings, *argv],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    return build


@pytest.mark.parametrize("release", ["5.10.0-99-none", "7.4.0-99-none"])
def test_dkms_refuses_a_kernel_outside_the_range(dkms, release):
    status, said = dkms(release)
    assert status == REFUSED, said
    assert "BUILD_EXCLUSIVE" in said


def test_dkms_accepts_a_kernel_inside_the_range(dkms):
    status, said = dkms("6.12.0-99-none")
    assert status != REFUSED and ACCEPTED in said, said


def test_a_line_of_the_settings_lifts_the_refusal(dkms):
    status, said = dkms("7.4.0-99-none", ALLOW)
    assert status != REFUSED and ACCEPTED in said, said
