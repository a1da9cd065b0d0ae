# SPDX-License-Identifier: GPL-2.0
"""The script that runs before the package of the module is removed, on a machine made of files."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "packaging/debian/mqfair-dkms.prerm"


@pytest.fixture
def removal(tmp_path):
    """Runs the script below @tmp_path; the kernel refuses to unload the module."""
    program = tmp_path / "bin/modprobe"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    # A mqfair of this host is not found.
    for tool in ("grep", "sed"):
        (program.parent / tool).symlink_to(shutil.which(tool))
    text = SCRIPT.read_text()
    assert "/sys/module" in text
    text = text.replace("/sys/module", f"{tmp_path}/sys/module")
    text = text.replace("/sys/block/*", f"{tmp_path}/sys/block/*")
    script = tmp_path / "prerm"
    script.write_text(text)

    def run(action="remove"):
        env = {"PATH": str(program.parent)}
        done = subprocess.run(
            ["/bin/sh", script, action], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0
        return done.stderr.replace(str(tmp_path), "").splitlines()

    for disk, active in (("nvme0n1", "none [mqfq]"), ("nvme1n1", "[none] mqfq"), ("sda", "[wdt]")):
        file = tmp_path / f"sys/block/{disk}/queue/scheduler"
        file.parent.mkdir(parents=True)
        file.write_text(f"{active}\n")
    (tmp_path / "sys/module/mqfair").mkdir(parents=True)
    run.root = tmp_path
    return run


def test_a_module_in_use_is_named_with_its_disks(removal):
    assert removal() == [
        "mqfair-dkms: the module is in use and stays loaded until the next start:",
        "mqfair-dkms: echo none > /sys/block/nvme0n1/queue/scheduler",
        "mqfair-dkms: echo none > /sys/block/sda/queue/scheduler",
        "mqfair-dkms: rmmod mqfair",
    ]


def test_the_command_switches_a_disk_that_a_rule_names(removal):
    """The service would take a `none` back that is written by hand."""
    (removal.root / "bin/mqfair").touch(mode=0o755)
    assert removal()[1:] == [
        "mqfair-dkms: mqfair disable nvme0n1",
        "mqfair-dkms: mqfair disable sda",
        "mqfair-dkms: rmmod mqfair",
    ]


def test_an_upgrade_and_a_machine_without_the_module_say_nothing(removal):
    assert removal("upgrade") == []
    (removal.root / "sys/module/mqfair").rmdir()
    assert removal() == []
