# SPDX-License-Identifier: GPL-2.0
"""Stand-ins for libraries that fio is linked with but no test needs.

Debian's fio supports Ceph, GlusterFS, NBD, RDMA and persistent memory, so it loads about fifty
libraries at each start. In an emulated guest that takes most of its first second, and a test starts
fio several times. A stand-in has the library's name and those of its functions, with their
versions, that fio is linked with. A call of such a function ends fio by SIGILL.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "standins"
_NOT_USED = re.compile(r"lib(gfapi|ibverbs|nbd|pmem|pmemblk|rados|rbd|rdmacm)\.so\.")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_FOUND = re.compile(r"^\s*(\S+) => (\S+)", re.M)
_lock = threading.Lock()


def folder() -> Path | None:
    """The folder of the stand-ins, for LD_LIBRARY_PATH; None if fio does not start with them."""
    with _lock:
        return _folder()


@functools.cache
def _folder() -> Path | None:
    fio = shutil.which("fio")
    if fio is None:
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        wanted = {symbol for symbol, kind in _symbols(Path(fio)) if kind == "U"}
        for library in _libraries(fio):
            _build(library, wanted)
        env = {**os.environ, "LD_LIBRARY_PATH": str(FOLDER)}
        subprocess.run([fio, "--version"], env=env, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return FOLDER


def _output_of(*argv: str | Path) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def _libraries(fio: str) -> Iterator[Path]:
    found = dict(_FOUND.findall(_output_of("ldd", fio)))
    for name in _NEEDED.findall(_output_of("readelf", "--dynamic", "--wide", fio)):
        if _NOT_USED.match(name):
            yield Path(found[name])


def _symbols(file: Path) -> Iterator[tuple[str, str]]:
    """(NAME or NAME@VERSION, letter of nm). U marks an undefined symbol, T a defined one."""
    for line in _output_of("nm", "--dynamic", file).splitlines():
        *_, kind, symbol = line.split()
        yield symbol.replace("@@", "@"), kind


def _build(library: Path, wanted: set[str]) -> None:
    """Builds the stand-in for @library, with its symbols in @wanted."""
    versions: dict[str, list[str]] = defaultdict(list)
    for symbol, kind in _symbols(library):
        if kind in "TWi" and symbol in wanted:
            name, _, version = symbol.partition("@")
            versions[version].append(name)
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        source, script, built = (Path(scratch, name) for name in ("a.c", "a.map", "a.so"))
        source.write_text(_definitions(versions))
        script.write_text(_version_script(versions))
        argv: list[str | Path]
        argv = ["gcc", "-w", "-fno-builtin", "-nostdlib", "-shared", "-fPIC", source, "-o", built]
        argv += [f"-Wl,--version-script={script}"] if any(versions) else []
        _output_of(*argv, f"-Wl,-soname,{library.name}")
        # Another run may use the old file at this time.
        built.replace(FOLDER / library.name)


def _definitions(versions: dict[str, list[str]]) -> str:
    names = [name for group in versions.values() for name in group]
    return "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in names)


def _version_script(versions: dict[str, list[str]]) -> str:
    return "".join(
        f"{version} {{ global: {'; '.join(group)}; }};\n"
        for version, group in versions.items()
        if version
    )
