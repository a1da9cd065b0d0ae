# SPDX-License-Identifier: GPL-2.0
"""The lab's refusals and its command line for QEMU; tests/vm tests that guests boot."""

import dataclasses
import itertools
import lzma
import os
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import lab
from lab import (
    accel,
    cache,
    chroot,
    compiled,
    guest,
    initramfs,
    kernel,
    module,
    packages,
    qemu,
    tools,
    uml,
)
from lab.tree import UML, KernelTree
from mqfair.__main__ import main

CHANNELS = qemu.Channels(console=10, control=11, stdout=12, stderr=13, monitor=14)
BOOT = qemu.Boot(Path("/k/vmlinux"), Path("/k/initramfs"), "tcg")


def arguments(spec, boot=BOOT, fds=()):
    return qemu.command_line(spec, boot, [], CHANNELS, list(fds))


def after(argv, option):
    return [value for name, value in itertools.pairwise(argv) if name == option]


@pytest.mark.parametrize(
    ("cpus", "accel", "word", "expected"),
    [
        (2, "tcg", "maxcpus=1", True),
        (1, "tcg", "maxcpus=1", False),
        (2, "kvm", "maxcpus=1", False),
        # Programs of an emulated guest keep their addresses.
        (2, "tcg", "norandmaps", True),
        (2, "kvm", "norandmaps", False),
    ],
)
def test_an_emulated_guest_boots_with_words_of_its_own(cpus, accel, word, expected):
    boot = dataclasses.replace(BOOT, accel=accel)
    (words,) = after(arguments(lab.GuestSpec(cpus=cpus), boot), "-append")
    assert (word in words.split()) is expected


@pytest.mark.parametrize(
    ("spec", "accel", "option", "value"),
    [
        ({"cpus": 8, "sockets": 2, "threads": 2}, "tcg", "-smp", "8,sockets=2,cores=2,threads=2"),
        # Counted time is emulated by one thread.
        ({"cpus": 1, "icount": True}, "tcg", "-accel", "tcg,thread=single"),
        ({"cpus": 1, "icount": True}, "tcg", "-icount", "shift=0,sleep=off"),
        # KVM uses the processor of the host.
        ({}, "kvm", "-accel", "kvm"),
        ({}, "kvm", "-cpu", "host"),
    ],
)
def test_options_of_qemu(spec, accel, option, value):
    argv = arguments(lab.GuestSpec(**spec), dataclasses.replace(BOOT, accel=accel))
    assert after(argv, option) == [value]


class Kvm:
    """Notes the kernels that are tried under KVM, of which those in @boot boot."""

    def __init__(self, *boot):
        self.tried = []
        self._boot = boot

    def choose(self, release):
        def probe_boots():
            self.tried.append(release)
            return release in self._boot

        return accel.choose(SimpleNamespace(release=release), probe_boots)


@pytest.fixture
def accel_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    monkeypatch.setattr(accel.os, "access", lambda *_: True)
    return tmp_path / "accel"


def test_each_kernel_is_tried_once_where_kvm_boots_one(accel_cache):
    kvm = Kvm("6.1", "7.2")
    chosen = [kvm.choose(release) for release in 2 * ("6.1", "6.12", "7.2")]
    assert chosen == 2 * ["kvm", "tcg", "kvm"]
    assert kvm.tried == ["6.1", "6.12", "7.2"]


def test_one_kernel_is_tried_where_kvm_boots_none(accel_cache):
    kvm = Kvm()
    assert {kvm.choose(release) for release in 2 * ("6.1", "6.12", "7.2")} == {"tcg"}
    assert kvm.tried == ["6.1"]


def test_results_of_another_boot_of_the_host_are_forgotten(accel_cache):
    Kvm("6.1").choose("6.1")
    (result,) = accel_cache.glob("[!.]*")
    result.rename(accel_cache / "0123456789abcdef-6.1")
    kvm = Kvm("6.1")
    assert kvm.choose("6.1") == "kvm"
    assert kvm.tried == ["6.1"]
    assert [path.name for path in accel_cache.glob("[!.]*")] == [result.name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", lab.Drive()),
        ("size=1G,queues=2", lab.Drive(size=1 << 30, queues=2)),
        ("size=64M,backing=null,latency=1.5ms", lab.Drive(64 << 20, 2, "null", 1_500_000)),
        ("iops=2000,mdts=8", lab.Drive(iops=2000, mdts=8)),
        ("bus=virtio-blk", lab.Drive(bus="virtio-blk")),
        ("namespaces=2,controllers=3", lab.Drive(namespaces=2, controllers=3)),
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
        ("bus=usb", "nvme bus=usb"),
        ("controllers=0", "nvme controllers=0"),
        ("bus=virtio-scsi,namespaces=2", "nvme namespaces=2"),
        ("size=1M,namespaces=3", "nvme size=1048576"),
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


def test_unknown_kernel_on_the_command_line_is_refused_with_the_list(capsys):
    assert main(["lab", "exec", "--kernel", "2.4", "--", "true"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "kernel '2.4'" in line and "6.1, 6.12, 7.2" in line


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Records the command lines of the lab's programs, and answers them."""
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    seen = []
    answers = {"indextargets": "http://mirror.example/debian/\n"}

    def run(argv, cwd=None, profile="guest"):
        seen.append(list(argv))
        return next((text for word, text in answers.items() if word in argv), "")

    monkeypatch.setattr(tools, "run", run)
    packages.mirror.cache_clear()
    yield seen, answers
    packages.mirror.cache_clear()


def test_another_suite_has_apt_files_of_its_own(programs, tmp_path):
    seen, _ = programs
    suite = packages.Suite("sid")
    suite.update()
    suite.dependencies("linux-image-amd64")
    (source,) = (tmp_path / "apt" / "sid" / "sources.list").read_text().splitlines()
    assert source.endswith("http://mirror.example/debian/ sid main")
    for argv in seen[1:]:
        options = dict(word.split("=", 1) for word in after(argv, "-o"))
        assert options["Dir::Etc::SourceParts"] == "/dev/null"
        for name in ("Dir::Etc::SourceList", "Dir::State", "Dir::State::Status", "Dir::Cache"):
            assert Path(options[name]).is_relative_to(tmp_path), name


def test_another_architecture_has_package_lists_of_its_own(programs, tmp_path):
    seen, _ = programs
    suite = packages.Suite("sid", "arm64")
    suite.update()
    (source,) = (tmp_path / "apt" / "sid-arm64" / "sources.list").read_text().splitlines()
    assert "arch=arm64" in source
    assert "APT::Architecture=arm64" in seen[-1]
    assert not (tmp_path / "apt" / "sid").exists()


def test_a_module_for_another_architecture_is_refused(programs, monkeypatch, tmp_path):
    """The compiler of this machine would build it too, if the environment of make were lost."""

    def build(argv, **_):
        out = Path(argv[argv.index("--out") + 1])
        out.mkdir(parents=True)
        for name in ("mqfair.ko", "mqfair-ssd.ko"):
            (out / name).write_bytes(Path("/bin/true").read_bytes())
        return subprocess.CompletedProcess(argv, 0, "", "")

    monkeypatch.setattr(module, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(subprocess, "run", build)
    with pytest.raises(lab.LabError, match="is for machine 62, not for arm64"):
        module.cross_build(Path("/k/linux-headers-6.12.9-arm64"))


def test_the_suite_of_the_machine_is_never_updated(programs):
    seen, _ = programs
    packages.Suite().update()
    packages.Suite().dependencies("linux-image-amd64")
    assert seen == [["apt-cache", "depends", "--important", "linux-image-amd64"]]


def test_a_suite_that_has_moved_on_is_named(programs):
    _, answers = programs
    answers["depends"] = "linux-image-amd64\n  Depends: linux-image-7.4.1+deb14-amd64\n"
    with pytest.raises(lab.GoneError, match=r"kernel 7\.2: sid has 7\.4\.1\+deb14-amd64"):
        kernel.ensure("7.2")


def test_a_pinned_kernel_asks_no_program(programs, tmp_path):
    seen, _ = programs
    base = tmp_path / "kernels" / "6.12.9-amd64"
    for folder in ("root/lib/modules/6.12.9-amd64", "root/usr/src/linux-headers-6.12.9-amd64"):
        (base / folder).mkdir(parents=True)
    (base / "root/boot").mkdir()
    (base / "root/boot/vmlinuz-6.12.9-amd64").touch()
    (base / "vmlinux").touch()
    (tmp_path / "kernels" / "6.12").write_text("6.12.9-amd64\n")
    tree = kernel.ensure("6.12")
    assert (tree.release, tree.chroot_suite, seen) == ("6.12.9-amd64", "", [])


def test_a_chroot_is_made_once(programs, monkeypatch, tmp_path):
    seen, _ = programs
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    root = chroot.ensure("sid", "gcc-16")
    assert root == tmp_path / "chroots" / "sid"
    made = [argv for argv in seen if "debootstrap" in argv]
    assert chroot.ensure("sid", "gcc-16") == root
    assert [argv for argv in seen if "debootstrap" in argv] == made
    assert len(made) == 1 and made[0][:2] == ["unshare", "--mount"]
    assert "gcc-16" in " ".join(made[0]) and "sid" in made[0]


def test_a_chroot_needs_root(programs, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(lab.LabError, match="only root can make this chroot"):
        chroot.ensure("sid", "gcc-16")


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_a_zstd_kernel_is_read_as_a_stream():
    """Other bytes follow the compressed kernel in its image."""
    elf = b"\x7fELF" + bytes(range(256)) * 4000
    packed = subprocess.run(["zstd", "-qc"], input=elf, capture_output=True, check=True).stdout
    payload = packed + struct.pack("<I", len(elf))
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x20F)
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    assert kernel.extract_vmlinux(bytes(head) + payload) == elf


def test_user_mode_linux_that_is_not_built_says_how(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    with pytest.raises(lab.LabError, match="run make uml"):
        kernel.ensure(UML)


def test_user_mode_linux_of_other_options_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    base = tmp_path / "kernels" / UML
    (base / "root/lib/modules/7.2.13-uml").mkdir(parents=True)
    (base / ".recipe").write_text("another")
    assert not compiled.is_built(UML)
    with pytest.raises(lab.LabError, match="with other options: run make uml"):
        kernel.ensure(UML)


def test_the_build_keeps_the_parts_that_modules_need(tmp_path):
    kept = {"arch/um/asm.h", "include/auto.conf.cmd", "include/c.h"}
    deleted = {"fs/inode.c", "arch/um/a.o", "arch/um/.a.o.cmd", "arch/arm/b", "README"}
    for name in kept | deleted:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "source").symlink_to("include")
    compiled.keep_only(tmp_path, ("arch/um", "include", "source"))
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert left == kept
    assert (tmp_path / "source").is_symlink()


def test_a_guest_deletes_the_folders_of_killed_programs_only(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    killed = tmp_path / "uml/guest-killed"
    killed.mkdir(parents=True)
    (killed / "lock").touch()
    with uml.own_folder() as first:
        assert not killed.exists()
        with uml.own_folder() as second:
            assert first.exists() and second.exists() and first != second
        assert not second.exists()
    assert not first.exists()


@pytest.mark.parametrize("on", ["exec", "shell"])
def test_a_kernel_and_user_mode_linux_exclude_each_other(on, capsys):
    words = ["--on", "uml", "--kernel", "7.2", *(["--", "true"] if on == "exec" else [])]
    assert main(["lab", on, *words]) == 2
    assert "names another guest's kernel: use --on vm" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wanted",
    [
        {"drives": (lab.Drive(),)},
        {"accel": "tcg"},
        {"cpus": 1, "icount": True},
        {"accel": "kvm"},
        {"cpus": 4, "sockets": 2},
    ],
)
def test_a_guest_that_user_mode_linux_cannot_be_is_refused(wanted):
    with pytest.raises(lab.SpecError, match="user-mode Linux: "):
        uml.check(lab.GuestSpec(**wanted))


def test_user_mode_linux_has_a_line_for_each_channel(tmp_path):
    tree = KernelTree("7.2-uml", *[Path("/k")] * 5, is_uml=True)
    channels = {"console": 3, "control": 4, "stdout": 5, "stderr": 6}
    spec = lab.GuestSpec(cpus=2, append="quiet")
    argv = uml.command_line(spec, tree, Path("/i"), channels, tmp_path)
    assert {"ncpus=2", "mem=2048M", "initrd=/i", "con0=fd:3", "quiet"} <= set(argv)
    assert [word for word in argv if word.startswith("ssl")] == [
        "ssl0=fd:4",
        "ssl1=fd:5",
        "ssl2=fd:6",
    ]


def test_the_debug_kernel_has_the_options_of_the_plain_one_and_its_own_release():
    plain, checked = (compiled.options(name).splitlines() for name in (lab.UML, lab.UML_DEBUG))
    assert set(plain) - set(checked) == {'CONFIG_LOCALVERSION="-uml"'}
    assert 'CONFIG_LOCALVERSION="-uml-debug"' in checked
    assert "CONFIG_PROVE_LOCKING=y" in checked
    assert compiled.digest_of(lab.UML) != compiled.digest_of(lab.UML_DEBUG)


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


def test_a_drive_has_its_namespaces_at_each_of_its_controllers():
    shared = lab.Drive(size=1 << 20, backing="null", iops=5, namespaces=2, controllers=2)
    argv = arguments(lab.GuestSpec(drives=(shared,)), fds=[None])
    assert [device for device in after(argv, "-device") if device.startswith("nvme")] == [
        "nvme-subsys,id=subsystem0,nqn=lab0",
        "nvme,serial=lab0,max_ioqpairs=2,mdts=7,id=nvme0-0,subsys=subsystem0",
        "nvme,serial=lab0,max_ioqpairs=2,mdts=7,id=nvme0-1,subsys=subsystem0",
        "nvme-ns,drive=capped0-1,bus=nvme0-0,nsid=1,shared=on,share-rw=on",
        "nvme-ns,drive=capped0-2,bus=nvme0-0,nsid=2,shared=on,share-rw=on",
    ]
    assert [node for node in after(argv, "-blockdev") if node.startswith("driver=raw")] == [
        "driver=raw,node-name=capped0-1,file=capped0,offset=0,size=524288",
        "driver=raw,node-name=capped0-2,file=capped0,offset=524288,size=524288",
    ]


def test_a_drive_is_found_by_its_bus():
    drives = (lab.Drive(namespaces=2), lab.Drive(bus="virtio-blk"), lab.Drive(bus="virtio-scsi"))
    assert guest._drive_lines(lab.GuestSpec(drives=drives)) == [
        "lab_load nvme",
        "lab_load virtio_blk",
        "lab_load virtio_scsi sd_mod",
        "lab_drive lab0 'nvme*n1' device/serial",
        "lab_drive lab0 'nvme*n2' device/serial",
        "lab_drive lab1 'vd*' serial",
        "lab_drive lab2 'sd*' device/model",
    ]


def test_a_backing_file_without_a_name_ends_with_its_descriptor(monkeypatch, tmp_path):
    monkeypatch.setenv("MQFAIR_CACHE", str(tmp_path))
    fd = qemu.open_backing(lab.Drive(size=1 << 20))
    with open(fd, "rb") as file:  # noqa: PTH123 -- a descriptor has no path
        assert file.seek(0, 2) == 1 << 20
    assert list((tmp_path / "drives").iterdir()) == []


def test_a_time_limit_of_years_is_no_error():
    """epoll takes at most 2^31 ms; the job of such a bench has a limit beyond that."""
    reader, writer = socket.socketpair()
    os.write(writer.fileno(), b"ready\n")
    writer.close()
    with reader, subprocess.Popen(["true"], stdout=subprocess.PIPE) as process:
        spec = lab.GuestSpec(timeout_s=1e12)
        guest._Guest(spec, None, "tcg", None)._relay(
            process, {"control": reader}, None, time.monotonic()
        )


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
    packed = tmp_path / "packed.ko.xz"
    packed.write_bytes(lzma.compress(b"a packed module"))
    archive = initramfs.build_archive(busybox, [module, packed], script, script, script)
    assert b"a packed module" in archive
    argv = [busybox, "cpio", "-t"]
    listed = subprocess.run(argv, input=archive, capture_output=True, check=True).stdout.decode()
    assert {"init", "dev/console", "modules/odd-sized.ko", "modules/packed.ko", "bin/sh"} <= set(
        listed.split()
    )
