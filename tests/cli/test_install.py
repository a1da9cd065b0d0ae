# SPDX-License-Identifier: GPL-2.0
"""make install and make uninstall, into a folder, and kernel/install itself."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, loaded

RELEASE = "6.1.0-56-amd64"


@pytest.fixture(scope="module")
def program():
    return loaded("kernel/install", "mqfair_install")


@pytest.fixture
def tree(tmp_path):
    """Two kernels; a function that puts a file below one of them."""
    for release in (RELEASE, "6.1.0-55-amd64"):
        (tmp_path / "lib/modules" / release).mkdir(parents=True)

    def put(place, release=RELEASE):
        file = tmp_path / "lib/modules" / release / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a module")
        return file

    return put


def make(target, destdir, *words):
    env = {name: text for name, text in os.environ.items() if name not in ("MAKEFLAGS", "RELEASE")}
    return subprocess.run(
        ["make", "-s", target, f"DESTDIR={destdir}", *words],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT, env=env,
    )  # fmt: skip


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_without_headers_nothing_is_installed(tmp_path, tree):
    """The command alone would be half an installation."""
    headers = f"/nosuch/modules/{RELEASE}/build"
    done = make("install", tmp_path, f"RELEASE={RELEASE}", f"HEADERS={headers}")
    assert done.returncode != 0
    assert f"{headers}: no headers of the kernel {RELEASE}: " in done.stderr
    assert f"apt install linux-headers-{RELEASE}" in done.stderr
    assert f"dnf install kernel-devel-{RELEASE}" in done.stderr
    assert "make: HEADERS=FOLDER" in done.stderr
    assert files_in(tmp_path) == []


def test_a_copy_of_dkms_is_named_before_the_build(tmp_path, tree):
    copy = tree("updates/dkms/mqfair.ko")
    done = make("install-module", tmp_path, f"RELEASE={RELEASE}", "HEADERS=/nosuch")
    assert done.returncode != 0
    assert f"kernel/install: {copy} is another copy, and modprobe loads only one" in done.stderr
    assert "dkms remove mqfair/VERSION --all" in done.stderr
    assert "headers" not in done.stderr


def test_uninstall_removes_the_modules_of_all_kernels(tmp_path, tree):
    """After an upgrade of the kernel there are several."""
    here = os.uname().release
    mine = [
        tree(f"updates/{name}", release)
        for release in (RELEASE, "6.1.0-55-amd64", here)
        for name in ("mqfair.ko", "mqfair-ssd.ko")
    ]
    other = tree("updates/other.ko")
    copy = tree("updates/dkms/mqfair.ko")
    done = make("uninstall", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [file for file in mine if file.exists()] == []
    assert all(f"removed {file}\n" in done.stdout for file in mine)
    assert f"note: {copy} stays: dkms remove" in done.stdout
    assert other.exists() and copy.exists()


def test_uninstall_for_one_kernel(tmp_path, tree):
    old, new = tree("updates/mqfair.ko", "6.1.0-55-amd64"), tree("updates/mqfair.ko")
    assert make("uninstall", tmp_path, "RELEASE=6.1.0-55-amd64").returncode == 0
    assert (old.exists(), new.exists()) == (False, True)


def test_uninstall_where_nothing_is_installed(tmp_path):
    for words in ([], ["RELEASE=5.0-gone"]):
        done = make("uninstall", tmp_path, *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture
def updated(program, monkeypatch):
    """The releases for which depmod ran, on a machine and not into a package."""
    found = []
    monkeypatch.setattr(program.Tree, "update", lambda self, release: found.append(release))
    monkeypatch.setattr(program, "LOADED", Path("/nosuch"))
    return found


def machine(program, tmp_path):
    tree = program.Tree(str(tmp_path))
    tree.packaging = False
    return tree


def test_depmod_runs_only_for_kernels_that_change(program, tmp_path, tree, updated):
    tree("updates/mqfair.ko", "6.1.0-55-amd64")
    where = machine(program, tmp_path)
    program.remove(where, [*where.releases(), "5.0-gone"])
    assert updated == ["6.1.0-55-amd64"]


def test_a_loaded_module_is_mentioned(program, tmp_path, updated, capsys):
    program.LOADED = tmp_path
    program.remove(machine(program, tmp_path), [])
    assert "module mqfair is still loaded: echo none > /sys/block/" in capsys.readouterr().out


@pytest.mark.parametrize(
    "place", ["updates/dkms/mqfair.ko.xz", "extra/mqfair.ko", "updates/mqfair.ko.zst"]
)
def test_other_copies(program, tmp_path, tree, place):
    copy = tree(place)
    tree("updates/mqfair-ssd.ko")
    with pytest.raises(program.InstallError, match="is another copy") as refusal:
        program.check(program.Tree(str(tmp_path)), RELEASE)
    assert str(copy) in str(refusal.value)


def test_an_older_module_of_this_program_is_no_other_copy(program, tmp_path, tree):
    tree("updates/mqfair.ko")
    program.check(program.Tree(str(tmp_path)), RELEASE)


def test_a_kernel_that_is_not_installed(program, tmp_path):
    with pytest.raises(program.InstallError, match=r"5\.0-gone does not exist: install the kernel"):
        program.check(machine(program, tmp_path), "5.0-gone")


def test_a_module_is_installed_without_debugging_information(program, tmp_path, tree, updated):
    for tool in ("gcc", "strip", "objdump"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    source, module = tmp_path / "mqfair.c", tmp_path / "mqfair.ko"
    source.write_text("int answer(void) { return 42; }\n")
    subprocess.run(["gcc", "-g", "-c", source, "-o", module], check=True)
    program.install(machine(program, tmp_path), RELEASE, [module])
    installed = tmp_path / "lib/modules" / RELEASE / "updates/mqfair.ko"
    sections = subprocess.check_output(["objdump", "-h", installed])
    assert b".text" in sections
    assert b".debug_info" not in sections
    assert b".debug_info" in subprocess.check_output(["objdump", "-h", module])
    assert files_in(installed.parent) == ["mqfair.ko"]
    assert updated == [RELEASE]


def test_a_production_host_gets_no_virtual_ssd():
    """mqfair-ssd.ko is for experiments, and `make install` does not build it."""
    words = ["make", "-n", "install", f"RELEASE={RELEASE}", "HEADERS=/nosuch", "DESTDIR=/nosuch"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "mqfair.ko" in done.stdout
    assert "ssd" not in done.stdout.replace("lab", "")


def test_the_service_and_the_udev_rule(tmp_path):
    """They call the command where it is installed, and go with it."""
    for prefix in ("/usr/local", "/usr"):
        words = [f"PREFIX={prefix}"]
        assert make("install-command", tmp_path, *words).returncode == 0
        folder = tmp_path / prefix.lstrip("/")
        unit = (folder / "lib/systemd/system/mqfair.service").read_text()
        rule = (folder / "lib/udev/rules.d/99-mqfair.rules").read_text()
        assert f"\nExecStart={prefix}/bin/mqfair follow\n" in unit
        assert f'RUN+="{prefix}/bin/mqfair follow --device $kernel"' in rule
        metrics = (folder / "lib/systemd/system/mqfair-metrics.service").read_text()
        assert f"\nExecStart={prefix}/bin/mqfair metrics --listen systemd" in metrics
        assert "@" not in unit + rule + metrics
        assert (folder / "bin/mqfair").stat().st_mode & 0o111
        bash = (folder / "share/bash-completion/completions/mqfair").read_text()
        assert "complete -F _mqfair mqfair" in bash
        assert (folder / "share/zsh/site-functions/_mqfair").exists()
        assert (folder / "share/fish/vendor_completions.d/mqfair.fish").exists()
        assert make("uninstall", tmp_path, *words).returncode == 0
        assert files_in(folder) == []


@pytest.mark.parametrize("name", ["mqfair.service", "mqfair-metrics.socket"])
def test_systemd_accepts_the_units(tmp_path, name):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for file in (ROOT / "mqfair/system").glob("mqfair*.s*"):
        text = file.read_text().replace("@BINDIR@/mqfair", "/bin/true")
        (tmp_path / file.name).write_text(text)
    argv = ["systemd-analyze", "verify", "--man=no", tmp_path / name]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_udev_rules_are_ones_that_check_understands():
    """The parser of check's findings reads it, so a comma or a quote is not missing."""
    from mqfair.check.udev_rules import PAIR

    rules = (ROOT / "mqfair/system/99-mqfair.rules").read_text().splitlines()
    rules = [line for line in rules if line and not line.startswith("#")]
    for rule in rules:
        assert ", ".join(PAIR.search(one)[0] for one in rule.split(", ")) == rule
    assert [[pair[0] for pair in PAIR.findall(rule)] for rule in rules] == [
        ["ACTION", "SUBSYSTEM", "ENV", "KERNEL", "TEST", "RUN"],
        ["ACTION", "SUBSYSTEM", "KERNEL", "ATTR", "TEST", "RUN"],
    ]
