# SPDX-License-Identifier: GPL-2.0
"""The lab's refusals and its command line for QEMU; tests/vm tests that guests boot."""

import itertools
import subprocess
from pathlib import Path

import pytest

import lab
from lab import cache, initramfs, kernel, qemu
from mqfair.__main__ import main

CHANNELS = qemu.Channels(console=10, control=11, stdout=12, stderr=13)
BOOT = qemu.Boot(Path("/k/vmlinux"), Path("/k/initramfs"), "tcg")


def arguments(spec, boot=BOOT, fds=()):
    return qemu.command_line(spec, boot, [], CHANNELS, list(fds))


def after(argv, option):
    return [value for name, value in itertools.pairwise(argv) if name == option]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", lab.Drive()),
        ("size=1G,queues=2", lab.Drive(size=1 << 30, queues=2)),
        ("size=64M,backing=null,latency=1.5ms", lab.Drive(64 << 20, 2, "null", 1_500_000)),
        ("iops=2000,mdts=8", lab.Drive(iops=2000, mdts=8)),
    ],
)
def test_drive(text, expected):
    assert lab.parse_drive(text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("size", "nvme 'size'"),
        ("bogus=1", "nvme 'bogus=1'"),
        ("size=big", "nvme size='big'"),
        ("size=1K", "nvme size=1024"),
        ("queues=0", "nvme queues=0"),
        ("queues=two", "nvme queues='two'"),
        ("latency=1ms", "nvme latency=1000000ns"),
        ("backing=null,latency=1", "nvme latency='1'"),
    ],
)
def test_drive_is_refused(text, place):
    with pytest.raises(lab.SpecError) as error:
        lab.parse_drive(text)
    assert str(error.value).startswith(place)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpus": 0},
        {"cpus": 9},
        {"cpus": 2, "sockets": 3},
        {"cpus": 6, "sockets": 2, "threads": 2},
        {"memory_mb": 100},
        {"timeout_s": 0},
        {"icount": True},
        {"icount": True, "cpus": 1, "accel": "kvm"},
        {"modules": (Path("/nowhere/mqfair.ko"),)},
        {"host_dirs": (lab.HostDir(Path("/nowhere")),)},
    ],
)
def test_guest_is_refused(wrong):
    with pytest.raises(lab.SpecError):
        lab.GuestSpec(**wrong)


@pytest.mark.parametrize(
    "words",
    [
        ["--cpus", "9", "--", "true"],
        ["--nvme", "size=1", "--", "true"],
        ["--memory", "plenty", "--", "true"],
        ["--module", "/nowhere/mqfair.ko", "--", "true"],
        [],
    ],
)
def test_bad_command_line_is_one_line_and_status_2(words, capsys):
    assert main(["lab", "exec", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_unknown_kernel_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    with pytest.raises(lab.SpecError, match=r"kernel '2\.4'"):
        kernel.ensure("2.4")
    assert cache.cache_dir() == tmp_path


def test_topology():
    argv = arguments(lab.GuestSpec(cpus=8, sockets=2, threads=2))
    assert after(argv, "-smp") == ["8,sockets=2,cores=2,threads=2"]


def test_icount_is_emulated_by_one_thread():
    argv = arguments(lab.GuestSpec(cpus=1, icount=True))
    assert after(argv, "-accel") == ["tcg,thread=single"]
    assert after(argv, "-icount") == ["shift=0,sleep=off"]


def test_kvm_uses_the_processor_of_the_host():
    argv = arguments(lab.GuestSpec(), qemu.Boot(BOOT.kernel, BOOT.initramfs, "kvm"))
    assert (after(argv, "-accel"), after(argv, "-cpu")) == (["kvm"], ["host"])


def test_drives_have_different_serial_numbers():
    drives = (lab.Drive(queues=4), lab.Drive(backing="null", latency_ns=1000, iops=5))
    argv = arguments(lab.GuestSpec(drives=drives), fds=[7, None])
    devices = [device for device in after(argv, "-device") if device.startswith("nvme")]
    assert devices == [
        "nvme,serial=lab0,drive=drive0,max_ioqpairs=4,mdts=7",
        "nvme,serial=lab1,drive=capped1,max_ioqpairs=2,mdts=7",
    ]
    assert after(argv, "-add-fd") == ["fd=7,set=1"]
    assert any("driver=null-co" in node and "latency-ns=1000" in node for node in argv)


def test_a_backing_file_without_a_name_ends_with_its_descriptor(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    fd = qemu.open_backing(lab.Drive(size=1 << 20))
    with open(fd, "rb") as file:  # noqa: PTH123 -- a descriptor has no path
        assert file.seek(0, 2) == 1 << 20
    assert list((tmp_path / "drives").iterdir()) == []


def test_a_file_that_is_no_kernel_image_is_refused():
    with pytest.raises(lab.LabError, match="no x86 boot image"):
        kernel.extract_vmlinux(bytes(4096))


def test_initramfs_is_an_archive_that_cpio_reads(tmp_path):
    busybox = Path("/bin/busybox")
    if not busybox.exists():
        pytest.skip("busybox is not installed")
    script = tmp_path / "init"
    script.write_text("#!/bin/sh\n")
    module = tmp_path / "odd-sized.ko"
    module.write_bytes(b"12345")
    archive = initramfs.build_archive(busybox, [module], script, script)
    argv = [busybox, "cpio", "-t"]
    listed = subprocess.run(argv, input=archive, capture_output=True, check=True).stdout.decode()
    assert {"init", "dev/console", "modules/odd-sized.ko", "bin/sh"} <= set(listed.split())
