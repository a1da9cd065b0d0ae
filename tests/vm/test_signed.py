# SPDX-License-Identifier: GPL-2.0
"""A kernel that loads only signed modules, as under Secure Boot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from fairlib import TIMED
from guestlib import Cgroup, Guest, NullBlk, rmmod, run, write

# The switch cannot be undone, so no other test is in this guest.
guest = Guest(cpus=1, memory_mb=768, needs_module=True)

ROOT = Path(__file__).resolve().parents[2]
RELEASE = os.uname().release
MODULES = Path("/run/small/lib/modules")


def install_module() -> None:
    """Makes a tree of modules with mqfair alone, in the place where modprobe looks."""
    file = MODULES / RELEASE / "updates" / "mqfair.ko"
    file.parent.mkdir(parents=True)
    shutil.copy(ROOT / "build" / "module" / RELEASE / "mqfair.ko", file)
    for name in ("modules.order", "modules.builtin"):
        (MODULES / RELEASE / name).touch()
    run("depmod", "-b", "/run/small", RELEASE)
    run("mount", "--bind", MODULES, "/lib/modules")
    Path("/run/modprobe.d/lab.conf").unlink()


def mqfair(*argv: str) -> subprocess.CompletedProcess[str]:
    os.chdir(ROOT)
    done = run(sys.executable, "-m", "mqfair", *argv, check=False)
    print(done.stdout, done.stderr, sep="\n")
    return done


def test_an_unsigned_module_is_named_with_the_remedy() -> None:
    rmmod("mqfair")
    with NullBlk(**TIMED) as disk, Cgroup("prod"), Cgroup("batch"):
        disk.scheduler = "none"
        install_module()
        write("/sys/module/module/parameters/sig_enforce", "Y")
        refused = run("modprobe", "mqfair", check=False)
        assert refused.returncode, "this kernel loads unsigned modules"
        done = mqfair("enable", disk.name)
        assert done.returncode == 1
        assert "loads only signed modules (module.sig_enforce=1)" in done.stderr
        assert f"/lib/modules/{RELEASE}/updates/mqfair.ko has no signature" in done.stderr
        assert disk.scheduler == "none"
        done = mqfair("check", disk.name, "prod")
        assert done.returncode == 1
        assert "mokutil --import" in done.stdout
        assert "-> mqfair enable" not in done.stdout
