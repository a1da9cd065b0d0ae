# SPDX-License-Identifier: GPL-2.0
"""Calibration: the decision on fake devices, then the whole verb on a fake machine.

A fake device is a function from a setting to a throughput; its noise is seeded.
"""

import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from mqfair.__main__ import main
from mqfair.text.errors import Failure
from mqfair.tune import calibrate
from mqfair.tune.calibrate import SIZES_KIB, THRESHOLDS_KB
from mqfair.tune.knee import (
    NOISE_GOAL,
    NOISE_MOST,
    REPEATS_MOST,
    TOLERANCE,
    Curve,
    ascending,
    between,
    find_knee,
    measurements,
    powers_of_two,
    reach,
)

QUEUE = "/sys/block/nvme0n1/queue"


def saturating(slots, per_slot=1000.0):
    return lambda outstanding: per_slot * min(outstanding, slots)


def noisy(device, relative, seed):
    rng = random.Random(seed)
    return lambda setting: device(setting) * (1 + rng.uniform(-relative, relative))


def curve(samples):
    """A Curve of {setting: [repeat, ...]}, each of REPEATS."""
    built = Curve()
    left = {setting: list(repeats) for setting, repeats in samples.items()}
    built.measure(lambda setting: left[setting].pop(0), sorted(samples))
    assert not any(left.values())
    return built


# --- the decision


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 8, 12, 16, 28, 64, 96, 128, 1024])
def test_knee_of_a_device_is_its_slots(slots):
    knee = find_knee(saturating(slots), powers_of_two(1024))
    assert knee.setting == slots
    assert knee.full == 1000 * slots
    assert knee.noise == 0
    assert knee.tolerance == TOLERANCE
    assert knee.rising == (slots == 1024)


@pytest.mark.parametrize("slots", [5, 7, 50, 65, 100, 1000])
def test_knee_between_two_settings_is_the_greater_one(slots):
    """The least sufficient setting: the next lower one loses more than the tolerance."""
    knee = find_knee(saturating(slots), powers_of_two(1024))
    assert knee.setting in knee.settings
    assert min(knee.setting, slots) >= (1 - TOLERANCE) * slots
    below = max(setting for setting in knee.settings if setting < knee.setting)
    assert below < (1 - TOLERANCE) * slots
    assert knee.setting <= 1.25 * slots or knee.setting <= 4 + slots


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("slots", [4, 16, 64, 256])
def test_noisy_plateau(slots, seed):
    knee = find_knee(noisy(saturating(slots), 0.05, seed), powers_of_two(1024))
    assert knee.setting == slots
    assert 0.95 * 1000 * slots <= knee.full <= 1.05 * 1000 * slots
    assert 0 < knee.noise <= NOISE_MOST
    assert knee.tolerance == TOLERANCE + knee.noise
    assert not knee.rising
    assert not knee.noisy


@pytest.mark.parametrize("seed", range(10))
def test_a_rising_curve_gives_the_greatest_setting_and_a_note(seed):
    knee = find_knee(noisy(saturating(10**6), 0.03, seed), powers_of_two(64))
    assert knee.setting == 64
    assert knee.rising


def test_single_slot():
    measured = []
    knee = find_knee(lambda n: measured.append(n) or 100.0, powers_of_two(1))
    assert knee.setting == 1
    assert not knee.rising
    assert measured == [1, 1, 1]


def test_repeats_are_interleaved_and_the_refinement_compares_with_the_most():
    measured = []

    def device(n):
        measured.append(n)
        return float(min(n, 16))

    find_knee(device, powers_of_two(64))
    assert measured == [*([1, 2, 4, 8, 16, 32, 64] * 3), *([8, 10, 12, 14, 16, 64] * 3)]
    assert len(measured) == measurements(powers_of_two(64))


@pytest.mark.parametrize(
    ("slots", "reached"), [(1, 8), (4, 16), (16, 64), (100, 512), (512, 1024), (4096, 1024)]
)
def test_reach_ends_two_steps_beyond_the_knee(slots, reached):
    settings, rates = reach(saturating(slots), powers_of_two(1024))
    assert settings == [n for n in powers_of_two(1024) if n <= reached]
    assert rates == [1000 * min(n, slots) for n in settings]


def test_reach_continues_while_throughput_rises():
    gains = {n: 100 * 1.02**i for i, n in enumerate(powers_of_two(1024))}
    assert reach(gains.__getitem__, powers_of_two(1024))[0] == powers_of_two(1024)


@pytest.mark.parametrize("seed", range(20))
def test_reach_of_a_noisy_device(seed):
    settings, _ = reach(noisy(saturating(64), 0.1, seed), powers_of_two(1024))
    assert settings[-1] >= 128


def test_slowing_down_beyond_the_knee_is_not_full_throughput():
    throughput = {1: 10, 2: 20, 4: 40, 8: 80, 16: 60, 32: 50}
    knee = curve({n: [v] * 3 for n, v in throughput.items()}).knee()
    assert (knee.setting, knee.full, knee.rising) == (8, 80, False)


def test_one_outlier_changes_nothing():
    samples = {n: [min(n, 8) * 10.0] * 3 for n in (1, 2, 4, 8, 16)}
    samples[2][1] = 500.0
    samples[16][0] = 1.0
    knee = curve(samples).knee()
    assert (knee.setting, knee.full) == (8, 80)


def test_a_lucky_setting_on_the_slope_is_no_knee():
    """Its median is high, but greater settings gave less, so the fall is smoothed away."""
    throughput = {1: 100, 2: 780, 4: 400, 8: 800, 16: 800}
    assert curve({n: [v] * 3 for n, v in throughput.items()}).knee().setting == 8


def test_a_lucky_best_setting_is_not_full_throughput():
    throughput = {1: 100, 2: 200, 4: 785, 8: 800, 16: 805, 32: 790, 64: 815}
    knee = curve({n: [v] * 3 for n, v in throughput.items()}).knee()
    assert knee.full == 805
    assert knee.setting == 4


def test_the_tolerance_for_noise_is_bounded():
    samples = {n: [min(n, 8) * v for v in (0.6, 1.0, 1.4)] for n in (1, 2, 4, 8, 16)}
    knee = curve(samples).knee()
    assert knee.noise == pytest.approx(2 * 0.4 / 3**0.5)
    assert knee.tolerance == TOLERANCE + NOISE_MOST
    assert knee.noisy
    assert knee.setting == 8


def test_noise_causes_more_repeats():
    rng = random.Random(1)
    turns = [0]

    def device(setting):
        turns[0] += setting == 1
        return min(setting, 8) * rng.uniform(0.85, 1.15)

    noisy_curve = Curve()
    noisy_curve.measure(device, [1, 2, 4, 8, 16], spare=lambda _count: True)
    assert 3 < turns[0] <= REPEATS_MOST
    assert noisy_curve.knee().setting == 8
    assert noisy_curve.knee().noise <= NOISE_GOAL or turns[0] == REPEATS_MOST


def test_repeats_end_when_the_time_is_used_up():
    asked = []

    def spare(count):
        asked.append(count)
        return len(asked) < 3

    measured = []
    device = noisy(saturating(8), 0.5, seed=2)
    Curve().measure(lambda n: measured.append(n) or device(n), [1, 2, 4], spare, reserve=7)
    assert asked == [10, 10, 10]
    assert len(measured) == (3 + 2) * 3


def test_no_more_repeats_without_noise():
    find_knee(saturating(8), powers_of_two(64), spare=lambda _count: pytest.fail("asked for more"))


def test_a_device_without_throughput():
    assert curve({n: [0.0] * 3 for n in (1, 2, 4)}).knee().full == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([1, 2, 3], [1, 2, 3]),
        ([3, 2, 1], [2, 2, 2]),
        ([1, 4, 2, 3, 9], [1, 3, 3, 3, 9]),
        ([5, 5, 4], [14 / 3] * 3),
    ],
)
def test_ascending(given, expected):
    assert ascending(given) == pytest.approx(expected)


def test_ascending_keeps_the_sum_and_never_falls():
    rng = random.Random(3)
    for _ in range(200):
        values = [rng.random() for _ in range(rng.randrange(1, 12))]
        found = ascending(values)
        assert sum(found) == pytest.approx(sum(values))
        assert all(a <= b for a, b in itertools.pairwise(found))


def test_steps():
    assert powers_of_two(1) == [1]
    assert powers_of_two(2) == [1, 2]
    assert powers_of_two(48) == [1, 2, 4, 8, 16, 32, 48]
    assert powers_of_two(64) == [1, 2, 4, 8, 16, 32, 64]
    assert between(1, 2) == []
    assert between(2, 4) == [3]
    assert between(32, 64) == [40, 48, 56]


# --- the verb


class FakeDrive:
    """A device with a throughput by the tunables: `knees` by size in KiB, and a least T."""

    def __init__(self, machine):
        self.machine = machine
        self.queue = QUEUE
        self.knees = {64: 16, 16: 32, 4: 64}
        self.least_kb = 16
        self.started = []
        self.running = 0
        self.on_rate = lambda: None

    def tunable(self, name):
        return int(self.machine.get(f"{self.queue}/iosched/{name}").split()[0])

    def load(self, _disk, argv):
        return FakeLoad(self, argv)


class FakeLoad:
    def __init__(self, drive, argv):
        self.drive = drive
        self.options = dict(word[2:].split("=", 1) for word in argv[1:] if "=" in word)
        self.size_kib = int(self.options["bs"].removesuffix("k"))
        drive.started.append((argv, self.options))
        drive.running += 1

    def await_start(self):
        assert self.drive.machine.get(f"{self.drive.queue}/scheduler").count("[mqfq]")

    def rate(self, window_s):
        assert window_s > 0
        self.drive.on_rate()
        slots = min(self.drive.tunable("depth"), self.drive.knees[self.size_kib])
        held_back = 1.0 if self.drive.tunable("threshold_kb") >= self.drive.least_kb else 0.5
        return slots * self.size_kib * 1024 / 0.001 * held_back

    def stop(self):
        self.drive.running -= 1


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    machine.put("/sys/block/nvme0n1/stat", " ".join(["0"] * 17))
    machine.put("/dev/nvme0n1", "")
    return machine


@pytest.fixture
def drive(host, monkeypatch):
    built = FakeDrive(host)
    monkeypatch.setattr(calibrate, "Load", built.load)
    monkeypatch.setattr(calibrate.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(calibrate.os, "sched_getaffinity", lambda _pid: {0, 1})
    return built


def busy_after_first_look(host, monkeypatch, reads):
    def sleep(_seconds):
        host.put("/sys/block/nvme0n1/stat", f"{reads} 0 {8 * reads} " + " ".join(["0"] * 14))

    monkeypatch.setattr("mqfair.tune.calibrate.time.sleep", sleep)


def test_chooses_and_sets_both(host, drive, run):
    result = run("enable", "nvme0n1", "--calibrate")
    assert (result.code, drive.running) == (0, 0)
    assert host.get(f"{QUEUE}/iosched/depth") == "64 auto"
    assert host.get(f"{QUEUE}/iosched/threshold_kb") == "16"
    assert "[mqfq]" in host.get(f"{QUEUE}/scheduler")
    # D begins with 64 and grows: 4 tags for each of 128 slots.
    assert host.get(f"{QUEUE}/nr_requests") == "256"
    assert "depth 64: the fewest outstanding requests with 97% of full" in result.out
    assert "(64 KiB needs 16, 16 KiB needs 32, 4 KiB needs 64)" in result.out
    assert "threshold_kb 16: the least threshold with 97%" in result.out
    assert "nvme0n1: mqfq (was none)" in result.out
    assert "*100 %" in result.out
    assert "depth at 64 KiB" in result.err


def test_json(drive, run):
    result = run("enable", "nvme0n1", "--calibrate", "--json")
    report = result.json
    assert report["schema"] == "mqfair.enable/1"
    found = report["calibration"]
    assert (found["depth"], found["threshold_kb"]) == (64, 16)
    assert (found["threads"], found["hardware_slots"]) == (2, 128)
    assert [c["size_kib"] for c in found["depth_curves"]] == list(SIZES_KIB)
    assert [c["depth"] for c in found["depth_curves"]] == [16, 32, 64]
    points = found["depth_curves"][0]["points"]
    assert {"depth": 8, "bytes_per_s": 8 * 64 * 1024 * 1000} in points
    thresholds = found["threshold_curve"]["points"]
    assert [p["threshold_kb"] for p in thresholds] == list(THRESHOLDS_KB)
    assert len(found["reasons"]) == 2
    assert found["notes"] == []
    assert report["tunables"]["depth"] == "64 auto"
    assert report["previous"] == "none"


def test_the_load_only_reads_and_keeps_requests_waiting(drive, run):
    run("enable", "nvme0n1", "--calibrate")
    assert [options["bs"] for _, options in drive.started] == ["64k", "16k", "4k"]
    for argv, options in drive.started:
        assert "--readonly" in argv
        assert (options["rw"], options["direct"]) == ("randread", "1")
        assert options["thread"] == "1"
        assert options["filename"] == "/dev/nvme0n1"
        assert options["cpus_allowed"] == "0,1"
        assert int(options["iodepth"]) * int(options["numjobs"]) >= 2 * 128


def test_threads_are_spread_over_the_queues(host, drive, run, monkeypatch):
    host.queue("nvme0n1", 0, cpus="0, 1, 2, 3")
    host.queue("nvme0n1", 1, cpus="4, 5, 6, 7")
    monkeypatch.setattr(calibrate.os, "sched_getaffinity", lambda _pid: set(range(1, 8)))
    assert run("enable", "nvme0n1", "--calibrate").code == 0
    assert drive.started[0][1]["cpus_allowed"] == "1,4,2,5,3,6,7"


def multipath(host, *paths):
    """nvme2n1 with @paths, which have no nodes."""
    host.stacked("nvme2n1", "259:9", "")
    for name in paths:
        host.disk(name, None)
        host.host(f"/dev/{name}").unlink()
        host.put(f"/sys/block/{name}/stat", " ".join(["0"] * 17))


@pytest.mark.parametrize("name", ["nvme2n1", "nvme2c0n1"])
def test_the_one_path_of_a_head_is_read_by_the_head(host, drive, run, name):
    multipath(host, "nvme2c0n1")
    drive.queue = "/sys/block/nvme2c0n1/queue"
    assert run("enable", name, "--calibrate").code == 0
    assert {options["filename"] for _, options in drive.started} == {"/dev/nvme2n1"}
    assert host.get(f"{drive.queue}/iosched/depth") == "64 auto"


@pytest.mark.parametrize("names", [["nvme2n1"], ["nvme2c1n1"], ["nvme0n1", "nvme2n1"]])
def test_several_paths_of_a_head_are_refused_and_untouched(host, drive, run, names):
    """The head chooses the path of a read, so some reads would not come to the one measured."""
    multipath(host, "nvme2c0n1", "nvme2c1n1")
    result = run("enable", *names, "--calibrate")
    assert (result.code, host.stores, drive.started) == (2, [], [])
    assert result.err.count("\n") == 1
    assert "nvme2n1 sends reads to several paths (nvme2c0n1 nvme2c1n1)" in result.err
    assert "leave out --calibrate" in result.err
    assert run("enable", *names).code == 0


def test_throughput_that_never_saturates(drive, run):
    drive.knees[4] = 10**6
    result = run("enable", "nvme0n1", "--calibrate")
    assert "depth 128: the fewest" in result.out
    assert "note: no plateau found: throughput rises up to all 128 hardware slots" in result.out


def test_a_device_with_more_slots_than_are_tried(host, drive, run):
    for queue in (0, 1):
        host.queue("nvme0n1", queue, cpus=str(queue), tags=1023)
    drive.knees[4] = 10**6
    result = run("enable", "nvme0n1", "--calibrate")
    assert "still rises at 1024, the greatest depth tried (the hardware has 2046" in result.out
    assert host.get(f"{QUEUE}/iosched/depth") == "1024 auto"


def test_single_slot_device(machine, drive, run):
    machine.host(f"{QUEUE}/../mq/1/nr_tags").unlink()
    machine.host(f"{QUEUE}/../mq/1/cpu_list").unlink()
    machine.host(f"{QUEUE}/../mq/1").rmdir()
    machine.queue("nvme0n1", 0, cpus="0, 1", tags=1)
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 0
    assert machine.get(f"{QUEUE}/iosched/depth") == "1 auto"
    assert "no plateau" not in result.out


def test_a_threshold_without_cost(drive, run):
    drive.least_kb = 0
    result = run("enable", "nvme0n1", "--calibrate")
    assert "threshold_kb 0: the least" in result.out


def test_the_cost_is_set_during_and_after_the_measurement(host, drive, run):
    seen = set()
    drive.on_rate = lambda: seen.add(host.get(f"{QUEUE}/iosched/cost"))
    assert run("enable", "nvme0n1", "--calibrate", "--cost", "iops").code == 0
    assert seen == {"iops"}
    assert host.get(f"{QUEUE}/iosched/cost") == "iops"


def test_busy_device_is_refused_and_untouched(host, drive, run, monkeypatch):
    busy_after_first_look(host, monkeypatch, 11)
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 1
    assert "nvme0n1 is busy (11 requests in 1 s)" in result.err
    assert "--force" in result.err
    assert host.stores == []
    assert drive.started == []


def test_few_requests_are_not_busy_and_force_skips_the_check(host, drive, run, monkeypatch):
    busy_after_first_look(host, monkeypatch, 10)
    assert run("enable", "nvme0n1", "--calibrate").code == 0
    host.put("/sys/block/nvme0n1/stat", " ".join(["0"] * 17))
    busy_after_first_look(host, monkeypatch, 1000)
    assert run("enable", "nvme0n1", "--calibrate", "--force").code == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(host, drive, run, how):
    host.put(f"{QUEUE}/nr_requests", "77")
    before = host.snapshot()
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    drive.on_rate = lambda: signal.raise_signal(how)
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 130
    assert result.err.endswith("\nmqfair: interrupted; all settings are as before\n")
    assert drive.running == 0
    assert host.stores[-2:] == [
        f"write 'none' to '{QUEUE}/scheduler'",
        f"write '77' to '{QUEUE}/nr_requests'",
    ]
    assert host.snapshot() == before
    assert {one: signal.getsignal(one) for one in handlers} == handlers


def test_killed(host, drive):
    """SIGKILL leaves no clean-up to this program: its guardian restores the disk."""
    host.put(f"{QUEUE}/nr_requests", "77")
    before = host.snapshot()
    drive.on_rate = lambda: os.kill(os.getpid(), signal.SIGKILL)
    program = multiprocessing.get_context("fork").Process(
        target=main, args=(["enable", "nvme0n1", "--calibrate"],)
    )
    program.start()
    program.join(60)
    assert program.exitcode == -signal.SIGKILL
    deadline = time.monotonic() + 30
    while host.snapshot() != before:
        assert time.monotonic() < deadline, host.snapshot()


def test_fio_dies_with_a_killed_program(disk, tmp_path):
    pid = tmp_path / "pid"

    def measure():
        load = calibrate.Load(disk, ["sleep", "600"])
        pid.write_text(str(load._fio.pid))
        os.kill(os.getpid(), signal.SIGKILL)

    program = multiprocessing.get_context("fork").Process(target=measure)
    program.start()
    program.join(60)
    process = Path("/proc") / pid.read_text() / "stat"
    deadline = time.monotonic() + 30
    # The process that reaps orphans may leave a zombie.
    while process.exists() and process.read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, process.read_text()


def test_interrupts_take_effect_only_during_a_sleep():
    """At other places fio may have started without being recorded, or a lock may be taken."""
    passed = []
    with pytest.raises(KeyboardInterrupt), calibrate.interrupted_once():
        signal.raise_signal(signal.SIGTERM)
        passed.append("the signal")
        calibrate._interruption.sleep(0)
        passed.append("the sleep")
    assert passed == ["the signal"]
    with pytest.raises(KeyboardInterrupt), calibrate.interrupted_once():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        passed.append("the block")
    assert passed == ["the signal", "the block"]


def test_interrupted_while_enabled_restores_the_tunables(host, drive, run):
    run("enable", "nvme0n1", "--depth", "128", "--nr-requests", "64")
    before = host.snapshot()

    def die():
        if drive.tunable("depth") == 8:
            raise Failure("the drive caught fire")

    drive.on_rate = die
    result = run("enable", "nvme0n1", "--calibrate")
    assert (result.code, drive.running) == (1, 0)
    assert "caught fire" in result.err
    assert host.snapshot() == before
    assert "auto" in host.get(f"{QUEUE}/iosched/threshold_kb")


def test_an_enabled_disk_can_be_calibrated_again(host, drive, run):
    run("enable", "nvme0n1", "--depth", "3")
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 0
    assert "as before" in result.out
    assert host.get(f"{QUEUE}/iosched/depth") == "64 auto"


def test_the_calibrated_depth_may_have_changed_when_it_is_read_back(host, drive, run, monkeypatch):
    store = host.store
    monkeypatch.setattr(
        host,
        "store",
        lambda path, value: store(path, "128 auto" if value == "64 auto" else value),
    )
    result = run("enable", "nvme0n1", "--calibrate")
    assert (result.code, result.err.count("reads back")) == (0, 0)
    assert host.get(f"{QUEUE}/iosched/depth") == "128 auto"


def test_a_device_too_slow_for_the_time_limit(host, drive, run, monkeypatch):
    before = host.snapshot()
    real = FakeLoad.rate
    monkeypatch.setattr(FakeLoad, "rate", lambda self, window_s: real(self, window_s) / 300)
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 1
    assert "too slow to be calibrated within 60 s (a request takes 300 ms)" in result.err
    assert "--calibrate-time" in result.err
    assert host.snapshot() == before


def test_a_device_that_completes_nothing(host, drive, run):
    drive.knees = dict.fromkeys(SIZES_KIB, 0)
    before = host.snapshot()
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 1
    assert "completed nothing" in result.err
    assert host.snapshot() == before


def test_without_fio(host, run, monkeypatch):
    monkeypatch.setattr(calibrate.shutil, "which", lambda _name: None)
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 2
    assert "fio is missing" in result.err
    assert host.stores == []


def test_path_device_without_a_node(host, drive, run):
    host.host("/dev/nvme0n1").unlink()
    result = run("enable", "nvme0n1", "--calibrate")
    assert result.code == 2
    assert "no /dev/nvme0n1" in result.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--calibrate", "--depth", "4"), "--calibrate and --depth exclude each other"),
        (("--calibrate", "--threshold-kb", "0"), "--calibrate and --threshold-kb"),
        (("--calibrate", "--dry-run"), "--calibrate and --dry-run"),
        (("--calibrate", "--scheduler", "wdt"), "not for wdt"),
        (("--calibrate", "--calibrate-time", "9"), "10..3600"),
        (("--calibrate", "--calibrate-time", "x"), "10..3600"),
        (("--force",), "--force needs --calibrate"),
        (("--calibrate-time", "60"), "--calibrate-time needs --calibrate"),
    ],
)
def test_bad_options_change_nothing(host, drive, run, options, said):
    result = run("enable", "nvme0n1", *options)
    assert result.code == 2
    assert said in result.err
    assert host.stores == []
    assert drive.started == []


# --- fio and the kernel's counters


@pytest.fixture
def disk(host):
    from mqfair.machine.blockdev import find_disk
    from mqfair.machine.fs import Fs

    return find_disk(Fs(), "nvme0n1")


def test_activity_counts_reads_writes_and_discards(host, disk):
    host.put("/sys/block/nvme0n1/stat", "5 1 80 9 7 2 16 3 0 1 2 4 0 32 1 0 0")
    assert calibrate.activity(disk) == calibrate.Activity(requests=16, read_bytes=80 * 512)
    host.put("/sys/block/nvme0n1/stat", "5 1 80 9 7 2 16 3 0 1 2")
    assert calibrate.activity(disk).requests == 12


def test_the_rate_is_the_slope_of_the_bytes_read(host, disk, monkeypatch):
    clock = [100.0]

    def sleep(seconds):
        clock[0] += seconds
        sectors = round((clock[0] - 100.0) * 2000)
        host.put("/sys/block/nvme0n1/stat", f"1 0 {sectors} " + " ".join(["0"] * 14))

    monkeypatch.setattr("mqfair.tune.calibrate.time.sleep", sleep)
    monkeypatch.setattr("mqfair.tune.calibrate.time.monotonic", lambda: clock[0])
    load = calibrate.Load(disk, ["sleep", "60"])
    try:
        assert load.rate(1.0) == pytest.approx(2000 * 512, rel=0.01)
    finally:
        load.stop()


def test_fio_that_dies_is_quoted(disk):
    script = "import sys; sys.exit('fio: engine libaio not loadable')"
    load = calibrate.Load(disk, [sys.executable, "-c", script])
    load._fio.wait()
    with pytest.raises(Failure, match="fio ended with status 1: fio: engine libaio not loadable"):
        load.await_start()
    load.stop()


def test_stop_ends_fio(disk):
    load = calibrate.Load(disk, ["sleep", "600"])
    load.require_alive()
    load.stop()
    assert load._fio.returncode == -signal.SIGKILL
