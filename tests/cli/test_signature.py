# SPDX-License-Identifier: GPL-2.0
"""Kernels that load only signed modules: Secure Boot, lockdown, module.sig_enforce."""

import errno
import gzip
import lzma

import pytest
from conftest import RELEASE

from mqfair.machine import kmod

FOLDER = f"/lib/modules/{RELEASE}"
SIGNED = b"\x7fELF code" + bytes(600) + b"~Module signature appended~\n"
UNSIGNED = b"\x7fELF code" + bytes(600)
SCHEDULER = "/sys/block/nvme0n1/queue/scheduler"


@pytest.fixture
def host(machine):
    """The module is installed and not loaded."""
    machine.install_module(loaded=False)
    machine.disk()
    machine.cgroup("prod")
    machine.cgroup("batch")
    return machine


def install(host, data, name="updates/mqfair.ko"):
    host.put(f"{FOLDER}/modules.dep", f"kernel/block/bfq.ko:\n{name}:")
    host.put(f"{FOLDER}/{name}", "").write_bytes(data)


def enforce(host):
    host.put(kmod.SIG_ENFORCE, "Y")


def lock_down(host):
    host.put(kmod.LOCKDOWN, "none [integrity] confidentiality")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (enforce, "(module.sig_enforce=1)"),
        (lock_down, "(lockdown=integrity, as under Secure Boot)"),
    ],
)
def test_an_unsigned_module_is_named_with_the_remedy(host, run, rule, said):
    """No advice leads back to `mqfair enable` or `modprobe` alone, which would fail again."""
    install(host, UNSIGNED)
    rule(host)
    before = host.snapshot()
    for argv in (("enable", "nvme0n1"), ("weight", "prod", "900")):
        result = run(*argv)
        assert result.code == 1
        assert f"this kernel loads only signed modules {said}" in result.err
        assert f"{FOLDER}/updates/mqfair.ko has no signature" in result.err
        assert "mokutil --import" in result.err
        assert "`modprobe" not in result.err
    assert (host.stores, host.snapshot()) == ([], before)
    result = run("check", "nvme0n1", "prod")
    assert result.code == 1
    assert result.out.count("mokutil --import") == 2
    assert "-> mqfair enable" not in result.out


def test_a_signature_with_an_unknown_key_is_told_after_the_refusal(host, run):
    install(host, SIGNED)
    enforce(host)
    host.refuse[SCHEDULER] = [errno.EINVAL]
    result = run("enable", "nvme0n1")
    assert result.code == 1
    assert "this kernel loads only modules with a key that it knows" in result.err
    assert "modinfo -F signer mqfair" in result.err
    assert "all settings are as before" in result.err


def test_a_kernel_that_loads_all_modules_is_not_blamed(host, run):
    install(host, UNSIGNED)
    host.put(kmod.SIG_ENFORCE, "N")
    host.put(kmod.LOCKDOWN, "[none] integrity confidentiality")
    host.refuse[SCHEDULER] = [errno.EINVAL]
    result = run("enable", "nvme0n1")
    assert "see the reason in the kernel log (dmesg)" in result.err
    assert "sign" not in result.err


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("mqfair.ko", SIGNED, True),
        ("mqfair.ko", UNSIGNED, False),
        ("mqfair.ko.xz", lzma.compress(SIGNED), True),
        ("mqfair.ko.xz", lzma.compress(UNSIGNED), False),
        ("mqfair.ko.gz", gzip.compress(SIGNED), True),
        ("mqfair.ko.gz", gzip.compress(UNSIGNED), False),
        ("mqfair.ko.zst", b"\x28\xb5\x2f\xfd...", None),
        ("mqfair.ko.xz", b"damaged", None),
        ("mqfair.ko.gz", b"damaged", None),
    ],
)
def test_signatures_of_files(host, name, data, found):
    install(host, data, f"extra/{name}")
    fs = kmod.Fs()
    path = kmod.file(fs)
    assert path == f"{FOLDER}/extra/{name}"
    assert kmod._signed(fs, path) is found


def test_a_loaded_module_needs_no_signature(host, run):
    install(host, UNSIGNED)
    host.load_module()
    enforce(host)
    assert run("enable", "nvme0n1").code == 0
