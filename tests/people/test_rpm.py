# SPDX-License-Identifier: GPL-2.0
"""The RPM packages, installed, upgraded and removed in the root of a whole machine.

No RPM distribution is at hand. So rpm of this host installs the packages into a copy of a Debian
machine, without their dependencies. The scripts of the packages run in a chroot of that root. There
DKMS builds the module for the machine's kernel, and systemd does not run.
"""

import os
import subprocess

import in_machine
import pytest
from conftest import ROOT, require

from lab import debian
from mqfair import __version__

NEXT = "0.9.9"
NAMES = ("mqfair", "mqfair-dkms")
# rpm changes its root itself. Its scripts need /proc and /dev there.
RPM = """\
mount --rbind /proc "$0/proc"
mount --rbind /dev "$0/dev"
exec rpm --root "$0" --dbpath /var/lib/rpm "$@"
"""


class Trial:
    def __init__(self, machine, packages):
        self.machine = machine
        self.packages = packages
        self.release = debian.tree_of(machine.base).release
        # DKMS asks for the running kernel, which is this host's.
        uname = machine.root / "usr/bin/uname"
        uname.rename(f"{uname}.real")
        answer = f'[ "$1" = -r ] && exec echo {self.release}'
        uname.write_text(f'#!/bin/sh\n{answer}\nexec uname.real "$@"\n')
        uname.chmod(0o755)
        self.before = in_machine.listing(machine.root)

    def rpm(self, *argv):
        """The output of rpm on the root of the machine, and that of the packages' scripts."""
        call = ["unshare", "--mount", "sh", "-c", RPM, str(self.machine.root), *argv]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def files(self, version):
        return [str(self.packages / version / f"{name}-{version}-1.noarch.rpm") for name in NAMES]

    def call(self, *argv):
        status, output = self.machine.call(*argv)
        assert status == 0, output
        return output

    def new(self):
        """The files that the machine did not have, by names with mqfair."""
        found = in_machine.listing(self.machine.root) - self.before
        return sorted(path for path in found if "mqfair" in path)

    def built(self):
        """The state of the module in DKMS, and the version of the module's file."""
        status = self.call("dkms", "status", "mqfair").strip()
        return status, self.call("modinfo", "-k", self.release, "-F", "version", "mqfair").strip()


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("only root can make a machine")
    require("rpm")
    packages = tmp_path_factory.mktemp("rpm")
    for version in (__version__, NEXT):
        argv = [ROOT / "packaging/rpm/build", packages / version, version]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    with debian.changed("debian12", []) as machine:
        yield Trial(machine, packages)


def test_the_installation_builds_the_module(trial):
    trial.rpm("-i", "--nodeps", *trial.files(__version__))
    assert trial.built() == (
        f"mqfair/{__version__}, {trial.release}, x86_64: installed",
        __version__,
    )


def test_every_file_is_as_packed(trial):
    """rpm compares contents, owners, modes and times."""
    for name in NAMES:
        assert trial.rpm("-V", "--nodeps", name) == ""
        for path in trial.rpm("-q", "--list", name).splitlines():
            assert os.path.lexists(trial.machine.root / path.lstrip("/")), path


def test_the_command_runs(trial):
    assert trial.call("mqfair", "--version").startswith(f"mqfair {__version__}\n")
    assert "--scheduler" in trial.call("mqfair", "enable", "--help")
    for verb in ("bench", "report", "metrics", "lab"):
        assert "examples:" in trial.call("mqfair", verb, "--help")
    units = ("mqfair.service", "mqfair-metrics.service", "mqfair-metrics.socket")
    for unit in units:
        text = (trial.machine.root / "usr/lib/systemd/system" / unit).read_text()
        assert "@" not in text
        assert ("/usr/bin/mqfair" in text) == unit.endswith(".service")
    rule = (trial.machine.root / "usr/lib/udev/rules.d/99-mqfair.rules").read_text()
    assert "/usr/bin/mqfair" in rule


def test_an_upgrade_replaces_the_module_and_keeps_the_configuration(trial):
    conf = trial.machine.root / "etc/mqfair.conf"
    conf.write_text(conf.read_text() + "mirror = false\n")
    trial.rpm("-U", "--nodeps", *trial.files(NEXT))
    assert trial.built() == (f"mqfair/{NEXT}, {trial.release}, x86_64: installed", NEXT)
    sources = sorted(path.name for path in (trial.machine.root / "usr/src").glob("mqfair*"))
    assert sources == [f"mqfair-{NEXT}"]
    assert conf.read_text().endswith("mirror = false\n")
    assert trial.call("mqfair", "--version").startswith(f"mqfair {NEXT}\n")


def test_a_removal_leaves_the_changed_configuration_alone(trial):
    trial.rpm("-e", *NAMES)
    assert trial.new() == ["etc/mqfair.conf.rpmsave"]
    assert trial.call("dkms", "status", "mqfair").strip() == ""
