#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The runner in the guest: runs tests of blktests with one scheduler on every disk.

usage: runner.py SETTINGS

SETTINGS is a JSON object. `checkout` is a folder with blktests, built, and `config` the file with
the kernel's options. `limit_s` ends a test, and `quick_s` is the time of a test that asks for one.
One JSON line goes out before each of `tests` and after it.

A rule of udev sets the scheduler of each new disk, so a test that waits for udev finds it in force.
The paths of NVMe multipath are hidden disks without events, so a thread looks for them. A test may
choose another scheduler later, which stays.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "vm")]

import results  # noqa: E402
from agent import be_patient, print_sleepers, wait_for  # noqa: E402
from guestlib import SPLAT, KernelLog, modprobe, run  # noqa: E402
from lio import make_scsi_disk  # noqa: E402

# Where blktests makes its files. It is a file system on a drive: the root and, on older kernels, a
# tmpfs have no direct I/O.
SCRATCH = Path("/run/blktests")
GIVEN = Path("/run/blktests-given")
_KILL_GRACE_S = 60.0
_RULES = Path("/run/udev/rules.d/99-blktests.rules")
_GIVE = Path("/run/blktests-give")
_DISK_PAGES = 16384
# A disk that is being set up makes the kernel answer EBUSY.
_GIVE_SCRIPT = """\
#!/bin/sh
# Sets scheduler $1 for disk $2, and notes the result.
file=/sys/block/$2/queue/scheduler
[ -e "$file" ] || exit 0
tries=0
while [ $tries -lt 20 ]; do
	if why=$( { echo "$1" > "$file"; } 2>&1 ); then
		echo "$2 given" >> /run/blktests-given
		exit 0
	fi
	case $why in
	*busy*) sleep 0.05 ;;
	*) break ;;
	esac
	tries=$((tries + 1))
done
echo "$2 refused: ${why##*: }" >> /run/blktests-given
"""
# Device mapper makes a disk first, and its request queue with the first table.
_RULE = """\
ACTION=="add", SUBSYSTEM=="block", ENV{{DEVTYPE}}=="disk", RUN+="{give} {scheduler} $kernel"
ACTION=="change", SUBSYSTEM=="block", KERNEL=="dm-*", RUN+="{give} {scheduler} $kernel"
"""
_SYSTEMCTL = """\
#!/bin/sh
echo 'systemctl: no systemd runs in this guest' >&2
exit 1
"""
_PATHS = "nvme*c*n*"
_LOOK_EVERY_S = 0.2
_CONFIG = """\
TEST_DEVS=({disks})
NVMET_TRTYPES="loop tcp"
NVMET_BLKDEV_TYPES=device
NVME_IMG_SIZE=400M
NVME_NUM_ITER=20
"""


def main() -> int:
    settings = json.loads(sys.argv[1])
    be_patient()
    prepare(settings["scheduler"], settings["config"])
    scsi = ""
    log = KernelLog()
    for test in settings["tests"]:
        group = test.partition("/")[0]
        if group == "scsi" and not scsi:
            scsi = scsi_disk_in_memory()
        emit({"start": test})
        started = time.monotonic()
        outcomes, ended = run_test(settings, test, {"scsi": scsi, "zbd": ""})
        complaints = sorted(
            {match.group(0).strip() for match in map(SPLAT.search, log.read()) if match}
        )
        record = [
            {"place": key.place, "status": one.status, "reason": one.reason, "detail": one.detail}
            for key, one in outcomes.items()
        ]
        if complaints:
            record.append({"place": results.KERNEL_LOG, "status": ", ".join(complaints)})
        seconds = round(time.monotonic() - started, 1)
        emit({"test": test, "seconds": seconds, "outcomes": record, "given": given()})
        if ended:
            # The test left tasks and disks. The other tests run in a new guest.
            return 1
    return 0


def emit(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


def prepare(scheduler: str, config: str) -> None:
    # blktests looks for the kernel's options there.
    shutil.copy(config, f"/boot/config-{os.uname().release}")
    # Each call of zgrep starts a dozen processes, 0.8 s of a guest. The file is plain text.
    Path("/run/lab/bin/zgrep").symlink_to("/bin/grep")
    # No systemd runs, and `systemctl list-unit-files` reads each unit of the host, in minutes.
    systemctl = Path("/run/lab/bin/systemctl")
    systemctl.write_text(_SYSTEMCTL)
    systemctl.chmod(0o755)
    # systemd makes this node at boot, and the first losetup loads the module by it.
    with contextlib.suppress(FileExistsError):
        os.mknod("/dev/loop-control", stat.S_IFCHR | 0o660, os.makedev(10, 237))
    _GIVE.write_text(_GIVE_SCRIPT)
    _GIVE.chmod(0o755)
    _RULES.parent.mkdir(parents=True)
    _RULES.write_text(_RULE.format(give=_GIVE, scheduler=scheduler))
    run("/lib/systemd/systemd-udevd", "--daemon")
    run("udevadm", "trigger", "--action=add", "--subsystem-match=block")
    run("udevadm", "settle")
    threading.Thread(target=give_to_paths, args=[scheduler], daemon=True).start()
    scratch = os.environ["LAB_DRIVES"].split()[1]
    run("mkfs.ext4", "-q", scratch)
    SCRATCH.mkdir()
    run("mount", scratch, SCRATCH)


def give_to_paths(scheduler: str) -> None:
    """Sets @scheduler once for each path of NVMe multipath that appears."""
    seen: set[int] = set()
    while True:
        for file in Path("/sys/block").glob(f"{_PATHS}/queue/scheduler"):
            # The path may go meanwhile.
            with contextlib.suppress(FileNotFoundError):
                number = file.stat().st_ino
                if number not in seen:
                    run(_GIVE, scheduler, file.parts[3], check=False)
                    seen.add(number)
        time.sleep(_LOOK_EVERY_S)


def given() -> dict[str, int]:
    """The number of disks since the last call that got the scheduler, and that refused it."""
    lines: list[str] = []
    if GIVEN.exists():
        lines = GIVEN.read_text().splitlines()
        GIVEN.unlink()
    counted = {"given": 0}
    for line in lines:
        word = line.partition(" ")[2]
        counted[word] = counted.get(word, 0) + 1
    return counted


def scsi_disk_in_memory() -> str:
    """A SCSI disk of 64 MiB. Tests load and unload scsi_debug, but not its driver."""
    modprobe("sg")
    disk = make_scsi_disk("rd_mcp", f"rd_pages={_DISK_PAGES}")
    run("udevadm", "settle")
    return str(disk.path)


def run_test(
    settings: dict[str, Any], test: str, disk_of: dict[str, str]
) -> tuple[results.Outcomes, bool]:
    """The outcomes of one test, and whether it was ended at its limit."""
    disk = disk_of.get(test.partition("/")[0], os.environ["LAB_DRIVES"].split()[0])
    config = SCRATCH / "config"
    config.write_text(_CONFIG.format(disks=disk))
    output = SCRATCH / "results"
    argv = ["./check", f"--quick={settings['quick_s']}", "-c", str(config), "-o", str(output), test]
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            argv,
            cwd=settings["checkout"],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        hung = not wait_for(process.pid, settings["limit_s"])
        if hung:
            end(process.pid, printed)
        printed.seek(0)
        limit = settings["limit_s"] if hung else None
        outcomes = results.collect(output, test, printed.read(), limit)
    return {_at_disk(key, disk): one for key, one in outcomes.items()}, hung


def _at_disk(key: results.Key, disk: str) -> results.Key:
    """@key with the same place for the given disk in every boot: its number differs."""
    given = Path(disk).name
    if given and key.place.partition("_")[0] == given:
        return results.Key(key.test, key.place.replace(given, results.GIVEN_DISK, 1))
    return key


def end(session: int, printed: IO[str]) -> None:
    """Prints why the tasks of a hung test wait, and kills it."""
    print_sleepers(printed)  # type: ignore[arg-type]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGKILL)
    wait_for(session, _KILL_GRACE_S)


if __name__ == "__main__":
    sys.exit(main())
