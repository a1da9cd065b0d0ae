# SPDX-License-Identifier: GPL-2.0
"""The kernel to which a source of BTF belongs, to compare it with the headers."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from errors import GenerateError
from headers import Headers

# A kernel image contains the first line of its log: release, builder, compiler, build.
_BANNER = re.compile(rb"Linux version (\S+) \([^\n\0]*\) (#\d+ [^\n\0]*)")
NAME_ANOTHER = "name its vmlinuz with --btf (make: BTF=FILE)"


@dataclass(frozen=True)
class Identity:
    """The outputs of `uname -r` and `uname -v`."""

    release: str
    build: str


def identity(source: Path, image: Path) -> Identity | None:
    """Returns the kernel of SOURCE, which was unpacked to IMAGE; None for raw BTF in a file."""
    if source.resolve().is_relative_to("/sys/kernel/btf"):
        here = os.uname()
        return Identity(here.release, here.version)
    found = _BANNER.search(image.read_bytes())
    return Identity(found[1].decode(), found[2].decode()) if found else None


def difference(source: Path, image: Path, headers: Headers) -> str | None:
    """Returns how the kernel of SOURCE, unpacked to IMAGE, differs from that of HEADERS; None if
    it does not, or if one of them does not say which kernel it is of."""
    found = identity(source, image)
    if found is None:
        return None
    if found.release != headers.release:
        return (
            f"{source} has the BTF of Linux {found.release}, but {headers.build} has the headers "
            f"of {headers.release}"
        )
    if headers.version and found.build != headers.version:
        return (
            f"{source} has the BTF of the build '{found.build}' of Linux {found.release}, but "
            f"{headers.build} has the headers of the build '{headers.version}'"
        )
    return None


def check_identity(source: Path, image: Path, headers: Headers) -> None:
    """Raises an error for types of another release, or of another build of the same release."""
    why = difference(source, image, headers)
    if why:
        raise GenerateError(
            f"{why}, and a module of both would corrupt memory: {NAME_ANOTHER}, or use the headers "
            "of that kernel"
        )
