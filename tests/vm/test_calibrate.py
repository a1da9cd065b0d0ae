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
from nvmet import connected

guest = COUNTED_PAIR

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 4
# The fewest requests that a path of NVMe over TCP can have.
LEAST_QUEUE = 16
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


@slow
@time_limit(600)
def test_the_one_path_of_a_multipath_head_is_calibrated_by_the_head():
    """A request also takes time on its way, so the greatest rate may need more than SLOTS."""
    one_queue = {**SLOW, "submit_queues": 1, "hw_queue_depth": SLOTS}
    path_of = {"nr_io_queues": 1, "queue_size": LEAST_QUEUE}
    with NullBlk(**one_queue) as drive, connected(drive, 1, **path_of) as controllers:
        head, path = controllers[0].head, controllers[0].path
        done = run(*calibrate(head, "--calibrate-time", "30", "--json"))
        report = json.loads(done.stdout)
        found = report["calibration"]
        assert (report["device"], path.scheduler) == (path.name, "mqfq")
        assert path.tunable("depth") == f"{found['depth']} auto"
        check_settled(path)
        assert SLOTS <= found["depth"] <= 2 * SLOTS, found


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
