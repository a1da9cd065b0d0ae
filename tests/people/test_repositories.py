# SPDX-License-Identifier: GPL-2.0
"""packaging/repositories: apt and rpm take what the key has signed, and nothing else."""

import contextlib
import gzip
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

NAME = "mqfair"
CONTROL = f"""\
Package: {NAME}
Version: 1.2.3
Architecture: all
Section: kernel
Priority: optional
Maintainer: A <a@example.org>
Description: a package
"""
SPEC = f"""\
Name: {NAME}
Version: 1.2.3
Release: 1
Summary: A package
License: GPL-2.0-only
BuildArch: noarch
%description
A package.
%files
"""


def call(*argv, status=0, **more):
    words = [str(word) for word in argv]
    environment = {**os.environ, "LC_ALL": "C", **more}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    said = done.stdout + done.stderr
    assert status is None or done.returncode == status, said
    return done.returncode, said


@pytest.fixture(scope="module")
def keys():
    """A folder of gpg with the secret keys of two people. Its path is short, as a socket's must
    be."""
    home = Path("/tmp") / f"mqfair-keys-{os.getpid()}"
    home.mkdir(mode=0o700)
    try:
        for name in ("a@example.org", "b@example.org"):
            argv = ["--batch", "--passphrase", "", "--quick-generate-key", name, "rsa2048", "sign"]
            call("gpg", *argv, GNUPGHOME=str(home))
        yield {"GNUPGHOME": str(home)}
    finally:
        call("gpgconf", "--kill", "gpg-agent", status=None, GNUPGHOME=str(home))
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """A folder as `make release` leaves it, with one small package of each kind."""
    folder = tmp_path_factory.mktemp("release")
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL)
    (folder / "deb").mkdir()
    call("dpkg-deb", "--root-owner-group", "--build", tree, folder / "deb/mqfair_1.2.3_all.deb")
    (folder / "mqfair.spec").write_text(SPEC)
    defines = ["--define", f"_topdir {folder}/top", "--define", f"_rpmdir {folder}/rpms"]
    call("rpmbuild", "-bb", "--quiet", *defines, folder / "mqfair.spec")
    (folder / "rpm").mkdir()
    shutil.copy2(folder / "rpms/noarch/mqfair-1.2.3-1.noarch.rpm", folder / "rpm")
    return folder


@pytest.fixture
def repositories(keys, release, tmp_path):
    out = tmp_path / "out"
    argv = ["--key", "a@example.org", "--from", release, "--out", out]
    assert call(ROOT / "packaging/repositories", *argv, **keys)[1] == f"{out}\n"
    return out


class Apt:
    """apt-get with a configuration of its own, which knows the repository and its key alone."""

    def __init__(self, root, repositories):
        for name in ("lists/partial", "cache/archives/partial", "etc"):
            (root / name).mkdir(parents=True)
        (root / "status").write_text("")
        signed = f"signed-by={repositories}/mqfair.asc arch=amd64"
        (root / "sources").write_text(f"deb [{signed}] copy:{repositories}/apt stable main\n")
        settings = {
            "Dir::Etc": root / "etc", "Dir::Etc::SourceList": root / "sources",
            "Dir::State::Lists": root / "lists", "Dir::State::Status": root / "status",
            "Dir::Cache": root / "cache", "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any", "APT::Architecture": "amd64",
        }  # fmt: skip
        self._options = [f"-o{name}={value}" for name, value in settings.items()]
        self._folder = root

    def __call__(self, *words, status=0):
        with contextlib.chdir(self._folder):
            return call("apt-get", "--quiet", *self._options, *words, status=status)


@pytest.fixture
def apt(tmp_path, repositories):
    return Apt(tmp_path / "apt", repositories)


def test_apt_takes_the_signed_repository(apt, tmp_path, release):
    apt("update")
    apt("download", NAME)
    got = tmp_path / "apt/mqfair_1.2.3_all.deb"
    assert got.read_bytes() == (release / "deb/mqfair_1.2.3_all.deb").read_bytes()


def rehashed(repositories, text):
    """Writes the index @text, and a Release that has its sums, as a thief without the key can."""
    index = repositories / "apt/dists/stable/main/binary-amd64/Packages"
    old = {name: index.with_name(name).read_bytes() for name in ("Packages", "Packages.gz")}
    index.write_text(text)
    index.with_name("Packages.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("InRelease", "Release"):
        file = repositories / "apt/dists/stable" / name
        signed = file.read_text()
        for each, before in old.items():
            now = index.with_name(each).read_bytes()
            for kind in ("md5", "sha1", "sha256"):
                sums = [getattr(hashlib, kind)(one).hexdigest() for one in (before, now)]
                assert sums[0] in signed
                signed = re.sub(rf"{sums[0]} +\d+", f"{sums[1]} {len(now)}", signed)
        file.write_text(signed)


def test_apt_refuses_a_changed_index(apt, repositories):
    index = repositories / "apt/dists/stable/main/binary-amd64/Packages"
    text = index.read_text().replace("1.2.3", "6.6.6")
    index.write_text(text)
    index.with_name("Packages.gz").write_bytes(gzip.compress(text.encode()))
    assert re.search("Hash Sum mismatch|unexpected size", apt("update", status=100)[1])
    assert "Unable to locate package" in apt("download", NAME, status=100)[1]


def test_apt_refuses_an_index_with_sums_that_are_not_signed(apt, repositories):
    index = repositories / "apt/dists/stable/main/binary-amd64/Packages"
    rehashed(repositories, index.read_text().replace("1.2.3", "6.6.6"))
    assert "signature" in apt("update", status=100)[1]


def test_apt_refuses_a_changed_package(apt, repositories):
    apt("update")
    (package,) = repositories.glob("apt/pool/**/*.deb")
    package.write_bytes(package.read_bytes()[:-1] + b"x")
    assert "Hash Sum mismatch" in apt("download", NAME, status=100)[1]


def test_apt_refuses_the_key_of_another_person(apt, repositories, keys):
    other = call("gpg", "--armor", "--export", "b@example.org", **keys)[1]
    (repositories / "mqfair.asc").write_text(other)
    assert "NO_PUBKEY" in apt("update", status=100)[1]


def test_rpm_takes_the_signed_package_and_no_changed_one(repositories, tmp_path, keys):
    database = ["--dbpath", tmp_path / "rpm"]
    (package,) = (repositories / "yum").glob("*.rpm")
    assert "NOT OK" in call("rpmkeys", *database, "--checksig", package, status=1)[1]
    call("rpmkeys", *database, "--import", repositories / "mqfair.asc")
    assert "digests signatures OK" in call("rpmkeys", *database, "--checksig", package)[1]
    package.write_bytes(package.read_bytes()[:-1] + b"x")
    assert "NOT OK" in call("rpmkeys", *database, "--checksig", package, status=1)[1]
    index = repositories / "yum/repodata/repomd.xml"
    call("gpg", "--verify", f"{index}.asc", index, **keys)
    index.write_text(index.read_text() + "\n")
    assert "BAD signature" in call("gpg", "--verify", f"{index}.asc", index, status=1, **keys)[1]


def test_a_web_server_needs_no_more_than_the_folder(repositories):
    found = {str(one.relative_to(repositories)) for one in repositories.rglob("*")}
    assert {"mqfair.asc", "apt/dists/stable/InRelease", "yum/repodata/repomd.xml"} <= found
    assert sorted(one.name for one in (repositories / "apt").iterdir()) == ["dists", "pool"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--key", ""], "no key: name one, as in `make repositories KEY=me@example.org`"),
        (["--key", "nosuch"], "--key nosuch: gpg has no such secret key"),
        (["--key", "example.org"], "--key example.org: names 2 keys: give the fingerprint of one"),
        (["--key", "a@example.org", "--from", "/nosuch"], "no package in /nosuch/deb: run `make"),
    ],
)
def test_mistakes_leave_the_folder_as_it_is(keys, release, tmp_path, words, said):
    out = tmp_path / "out"
    out.mkdir()
    (out / "kept").write_text("")
    argv = ["--from", release, "--out", out, *words]
    assert said in call(ROOT / "packaging/repositories", *argv, status=1, **keys)[1]
    assert [one.name for one in out.iterdir()] == ["kept"]
