# SPDX-License-Identifier: GPL-2.0
"""Headers of arm64, to compile the modules for it on this machine. No guest runs them.

The headers are those of Debian's Linux 6.12, which have the kernel's BTF beside them. Their build
programs are for arm64, so the package with the same programs for this machine takes their place:

    <cache>/kernels/arm64                release of the headers
    <cache>/kernels/<release>/root/usr/src/linux-headers-<release>/
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from lab.cache import cache_dir, locked, write_atomically
from lab.errors import LabError
from lab.kernel import KERNELS, relocate_headers
from lab.packages import Suite

ARCHITECTURE = "arm64"
ENVIRONMENT = {"ARCH": "arm64", "CROSS_COMPILE": "aarch64-linux-gnu-"}
_NATIVE = KERNELS["6.12"].suite
_FOREIGN = Suite(_NATIVE.name, ARCHITECTURE)
_HEADERS = re.compile(r"linux-headers-(\d[\w.+-]*-arm64)$")


def ensure() -> Path:
    """The build tree of the headers; fetched if it is not cached."""
    kernels = cache_dir() / "kernels"
    pin = kernels / ARCHITECTURE
    with locked(kernels / ".arm64.lock"):
        release = pin.read_text().strip() if pin.exists() else ""
        if not release or not (kernels / release).is_dir():
            release = _fetch(kernels)
            write_atomically(pin, f"{release}\n".encode())
    return kernels / release / f"root/usr/src/linux-headers-{release}"


def _fetch(kernels: Path) -> str:
    _NATIVE.update()
    _FOREIGN.update()
    matches = map(_HEADERS.match, _FOREIGN.dependencies(f"linux-headers-{ARCHITECTURE}"))
    found = next(filter(None, matches), None)
    if found is None:
        raise LabError(f"{_FOREIGN}: has no headers for {ARCHITECTURE}: use another mirror")
    release = found.group(1)
    version = release.removesuffix(f"-{ARCHITECTURE}")
    headers = [f"linux-headers-{release}", f"linux-headers-{version}-common"]
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=kernels))
    try:
        root = partial / "root"
        _FOREIGN.unpack(headers, root, f"headers of {release}")
        _NATIVE.unpack([f"linux-kbuild-{version}"], root, "their build programs")
        relocate_headers(root / f"usr/src/linux-headers-{release}")
        partial.chmod(0o755)
        partial.rename(kernels / release)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return release
