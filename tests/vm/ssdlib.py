# SPDX-License-Identifier: GPL-2.0
"""A virtual SSD for the time of a block, with its statistics."""

from __future__ import annotations

import os
from pathlib import Path

from guestlib import Disk, read, run, wait_until, write

DRIVES = Path("/sys/kernel/config/mqfair_ssd")
PAGE = 4096

# The module of the virtual SSD is built beside mqfair.ko.
_MODULE = Path(__file__).parents[2] / "build/module" / os.uname().release / "mqfair-ssd.ko"


def load() -> None:
    if not DRIVES.exists():
        run("insmod", _MODULE)


class Ssd(Disk):
    """@settings are those of its folder in configfs: model, size_mb, fill, …. Without @on there is
    only the folder."""

    def __init__(self, name: str = "t", *, on: bool = True, **settings: object) -> None:
        super().__init__(f"ssd-{name}")
        self.config = DRIVES / name
        self._settings = settings
        self._on = on

    def __enter__(self) -> Ssd:
        load()
        # A test that reached its time limit may have left the drive.
        self.remove()
        self.config.mkdir()
        try:
            for name, value in self._settings.items():
                self.set(name, value)
            if self._on:
                self.power(1)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def get(self, setting: str) -> str:
        return read(self.config / setting)

    def set(self, setting: str, value: object) -> None:
        write(self.config / setting, value)

    def power(self, on: int) -> None:
        self.set("power", on)
        wait_until(lambda: self.path.exists() == bool(on), f"{self.path} comes or goes")

    def remove(self) -> None:
        """Removes the drive, even under load."""
        if self.config.exists():
            self.config.rmdir()

    def stat(self) -> dict[str, float]:
        lines = self.get("stat").splitlines()
        return {name: float(value) for name, value in (line.split() for line in lines)}

    def owners(self) -> dict[str, dict[str, int]]:
        """The owners' numbers by the path of the cgroup; "-" stands for pages without an owner."""
        found = {}
        for line in read(Path("/sys/kernel/debug/mqfair_ssd", self.name, "owners")).splitlines():
            _, *pairs, path = line.split()
            found[path] = {name: int(value) for name, _, value in (p.partition("=") for p in pairs)}
        return found
