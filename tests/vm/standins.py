# SPDX-License-Identifier: GPL-2.0
"""Stand-ins for libraries that fio is linked with and that no test has a use for.

Debian's fio can speak to Ceph, GlusterFS, NBD, RDMA and persistent memory, and therefore loads
some fifty libraries whenever it starts: in an emulated guest that is most of its first second,
and a test starts it several times. A stand-in has the name and the functions, with their versions,
that fio wants of a library; whoever calls one is ended by SIGILL.
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
    """Where they are, for LD_LIBRARY_PATH; None where fio does not start with them."""
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


def _said_by(*argv: str | Path) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def _libraries(fio: str) -> Iterator[Path]:
    found = dict(_FOUND.findall(_said_by("ldd", fio)))
    for name in _NEEDED.findall(_said_by("readelf", "--dynamic", "--wide", fio)):
        if _NOT_USED.match(name):
            yield Path(found[name])


def _symbols(file: Path) -> Iterator[tuple[str, str]]:
    """NAME or NAME@VERSION, and the letter of nm: U where it is wanted, T where it is defined."""
    for line in _said_by("nm", "--dynamic", file).splitlines():
        *_, kind, symbol = line.split()
        yield symbol.replace("@@", "@"), kind


def _build(library: Path, wanted: set[str]) -> None:
    """What @library has of @wanted."""
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
        _said_by(*argv, f"-Wl,-soname,{library.name}")
        # Another run may be using it.
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
