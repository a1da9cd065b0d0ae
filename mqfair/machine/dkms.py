# SPDX-License-Identifier: GPL-2.0
"""Why DKMS has no module for the running kernel, and the ways out."""

import re

from mqfair.machine.fs import Fs

# The kernels that kernel/dkms.conf accepts, first and last.
OLDEST, NEWEST = "6.1", "7.3"

PACKAGE = "mqfair"
SOURCES = "/usr/src"
# What DKMS has built.
TREE = f"/var/lib/dkms/{PACKAGE}"
# The administrator's settings for the package. They come after those of the package.
SETTINGS = f"/etc/dkms/{PACKAGE}.conf"
MODULES = "/lib/modules"

_SOURCE = re.compile(rf"{PACKAGE}-(\d[\w.+~]*)$")
_RANGE = re.compile(r'^\s*BUILD_EXCLUSIVE_KERNEL="?([^"\n]*)"?\s*$', re.MULTILINE)
_SERIES = re.compile(r"(\d+)\.(\d+)")


def too_old(release: str) -> str | None:
    """Words about a kernel that lacks what the module needs; None if @release may have it."""
    if _series(release) >= _series(OLDEST):
        return None
    return f"Linux {release} is too old: {OLDEST} or later"


def not_built(fs: Fs, release: str) -> str | None:
    """Words about the module of an installed package that DKMS has not built for @release; None if
    DKMS has no sources of it."""
    version = _version(fs)
    if version is None:
        return None
    package = f"{PACKAGE}/{version}"
    build = f"`dkms install {package} -k {release}`"
    if _skips(fs, version, release):
        return (
            f"DKMS skipped Linux {release}: {PACKAGE} {version} is for {OLDEST} to {NEWEST}:"
            f' boot {_older(fs, release)}, or write BUILD_EXCLUSIVE_KERNEL="" to {SETTINGS} and'
            f" run {build}"
        )
    return (
        f"DKMS has not built {PACKAGE} {version} for Linux {release}: install its headers, then"
        f" {build}; the log is {TREE}/{version}/build/make.log"
    )


def _skips(fs: Fs, version: str, release: str) -> bool:
    """Whether the settings of the package, with the administrator's over them, exclude @release."""
    excludes = False
    for path in (f"{SOURCES}/{PACKAGE}-{version}/dkms.conf", SETTINGS):
        for pattern in _RANGE.findall(fs.read_if_any(path) or ""):
            try:
                excludes = re.search(pattern, release) is None
            except re.error:
                excludes = False
    return excludes


def _older(fs: Fs, release: str) -> str:
    """A kernel of the machine that has the module, as the object of "boot"."""
    found = [
        name
        for name in fs.names(MODULES)
        if name != release and _has_module(fs, f"{MODULES}/{name}")
    ]
    if not found:
        return "a kernel of these"
    return f"Linux {max(found, key=_order)}, which has the module"


def _has_module(fs: Fs, folder: str) -> bool:
    lines = (fs.read_if_any(f"{folder}/modules.dep") or "").splitlines()
    files = (line.partition(":")[0].rpartition("/")[2] for line in lines)
    return any(file.partition(".")[0] == PACKAGE for file in files)


def _version(fs: Fs) -> str | None:
    """The newest version of which DKMS has the sources."""
    found = [match[1] for name in fs.names(SOURCES) if (match := _SOURCE.match(name))]
    present = [one for one in found if fs.exists(f"{SOURCES}/{PACKAGE}-{one}/dkms.conf")]
    return max(present, key=_order, default=None)


def _order(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))


def _series(release: str) -> tuple[int, int]:
    """The series of @release; one after all others if it has none."""
    found = _SERIES.match(release)
    return (int(found[1]), int(found[2])) if found else (10**6, 0)
