# SPDX-License-Identifier: GPL-2.0
"""The build compares the kernel of the BTF with that of the headers."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, loaded

sys.path.insert(0, str(ROOT / "kernel" / "btf"))

from errors import GenerateError
from headers import Headers
from identity import Identity, check_identity, identity

BUILD = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)"


def image(release, build=BUILD):
    compiler = "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils) 2.40"
    banner = f"Linux version {release} (kernel@host) ({compiler}) {build}\n\0"
    return b"\x7fELF" + bytes(500) + banner.encode() + b"more\0"


@pytest.fixture
def headers_of(tmp_path):
    def make(release, build=BUILD):
        tree = tmp_path / "headers"
        generated = tree / "include" / "generated"
        generated.mkdir(parents=True)
        for name in ("Makefile", ".config", "Module.symvers"):
            (tree / name).touch()
        (tree / "scripts").mkdir()
        (generated / "utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
        if build:
            (generated / "utsversion.h").write_text(f'#define UTS_VERSION "{build}"\n')
        return Headers(tree)

    return make


def test_an_image_says_its_release_and_its_build(tmp_path):
    file = tmp_path / "vmlinux"
    file.write_bytes(image("6.1.0-56-amd64"))
    assert identity(file, file) == Identity("6.1.0-56-amd64", BUILD)
    file.write_bytes(b"\x9f\xeb\x01 raw BTF")
    assert identity(file, file) is None


def test_the_types_of_the_running_kernel_are_known():
    source = Path("/sys/kernel/btf/vmlinux")
    here = os.uname()
    assert identity(source, source) == Identity(here.release, here.version)


def refusal(headers, release, build=BUILD):
    """The message for an image of this kernel; None if it is accepted."""
    source = headers.build.parent / "vmlinuz"
    source.write_bytes(image(release, build))
    try:
        check_identity(source, source, headers)
    except GenerateError as error:
        return str(error)
    return None


def test_types_of_another_release_are_refused(headers_of):
    text = refusal(headers_of("6.1.0-56-amd64"), "6.1.0-55-amd64")
    assert "vmlinuz has the BTF of Linux 6.1.0-55-amd64, but " in text
    assert "the headers of 6.1.0-56-amd64" in text
    assert "--btf (make: BTF=FILE)" in text
    assert "\n" not in text


def test_types_of_another_build_are_refused(headers_of):
    headers = headers_of("6.1.0-56-amd64")
    text = refusal(headers, "6.1.0-56-amd64", "#1 SMP older")
    assert "the build '#1 SMP older' of Linux 6.1.0-56-amd64" in text
    assert f"the headers of the build '{BUILD}'" in text
    assert "\n" not in text
    assert refusal(headers, "6.1.0-56-amd64") is None


def test_a_tree_that_does_not_say_its_build_is_accepted(headers_of):
    headers = headers_of("6.1.0-56-amd64", build="")
    assert refusal(headers, "6.1.0-56-amd64") is None
    raw = headers.build.parent / "raw"
    raw.write_bytes(b"\x9f\xeb\x01 raw BTF")
    check_identity(raw, raw, headers)


def test_an_upgrade_that_waits_for_a_restart_finds_its_own_types(headers_of, monkeypatch, tmp_path):
    """The running kernel is another build of the release, and the new one lies in /boot."""
    program = loaded("kernel/build", "builder")
    running, installed = tmp_path / "running", tmp_path / "vmlinuz"
    running.write_bytes(image("6.1.0-56-amd64", "#1 SMP older"))
    installed.write_bytes(gzip.compress(image("6.1.0-56-amd64")))
    monkeypatch.setattr(program, "places_of_btf", lambda _: [tmp_path / "no", running, installed])
    headers = headers_of("6.1.0-56-amd64")
    assert program.find_btf(headers) == installed
    running.write_bytes(image("6.1.0-56-amd64"))
    assert program.find_btf(headers) == running


def build_module(headers, *words, cwd):
    argv = [sys.executable, ROOT / "kernel" / "build", "--headers", headers.build, "--out", "out"]
    return subprocess.run(
        [*argv, *words], capture_output=True, text=True, check=False, timeout=60, cwd=cwd
    )


@pytest.mark.parametrize("compressed", [False, True])
def test_the_build_refuses_a_vmlinuz_of_another_kernel(headers_of, tmp_path, compressed):
    """A point release beside the right one: the exports and even the layouts may be alike."""
    kernel = image("6.1.0-55-amd64")
    source = tmp_path / "vmlinuz"
    source.write_bytes(gzip.compress(kernel) if compressed else kernel)
    done = build_module(headers_of("6.1.0-56-amd64"), "--btf", source, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"kernel/build: {source} has the BTF of Linux 6.1.0-55-amd64")
    assert done.stderr.count("\n") == 1


def test_a_missing_btf_names_the_option_of_make(headers_of, tmp_path):
    done = build_module(headers_of("6.1.99-none"), cwd=tmp_path)
    assert done.returncode == 2
    assert "no BTF of 6.1.99-none at" in done.stderr
    assert "--btf (make: BTF=FILE)" in done.stderr
