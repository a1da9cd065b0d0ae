# SPDX-License-Identifier: GPL-2.0
"""Kernels that no distribution ships: user-mode Linux, and kernels with checks.

``build()`` compiles one, once, from Debian's source of Linux 7.2 and in the chroot of
lab/chroot.py:

    <cache>/kernels/<name>/
        source/, build/                  the headers, as Debian's packages have them
        build/vmlinux                    the types of the kernel, and what an emulated guest boots
        root/boot/linux                  the program of user-mode Linux
        root/lib/modules/<release>/
        options                          the options of its configuration
        .recipe                          a digest of the options and of the steps
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from lab import chroot, tools
from lab.cache import cache_dir, locked, write_atomically
from lab.errors import LabError
from lab.packages import Suite
from lab.tree import KCSAN, UML, UML_DEBUG, KernelTree

SERIES = "7.2"
COMPILER = "gcc-16"
_SUITE = Suite("sid")
_HERE = Path(__file__).resolve().parent
# Lines of the build that are shown when it fails.
_SHOWN_LINES = 15


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The steps to compile a kernel: options of make, its default configuration, and the files with
    more options. @target is the target of the Makefile, which takes @minutes on two CPUs."""

    title: str
    target: str
    minutes: int
    files: tuple[str, ...]
    arch: str = "um"
    base: str = "defconfig"
    make: str = ""
    program: str = "linux"
    # Parts of the build that its modules need beside those of every kernel.
    kept: tuple[str, ...] = ()


_UML = Recipe("user-mode Linux", "make uml", 10, ("uml.config",))
RECIPES = {
    UML: _UML,
    UML_DEBUG: dataclasses.replace(
        _UML, target="make test-debug", minutes=15, files=("uml.config", "uml-debug.config")
    ),
    # KCSAN watches the accesses of the module alone. The kernel's own races would hide its reports,
    # and an emulated kernel would be several times slower.
    KCSAN: Recipe(
        "the KCSAN kernel",
        "make test-debug",
        15,
        ("kcsan.config",),
        arch="x86_64",
        base="allnoconfig",
        make=" KCSAN_SANITIZE=n",
        program="vmlinux",
        kept=("tools/objtool/objtool",),
    ),
}

_BUILD = """\
set -e
source=$1 build=$2 options=$3 root=$4
export ARCH={arch} CC={compiler} HOSTCC={compiler}
run() {{ make -s -C "$source" O="$build" CC={compiler} HOSTCC={compiler}{make} "$@"; }}
run {base}
cat "$options" >> "$build/.config"
run olddefconfig
grep '^CONFIG_' "$options" | while read -r option; do
	grep -qxF "$option" "$build/.config" || {{ echo "$option: has no effect" >&2; exit 1; }}
done
run -j"$(nproc)" {program} modules
run INSTALL_MOD_PATH="$root" INSTALL_MOD_STRIP=1 modules_install
{install}\
strip --strip-debug -o "$build/.vmlinux" "$build/vmlinux"
mv "$build/.vmlinux" "$build/vmlinux"
"""
_INSTALL_PROGRAM = """\
strip -o "$root/boot/{program}" "$build/{program}"
"""

# The parts of the source and of the build that modules need. The other 97 % are deleted.
_KEPT_OF_SOURCE = ("Kbuild", "Makefile", "arch/um", "arch/x86", "include", "scripts")
_KEPT_OF_BUILD = (
    ".config",
    "Makefile",
    "Module.symvers",
    "arch",
    "include",
    "scripts",
    "source",
    "tools/bpf/resolve_btfids",
    "vmlinux",
)
_OBJECTS = re.compile(r".*\.[ao]$|\..*\.cmd$")


def ensure(name: str) -> KernelTree:
    """The compiled kernel @name. Raises LabError if it is not in the cache."""
    recipe = RECIPES[name]
    base = _base(name)
    found = base / ".recipe"
    remedy = f"run {recipe.target} ({recipe.minutes} minutes, once)"
    if not found.exists():
        raise LabError(f"{recipe.title} is not built: {remedy}")
    if found.read_text() != digest_of(name):
        raise LabError(f"{recipe.title} was built with other options: {remedy}")
    root = base / "root"
    (modules,) = (root / "lib/modules").iterdir()
    is_uml = recipe.arch == "um"
    return KernelTree(
        release=modules.name,
        vmlinuz=root / "boot/linux" if is_uml else base / "build/vmlinux",
        vmlinux=base / "build/vmlinux",
        modules_dir=modules,
        headers_build_dir=base / "build",
        root=root,
        chroot_suite=_SUITE.name,
        is_uml=is_uml,
    )


def is_built(name: str) -> bool:
    found = _base(name) / ".recipe"
    return found.exists() and found.read_text() == digest_of(name)


def build(name: str) -> KernelTree:
    """Builds kernel @name if the cache has none with these options."""
    base = _base(name)
    with locked(base.with_name(f".{name}.lock")):
        if not is_built(name):
            _build(name, base)
    return ensure(name)


def _base(name: str) -> Path:
    return cache_dir() / "kernels" / name


def options(name: str) -> str:
    """The options of kernel @name. The later ones would override the earlier, so @name, which ends
    the release, replaces that of the plain kernel."""
    plain, *more = [(_HERE / file).read_text() for file in RECIPES[name].files]
    return "".join([plain.replace(f'"-{UML}"', f'"-{name}"'), *more])


def _steps(recipe: Recipe) -> str:
    fields = dataclasses.asdict(recipe)
    install = _INSTALL_PROGRAM.format(**fields) if recipe.arch == "um" else ""
    return _BUILD.format(compiler=COMPILER, install=install, **fields)


def digest_of(name: str) -> str:
    digest = hashlib.sha256(_steps(RECIPES[name]).encode())
    digest.update(options(name).encode())
    digest.update(repr((_KEPT_OF_SOURCE, _KEPT_OF_BUILD, *RECIPES[name].kept)).encode())
    return digest.hexdigest()


def _build(name: str, base: Path) -> None:
    recipe = RECIPES[name]
    started = time.monotonic()
    inside = chroot.ensure(_SUITE.name, COMPILER)
    shutil.rmtree(base, ignore_errors=True)
    try:
        _unpack_source(base)
        for folder in ("build", "root/boot"):
            (base / folder).mkdir(parents=True)
        (base / "options").write_text(options(name))
        effort = f"{os.cpu_count()} compilers, {recipe.minutes} minutes"
        tools.say(f"building {recipe.title} {SERIES} ({effort})")
        places = (base / "source", base / "build", base / "options", base / "root")
        argv = ["/bin/sh", "-c", _steps(recipe), "sh", *map(str, places)]
        command = chroot.command(inside, argv, [base])
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:]
            raise LabError("\n".join([f"{recipe.title} does not build:", *lines]))
        variables = f"override ARCH = {recipe.arch}\nCC = {COMPILER}\nHOSTCC = {COMPILER}\n"
        (base / "build/.kernelvariables").write_text(variables)
        keep_only(base / "source", _KEPT_OF_SOURCE)
        keep_only(base / "build", (*_KEPT_OF_BUILD, *recipe.kept, ".kernelvariables"))
        write_atomically(base / ".recipe", digest_of(name).encode())
    except BaseException:
        shutil.rmtree(base, ignore_errors=True)
        raise
    tools.say(f"built {recipe.title} in {time.monotonic() - started:.0f} s")


def _unpack_source(base: Path) -> None:
    with tempfile.TemporaryDirectory(dir=base.parent, prefix=".partial-") as folder:
        package = Path(folder) / "package"
        _SUITE.update()
        _SUITE.unpack([f"linux-source-{SERIES}"], package, f"the source of Linux {SERIES}")
        (archive,) = (package / "usr/src").glob("linux-source-*.tar.xz")
        tools.run(["tar", "-xf", str(archive), "-C", folder], profile="kernels")
        base.mkdir(parents=True)
        (source,) = Path(folder).glob("linux-source-*")
        source.rename(base / "source")


def keep_only(folder: Path, kept: tuple[str, ...]) -> None:
    """Deletes everything in @folder but the paths @kept, and in those the objects."""
    for path in folder.iterdir():
        within = [name.partition("/")[2] for name in kept if name.split("/")[0] == path.name]
        if not within:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        elif path.is_dir() and not path.is_symlink():
            if all(within):
                keep_only(path, tuple(within))
            else:
                for file in [one for one in path.rglob("*") if _OBJECTS.match(one.name)]:
                    file.unlink()
