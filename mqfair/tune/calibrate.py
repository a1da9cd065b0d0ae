# SPDX-License-Identifier: GPL-2.0
"""Calibration: finds mqfq's depth D and threshold T for a device with a load of its own.

After Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, section 3.3. A one-time load of varying
concurrency and request size finds D, the least number of outstanding requests that saturates the
device. Then T is the least threshold that costs no throughput in the worst case, many threads of
small requests.

fio reads at random places with one thread per CPU, taken from all hardware queues in turn, at most
THREADS_MOST. Each thread has more requests waiting than the scheduler dispatches. fio runs once for
each request size. Meanwhile the scheduler's tunables are changed, and the kernel's count of the
bytes read is sampled. So the result holds for this device behind this scheduler on this machine,
which is where the tunables apply. Nothing is written to the device.

The scheduler begins with this D and follows the load from there (sched/isolation/window.h).
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import linear_regression, mean
from types import FrameType

from mqfair.machine.blockdev import Disk, multipath_paths
from mqfair.machine.signals import ENDING, die_with_parent
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import overwrite, table
from mqfair.tune.knee import (
    REPEATS,
    TOLERANCE,
    Curve,
    Knee,
    Spare,
    find_knee,
    measurements,
    powers_of_two,
    reach,
)

# The smallest size comes last, because T is found with it.
SIZES_KIB = (64, 16, 4)
THRESHOLDS_KB = (0, 4, 16, 64, 256, 1024, 8192)
SECONDS_DEFAULT = 60
SECONDS_LEAST = 10
SECONDS_MOST = 3600
# The calibration fails if it takes this many times its time limit.
OVERTIME = 1.5

DEPTH_MOST = 1024
THREADS_MOST = 32
# Requests that the threads keep waiting for each device slot. The scheduler must always have one to
# dispatch, from every queue.
WAITING_PER_SLOT = 2

# A device with more requests than this from others is in use.
IDLE_REQUESTS_PER_S = 10
IDLE_LOOK_S = 1.0

# A device of fixed latency completes in bursts, one per latency. Over LATENCIES_PER_WINDOW bursts
# the slope of a fitted line is accurate to one percent; under LATENCIES_LEAST it is not usable.
LATENCIES_PER_WINDOW = 10
LATENCIES_LEAST = 4
WINDOW_LEAST_S = 0.1
FIRST_WINDOW_S = 0.3
SAMPLES_PER_WINDOW = 32
SAMPLES_LEAST = 8
# After a change the requests dispatched before it must leave the device first.
SETTLE_LATENCIES = 1.5
SETTLE_LEAST_S = 0.03

SECTOR = 512
FIO_START_S = 30.0


@dataclass(frozen=True)
class Activity:
    """Counters of /sys/block/NAME/stat."""

    requests: int
    read_bytes: int


def activity(disk: Disk) -> Activity:
    path = f"{disk.path}/stat"
    fields = [int(word) for word in disk.fs.read(path).split()]
    discards = fields[11] if len(fields) > 11 else 0
    return Activity(fields[0] + fields[4] + discards, fields[2] * SECTOR)


@dataclass(frozen=True)
class Calibration:
    """The result. @by_size has the curve of each request size in KiB, in the order of SIZES_KIB;
    @slots is the number of hardware slots."""

    by_size: dict[int, Knee]
    threshold: Knee
    threads: int
    slots: int
    seconds: float

    @property
    def depth(self) -> int:
        return max(knee.setting for knee in self.by_size.values())

    @property
    def threshold_kb(self) -> int:
        return self.threshold.setting

    def tunables(self) -> dict[str, str]:
        """The depth is a start: the scheduler goes on from there."""
        return {"depth": f"{self.depth} auto", "threshold_kb": str(self.threshold_kb)}

    def as_json(self) -> dict[str, object]:
        return {
            "depth": self.depth,
            "threshold_kb": self.threshold_kb,
            "threads": self.threads,
            "hardware_slots": self.slots,
            "seconds": round(self.seconds, 1),
            "depth_curves": [
                {"size_kib": size, **_curve_json("depth", knee)}
                for size, knee in self.by_size.items()
            ],
            "threshold_curve": {
                "size_kib": SIZES_KIB[-1],
                **_curve_json("threshold_kb", self.threshold),
            },
            "reasons": self.reasons(),
            "notes": self.notes(),
        }

    def reasons(self) -> list[str]:
        least = min(1 - knee.tolerance for knee in self.by_size.values())
        each = ", ".join(f"{size} KiB needs {k.setting}" for size, k in self.by_size.items())
        return [
            f"depth {self.depth}: the fewest outstanding requests with {least:.0%} of full"
            f" throughput at every size ({each})",
            f"threshold_kb {self.threshold_kb}: the least threshold with"
            f" {1 - self.threshold.tolerance:.0%} of full throughput for {self.threads} threads"
            f" of {SIZES_KIB[-1]} KiB reads",
        ]

    def notes(self) -> list[str]:
        uncertain = [
            f"depth at {s} KiB by {k.noise:.0%}" for s, k in self.by_size.items() if k.noisy
        ]
        if self.threshold.noisy:
            uncertain.append(f"threshold_kb by {self.threshold.noise:.0%}")
        found = []
        if uncertain:
            found.append(
                f"the measurements are uncertain ({', '.join(uncertain)}): other load uses the"
                " device or the processors; calibrate again without it"
            )
        if any(knee.rising and knee.setting == self.depth for knee in self.by_size.values()):
            found.append(self._rising())
        if self.threshold.rising:
            found.append(
                f"throughput still rises at {self.threshold_kb} KiB, the greatest threshold tried"
            )
        return found

    def _rising(self) -> str:
        if self.depth == self.slots:
            return f"no plateau found: throughput rises up to all {self.slots} hardware slots"
        return (
            f"no plateau found: throughput still rises at {self.depth}, the greatest depth tried"
            f" (the hardware has {self.slots} slots)"
        )

    def lines(self) -> list[str]:
        depths = sorted({d for knee in self.by_size.values() for d in knee.settings})
        rows = [
            [str(depth), *(_cell(knee, depth) for knee in self.by_size.values())]
            for depth in depths
        ]
        rows.append(["full, MiB/s", *(f"{k.full / 2**20:.1f}" for k in self.by_size.values())])
        lines = table(["depth", *(f"{size} KiB" for size in self.by_size)], rows)
        rows = [[str(kb), _cell(self.threshold, kb)] for kb in self.threshold.settings]
        lines += ["", *table(["threshold_kb", f"{SIZES_KIB[-1]} KiB"], rows), ""]
        return lines + self.reasons()


def _cell(knee: Knee, setting: int) -> str:
    if setting not in knee.settings:
        return ""
    return f"{'*' if setting == knee.setting else ''}{100 * knee.relative(setting):.0f} %"


def _curve_json(name: str, knee: Knee) -> dict[str, object]:
    return {
        name: knee.setting,
        "full_bytes_per_s": round(knee.full),
        "noise": round(knee.noise, 4),
        "tolerance": round(knee.tolerance, 4),
        "rising": knee.rising,
        "points": [
            {name: setting, "bytes_per_s": round(value)}
            for setting, value in zip(knee.settings, knee.medians, strict=True)
        ],
    }


class Load:
    """A running fio. stop() must be called."""

    def __init__(self, disk: Disk, argv: Sequence[str]) -> None:
        self._disk = disk
        # stop() closes it.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._fio = subprocess.Popen(
            argv,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            cwd=tempfile.gettempdir(),
            # In a session of its own fio does not get the terminal's Ctrl-C.
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 -- there is one thread
        )

    def await_start(self) -> None:
        """Returns after the first read; raises Failure if fio ends or reads nothing."""
        before = activity(self._disk).read_bytes
        deadline = time.monotonic() + FIO_START_S
        while activity(self._disk).read_bytes == before:
            self.require_alive()
            if time.monotonic() > deadline:
                raise Failure(
                    f"fio read nothing from {self._disk.name} in {FIO_START_S:.0f} s:"
                    " see the kernel log (dmesg)"
                )
            _interruption.sleep(0.02)

    def require_alive(self) -> None:
        if self._fio.poll() is None:
            return
        self._errors.seek(0)
        said = [line.strip() for line in self._errors if line.strip()]
        why = " / ".join(said[-3:]) or "no message"
        raise Failure(f"fio ended with status {self._fio.returncode}: {why}")

    def rate(self, window_s: float) -> float:
        """The bytes per second that the device delivers, fitted over @window_s or longer."""
        started = time.monotonic()
        times: list[float] = []
        counts: list[int] = []
        # A slow processor takes fewer samples, or makes the window longer.
        while len(times) < SAMPLES_LEAST or times[-1] < window_s:
            counts.append(activity(self._disk).read_bytes)
            times.append(time.monotonic() - started)
            _interruption.sleep(window_s / SAMPLES_PER_WINDOW)
        self.require_alive()
        return linear_regression(times, counts).slope

    def stop(self) -> None:
        self._fio.kill()
        self._fio.wait()
        self._errors.close()


class Progress:
    """Shows progress on standard error: one line on a terminal, a line per phase elsewhere."""

    def __init__(self, name: str, seconds: int) -> None:
        self._name = name
        self._seconds = seconds
        self._started = time.monotonic()
        self._shown = ""

    def __call__(self, phase: str) -> None:
        if sys.stderr.isatty():
            now = time.monotonic() - self._started
            text = f"calibrating {self._name}: {phase}, {now:.0f} s of at most {self._seconds} s"
            overwrite(text)
        elif phase != self._shown:
            print(f"calibrating {self._name}: {phase}", file=sys.stderr, flush=True)
        self._shown = phase

    def end(self) -> None:
        if self._shown and sys.stderr.isatty():
            overwrite("")


class Calibrator:
    """Measures one disk. mqfq must be active during run(), which changes its tunables."""

    def __init__(self, disk: Disk, seconds: int = SECONDS_DEFAULT) -> None:
        fio = shutil.which("fio")
        if fio is None:
            raise UsageError("--calibrate: fio is missing: install the package fio")
        self._fio = fio
        self._disk = disk
        self._node = _node(disk)
        if not disk.fs.exists(self._node):
            raise UsageError(
                f"--calibrate {disk.name}: no {self._node} to read from: give --depth with a value"
                " calibrated on a device of the same kind"
            )
        self._seconds = seconds
        self._cpus = _spread_cpus(disk)
        self.slots = (disk.hardware_depth() or 1) * max(disk.queue_count(), 1)
        self.most = min(self.slots, DEPTH_MOST)
        self._progress = Progress(disk.name, seconds)
        self._started = 0.0
        self._phases_left = len(SIZES_KIB) + 1

    def require_idle(self) -> None:
        """Raises Failure if the device does other I/O."""
        before = activity(self._disk)
        time.sleep(IDLE_LOOK_S)
        count = activity(self._disk).requests - before.requests
        if count > IDLE_REQUESTS_PER_S * IDLE_LOOK_S:
            raise Failure(
                f"{self._disk.name} is busy ({count} requests in {IDLE_LOOK_S:.0f} s), and"
                " --calibrate measures the whole device: stop its users, or add --force"
            )

    def run(self) -> Calibration:
        began = self._started = time.monotonic()
        by_size: dict[int, Knee] = {}
        try:
            for size in SIZES_KIB[:-1]:
                with self._loaded(size) as load:
                    by_size[size] = self._find_depth(load, size)
            with self._loaded(SIZES_KIB[-1]) as load:
                by_size[SIZES_KIB[-1]] = self._find_depth(load, SIZES_KIB[-1])
                threshold = self._find_threshold(
                    load, max(knee.setting for knee in by_size.values())
                )
        finally:
            self._progress.end()
        return Calibration(
            by_size,
            threshold,
            len(self._cpus),
            self.slots,
            time.monotonic() - began,
        )

    @contextlib.contextmanager
    def _loaded(self, size_kib: int) -> Iterator[Load]:
        load = Load(self._disk, self._argv(size_kib))
        before = time.monotonic()
        try:
            load.await_start()
            # The start of fio does not count against the time limit.
            self._started += time.monotonic() - before
            yield load
        finally:
            load.stop()

    def _argv(self, size_kib: int) -> list[str]:
        threads = len(self._cpus)
        options = {
            "name": "calibrate",
            "filename": self._node.replace(":", "\\:"),
            "ioengine": "libaio",
            "direct": 1,
            "rw": "randread",
            "bs": f"{size_kib}k",
            "iodepth": max(-(-WAITING_PER_SLOT * self.most // threads), 4),
            "numjobs": threads,
            # Jobs that are processes would outlive the fio that stop() kills.
            "thread": 1,
            "cpus_allowed": ",".join(map(str, self._cpus)),
            "cpus_allowed_policy": "split",
            "norandommap": 1,
            "randrepeat": 0,
            "time_based": 1,
            # stop() kills fio, as the kernel does if this program is killed.
            "runtime": self._seconds + round(FIO_START_S),
        }
        flags = ["--readonly", "--eta=never"]
        return [self._fio, *flags, *(f"--{name}={value}" for name, value in options.items())]

    def _find_depth(self, load: Load, size_kib: int) -> Knee:
        self._set("threshold_kb", THRESHOLDS_KB[-1])
        size = size_kib * 1024
        probe = Probe(
            load,
            lambda depth: self._set("depth", depth),
            lambda depth: depth * size,
            lambda: self._show(f"depth at {size_kib} KiB"),
        )
        least_s = size / self._first_rate(probe, 1)
        probe.window_s = max(LATENCIES_LEAST * least_s, WINDOW_LEAST_S)
        depths, rates = reach(probe, powers_of_two(self.most))
        latencies_s = [max(depth * size / max(rates), least_s) for depth in depths]
        spare = self._begin_phase(probe, least_s, mean(latencies_s), measurements(depths))
        return find_knee(probe, depths, spare)

    def _first_rate(self, probe: "Probe", setting: int) -> float:
        rate = probe(setting)
        if rate <= 0:
            raise Failure(
                f"{self._disk.name} completed nothing in {FIRST_WINDOW_S} s:"
                " see the kernel log (dmesg)"
            )
        return rate

    def _find_threshold(self, load: Load, depth: int) -> Knee:
        self._set("depth", depth)
        bytes_out = depth * SIZES_KIB[-1] * 1024
        probe = Probe(
            load,
            lambda kb: self._set("threshold_kb", kb),
            lambda _kb: bytes_out,
            lambda: self._show("threshold"),
        )
        latency_s = bytes_out / self._first_rate(probe, THRESHOLDS_KB[-1])
        count = REPEATS * len(THRESHOLDS_KB)
        spare = self._begin_phase(probe, latency_s, latency_s, count)
        curve = Curve()
        curve.measure(probe, THRESHOLDS_KB, spare)
        return curve.knee()

    def _show(self, phase: str) -> None:
        self._progress(phase)
        if time.monotonic() - self._started > OVERTIME * self._seconds:
            raise Failure(
                f"{self._disk.name} was not calibrated within {self._seconds} s, because the device"
                " or the processors are slow: raise --calibrate-time"
            )

    def _begin_phase(self, probe: "Probe", latency_s: float, settle_s: float, count: int) -> Spare:
        """Sets the window of each of @count measurements; returns the phase's Spare.

        The remaining phases divide the remaining time equally. @latency_s is the latency at the
        least setting, @settle_s the mean latency over the settings to come. Raises Failure if the
        time does not suffice.
        """
        now = time.monotonic()
        share = (self._started + self._seconds - now) / self._phases_left
        self._phases_left -= 1
        settling = max(SETTLE_LATENCIES * settle_s, SETTLE_LEAST_S)
        affordable = share / count - settling
        if affordable < max(LATENCIES_LEAST * latency_s, WINDOW_LEAST_S / 2):
            raise Failure(
                f"{self._disk.name} is too slow to be calibrated within {self._seconds} s"
                f" (a request takes {latency_s * 1000:.0f} ms): raise --calibrate-time"
            )
        probe.window_s = min(affordable, max(LATENCIES_PER_WINDOW * latency_s, WINDOW_LEAST_S))
        each = settling + probe.window_s
        return lambda more: time.monotonic() + more * each <= now + share

    def _set(self, name: str, value: int) -> None:
        self._disk.fs.write(self._disk.tunable(name), str(value))


class Probe:
    """Applies a setting, lets the device settle, and measures the rate in bytes per second."""

    def __init__(
        self,
        load: Load,
        apply: Callable[[int], None],
        bytes_out: Callable[[int], int],
        progress: Callable[[], None],
    ) -> None:
        self._load = load
        self._apply = apply
        self._bytes_out = bytes_out
        self._progress = progress
        # The time in which the device completes all its requests: Little's law on the last
        # measurement.
        self._latency_s = FIRST_WINDOW_S
        self.window_s = FIRST_WINDOW_S

    def __call__(self, setting: int) -> float:
        self._progress()
        self._apply(setting)
        _interruption.sleep(max(SETTLE_LATENCIES * self._latency_s, SETTLE_LEAST_S))
        rate = self._load.rate(self.window_s)
        if rate > 0:
            self._latency_s = self._bytes_out(setting) / rate
        return rate


def _node(disk: Disk) -> str:
    """The node to read @disk by: that of its head for a path of NVMe multipath. Raises UsageError
    if the head has other paths, which would serve some of the reads."""
    head = disk.head
    if head is not None:
        paths = " ".join(path.name for path in multipath_paths(head))
        if paths != disk.name:
            raise UsageError(
                f"--calibrate {disk.name}: {head.name} sends reads to several paths ({paths}),"
                " and a measurement needs all of them on one: leave out --calibrate, since the"
                " automatic depth follows the load of each path, or give --depth"
            )
    return f"/dev/{(head or disk).name.replace('!', '/')}"


def _spread_cpus(disk: Disk) -> list[int]:
    """The CPUs that this process may use, one of each hardware queue in turn."""
    left = os.sched_getaffinity(0)
    groups: list[list[int]] = []
    queues = [name for name in disk.fs.subdirs(f"{disk.path}/mq") if name.isdigit()]
    for queue in sorted(queues, key=int):
        text = disk.fs.read_if_any(f"{disk.path}/mq/{queue}/cpu_list") or ""
        mine = left & {int(word) for word in text.replace(",", " ").split()}
        left = left - mine
        groups.append(sorted(mine))
    groups.append(sorted(left))
    turns = max(map(len, groups))
    order = [group[turn] for turn in range(turns) for group in groups if turn < len(group)]
    return order[:THREADS_MOST]


class _Interruption:
    """Turns signals into KeyboardInterrupt, once, and only within sleep().

    At another place the exception could come between the start of fio and the assignment of its
    object, so that fio would keep running. Or it could come inside a lock of `subprocess`, and the
    clean-up would wait for that lock forever.
    """

    def __init__(self) -> None:
        self._sleeping = False
        self.forget()

    def forget(self) -> None:
        self._came = False

    def heed(self, _number: int, _frame: FrameType | None) -> None:
        first, self._came = not self._came, True
        if first and self._sleeping:
            raise KeyboardInterrupt

    def sleep(self, seconds: float) -> None:
        self._sleeping = True
        try:
            self.check()
            time.sleep(seconds)
        finally:
            self._sleeping = False

    def check(self) -> None:
        if self._came:
            raise KeyboardInterrupt


_interruption = _Interruption()


@contextlib.contextmanager
def interrupted_once() -> Iterator[None]:
    """A signal during the block raises KeyboardInterrupt at its next sleep, or at its end."""
    _interruption.forget()
    before = {one: signal.signal(one, _interruption.heed) for one in ENDING}
    try:
        yield
        _interruption.check()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def tolerance_text() -> str:
    return f"{TOLERANCE:.0%} plus the noise of {REPEATS} or more interleaved repeats"
