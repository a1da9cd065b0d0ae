# SPDX-License-Identifier: GPL-2.0
"""A kernel headers tree: its makefiles, its exports and the types that its headers declare."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from errors import GenerateError

# The makefile of a whole source tree includes makefiles too, by names with variables.
_INCLUDED_MAKEFILE = re.compile(r"^include\s+([^\s$]+)/Makefile\s*$", re.MULTILINE)
_COMPILER = re.compile(r"^CC\s*[:?]?=.*?(\S+)\s*$", re.MULTILINE)
_RELEASE = re.compile(r'UTS_RELEASE\s+"([^"]+)"')
_VERSION = re.compile(r'UTS_VERSION\s+"([^"]+)"')
# A flavour of its own source, as rt is, has a shared tree of its own.
_COMMON = re.compile(r"-common(-\w+)?$")
_OUTER_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")


def _release_in(build: Path) -> str:
    """Returns the release in /lib/modules/RELEASE/build; that of this machine for other paths."""
    inside = build.name == "build" and build.parent.parent.name == "modules"
    return build.parent.name if inside else os.uname().release


class Headers:
    """The build tree named by --headers (…/linux-headers-X-amd64 or /lib/modules/X/build)."""

    def __init__(self, build: Path) -> None:
        self.build = build.resolve()
        if not self.build.is_dir():
            release = _release_in(build)
            raise GenerateError(
                f"{build}: no headers of the kernel {release}: apt install linux-headers-{release} "
                f"(Debian, Ubuntu), dnf install kernel-devel-{release} (Fedora, RHEL), or name "
                "their build tree with --headers (make: HEADERS=FOLDER)"
            )
        for name in ("Makefile", ".config", "Module.symvers"):
            if not (self.build / name).is_file():
                raise GenerateError(
                    f"{build}: no {name} in it: name the build tree of the target kernel's headers "
                    "package with --headers (make: HEADERS=FOLDER), for instance "
                    "/usr/src/linux-headers-$(uname -r)"
                )

    @cached_property
    def source(self) -> Path:
        """
        The tree with the makefiles. On Debian the flavours share one tree. The Makefile of a build
        tree only includes the shared tree's Makefile, by its absolute path. In an unpacked package
        that path does not exist, and the shared tree lies beside the build tree.
        """
        included = _INCLUDED_MAKEFILE.search((self.build / "Makefile").read_text())
        if included is None:
            return self.build
        named = Path(included.group(1))
        beside = self.build.parent / named.name
        for tree in (beside, named):
            if (tree / "Makefile").is_file() and _COMMON.search(tree.name):
                return tree
        if (named / "Makefile").is_file():
            return self.build
        raise GenerateError(
            f"{self.build}: its Makefile needs {named.name}, which is neither at {named} nor "
            f"beside it: install or unpack the package {named.name} too"
        )

    @cached_property
    def config(self) -> set[str]:
        """Names of the options that are set to y or m."""
        text = (self.build / ".config").read_text()
        return set(re.findall(r"^(CONFIG_\w+)=[ym]$", text, re.MULTILINE))

    @property
    def writes_module_btf(self) -> bool:
        """Whether the makefiles add BTF to a module; they need a vmlinux beside them for that."""
        wanted = "CONFIG_DEBUG_INFO_BTF_MODULES" in self.config
        return wanted and (self.build / "vmlinux").is_file()

    @cached_property
    def exports(self) -> set[str]:
        """Names of the symbols that a module may use."""
        lines = (self.build / "Module.symvers").read_text().splitlines()
        return {fields[1] for line in lines if len(fields := line.split("\t")) > 1}

    @cached_property
    def release(self) -> str:
        """The release of this kernel, as uname -r prints it."""
        utsrelease = self.build / "include" / "generated" / "utsrelease.h"
        found = _RELEASE.search(utsrelease.read_text()) if utsrelease.is_file() else None
        if found is None:
            raise GenerateError(
                f"{self.build}: no include/generated/utsrelease.h in it: the tree is not prepared; "
                "use the headers package, or run 'make modules_prepare' in a kernel built by hand"
            )
        return found.group(1)

    @cached_property
    def version(self) -> str | None:
        """The build of this kernel, as uname -v prints it; None if the tree does not say."""
        for name in ("utsversion.h", "compile.h"):
            file = self.build / "include" / "generated" / name
            found = _VERSION.search(file.read_text()) if file.is_file() else None
            if found:
                return found.group(1)
        return None

    @cached_property
    def compiler(self) -> str:
        """The compiler this kernel is built with, as far as the tree says."""
        variables = self.build / ".kernelvariables"
        found = _COMPILER.search(variables.read_text()) if variables.is_file() else None
        if found is None:
            return "gcc"
        return found.group(1).rpartition(")")[2]

    def check_tools(self) -> None:
        """Raises an error that names a missing tool, before make fails with a longer one."""
        if shutil.which("make") is None:
            raise GenerateError("make is not installed: install the package make")
        if shutil.which(self.compiler) is None:
            raise GenerateError(
                f"{self.compiler} is not installed, and {self.build.name} needs it: "
                f"install the package {self.compiler}"
            )
        if self.writes_module_btf and shutil.which("pahole") is None:
            raise GenerateError(
                f"pahole is not installed, and {self.build.name} needs it to describe modules: "
                "install the package pahole"
            )
        if not (self.build / "scripts").is_dir():
            raise GenerateError(
                f"{self.build}: its scripts directory is missing: install or unpack the "
                "linux-kbuild package of the same version beside it"
            )

    def make(
        self, directory: Path, *targets: str, jobs: int = 1
    ) -> subprocess.CompletedProcess[str]:
        """Runs the kernel's makefiles on an external module directory."""
        argv = ["make", "-s", f"-j{jobs}", "-C", str(self.source)]
        if self.source != self.build:
            argv.append(f"O={self.build}")
        # The options of an enclosing make (jobserver, -n) are not for this one.
        clean = {k: v for k, v in os.environ.items() if k not in _OUTER_MAKE}
        return subprocess.run(
            [*argv, f"M={directory}", *targets],
            env=clean,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def preprocess(self, includes: str, scratch: Path) -> str:
        """Returns the text of the headers in INCLUDES after the kernel's preprocessor."""
        scratch.mkdir(parents=True, exist_ok=True)
        (scratch / "Kbuild").write_text("obj-m := public.o\n")
        (scratch / "public.c").write_text(includes)
        done = self.make(scratch, "public.i")
        result = scratch / "public.i"
        if done.returncode or not result.is_file():
            reason = [line for line in done.stdout.splitlines() if line.strip()]
            raise GenerateError(
                f"{self.build}: its headers cannot be preprocessed: "
                f"{reason[0] if reason else 'make failed'}"
            )
        return result.read_text(errors="replace")


class Declared:
    """Types that the public headers define."""

    _TAGGED = re.compile(
        r"\b(struct|union|enum)\s+(?:__attribute__\s*\(\([^{};]*?\)\)\s*)?(\w+)\s*\{"
    )
    _TYPEDEF = re.compile(
        r"\btypedef\b[^;{}]*?(\w+)\s*(?:\[[^\]]*\]|\([^;{}]*\))?\s*(?:__attribute__[^;]*)?;"
    )
    # The end of "typedef struct { … } name;".
    _TYPEDEF_TAIL = re.compile(r"\}\s*(?:__attribute__\s*\(\([^;]*?\)\)\s*)?(\w+)\s*;")

    def __init__(self, preprocessed: str) -> None:
        self._tagged = {(kind, name) for kind, name in self._TAGGED.findall(preprocessed)}
        self._typedefs = set(self._TYPEDEF.findall(preprocessed))
        self._typedefs.update(self._TYPEDEF_TAIL.findall(preprocessed))

    def has(self, kind: str, name: str) -> bool:
        """Returns whether a public header defines NAME; KIND is struct, union, enum or typedef."""
        return name in self._typedefs if kind == "typedef" else (kind, name) in self._tagged
