# SPDX-License-Identifier: GPL-2.0
"""The speed of the virtual SSD, in counted time: it is that of its model, with little overhead."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlib import COUNTED_GUEST, Load, tenants
from guestlib import cases, fio, median_read_ms, slow, time_limit
from ssdlib import Ssd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mqfair.bench import iocost

guest = COUNTED_GUEST

TOLERANCE = 0.05
# All pages are written in order, so that reads are served by the flash and not by the buffer.
WHOLE = {"size_mb": 128, "fill": 100, "fill_pattern": "sequential", "hw_depth": 256}
SCALE = 50


# The model's own figures for random reads, from flash-curve: model, size, depth, mean in us.
@cases(
    ("p4500", "4k", 1, 85.3),
    ("p4500", "4k", 32, 127.5),
    ("980pro", "4k", 1, 59.6),
    ("980pro", "4k", 4, 61.2),
    ("980pro", "4k", 32, 80.7),
    ("980pro", "64k", 1, 141.3),
    ("fabric", "1k", 32, 18.4),
)
def test_reads_are_those_of_the_model(model: str, size: str, depth: int, own_us: float) -> None:
    seen = latency_us(model, bs=size, iodepth=depth, number_ios=1000 + 100 * depth)
    assert abs(seen / own_us - 1) < TOLERANCE, f"{seen:.1f} us, the model {own_us}"


def test_writes_are_those_of_the_model() -> None:
    """The load goes on after the write buffer is full."""
    latency_us("p4500", rw="write", bs="16k", iodepth=32, number_ios=2000)


@slow
def test_writes_become_slower_while_it_is_on() -> None:
    """A unit of 16 pages takes 900 us and 16 transfers of 8 us. There is no garbage to collect."""
    with Ssd(model="four-dies", size_mb=128, time_scale=SCALE) as drive:
        drive.scheduler = "none"
        load = {"rw": "randwrite", "bs": "64k", "iodepth": 16}
        rates = []
        for times in (1, 3):
            drive.set("write_times", times)
            # These writes fill the buffer.
            fio(drive, **load, number_ios=50)
            rates.append(fio(drive, **load, number_ios=300)["jobs"][0]["write"]["iops"])
        print(rates)
        assert abs(rates[0] / rates[1] / ((3 * 900 + 128) / (900 + 128)) - 1) < TOLERANCE, rates
        assert not drive.stat()["gc_erases"]


@slow
@time_limit(600)
def test_a_full_stretched_drive_is_measured_for_iocost_in_time() -> None:
    """Collecting garbage, it writes 2 MB/s, and fio waits for the writes outstanding. Half of the
    time limit must do, because a processor that does not count time needs longer."""
    with (
        Ssd(model="980pro", size_mb=128, fill=100, time_scale=100) as drive,
        TemporaryDirectory() as folder,
    ):
        drive.scheduler = "none"
        program = shutil.which("fio")
        assert program
        limit_s = iocost.CALIBRATE_TIMEOUT_S / 2
        found = iocost.calibrate(program, str(drive.path), Path(folder), limit_s)
        stat = drive.stat()
    print(found, stat)
    assert stat["gc_erases"]
    assert found["wbps"] < found["rbps"] / 4


def latency_us(model: str, **load: object) -> float:
    """The mean latency that fio measures, divided by the time scale. Checks it against the model's
    own statistics."""
    with Ssd(model=model, time_scale=SCALE, **WHOLE) as drive:
        drive.scheduler = "none"
        job = fio(drive, **{"rw": "randread", **load})["jobs"][0]
        stat = drive.stat()
    way = job["read"] if job["read"]["total_ios"] else job["write"]
    seen = way["lat_ns"]["mean"] / 1000
    own = stat["service_us"] / stat["commands"]
    late = stat["late_us"] / stat["commands"]
    print(f"{seen / SCALE:.2f} us, the model {own / SCALE:.2f}, interrupts late by {late:.2f}")
    assert abs(seen / own - 1) < TOLERANCE, f"{seen:.0f} us in fio, {own:.0f} us in the model"
    rate = way["iops"]
    most = load["iodepth"] * 1e6 / own  # type: ignore[operator]
    assert rate > (1 - TOLERANCE) * most, f"{rate:.0f} IOPS of {most:.0f}"
    return seen / SCALE


def test_requests_that_pass_go_ahead_where_the_host_keeps_the_map() -> None:
    """Under a scheduler of the kernel no request goes ahead, and none is taken for ours."""
    settings = {
        "model": "980pro",
        "size_mb": 128,
        "fill": 100,
        "fill_pattern": "random",
        "time_scale": 100,
    }
    took = {}
    with Ssd(**settings, ftl="host") as drive, tenants(light=1000, deep=100) as (light, deep):
        for scheduler in ("none", "kyber", "bfq", "mq-deadline", "mqfq"):
            drive.scheduler = scheduler
            with Load(drive, [deep], bs="64k", iodepth=64):
                took[scheduler] = median_read_ms(fio(drive, light, iodepth=1, runtime=2))
        drive.scheduler = "none"
    print(took)
    assert took["mqfq"] < min(took["none"], took["mq-deadline"]) / 2
