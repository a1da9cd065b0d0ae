# SPDX-License-Identifier: GPL-2.0
"""What the build finds on machines other than Debian's: tools, flavours and old kernels."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "kernel" / "btf"))

import model
from errors import GenerateError
from headers import Headers

WRAPPER = "#!/bin/sh\necho 'WARNING: bpftool not found for kernel 6.8.0-45' >&2\nexit 2\n"
ANSWER = '#!/bin/sh\n[ "$1" = -j ] && echo \'{"types": []}\' || echo text\n'


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def wrapper(tmp_path, monkeypatch):
    """A distribution's bpftool that is a script, as the first one in PATH."""
    program = script(tmp_path / "bin" / "bpftool", WRAPPER)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(model, "LINUX_TOOLS", tmp_path / "lib")
    return program


def load(tmp_path):
    return model.Btf.load(tmp_path / "vmlinux", "kernel")


def test_a_wrapper_without_a_bpftool_is_to_blame_and_not_the_kernel(wrapper, tmp_path):
    with pytest.raises(GenerateError) as caught:
        load(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{wrapper} is a script that finds no bpftool for Linux ")
    assert f"install linux-tools-{os.uname().release}, or put another" in message
    assert "CONFIG_DEBUG_INFO_BTF" not in message


@pytest.mark.parametrize("folder", ["linux-tools/6.8.0-40-generic", "linux-tools-6.8.0-40"])
def test_the_bpftool_of_another_kernel_is_taken(wrapper, tmp_path, folder):
    script(tmp_path / "lib" / folder / "bpftool", ANSWER)
    assert load(tmp_path).text == "text\n"


def test_a_file_without_types_is_no_fault_of_a_bpftool_that_runs(tmp_path):
    (tmp_path / "vmlinux").write_bytes(b"\x7fELF")
    with pytest.raises(GenerateError, match="use a kernel built with CONFIG_DEBUG_INFO_BTF=y"):
        load(tmp_path)


@pytest.mark.parametrize("flavour", ["common", "common-rt"])
def test_unpacked_headers_have_their_shared_tree_beside_them(tmp_path, flavour):
    build, shared = tmp_path / "linux-headers-1-test", tmp_path / f"linux-headers-1-{flavour}"
    for folder in (build, shared):
        folder.mkdir()
        for name in ("Makefile", ".config", "Module.symvers"):
            (folder / name).touch()
    (build / "Makefile").write_text(f"include /nowhere/{shared.name}/Makefile\n")
    assert Headers(build).source == shared


def headers_of(tmp_path, release):
    generated = tmp_path / "headers" / "include" / "generated"
    generated.mkdir(parents=True)
    for name in ("Makefile", ".config", "Module.symvers"):
        (tmp_path / "headers" / name).touch()
    (generated / "utsrelease.h").write_text(f'#define UTS_RELEASE "{release}"\n')
    return tmp_path / "headers"


def build_for(tmp_path, release):
    """kernel/build for headers of @release alone, without tools or types."""
    argv = [ROOT / "kernel" / "build", "--headers", headers_of(tmp_path, release)]
    return subprocess.run(
        [*argv, "--out", tmp_path / "out", "--btf", "/dev/null"],
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("release", ["5.15.0-91-generic", "6.0.12", "4.19.0-27-amd64"])
def test_a_kernel_before_the_first_one_is_called_too_old(tmp_path, release):
    """Before any tool that this machine may lack, and before the types."""
    done = build_for(tmp_path, release)
    said = f"kernel/build: Linux {release} is too old: 6.1 or later\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.parametrize("release", ["6.1.0", "6.10.1", "10.0.0"])
def test_later_kernels_are_not_too_old(tmp_path, release):
    done = build_for(tmp_path, release)
    assert done.returncode == 2
    assert "scripts directory is missing" in done.stderr
