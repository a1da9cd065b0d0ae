# SPDX-License-Identifier: GPL-2.0
"""The build compares the kernel of the BTF with that of the headers."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kernel" / "btf"))

from errors import GenerateError  # noqa: E402
from headers import Headers  # noqa: E402
from identity import Identity, check_identity, identity  # noqa: E402

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


def test_types_of_another_release_are_refused(headers_of):
    headers = headers_of("6.1.0-56-amd64")
    with pytest.raises(GenerateError) as refusal:
        check_identity(Identity("6.1.0-55-amd64", BUILD), Path("/b/vmlinuz"), headers)
    text = str(refusal.value)
    assert text.startswith("/b/vmlinuz has the BTF of Linux 6.1.0-55-amd64, but ")
    assert "the headers of 6.1.0-56-amd64" in text
    assert "--btf (make: BTF=FILE)" in text
    assert "\n" not in text


def test_types_of_another_build_are_a_warning(headers_of, capsys):
    headers = headers_of("6.1.0-56-amd64")
    check_identity(Identity("6.1.0-56-amd64", "#1 SMP older"), Path("/b/vmlinuz"), headers)
    assert "build '#1 SMP older'" in capsys.readouterr().err
    check_identity(Identity("6.1.0-56-amd64", BUILD), Path("/b/vmlinuz"), headers)
    assert capsys.readouterr().err == ""


def test_a_tree_that_does_not_say_its_build_is_accepted(headers_of, capsys):
    headers = headers_of("6.1.0-56-amd64", build="")
    check_identity(Identity("6.1.0-56-amd64", BUILD), Path("/b/vmlinuz"), headers)
    check_identity(None, Path("/b/raw"), headers)
    assert capsys.readouterr().err == ""


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
