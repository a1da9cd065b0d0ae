# SPDX-License-Identifier: GPL-2.0
"""mqfair qualify on an emulated NVMe drive and on a virtual SSD."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

from fairlib import SMALL_GUEST
from guestlib import CGROUP_ROOT, PYTHON, Disk, nvme_disks, read, run, slow, time_limit, wait_until
from ssdlib import Ssd

guest = SMALL_GUEST

ROOT = Path(__file__).resolve().parents[2]
SSD = {"model": "p4500", "size_mb": 128, "time_scale": 300}
WRITTEN = 6  # the sectors written, in the stat file of a disk


def qualify(disk: Disk, folder: Path, *words: str) -> list[str]:
    os.chdir(ROOT)
    short = ["--repeat", "1", "--runtime", "1", "--depths", "64"]
    argv = [os.environ[PYTHON], "-m", "mqfair", "qualify", disk.name, "--out", str(folder)]
    return [*argv, *short, *words]


def settings(disk: Disk) -> dict[str, str]:
    """All that a qualification changes."""
    files = (disk.sysfs / "queue/iosched").iterdir()
    found = {file.name: disk.tunable(file.name) for file in files}
    found |= {"scheduler": disk.scheduler, "nr_requests": disk.queue("nr_requests")}
    return found | {"subtree": read(CGROUP_ROOT / "cgroup.subtree_control")}


def worst(found: dict, load: str, scheduler: str) -> float:
    (bench,) = [one for one in found["benches"] if one["job"] == load]
    (one,) = [one for one in bench["runs"] if one["scheduler"] == scheduler]
    return min(group["share"] / group["due"] for group in one["cgroups"])


@slow
@time_limit(400)
def test_an_interrupted_qualification_restores_the_drive_and_goes_on() -> None:
    with tempfile.TemporaryDirectory() as name:
        interrupt_and_go_on(Path(name))


def interrupt_and_go_on(folder: Path) -> None:
    disk = nvme_disks()[2]
    disk.scheduler = "mqfq"
    disk.set_tunable("depth", "48")
    disk.set_queue("nr_requests", 300)
    before = settings(disk)
    argv = qualify(disk, folder, "--schedulers", "none,mqfq")
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        wait_until((folder / "runs/002").exists, "the third run begins", 200)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert process.returncode == 130, said
    assert "scheduler, cgroups and modules are as before; --resume goes on from there" in said
    assert settings(disk) == before
    assert not (CGROUP_ROOT / "mqfair-bench").exists()

    print(run(*argv, "--resume").stdout)
    assert settings(disk) == before
    assert int(read(disk.sysfs / "stat").split()[WRITTEN]) == 0, "fio wrote to the drive"
    text = (folder / "qualify.json").read_text()
    found = json.loads(text)
    assert found["drive"]["model"] == "QEMU NVMe Ctrl"
    assert read(disk.sysfs / "device/serial") not in text
    assert worst(found, "two-64", "mqfq") > 0.9
    assert worst(found, "two-64", "none") < 0.8
    runs = [one for bench in found["benches"] for one in bench["runs"]]
    assert all(one["cpu"]["context_switches"] > 0 < one["cpu"]["busy_us"] for one in runs)
    assert "<svg" in (folder / "qualify.html").read_text()
    disk.scheduler = "none"


@slow
@time_limit(400)
def test_a_destructive_qualification_of_a_virtual_ssd() -> None:
    with tempfile.TemporaryDirectory() as name, Ssd(**SSD) as disk:
        folder = Path(name)
        print(run(*qualify(disk, folder, "--schedulers", "none,mqfq", "--destructive")).stdout)
        assert disk.scheduler == "none"
        found = json.loads((folder / "qualify.json").read_text())
        assert found["destructive"] and found["drive"]["bytes"] == 128 << 20
        (mixed,) = [one for one in found["benches"] if one["job"] == "mixed"]
        groups = [group for one in mixed["runs"] for group in one["cgroups"]]
        assert {"small", "scan", "reader", "writer"} == {group["name"] for group in groups}
        assert all(group["iops"] > 0 for group in groups)
        assert "writes" in [one["job"] for one in found["benches"]]
        assert disk.stat()["written_bytes"] >= 128 << 20
