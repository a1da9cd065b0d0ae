# SPDX-License-Identifier: GPL-2.0
"""packaging/release: the version that it states, and the checkouts that it refuses."""

import subprocess

import pytest
from conftest import ROOT

from mqfair import __version__


def git(folder, *words):
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """A checkout of the last commit, with the program as it is now."""
    git(tmp_path, "clone", "--quiet", "--shared", str(ROOT), "copy")
    copy = tmp_path / "copy"
    git(copy, "config", "user.name", "A")
    git(copy, "config", "user.email", "a@example.org")
    changelog = copy / "CHANGELOG.md"
    changelog.write_text(f"# Changelog\n\n## Next\n\n- New.\n\n## {__version__}\n\n- Old.\n")
    (copy / "packaging/release").write_bytes((ROOT / "packaging/release").read_bytes())
    (copy / "packaging/release").chmod(0o755)
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--allow-empty", "--message", "x")
    return copy


def release(checkout, *words):
    argv = [str(checkout / "packaging/release"), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_a_version_is_stated_everywhere(checkout):
    assert release(checkout, "--state", "7.8.9").returncode == 0
    for file in ("mqfair/__init__.py", "kernel/main.c", "kernel/ssd/main.c", "kernel/dkms.conf"):
        text = (checkout / file).read_text()
        assert '"7.8.9"' in text and f'"{__version__}"' not in text
    assert "## 7.8.9\n\n- New." in (checkout / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("version", ["7.8", "v7.8.9", "7.8.9-rc1"])
def test_a_bad_version_changes_nothing(checkout, version):
    done = release(checkout, "--state", version)
    assert done.returncode == 1
    assert f"--state {version}: write three numbers" in done.stderr
    git(checkout, "diff", "--exit-code")


def test_a_release_has_a_part_in_the_changelog(checkout):
    done = release(checkout)
    assert done.returncode == 1
    assert "the newest part is 'Next'" in done.stderr
    assert release(checkout, "--state", "7.8.9").returncode == 0
    done = release(checkout, "--state", "8.0.0")
    assert done.returncode == 1 and "the newest part is '7.8.9'" in done.stderr


def test_a_release_is_of_a_commit(checkout):
    (checkout / "README.md").write_text("x")
    done = release(checkout)
    assert done.returncode == 1 and "commit them, or stash them" in done.stderr
