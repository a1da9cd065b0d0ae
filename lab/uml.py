# SPDX-License-Identifier: GPL-2.0
"""User-mode Linux: a kernel that runs as a program of the host.

Its processors are threads of the host, which execute its code directly and without KVM. So they
race as those of a real machine do, and those of an emulator do less. Its guests have no NVMe drive,
no virtual SSD and no counted time. No distribution ships its kernel.

``build()`` compiles it once, from Debian's source of Linux 7.2 and in the chroot of lab/chroot.py:

    <cache>/kernels/<name>/
        source/, build/                  the headers, as Debian's packages have them
        build/vmlinux                    the types of the kernel
        root/boot/linux                  the program
        root/lib/modules/<release>/
        options                          the options of its configuration
        .recipe                          a digest of the options and of the steps

    <cache>/uml/                         a folder for each running guest
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from lab import chroot, tools
from lab.cache import cache_dir, locked, write_atomically
from lab.errors import LabError, SpecError
from lab.kernel import UML, UML_DEBUG, KernelTree
from lab.packages import Suite
from lab.spec import GuestSpec

SERIES = "7.2"
COMPILER = "gcc-16"
_SUITE = Suite("sid")
_HERE = Path(__file__).resolve().parent
# Files of options for each kernel, and the target that builds it.
_OPTIONS = {UML: ("uml.config",), UML_DEBUG: ("uml.config", "uml-debug.config")}
_TARGETS = {UML: "make uml", UML_DEBUG: "make test-debug"}
# Minutes of a build on two CPUs, as the remedies say them.
_MINUTES = {UML: 10, UML_DEBUG: 15}
# Lines of the build that are shown when it fails.
_SHOWN_LINES = 15

_BUILD = f"""\
set -e
source=$1 build=$2 options=$3 root=$4
export ARCH=um CC={COMPILER} HOSTCC={COMPILER}
run() {{ make -s -C "$source" O="$build" CC={COMPILER} HOSTCC={COMPILER} "$@"; }}
run defconfig
cat "$options" >> "$build/.config"
run olddefconfig
grep '^CONFIG_' "$options" | while read -r option; do
	grep -qxF "$option" "$build/.config" || {{ echo "$option: has no effect" >&2; exit 1; }}
done
run -j"$(nproc)" linux modules
run INSTALL_MOD_PATH="$root" INSTALL_MOD_STRIP=1 modules_install
strip -o "$root/boot/linux" "$build/linux"
strip --strip-debug -o "$build/.vmlinux" "$build/vmlinux"
mv "$build/.vmlinux" "$build/vmlinux"
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


def ensure(name: str = UML) -> KernelTree:
    """The built kernel. Raises LabError if it is not in the cache."""
    base = _base(name)
    recipe = base / ".recipe"
    remedy = f"run {_TARGETS[name]} ({_MINUTES[name]} minutes, once)"
    if not recipe.exists():
        raise LabError(f"user-mode Linux is not built: {remedy}")
    if recipe.read_text() != _recipe(name):
        raise LabError(f"user-mode Linux was built with other options: {remedy}")
    root = base / "root"
    (modules,) = (root / "lib/modules").iterdir()
    return KernelTree(
        release=modules.name,
        vmlinuz=root / "boot/linux",
        vmlinux=base / "build/vmlinux",
        modules_dir=modules,
        headers_build_dir=base / "build",
        root=root,
        chroot_suite=_SUITE.name,
        is_uml=True,
    )


def is_built(name: str = UML) -> bool:
    recipe = _base(name) / ".recipe"
    return recipe.exists() and recipe.read_text() == _recipe(name)


def build(name: str = UML) -> KernelTree:
    """Builds the kernel if the cache has none with these options."""
    base = _base(name)
    with locked(base.with_name(f".{name}.lock")):
        if not is_built(name):
            _build(name, base)
    return ensure(name)


def _base(name: str) -> Path:
    return cache_dir() / "kernels" / name


def _options(name: str) -> str:
    """The options of kernel @name. The later ones would override the earlier, so @name, which ends
    the release, replaces that of the plain kernel."""
    plain, *more = [(_HERE / file).read_text() for file in _OPTIONS[name]]
    return "".join([plain.replace(f'"-{UML}"', f'"-{name}"'), *more])


def _recipe(name: str) -> str:
    digest = hashlib.sha256(_BUILD.encode())
    digest.update(_options(name).encode())
    digest.update(repr((_KEPT_OF_SOURCE, _KEPT_OF_BUILD)).encode())
    return digest.hexdigest()


def _build(name: str, base: Path) -> None:
    started = time.monotonic()
    inside = chroot.ensure(_SUITE.name, COMPILER)
    shutil.rmtree(base, ignore_errors=True)
    try:
        _unpack_source(base)
        for folder in ("build", "root/boot"):
            (base / folder).mkdir(parents=True)
        (base / "options").write_text(_options(name))
        effort = f"{os.cpu_count()} compilers, {_MINUTES[name]} minutes"
        tools.say(f"building user-mode Linux {SERIES} ({effort})")
        places = (base / "source", base / "build", base / "options", base / "root")
        argv = ["/bin/sh", "-c", _BUILD, "sh", *map(str, places)]
        command = chroot.command(inside, argv, [base])
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()[-_SHOWN_LINES:]
            raise LabError("\n".join(["user-mode Linux does not build:", *lines]))
        variables = f"override ARCH = um\nCC = {COMPILER}\nHOSTCC = {COMPILER}\n"
        (base / "build/.kernelvariables").write_text(variables)
        keep_only(base / "source", _KEPT_OF_SOURCE)
        keep_only(base / "build", (*_KEPT_OF_BUILD, ".kernelvariables"))
        write_atomically(base / ".recipe", _recipe(name).encode())
    except BaseException:
        shutil.rmtree(base, ignore_errors=True)
        raise
    tools.say(f"built user-mode Linux in {time.monotonic() - started:.0f} s")


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


def check(spec: GuestSpec) -> None:
    """Raises SpecError for a guest that user-mode Linux cannot be."""
    refusals = {
        "--nvme: it has no NVMe drives": spec.drives,
        "--icount: its time cannot be counted": spec.icount,
        f"--accel {spec.accel}: it is a program of the host": spec.accel != "auto",
        "--sockets and --threads: it has plain processors": spec.sockets * spec.threads > 1,
    }
    for refusal, wanted in refusals.items():
        if wanted:
            raise SpecError(f"user-mode Linux: {refusal}: leave it out, or use another kernel")


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """An empty folder for one guest. A program that is killed leaves its folder, and the next guest
    deletes it: the lock of a folder ends with the program."""
    base = cache_dir() / "uml"
    with contextlib.ExitStack() as stack:
        with locked(base / ".lock"):
            for left in [path for path in base.iterdir() if path.is_dir()]:
                _delete_if_left(left)
            folder = Path(tempfile.mkdtemp(dir=base, prefix="guest-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(locked(folder / "lock"))
        yield folder


def _delete_if_left(folder: Path) -> None:
    try:
        with (folder / "lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        # A guest uses it, or has just deleted it.
        return


def command_line(
    spec: GuestSpec, tree: KernelTree, initramfs: Path, channels: dict[str, int], folder: Path
) -> list[str]:
    """The command line of a guest. @channels are file descriptors by name; @folder is empty."""
    lines = [name for name in ("control", "stdout", "stderr", "terminal") if name in channels]
    argv = [str(tree.vmlinuz), f"mem={spec.memory_mb}M", f"ncpus={spec.cpus}", "seccomp=on"]
    argv += [f"initrd={initramfs}", f"uml_dir={folder}/", "umid=guest", "lab.uml"]
    # The guest also reads from its console. Input from /dev/null cannot be polled. The kernel would
    # print this error under a raw spinlock, with allocations that switch lockdep off.
    argv += ["con=null", f"con0=fd:{channels['console']}"]
    argv += [f"ssl{number}=fd:{channels[name]}" for number, name in enumerate(lines)]
    # Without noreboot a guest that panics would start again.
    argv += ["noreboot", "panic=-1", "oops=panic", "loglevel=7", "log_buf_len=1M"]
    argv += ["cgroup_no_v1=all"]
    return [*argv, *spec.append.split()]
