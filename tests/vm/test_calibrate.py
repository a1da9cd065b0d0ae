# SPDX-License-Identifier: GPL-2.0
"""Calibration of a device with a known depth. With timed completion null_blk serves one request in
each hardware slot, so D is the number of slots."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from fairlib import COUNTED_PAIR, check_settled
from guestlib import NullBlk, run, slow, time_limit, wait_until

guest = COUNTED_PAIR

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 4
SLOW = {
    "irqmode": 2,
    "completion_nsec": 8_000_000,
    "submit_queues": 2,
    "hw_queue_depth": SLOTS // 2,
}


def calibrate(disk, *options):
    os.chdir(ROOT)
    return [sys.executable, "-m", "mqfair", "enable", disk.name, "--calibrate", *options]


def relative(curve, depth):
    points = {point["depth"]: point["bytes_per_s"] for point in curve["points"]}
    return points[depth] / curve["full_bytes_per_s"]


@slow
@time_limit(300)
def test_depth_is_the_number_of_hardware_slots():
    with NullBlk(**SLOW) as disk:
        done = run(*calibrate(disk, "--calibrate-time", "30", "--json"))
        found = json.loads(done.stdout)["calibration"]
        assert found["hardware_slots"] == SLOTS
        assert disk.scheduler == "mqfq"
        # Nothing has run since, so the search has not gone on from there.
        assert disk.tunable("depth") == f"{found['depth']} auto"
        assert disk.tunable("threshold_kb") == str(found["threshold_kb"])
        check_settled(disk)
        assert found["depth"] == SLOTS, found
        assert all(relative(curve, 1) < 0.5 for curve in found["depth_curves"]), found


def test_an_interrupted_calibration_restores_the_disk():
    with NullBlk(**SLOW) as disk:
        disk.scheduler = "none"
        tags = disk.queue("nr_requests")
        argv = calibrate(disk, "--calibrate-time", "30")
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: disk.in_flight() > 0, "fio reads")
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 130
        assert disk.scheduler == "none"
        assert disk.queue("nr_requests") == tags
        assert disk.in_flight() == 0


def test_a_killed_calibration_restores_the_disk():
    """The guardian restores the settings, and the kernel ends fio."""
    with NullBlk(**SLOW) as disk:
        disk.scheduler = "none"
        tags = disk.queue("nr_requests")
        argv = calibrate(disk, "--calibrate-time", "30")
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: disk.in_flight() > 0, "fio reads")
            process.kill()
        wait_until(lambda: disk.scheduler == "none", "the scheduler is as before")
        wait_until(lambda: disk.queue("nr_requests") == tags, "nr_requests is as before")
        wait_until(lambda: disk.in_flight() == 0, "fio has ended")
