# SPDX-License-Identifier: GPL-2.0
"""Calibration where the truth is known: null_blk with timed completion serves as many requests
at once as it has hardware slots, so D is their number."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fairlib import SMALL_GUEST, check_settled
from guestlib import NullBlk, run, time_limit, wait_until

guest = SMALL_GUEST

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


@time_limit(180)
def test_depth_is_the_number_of_hardware_slots():
    with NullBlk(**SLOW) as disk:
        done = run(*calibrate(disk, "--calibrate-time", "30", "--json"))
        found = json.loads(done.stdout)["calibration"]
        assert found["hardware_slots"] == SLOTS
        assert found["depth"] == SLOTS, found
        assert all(relative(curve, 1) < 0.5 for curve in found["depth_curves"]), found
        assert disk.scheduler == "mqfq"
        assert disk.tunable("depth") == str(SLOTS)
        assert disk.tunable("threshold_kb") == str(found["threshold_kb"])
        check_settled(disk)


@time_limit(90)
def test_interrupted_leaves_the_disk_as_it_was():
    with NullBlk(**SLOW) as disk:
        disk.scheduler = "none"
        tags = disk.queue("nr_requests")
        argv = calibrate(disk, "--calibrate-time", "30")
        with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
            wait_until(lambda: disk.in_flight() > 0, "it reads", timeout_s=60)
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 130
        assert disk.scheduler == "none"
        assert disk.queue("nr_requests") == tags
        assert disk.in_flight() == 0
