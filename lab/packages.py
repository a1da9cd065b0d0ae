# SPDX-License-Identifier: GPL-2.0
"""Debian packages of one suite, fetched and unpacked, never installed.

The machine's own apt serves the machine's own suite. Another suite has an apt configuration in the
cache folder, which uses the same mirror and leaves the machine's files alone:

    <cache>/apt/<suite>/sources.list
    <cache>/apt/<suite>/state/          package lists
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from lab import tools
from lab.cache import cache_dir, locked, write_atomically
from lab.errors import LabError

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclasses.dataclass(frozen=True)
class Suite:
    """A suite of the mirror; without a name it is the machine's own. @architecture is another one
    than the machine's."""

    name: str = ""
    architecture: str = ""

    def __str__(self) -> str:
        of_another = f" of {self.architecture}" if self.architecture else ""
        return (self.name or "this machine's suite") + of_another

    def update(self) -> None:
        """Fetches the package lists. The machine's own lists belong to its administrator."""
        if not self.name:
            return
        with locked(self._folder / ".lock"):
            options = f"signed-by={_KEYRING}"
            options += f" arch={self.architecture}" if self.architecture else ""
            line = f"deb [{options}] {mirror()} {self.name} main\n"
            write_atomically(self._folder / "sources.list", line.encode())
            write_atomically(self._folder / "status", b"")
            for folder in ("state/lists/partial", "cache/archives/partial"):
                (self._folder / folder).mkdir(parents=True, exist_ok=True)
            tools.say(f"fetching the package lists of {self}")
            tools.run(["apt-get", *self._options(), "-q", "--error-on=any", "update"])

    def dependencies(self, package: str) -> list[str]:
        """The packages that @package depends on, with all alternatives."""
        output = tools.run(["apt-cache", *self._options(), "depends", "--important", package])
        return re.findall(r"^\s*\|?Depends: ([^<\s]+)$", output, re.MULTILINE)

    def closure(self, packages: Sequence[str], wanted: Callable[[str], object]) -> list[str]:
        """@packages and all their direct and indirect dependencies that are @wanted."""
        found: list[str] = []
        pending = list(packages)
        while pending:
            package = pending.pop()
            if package not in found:
                found.append(package)
                pending.extend(one for one in self.dependencies(package) if wanted(one))
        return sorted(found)

    def unpack(self, packages: Sequence[str], root: Path, title: str) -> None:
        """Fetches @packages and unpacks them into @root."""
        debs = root.with_name(f"{root.name}.debs")
        debs.mkdir(parents=True)
        started = time.monotonic()
        tools.say(f"fetching {title}: {len(packages)} packages of {self}")
        # By default apt downloads as a user that may not write to this folder.
        options = [*self._options(), "-q", "-o", "APT::Sandbox::User=root"]
        tools.run(["apt-get", *options, "download", *packages], cwd=debs)
        files = sorted(debs.glob("*.deb"))
        megabytes = sum(deb.stat().st_size for deb in files) / 1e6
        tools.say(f"unpacking {megabytes:.0f} MB, {time.monotonic() - started:.0f} s to fetch")
        root.mkdir(parents=True, exist_ok=True)
        for deb in files:
            tools.run(["dpkg", "-x", str(deb), str(root)])
            deb.unlink()
        debs.rmdir()

    @property
    def _folder(self) -> Path:
        return cache_dir() / "apt" / "-".join(filter(None, [self.name, self.architecture]))

    def _options(self) -> list[str]:
        if not self.name:
            return []
        places = {
            "Dir::Etc::SourceList": self._folder / "sources.list",
            "Dir::Etc::SourceParts": Path("/dev/null"),
            "Dir::State": self._folder / "state",
            "Dir::State::Status": self._folder / "status",
            "Dir::Cache": self._folder / "cache",
        }
        if self.architecture:
            places["APT::Architecture"] = places["APT::Architectures"] = Path(self.architecture)
        words = {**places, "Acquire::Languages": "none", "APT::Sandbox::User": "root"}
        return [word for name, value in words.items() for word in ("-o", f"{name}={value}")]


@cache
def mirror() -> str:
    """The address of the Debian mirror that this machine uses."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    lines = tools.run([*argv, "Created-By: Packages", "Origin: Debian", "Label: Debian"])
    if not lines.strip():
        raise LabError("apt knows no Debian mirror: add one to /etc/apt and run apt-get update")
    return lines.split()[0]
