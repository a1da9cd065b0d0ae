# SPDX-License-Identifier: GPL-2.0
"""The virtual SSD: making and removing drives, their data, and the owners of their pages."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import random
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from fairlib import SMALL_GUEST, Load, mqfq, scheduled, state, tenants
from guestlib import (
    CGROUP_ROOT,
    MIB,
    Cgroup,
    Fio,
    KernelLog,
    cases,
    fio,
    read,
    rmmod,
    run,
    slow,
    wait_until,
    write,
    write_fails,
)
from ssdlib import DRIVES, PAGE, Ssd, load

guest = SMALL_GUEST

# The model with the fewest dies. A small drive of it has enough blocks for garbage collection.
SMALL = {"model": "980pro", "size_mb": 128}
FULL = {**SMALL, "fill": 99, "fill_pattern": "steady"}
SECTOR = 512
BLKDISCARD = 0x1277

# --- settings --------------------------------------------------------------------------------

BAD = [
    ("model", "nosuch"),
    ("size_mb", 0),
    ("size_mb", -1),
    ("size_mb", "1G"),
    ("size_mb", (1 << 24) + 1),
    ("queues", 0),
    ("hw_depth", 0),
    ("hw_depth", 10241),
    ("time_scale", 0),
    ("fill", 101),
    ("ftl", "both"),
    ("fill_pattern", "zigzag"),
    ("write_times", 0),
    ("write_times", 101),
    ("write_times", "+7"),
    ("size_mb", "+64"),
    ("fill_parts", "40 0"),
    ("fill_parts", "0 0 /a"),
    ("fill_parts", "101 0 /a"),
    ("fill_parts", "x 0 /a"),
    ("fill_parts", "40 1001 /a"),
    ("fill_parts", "40 0 a"),
    ("fill_parts", "60 0 /a\n41 0 /b"),
    ("fill_parts", "1 0 -\n" * 65),
    ("params", "wings 2"),
    ("params", "channels"),
    ("params", "channels -1"),
    ("params", "channels 4097"),
    ("params", "planes 3"),
    ("params", "read_ns 1000000001"),
    ("power", "maybe"),
]


def test_a_bad_value_is_refused_and_changes_nothing() -> None:
    with Ssd(on=False, **SMALL) as drive:
        for setting, value in BAD:
            before = drive.get(setting)
            assert write_fails(drive.config / setting, value) == errno.EINVAL, (setting, value)
            assert drive.get(setting) == before, (setting, value)


def test_numbers_of_a_model_are_set_one_by_one() -> None:
    """Fields that are not written keep the values of the model before."""
    with Ssd(on=False, **SMALL) as drive:
        fields = dict(line.split() for line in drive.get("params").splitlines())
        assert (fields["channels"], fields["read_ns"]) == ("8", "36000")
        drive.set("params", "read_ns 50000 dies 4\nin_place 0\n")
        drive.set("params", "dies 1")
        assert drive.get("model") == "own"
        changed = dict(line.split() for line in drive.get("params").splitlines())
        assert changed == {**fields, "read_ns": "50000", "dies": "1"}
        drive.power(1)
        assert write_fails(drive.config / "params", "dies 2") == errno.EBUSY
        drive.power(0)
        drive.set("model", "980pro")
        assert dict(line.split() for line in drive.get("params").splitlines()) == fields


def test_settings_are_read_back_and_cannot_change_while_it_is_on() -> None:
    settings = {"queues": 1, "hw_depth": 7, "time_scale": 3, "ftl": "host", "fill": 10}
    parts = "40 0 /\n45 3 -"
    with Ssd(**SMALL, **settings, fill_pattern="random") as drive:
        for setting, value in settings.items():
            assert drive.get(setting) == str(value)
            assert write_fails(drive.config / setting, value) == errno.EBUSY, setting
        assert write_fails(drive.config / "model", "p3700") == errno.EBUSY
        assert write_fails(drive.config / "fill_parts", parts) == errno.EBUSY
        assert drive.queue("nr_requests") == "14"
        assert read(drive.sysfs / "size") == str(128 * MIB // SECTOR)
        assert drive.queue("write_cache") == "write back"
        assert drive.queue("rotational") == "0"
        drive.power(0)
        drive.set("model", "p3700")
        drive.set("fill_parts", parts)
        assert drive.get("fill_parts") == parts
        assert read_fails(drive.config / "stat") == errno.ENODEV


def read_fails(path: Path) -> int:
    try:
        read(path)
    except OSError as error:
        return error.errno
    raise AssertionError(f"{path} can be read")


def test_a_drive_too_small_for_its_model_is_refused_with_the_reason() -> None:
    log = KernelLog()
    with Ssd(on=False, model="980pro", size_mb=1) as drive:
        assert write_fails(drive.config / "power", 1) == errno.EINVAL
        assert drive.get("power") == "0"
        said = [line for line in log.read() if "ssd-t: model=980pro size_mb=1: " in line]
        assert len(said) == 1 and "erase block" in said[0], said
        drive.set("size_mb", 128)
        drive.power(1)
    log.close()


@cases("a b", "a!", "x" * 40)
def test_a_name_that_cannot_be_a_device(name: str) -> None:
    load()
    try:
        (DRIVES / name).mkdir()
    except OSError as error:
        assert error.errno == errno.EINVAL, error
    else:
        (DRIVES / name).rmdir()
        raise AssertionError(f"'{name}' was taken")


def test_the_module_stays_while_there_is_a_drive() -> None:
    with Ssd(on=False):
        assert run("rmmod", "mqfair_ssd", check=False).returncode, "unloaded with a folder"
    with Ssd(**SMALL):
        assert run("rmmod", "mqfair_ssd", check=False).returncode, "unloaded with a drive"
        assert run("rmmod", "mqfair", check=False).returncode, "mqfair was unloaded under it"
    rmmod("mqfair_ssd")
    load()
    assert sorted(read(DRIVES / "models").split()) == [
        "980pro",
        "fabric",
        "four-dies",
        "p3700",
        "p4500",
    ]


@slow
def test_drives_of_all_models_come_and_go() -> None:
    load()
    models = read(DRIVES / "models").split()
    size = {"size_mb": 64}
    for number, model in enumerate(islice(cycle(models), 2 * len(models))):
        with (
            Ssd("first", model=model, queues=1 + number % 3, fill=50, **size) as first,
            Ssd(
                "second", model=model, hw_depth=1, fill=20, fill_pattern="random", **size
            ) as second,
        ):
            for drive in (first, second):
                check_no_error(fio(drive, rw="randrw", number_ios=50, iodepth=4))
                assert drive.stat()["outstanding"] == 0
        assert not first.path.exists() and not second.sysfs.exists()


def check_no_error(result: dict[str, object]) -> None:
    for job in result["jobs"]:  # type: ignore[attr-defined]
        assert not job["error"], f"{job['jobname']}: error {job['error']}"


# --- data ------------------------------------------------------------------------------------


class Twin:
    """A drive and a copy of its expected contents, by direct I/O in sectors."""

    def __init__(self, drive: Ssd, seed: int) -> None:
        self._fd = os.open(drive.path, os.O_RDWR | os.O_DIRECT)
        self._bytes = int(read(drive.sysfs / "size")) * SECTOR
        self._data = bytearray(self._bytes)
        # Direct I/O needs an aligned buffer.
        self._buffer = mmap.mmap(-1, MIB)
        self._random = random.Random(seed)

    def close(self) -> None:
        os.close(self._fd)

    def step(self) -> None:
        at = self._random.randrange(self._bytes // SECTOR) * SECTOR
        length = min(self._random.choice((1, 8, 8, 15, 64, 256)) * SECTOR, self._bytes - at)
        action = self._random.choice((self.write, self.write, self.discard, self.check))
        action(at, length)

    def write(self, at: int, length: int) -> None:
        data = self._random.randbytes(length)
        self._buffer[:length] = data
        assert os.pwrite(self._fd, memoryview(self._buffer)[:length], at) == length
        self._data[at : at + length] = data

    def discard(self, at: int, length: int) -> None:
        fcntl.ioctl(self._fd, BLKDISCARD, struct.pack("QQ", at, length))
        self._data[at : at + length] = bytes(length)

    def check(self, at: int, length: int) -> None:
        assert os.preadv(self._fd, [memoryview(self._buffer)[:length]], at) == length
        assert self._buffer[:length] == self._data[at : at + length], f"{length} bytes at {at}"

    def check_all(self) -> None:
        for at in range(0, self._bytes, MIB):
            self.check(at, MIB)


@cases("980pro", "fabric")
def test_contents_are_those_of_a_plain_memory(model: str) -> None:
    """With pages of 4 KiB and 1 KiB, requests that cover parts of pages, and discards."""
    with Ssd(**{**FULL, "model": model}) as drive:
        twin = Twin(drive, seed=1)
        for _ in range(1500):
            twin.step()
        twin.check_all()
        twin.close()
        print(drive.stat())


def test_discards_free_the_memory() -> None:
    with Ssd(**SMALL) as drive:
        assert drive.stat()["data_bytes"] == 0
        fio(drive, rw="write", bs="64k", size="16m")
        assert drive.stat()["data_bytes"] == 16 * MIB
        assert drive.owners()["/"]["valid"] == 16 * MIB // PAGE
        run("blkdiscard", "--offset", "0", "--length", "12M", drive.path)
        assert drive.stat()["data_bytes"] == 4 * MIB
        assert drive.stat()["trimmed_bytes"] == 12 * MIB
        assert drive.owners()["/"]["valid"] == 4 * MIB // PAGE


VERIFIED = {
    "rw": "randwrite",
    "bsrange": "4k-64k",
    "iodepth": 16,
    "verify": "crc32c",
    "verify_fatal": 1,
    "thread": 1,
    "fsync": 32,
}


def test_data_stay_intact_during_garbage_collection() -> None:
    """At 99 % full, with discards and flushes, from two cgroups, while the scheduler changes."""
    with Ssd(**FULL) as drive, tenants(a=100, b=1000, trims=100) as (a, b, trims):
        with Load(drive, [trims], rw="trimwrite", bs="64k", offset="96m", size="24m", iodepth=4):
            jobs = [
                Fio(drive, group, offset=f"{48 * n}m", size="32m", **VERIFIED)
                for n, group in enumerate((a, b))
            ]
            for name in islice(cycle(["mqfq", "none"]), 6):
                drive.scheduler = name
            for job in jobs:
                check_no_error(job.result())
        stat = drive.stat()
        print(stat)
        drive.scheduler = "none"
        assert stat["gc_erases"] > 16, "no die has collected garbage"
        assert stat["gc_copied_bytes"] > 0 and stat["write_amplification"] > 1.05
        assert stat["trimmed_bytes"] > 0
        assert stat["flash_written_bytes"] == stat["written_bytes"] + stat["gc_copied_bytes"]


def test_file_system() -> None:
    mount = Path("/run/mnt-ssd")
    mount.mkdir(exist_ok=True)
    with Ssd(**SMALL) as drive, tenants(a=100) as (group,), mqfq(drive):
        run("mkfs.ext4", "-q", "-F", drive.path)
        run("mount", "-o", "discard", drive.path, mount)
        try:
            check_no_error(fio(mount / "file", group, size="32m", direct=0, **VERIFIED))
            held = drive.stat()["data_bytes"]
            (mount / "file").unlink()
            run("sync")
            run("fstrim", mount)
            assert drive.stat()["data_bytes"] < held - 24 * MIB
        finally:
            run("umount", mount)
        run("e2fsck", "-fn", drive.path)


# --- removal ---------------------------------------------------------------------------------


@cases(("none", "power"), ("mqfq", "power"), ("mqfq", "rmdir"))
def test_a_drive_is_removed_under_load(scheduler: str, how: str) -> None:
    with Ssd(**FULL, time_scale=100) as drive, tenants(a=100, b=1000) as groups:
        drive.scheduler = scheduler
        with Load(drive, groups, disk_leaves=True, rw="randrw", bsrange="512-64k"):
            if how == "rmdir":
                drive.remove()
            else:
                drive.power(0)
            wait_until(lambda: not drive.sysfs.exists(), "the drive is gone")
        if how == "power":
            drive.power(1)
            check_no_error(fio(drive, groups[0], number_ios=100))


# --- owners ----------------------------------------------------------------------------------


def test_pages_of_a_removed_cgroup_go_to_its_parent() -> None:
    with Ssd(**SMALL, ftl="host") as drive, Cgroup("parent/child") as child:
        for _ in range(2):
            fio(drive, child, rw="write", bs="64k", size="4m", iodepth=1)
        before = drive.owners()
        pages = 4 * MIB // PAGE
        expected = {"valid": pages, "invalid": pages, "written": 2 * pages, "copied": 0}
        assert before["/parent/child"].items() >= expected.items()
        assert "/parent" not in before
        remove(child)
        after = drive.owners()
        assert "/parent/child" not in after
        assert after["/parent"] == before["/parent/child"]
        (CGROUP_ROOT / "parent").rmdir()
        assert drive.owners()["/"]["valid"] == pages


def test_a_drive_is_filled_with_pages_of_cgroups() -> None:
    capacity = SMALL["size_mb"] * MIB // PAGE
    with Ssd(on=False, **SMALL, ftl="host") as drive, tenants(a=100, b=100) as (a, b):
        paths = [f"/{group.path.relative_to(CGROUP_ROOT)}" for group in (a, b)]
        drive.set("fill_parts", f"40 0 {paths[0]}\n5 3 {paths[1]}\n40 1 -")
        drive.power(1)
        owners = drive.owners()
        print(owners)
        for path, percent, turns in ((paths[0], 40, 1), (paths[1], 5, 4), ("-", 40, 2)):
            pages = capacity * percent // 100
            assert abs(owners[path]["valid"] - pages) <= 1, path
            assert abs(owners[path]["written"] - turns * pages) <= turns, path
        assert owners[paths[0]]["invalid"] == 0 < owners[paths[1]]["invalid"]
        assert drive.stat()["written_bytes"] == 0
        # The first part belongs to the first cgroup; writes of others there invalidate its pages.
        fio(drive, b, rw="write", bs="64k", offset=0, size="1m")
        assert drive.owners()[paths[0]]["invalid"] == MIB // PAGE


def test_parts_that_cannot_be_filled_are_refused_with_the_reason() -> None:
    log = KernelLog()
    with Ssd(on=False, **SMALL) as drive:
        drive.set("fill_parts", "40 0 /nosuch/cgroup")
        assert write_fails(drive.config / "power", 1) == errno.ENOENT
        drive.set("fill_parts", "40 0 /")
        drive.set("fill", 10)
        assert write_fails(drive.config / "power", 1) == errno.EINVAL
        assert drive.get("power") == "0"
        said = " ".join(log.read())
        assert "ssd-t: fill_parts: no cgroup /nosuch/cgroup: make it first" in said
        assert "ssd-t: fill=10 and fill_parts: set one of them" in said
        drive.set("fill_parts", "\n")
        drive.power(1)
    log.close()


def write_errno(path: Path, value: object) -> int:
    try:
        write(path, value)
    except OSError as error:
        return error.errno
    return 0


def remove(group: Cgroup) -> None:
    wait_until(lambda: "populated 0" in read(group.path / "cgroup.events"), "the group is empty")
    group.path.rmdir()


def test_a_cgroup_removed_while_its_part_is_filled_leaves_it_to_its_parent() -> None:
    """Tries until the cgroup is removed between its look-up and the end of the filling."""
    for tries in range(1, 11):
        with Ssd(on=False, **SMALL) as drive, Cgroup("parent/child") as child:
            # With 200 overwrites the filling takes a while.
            drive.set("fill_parts", "40 200 /parent/child")
            with ThreadPoolExecutor(1) as pool:
                filled = pool.submit(write_errno, drive.config / "power", 1)
                time.sleep(0.02 * tries)
                child.path.rmdir()
                between = not filled.done()
                error = filled.result()
            print(f"try {tries}: {error=}, {between=}")
            if error == errno.ENOENT:
                continue
            assert not error and between, "the filling takes too little time"
            owners = drive.owners()
            print(owners)
            assert "/parent/child" not in owners
            assert abs(owners["/parent"]["valid"] - 128 * MIB // PAGE * 40 // 100) <= 1
            return
    raise AssertionError("in all tries the cgroup was removed before its look-up")


def test_writes_in_flight_when_a_cgroup_is_removed_count_for_its_parent() -> None:
    """Each write takes seconds; meanwhile its process is moved to another cgroup."""
    requests = 16
    with Ssd(**SMALL, time_scale=100_000) as drive, Cgroup("parent/child") as child:
        drive.scheduler = "none"
        job = Fio(drive, child, rw="write", number_ios=requests, iodepth=requests, thread=1)
        wait_until(lambda: drive.in_flight() == requests, "all are in flight")
        for pid in read(child.path / "cgroup.procs").split():
            write(CGROUP_ROOT / "cgroup.procs", pid)
        remove(child)
        assert drive.in_flight(), "the writes completed before the cgroup was removed"
        check_no_error(job.result())
        owners = drive.owners()
        print(owners)
        assert owners["/parent"]["valid"] == requests
        assert set(owners) <= {"-", "/", "/parent"}, owners


def test_hwabc_asks_for_the_pages_and_the_time_of_a_map_that_the_host_keeps() -> None:
    """It asks under its own locks, which are raw. The debug kernel checks the order."""
    with (
        Ssd(**FULL, ftl="host") as drive,
        tenants(a=100, b=300) as groups,
        scheduled(drive, "hwabc"),
        Load(drive, groups, rw="randwrite", bs="4k") as jobs,
    ):
        jobs.goes_on(500)
        wait_until(lambda: state(drive)["ftl_hidden"] == 0, "hwabc knows the pages")
        jobs.goes_on(500)
