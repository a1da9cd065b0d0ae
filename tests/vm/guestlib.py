# SPDX-License-Identifier: GPL-2.0
"""The library of guest tests. It uses the standard library only, as it runs on the guest's Python.

A test file is tests/vm/test_<name>.py with a ``guest`` and functions named test_*:

    from guestlib import Cgroup, Guest, NullBlk, fio

    guest = Guest(cpus=2, needs_module=True)

    def test_reads_complete():
        with NullBlk(irqmode=0) as disk:
            disk.scheduler = "mqfq"
            assert fio(disk, rw="randread", number_ios=1000)["jobs"][0]["error"] == 0

Files with equal guests share one boot. A test fails by an exception, by its time limit, or by a
warning that the kernel logged during the test. ``@time_limit(seconds)`` sets another time limit.
``raise Skip("reason")`` skips a test. The output of a failed test is shown. ``@cases(...)`` makes
one test of each argument.

The guest is emulated on a busy machine: its processors stop now and then, for a tenth of a second
or longer. So a test waits for conditions, not for a time, and measures over counted I/O. A check
that depends on the clock needs a guest with counted time (``icount``), where no processor stops.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

CGROUP_ROOT = Path("/sys/fs/cgroup")
NULL_BLK_CONFIG = Path("/sys/kernel/config/nullb")
LOCKDEP = Path("/proc/lockdep_stats")
SCSI_DEBUG = Path("/sys/bus/pseudo/drivers/scsi_debug")
MIB = 1 << 20
# Longer than every test that does not hang.
DEFAULT_TIME_LIMIT_S = 360.0
# The checks of the debug kernel take time, so its tests have a multiple of the time limit.
DEBUG_PATIENCE = 3
PATIENCE_S = 60.0
# The environment variable with a folder of libraries that fio loads first; see standins.py.
FIO_LIBRARIES = "MQFAIR_TEST_FIO_LIBRARIES"
# The same for the host's Python, which has the packages of the command. The guest's has none.
PYTHON = "MQFAIR_TEST_PYTHON"
# It is set if the guest counts its time in instructions.
COUNTED = "MQFAIR_TEST_COUNTED"

# The kernel answers EBUSY while another task reconfigures the same tag set.
_BUSY_DELAY_S = 0.05
_REQUEST_TIMEOUT_S = 600

SPLAT = re.compile(
    r"WARNING: |BUG: |BUG at |kernel BUG|\bOops\b|general protection fault|KASAN|KCSAN: |UBSAN"
    r"|INFO: possible|INFO: suspicious|suspicious RCU usage|inconsistent lock state"
    r"|INFO: trying to register"
    r"|possible (recursive|circular) locking|blocked for more than|soft lockup|hard LOCKUP"
    r"|rcu: INFO: .*(stall|blocking)|self-detected stall|list_(add|del) corruption|refcount_t: "
    r"|ODEBUG: |scheduling while atomic|sleeping function called|Call Trace:"
    r"|page allocation failure|cannot create duplicate|kobject_add_internal failed"
)

Function = TypeVar("Function", bound=Callable[..., None])


class Skip(Exception):
    """The test cannot run in this guest, for the given reason."""


@dataclasses.dataclass(frozen=True)
class Guest:
    """The guest that a test file needs; see lab.GuestSpec.

    @nvme lists drives in the syntax of `mqfair lab --nvme`. With @needs_module, mqfair is loaded,
    built with the macros in @defines. With @needs_simulator, sim-run is built.
    """

    cpus: int = 2
    sockets: int = 1
    threads: int = 1
    memory_mb: int = 2048
    nvme: tuple[str, ...] = ()
    icount: bool = False
    append: str = ""
    needs_module: bool = False
    needs_simulator: bool = False
    defines: tuple[str, ...] = ()


def time_limit(seconds: float) -> Callable[[Function], Function]:
    """Marks a test that fails after @seconds."""

    def mark(function: Function) -> Function:
        function.time_limit_s = seconds  # type: ignore[attr-defined]
        return function

    return mark


def only_on(kernel_name: str) -> Callable[[Function], Function]:
    """Marks a test that only the kernel @kernel_name of the lab can run."""

    def mark(function: Function) -> Function:
        function.only_on = kernel_name  # type: ignore[attr-defined]
        return function

    return mark


def expects_reports(pattern: str) -> Callable[[Function], Function]:
    """Marks a test during which the kernel may report lines that match @pattern."""

    def mark(function: Function) -> Function:
        function.expected_reports = pattern  # type: ignore[attr-defined]
        return function

    return mark


def slow(function: Function) -> Function:
    """Marks a test of the suite vm-slow, because it takes too long for every run."""
    function.slow = True  # type: ignore[attr-defined]
    return function


def slow_for(*arguments: object) -> Callable[[Function], Function]:
    """Marks a test of the suite vm-slow for these of its cases or schedulers; the other cases
    represent them in every run."""

    def mark(function: Function) -> Function:
        function.slow_cases = arguments  # type: ignore[attr-defined]
        return function

    return mark


def every_kernel(function: Function) -> Function:
    """Marks a test that `make test` runs on every kernel, but for its slow cases: one of each kind
    that uses an interface which differs between kernels. The other tests run on the distribution's
    kernel, and on every kernel with `make test-kernels`."""
    function.every_kernel = True  # type: ignore[attr-defined]
    return function


def of_each_scheduler(function: Function) -> Function:
    """Marks a test that runs once with the name of each scheduler in the module."""
    function.of_each_scheduler = True  # type: ignore[attr-defined]
    return function


def cases(*arguments: object) -> Callable[[Function], Function]:
    """Marks a test that runs once with each of @arguments; a tuple gives several parameters."""

    def mark(function: Function) -> Function:
        function.cases = arguments  # type: ignore[attr-defined]
        return function

    return mark


# --- files and processes ---------------------------------------------------------------------


def read(path: Path | str) -> str:
    return Path(path).read_text().strip()


def write(path: Path | str, value: object) -> None:
    """Writes without truncating or buffering, so that a refusal raises the kernel's own errno."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def write_fails(path: Path | str, value: object) -> int:
    """The errno with which the kernel refuses @value; fails if the kernel accepts it."""
    try:
        write(path, value)
    except OSError as error:
        return error.errno
    raise AssertionError(f"{path}: accepted {value!r} instead of refusing it")


def wait_until(
    condition: Callable[[], object], statement: str, timeout_s: float = PATIENCE_S
) -> None:
    """Polls @condition; fails with @statement if it stays false. A look costs an emulated processor
    some milliseconds, so looks become rarer: the wait is at most a tenth too long."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        assert waited < timeout_s, f"not true after {timeout_s:g} s: {statement}"
        time.sleep(min(max(0.01, waited / 10), 0.1))


def run(*argv: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, argv))}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


def skip_if_ended(reader: subprocess.Popen[bytes], began: float, held_s: float) -> None:
    """Skips the test if @reader ends in half of @held_s, for which io.max holds its bio back.

    Linux 7.2 lets the throttled bios of a removed cgroup go, so they reference it no longer.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        reader.wait(timeout=1.0)
        if time.monotonic() - began < held_s / 2:
            raise Skip("this kernel lets the throttled bios of a removed cgroup go")


def modprobe(name: str, **parameters: object) -> None:
    run("modprobe", name, *(f"{key}={value}" for key, value in parameters.items()))


def rmmod(name: str) -> None:
    run("rmmod", name)


@contextlib.contextmanager
def loaded(name: str, **parameters: object) -> Iterator[None]:
    """Loads a module for the time of a block; unloading it must succeed."""
    modprobe(name, **parameters)
    try:
        yield
    finally:
        rmmod(name)


# --- the kernel log --------------------------------------------------------------------------


class KernelLog:
    """The kernel's messages since the last read(), at first since now, or with @whole the boot."""

    def __init__(self, *, whole: bool = False) -> None:
        self._fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        if not whole:
            os.lseek(self._fd, 0, os.SEEK_END)

    def close(self) -> None:
        os.close(self._fd)

    def read(self) -> list[str]:
        lines = []
        while True:
            try:
                record = os.read(self._fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return lines
            except BrokenPipeError:
                # Messages were overwritten before they were read; go on with the oldest one.
                continue
            lines.append(record.partition(";")[2].partition("\n")[0])


def splats(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if SPLAT.search(line)]


_END_OF_WARNING = "---[ end trace"


def without_reports(lines: Sequence[str], pattern: str) -> list[str]:
    """@lines without those that match @pattern. A warning goes with its registers and calls."""
    if not pattern:
        return list(lines)
    left: list[str] = []
    within = False
    for line in lines:
        if within:
            within = _END_OF_WARNING not in line
        elif re.search(pattern, line):
            within = "WARNING: " in line
        else:
            left.append(line)
    return left


def is_user_mode() -> bool:
    return "User Mode Linux" in read("/proc/cpuinfo")


def kernel_version() -> tuple[int, ...]:
    """The first two numbers of the release: (6, 12)."""
    return tuple(int(part) for part in os.uname().release.split(".")[:2])


# --- block devices ---------------------------------------------------------------------------


class Disk:
    """A block device and its queue."""

    def __init__(self, name: str) -> None:
        self.name = name.removeprefix("/dev/")
        self.path = Path("/dev") / self.name
        self.sysfs = Path("/sys/block") / self.name

    @property
    def number(self) -> str:
        """MAJ:MIN"""
        return read(self.sysfs / "dev")

    def queue(self, attribute: str) -> str:
        return read(self.sysfs / "queue" / attribute)

    def set_queue(self, attribute: str, value: object) -> None:
        write_when_free(self.sysfs / "queue" / attribute, value)

    @property
    def scheduler(self) -> str:
        chosen = re.search(r"\[([^]]+)\]", self.queue("scheduler"))
        assert chosen, f"{self.name}: no scheduler is marked in {self.queue('scheduler')!r}"
        return chosen.group(1)

    @scheduler.setter
    def scheduler(self, name: str) -> None:
        self.set_queue("scheduler", name)
        assert self.scheduler == name, f"{self.name}: asked for {name}, has {self.scheduler}"

    def tunable(self, name: str) -> str:
        return self.queue(f"iosched/{name}")

    def set_tunable(self, name: str, value: object) -> None:
        self.set_queue(f"iosched/{name}", value)

    def in_flight(self) -> int:
        return sum(int(n) for n in read(self.sysfs / "inflight").split())

    def debugfs(self, path: str) -> str:
        return read(Path("/sys/kernel/debug/block") / self.name / path)


def write_when_free(path: Path, value: object) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return write(path, value)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
        time.sleep(_BUSY_DELAY_S)


def nvme_disks() -> list[Disk]:
    """The disks of Guest.nvme in their order, one for each namespace. User-mode Linux has none."""
    if is_user_mode():
        raise Skip("user-mode Linux has no NVMe drives")
    return [Disk(path) for path in os.environ.get("LAB_DRIVES", "").split()]


@contextlib.contextmanager
def scsi_disk(**parameters: object) -> Iterator[Disk]:
    """A disk of scsi_debug for the time of a block."""
    modprobe("sd_mod")
    with loaded("scsi_debug", dev_size_mb=64, **parameters):
        pattern = "adapter0/host*/target*/*/block/sd*"
        wait_until(lambda: list(SCSI_DEBUG.glob(pattern)), "a disk of scsi_debug appears")
        disk = Disk(next(SCSI_DEBUG.glob(pattern)).name)
        wait_until(disk.path.exists, f"{disk.path} appears")
        yield disk
        write(SCSI_DEBUG / "opts", 0)
        disk.scheduler = "none"


class NullBlk(Disk):
    """A null_blk device, made through configfs for the time of a block.

    @attributes are those of /sys/kernel/config/nullb/NAME/: irqmode, completion_nsec,
    submit_queues, hw_queue_depth, memory_backed, mbps, blocking, size (MiB), …
    """

    def __init__(self, name: str = "nullb7", **attributes: object) -> None:
        super().__init__(name)
        self._config = NULL_BLK_CONFIG / name
        self._attributes: dict[str, object] = {"size": 1024, "blocksize": 512, **attributes}

    def __enter__(self) -> NullBlk:
        if not NULL_BLK_CONFIG.exists():
            modprobe("null_blk", nr_devices=0)
        # A test that reached its time limit may have left the device.
        self.remove()
        self._config.mkdir()
        try:
            for name, value in self._attributes.items():
                write(self._config / name, value)
            write(self._config / "power", 1)
            wait_until(self.path.exists, f"{self.path} appears")
            # By default null_blk takes back polled requests after 5 s.
            self.set_queue("io_timeout", 1000 * _REQUEST_TIMEOUT_S)
        except BaseException:
            self._config.rmdir()
            raise
        return self

    def set(self, attribute: str, value: object) -> None:
        write(self._config / attribute, value)

    def remove(self) -> None:
        """Removes the device, even under load."""
        if self._config.exists():
            self._config.rmdir()

    def __exit__(self, *_: object) -> None:
        self.remove()


# --- cgroups ---------------------------------------------------------------------------------


class Cgroup:
    """A cgroup "a" or "a/b" for the time of a block, with io enabled in its parents."""

    def __init__(self, name: str, weight: int | None = None) -> None:
        self.name = name
        self.path = CGROUP_ROOT / name
        self._weight = weight
        self._made: list[Path] = []

    def __enter__(self) -> Cgroup:
        parent = CGROUP_ROOT
        for part in Path(self.name).parts:
            write(parent / "cgroup.subtree_control", "+io +memory")
            parent /= part
            if not parent.exists():
                parent.mkdir()
                self._made.append(parent)
        if self._weight is not None:
            self.weight = self._weight
        return self

    def __exit__(self, *_: object) -> None:
        for path in reversed(self._made):
            if path.exists():
                kill_all(path)
                path.rmdir()

    @property
    def weight(self) -> str:
        return read(self.path / "io.mqfair.weight")

    @weight.setter
    def weight(self, value: object) -> None:
        write(self.path / "io.mqfair.weight", value)

    def io_stat(self, disk: Disk) -> dict[str, int]:
        """The line of @disk in io.stat; empty if the group has done no I/O on it."""
        for line in read(self.path / "io.stat").splitlines():
            number, *pairs = line.split()
            if number == disk.number:
                return {
                    key: int(value)
                    for key, _, value in (pair.partition("=") for pair in pairs)
                    if value.isdecimal()
                }
        return {}

    def command(self, argv: Sequence[str | Path]) -> list[str]:
        """A command that enters the group and then runs @argv."""
        enter = f'echo $$ > {self.path}/cgroup.procs && exec "$@"'
        return ["/bin/sh", "-c", enter, "sh", *map(str, argv)]


def kill_all(cgroup: Path) -> None:
    write(cgroup / "cgroup.kill", 1)
    wait_until(lambda: not read(cgroup / "cgroup.procs"), f"{cgroup} is empty")
    # An exiting process leaves cgroup.procs before it drops its reference to the group.
    events = cgroup / "cgroup.events"
    wait_until(lambda: "populated 0" in read(events), f"{cgroup} is not populated")


# --- fio -------------------------------------------------------------------------------------


class Fio:
    """A running fio; ``result()`` waits for its end and returns its JSON.

    An option that is None is left out, and so is its default.
    """

    _DEFAULTS: Mapping[str, object] = {
        "name": "job",
        "rw": "randread",
        "bs": "4k",
        "ioengine": "libaio",
        "iodepth": 32,
        "direct": 1,
        "group_reporting": 1,
    }

    def __init__(self, disk: Disk | Path, cgroup: Cgroup | None = None, **options: object) -> None:
        target = disk.path if isinstance(disk, Disk) else disk
        chosen = {"filename": target, **self._DEFAULTS, **options}
        if "runtime" in chosen:
            chosen.setdefault("time_based", 1)
        argv = ["fio", "--output-format=json"]
        argv += [f"--{key}={value}" for key, value in chosen.items() if value is not None]
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed by result()
        self.process = subprocess.Popen(
            cgroup.command(argv) if cgroup else argv,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd="/tmp",
            env={**os.environ, "LD_LIBRARY_PATH": os.environ.get(FIO_LIBRARIES, "")},
        )

    def result(self, check: bool = True) -> dict[str, Any]:
        status = self.process.wait()
        with self._output as file:
            file.seek(0)
            text = file.read()
        if (check and status) or "{" not in text:
            raise AssertionError(f"fio: exit status {status}\n{text}")
        # fio prints its warnings before its JSON.
        parsed: dict[str, Any] = json.loads(text[text.index("{") :])
        return parsed

    def stop(self) -> dict[str, Any]:
        """Ends fio now, even if it is stopped; returns its JSON for the I/O done so far."""
        self.process.send_signal(signal.SIGINT)
        self.process.send_signal(signal.SIGCONT)
        return self.result(check=False)


def fio(disk: Disk | Path, cgroup: Cgroup | None = None, **options: object) -> dict[str, Any]:
    """Runs fio on @disk to its end; returns its JSON."""
    return Fio(disk, cgroup, **options).result()


def mean_read_ms(result: Mapping[str, Any]) -> float:
    """The mean latency of a fio result's first job. With one request at a time it is the inverse of
    the rate."""
    return float(result["jobs"][0]["read"]["lat_ns"]["mean"]) / 1e6


def median_read_ms(result: Mapping[str, Any]) -> float:
    """The median completion latency of a fio result's first job. A guest that stands still for a
    moment delays one read, which moves the mean alone."""
    return float(result["jobs"][0]["read"]["clat_ns"]["percentile"]["50.000000"]) / 1e6


def io_bytes(result: Mapping[str, Any]) -> int:
    """The bytes read and written by all jobs of a fio result."""
    return sum(job[way]["io_bytes"] for job in result["jobs"] for way in ("read", "write"))
