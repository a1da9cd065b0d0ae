# SPDX-License-Identifier: GPL-2.0
"""The kernel to which a source of BTF belongs, to compare it with the headers."""

from __future__ import annotations

import os
import re
import sys
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


def check_identity(found: Identity | None, source: Path, headers: Headers) -> None:
    """Raises an error for types of another release. Another build of that release is a warning."""
    if found is None:
        return
    if found.release != headers.release:
        raise GenerateError(
            f"{source} has the BTF of Linux {found.release}, but {headers.build} has the headers "
            f"of {headers.release}, and a module of both would corrupt memory: {NAME_ANOTHER}, or "
            f"use the headers of {found.release}"
        )
    if headers.version and found.build != headers.version:
        print(
            f"warning: {source} is of the build '{found.build}', and {headers.build} of the build "
            f"'{headers.version}' of {headers.release}: if a newer kernel is installed than runs, "
            "restart first",
            file=sys.stderr,
        )
