# SPDX-License-Identifier: GPL-2.0
"""The packages on whole Debian machines: DKMS, systemd and udev.

dpkg and DKMS run in a chroot of the machine, where the processor is not emulated. Then a guest
boots the machine, with the tests of in_machine.py. A second guest boots it with the units enabled,
as after a restart of the machine, with the tests of in_boot.py.
"""

import contextlib
import json
import os
import re
import subprocess

import in_boot
import in_machine
import pytest
from conftest import ROOT

import lab
from lab import debian

NEXT = "0.9.9"
# DKMS compiles the module twice in the emulated guest. Beside other work on two processors of the
# host, this took 2,845 s and 852 s.
GUEST_S = 7200.0
NAMES = ("mqfair", "mqfair-dkms", "mqfair-ssd-dkms")


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """This version and a higher one; lintian has checked the first."""
    folder = tmp_path_factory.mktemp("packages")
    program = ROOT / "packaging/deb"
    later = [program, "--no-lint", "--version", NEXT, "--out", folder / "next"]
    for argv in ([program, "--out", folder / "this"], later):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder


class Trial:
    """One machine, which the tests of this file change one after the other."""

    def __init__(self, machine, packages):
        self.machine = machine
        self.packages = packages
        self.before = in_machine.listing(machine.root)
        (packages / "before.json").write_text(json.dumps(sorted(self.before)))
        self._results = {}

    def call(self, *argv):
        status, output = self.machine.call(*argv)
        assert status == 0, output
        return output

    def install(self, which):
        return self.call("dpkg", "-i", *sorted(map(str, (self.packages / which).glob("*.deb"))))

    @contextlib.contextmanager
    def enabled(self):
        """The units and files of in_boot.py, for the time of a boot."""
        files = [self.machine.root / name.lstrip("/") for name in in_boot.FILES]
        before = {file: file.read_text() for file in files if file.exists()}
        in_boot.prepare(self.machine.root)
        # in_boot.py reads the answers of the endpoint with it.
        self.call("apt-get", "-y", "-q", "install", "python3-prometheus-client")
        self.call("systemctl", "enable", *in_boot.UNITS)
        try:
            yield
        finally:
            self.call("systemctl", "disable", *in_boot.UNITS)
            for file in files:
                if file in before:
                    file.write_text(before[file])
                else:
                    file.unlink()
                    # The folder of the drop-in alone is empty now.
                    with contextlib.suppress(OSError):
                        file.parent.rmdir()

    def installed(self):
        """The version of each package of DKMS that is installed for the machine's kernel."""
        release = re.escape(debian.tree_of(self.machine.base).release)
        status = self.call("dkms", "status")
        return dict(re.findall(rf"^([\w-]+)/([\w.]+), {release}, .*: installed", status, re.M))

    def in_guest(self, tests, name, capsys):
        """The result of a test of the module @tests; the first question boots its guest."""
        if tests not in self._results:
            with self.enabled() if tests is in_boot else contextlib.nullcontext():
                self._results[tests] = self._boot(tests, capsys)
        results, trouble = self._results[tests]
        return results.get(name, {"reason": "not run", "output": trouble})

    def _boot(self, tests, capsys):
        spec = lab.GuestSpec(
            cpus=2,
            memory_mb=3072,
            drives=(lab.Drive(size=1 << 30, iops=2000),),
            machine=str(self.machine.base),
            timeout_s=GUEST_S,
            host_dirs=(lab.HostDir(ROOT / "tests", True), lab.HostDir(self.packages, True)),
        )
        program = [tests.__file__, str(self.packages)]
        result = lab.run(spec, ["/usr/bin/python3", "-B", *program], stream=False)
        results = {one["name"]: one for one in map(json.loads, result.stdout.splitlines())}
        for one in results.values():
            with capsys.disabled():
                for figure in re.findall(r"^FIGURE (.*)", one["output"], re.M):
                    print(f"\nfigure: {result.kernel}: {figure}")
        return results, result.trouble() or result.stderr


@pytest.fixture(scope="module", params=debian.MACHINES)
def trial(request, packages):
    if os.geteuid() != 0:
        pytest.skip("only root can make a machine")
    with debian.changed(request.param, [packages]) as machine:
        yield Trial(machine, packages)


def test_the_installation_builds_both_modules(trial):
    trial.install("this")
    this = in_machine.version("this", trial.packages)
    assert trial.installed() == {"mqfair": this, "mqfair-ssd": this}


@pytest.mark.parametrize("name", in_machine.TESTS)
def test_in_a_guest(trial, name, capsys):
    result = trial.in_guest(in_machine, name, capsys)
    assert not result["reason"], result["output"]


@pytest.mark.parametrize("name", in_boot.TESTS)
def test_after_a_boot(trial, name, capsys):
    result = trial.in_guest(in_boot, name, capsys)
    assert not result["reason"], result["output"]


def test_an_upgrade_replaces_both_modules(trial):
    trial.install("next")
    assert trial.installed() == {"mqfair": NEXT, "mqfair-ssd": NEXT}
    left = sorted(path.name for path in (trial.machine.root / "usr/src").glob("mqfair*"))
    assert left == [f"mqfair-{NEXT}", f"mqfair-ssd-{NEXT}"]


def test_a_removal_keeps_the_configuration_alone(trial):
    trial.call("dpkg", "-r", *NAMES)
    new = in_machine.listing(trial.machine.root) - trial.before
    assert [path for path in sorted(new) if "mqfair" in path] == ["etc/mqfair.conf"]
    assert trial.installed() == {}
