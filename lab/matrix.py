# SPDX-License-Identifier: GPL-2.0
"""A compile test of both modules for every form of the block layer that DKMS builds for.

No guest runs here. A row of the matrix stands for the series of kernels with the same forms:

- a *real* row has the headers and the types of a package that the mirror has
- a *doctored* row has those of a neighbour, changed by lab/doctor.py

    <cache>/matrix/<name>                release that a package was resolved to
    <cache>/matrix/<release>/root/       unpacked headers of it
    <cache>/matrix/doctored/             the tree of the doctored row at work
    build/matrix/<row>/                  objects, and the file log
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import kernel, module, tools
from lab.cache import cache_dir, locked, write_atomically
from lab.doctor import Tree, Types
from lab.errors import LabError, SpecError
from lab.packages import Suite
from lab.tree import KernelTree

_CHECKOUT = Path(__file__).resolve().parent.parent
_CONFIGURATIONS = ("kernel/dkms.conf", "kernel/ssd/dkms.conf")
_HEADERS = re.compile(r"linux-headers-(\d[\w.+-]*)$")
_WANTED = re.compile(r"linux-(?:headers|kbuild)-\d")
# A longer table of series than any of Linux 5, 6 and 7 has.
_ALL_SERIES = tuple(f"{major}.{minor}" for major in range(4, 10) for minor in range(40))


@dataclasses.dataclass(frozen=True)
class Package:
    """A metapackage that depends on the newest headers of its suite, and the suite of a chroot for
    them. Headers that are not @relocated are read as any user reads unpacked ones."""

    suite: Suite
    metapackage: str = "linux-headers-amd64"
    chroot_suite: str = ""
    relocated: bool = True


PACKAGES = {
    "6.12-rt": Package(Suite("bookworm-backports"), "linux-headers-rt-amd64", relocated=False),
    "6.12-trixie": Package(Suite("trixie"), chroot_suite="trixie"),
    "newest": Package(Suite("trixie-backports"), chroot_suite="trixie"),
}

Step = Callable[[Types, Tree], None]


@dataclasses.dataclass(frozen=True)
class Row:
    """Series with the same forms. @base is a kernel of the lab, or one of PACKAGES; @steps change
    its headers and types into those of the series."""

    name: str
    series: tuple[str, ...]
    base: str
    steps: tuple[Step, ...] = ()


# Each step undoes one change of the block layer, and names the series that had it first.


def _6_19(types: Types, _tree: Tree) -> None:
    """The extra hooks for data; stable releases of 6.18 have them too."""
    types.drop_member("elevator_mq_ops", "alloc_sched_data")
    types.drop_member("elevator_mq_ops", "free_sched_data")


def _6_17(types: Types, tree: Tree) -> None:
    """The block layer allocates the elevator_queue; depth_updated() of a queue; WQ_PERCPU."""
    signature = "struct request_queue *, struct elevator_type *"
    types.set_hook("elevator_mq_ops", "init_sched", f"int ({signature})")
    types.set_hook("elevator_mq_ops", "depth_updated", "void (struct blk_mq_hw_ctx *)")
    types.set_function("elevator_alloc", f"struct elevator_queue * ({signature})")
    types.drop_enumerator("WQ_PERCPU")
    tree.edit("linux/workqueue.h", (r"\bWQ_PERCPU\b", "NOT_WQ_PERCPU"))
    tree.export("elevator_alloc")


def _6_16(types: Types, tree: Tree) -> None:
    """A flag of the queue for WBT."""
    types.drop_enumerator("QUEUE_FLAG_DISABLE_WBT_DEF")
    flag = "QUEUE_FLAG_DISABLE_WBT_DEF"
    tree.edit("linux/blkdev.h", (rf"\b{flag}\b", f"NOT_{flag}"))


def _6_15(types: Types, tree: Tree) -> None:
    types.drop_member("request_queue", "elevator_lock")
    tree.edit("linux/blkdev.h", (r"\belevator_lock\b", "not_elevator_lock"))


def _6_14(types: Types, tree: Tree) -> None:
    """All drivers merge."""
    types.add_enumerator("BLK_MQ_F_SHOULD_MERGE")
    tree.declare("linux/blk-mq.h", "#define BLK_MQ_F_SHOULD_MERGE (1 << 0)")


def _6_11(types: Types, tree: Tree) -> None:
    """Enumerators for the flags of a request; features among the limits of a disk."""
    types.drop_enumerator("__RQF_USE_SCHED")
    types.drop_member("queue_limits", "features")
    tree.edit(
        "linux/blk-mq.h",
        (r"^\t__RQF_USE_SCHED,", "\tNOT_RQF_USE_SCHED,"),
        (r"1 << __RQF_USE_SCHED\b", "1 << 9"),
    )
    tree.edit("linux/blkdev.h", (r"\bblk_queue_write_cache\(", "not_queue_write_cache("))
    cache = "void blk_queue_write_cache(struct request_queue *q, bool enabled, bool fua);"
    tree.declare("linux/blkdev.h", "#define QUEUE_FLAG_NONROT 6", cache)
    tree.export("blk_queue_write_cache")


def _6_10(types: Types, _tree: Tree) -> None:
    """The block layer keeps the order of zone writes."""
    types.add_member("elevator_type", "elevator_features")


def _6_9(types: Types, tree: Tree) -> None:
    """A time in the plug; limits as an argument."""
    types.drop_member("blk_plug", "cur_ktime")
    tree.edit("linux/blkdev.h", (r"\bcur_ktime\b", "not_cur_ktime"))
    function = "__blk_mq_alloc_disk"
    words = "struct blk_mq_tag_set *, void *, struct lock_class_key *"
    types.set_function(function, f"struct gendisk * ({words})")
    tree.edit(
        "linux/blk-mq.h",
        (rf"({function}\(struct blk_mq_tag_set \*set,\s+)struct queue_limits \*lim, ", r"\1"),
        (r"blk_mq_alloc_disk\(set, lim, queuedata", "blk_mq_alloc_disk(set, queuedata"),
    )
    for limit in (
        "logical_block_size",
        "physical_block_size",
        "max_hw_sectors",
        "max_segments",
        "max_segment_size",
        "max_discard_sectors",
    ):
        setter = f"blk_queue_{limit}"
        tree.declare("linux/blkdev.h", f"void {setter}(struct request_queue *q, unsigned int n);")
        tree.export(setter)


def _6_5(_types: Types, tree: Tree) -> None:
    """A flag for the requests of a scheduler alone."""
    tree.edit("linux/blk-mq.h", (r"\bRQF_USE_SCHED\b", "RQF_ELVPRIV"))


def _6_4(types: Types, _tree: Tree) -> None:
    """Flags of an insertion."""
    signature = "void (struct blk_mq_hw_ctx *, struct list_head *, bool)"
    types.set_hook("elevator_mq_ops", "insert_requests", signature)


def _with_flags(types: Types, _tree: Tree) -> None:
    """6.2 has flags in the elevator_queue, and 6.1 has not."""
    types.add_member("elevator_queue", "flags")


def _rows() -> tuple[Row, ...]:
    doctored = []
    for base, places in {
        "7.2": (
            (("6.17", "6.18"), _6_19),
            (("6.16",), _6_17),
            (("6.15",), _6_16),
            (("6.14",), _6_15),
            (("6.13",), _6_14),
        ),
        "6.12": (
            (("6.10",), _6_11),
            (("6.9",), _6_10),
            (("6.5", "6.6", "6.7", "6.8"), _6_9),
            (("6.4",), _6_5),
            (("6.3",), _6_4),
        ),
        "6.1": ((("6.2",), _with_flags),),
    }.items():
        steps: list[Step] = []
        for series, step in places:
            steps.append(step)
            doctored.append(Row(series[0], series, base, tuple(steps)))
    real = [
        Row("6.1", ("6.1",), "6.1"),
        Row("6.12", ("6.11", "6.12"), "6.12"),
        Row("6.12-rt", ("6.12",), "6.12-rt"),
        Row("6.12-trixie", ("6.12",), "6.12-trixie"),
        Row("7.2", ("6.19", "7.0", "7.1", "7.2"), "7.2"),
        Row("7.3", ("7.3",), "newest"),
    ]
    return tuple(sorted([*doctored, *real], key=lambda row: _number(row.series[0])))


def _number(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split(".")))


ROWS = _rows()


def series() -> tuple[str, ...]:
    """Every series for which the modules are compiled, in order."""
    return tuple(sorted({one for row in ROWS for one in row.series}, key=_number))


def accepted(configuration: Path) -> tuple[str, ...]:
    """The series that a configuration of DKMS accepts. The pattern means the same to bash."""
    found = re.search(r'^BUILD_EXCLUSIVE_KERNEL="(.*)"$', configuration.read_text(), re.MULTILINE)
    if found is None:
        raise LabError(f"{configuration}: no BUILD_EXCLUSIVE_KERNEL: name the range of kernels")
    return tuple(one for one in _ALL_SERIES if re.search(found[1], f"{one}.0-1-amd64"))


def check_range() -> None:
    """Raises an error unless DKMS builds for the series of the matrix and no others."""
    for name in _CONFIGURATIONS:
        differs = sorted(set(accepted(_CHECKOUT / name)) ^ set(series()), key=_number)
        if differs:
            raise LabError(
                f"{name}: BUILD_EXCLUSIVE_KERNEL and the rows of lab/matrix.py differ in Linux"
                f" {', '.join(differs)}: correct one of them"
            )


@dataclasses.dataclass(frozen=True)
class Result:
    row: Row
    release: str
    seconds: float
    error: str = ""

    @property
    def words(self) -> tuple[str, str, str, str]:
        first, last = self.row.series[0], self.row.series[-1]
        linux = first if first == last else f"{first} to {last}"
        origin = f"doctored from {self.release}" if self.row.steps else self.release
        verdict = "does not compile" if self.error else "compiles"
        return linux, origin, verdict, f"{self.seconds:.0f}"


def run(names: Sequence[str], refresh: bool = False) -> bool:
    """Compiles the rows @names, or all; prints a table. False if one does not compile."""
    check_range()
    rows = chosen(names)
    results = []
    with locked(cache_dir() / "matrix" / ".lock"):
        for number, row in enumerate(rows, 1):
            tools.say(f"row {number} of {len(rows)}: {row.name} (about 40 s)")
            result = _compile(row, refresh)
            tools.say(f"row {number} of {len(rows)}: {' · '.join(result.words)} s")
            results.append(result)
        shutil.rmtree(cache_dir() / "matrix" / "doctored", ignore_errors=True)
    _print(results)
    return not any(result.error for result in results)


def chosen(names: Sequence[str]) -> list[Row]:
    """The rows of these names or series; all rows for no names."""
    for name in names:
        if not any(name in (row.name, *row.series) for row in ROWS):
            raise SpecError(
                f"row '{name}': unknown: choose from {', '.join(row.name for row in ROWS)}"
            )
    return [row for row in ROWS if not names or {row.name, *row.series} & set(names)]


def _print(results: Sequence[Result]) -> None:
    table = [("Linux", "headers and types", "result", "seconds"), *(r.words for r in results)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print(
            "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        )
    for result in results:
        if result.error:
            print(f"{result.row.name}: {result.error}")


def _compile(row: Row, refresh: bool) -> Result:
    base = kernel.ensure(row.base) if row.base in kernel.KERNELS else _headers(row.base, refresh)
    if not row.steps and row.base == "newest":
        _check_newest(row, base.release)
    started = time.monotonic()
    out = _CHECKOUT / "build" / "matrix" / row.name
    # Objects of other headers with the same time stamps would be taken for new ones.
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    done = module.compile_for(_doctored(row, base) if row.steps else base, out)
    (out / "log").write_text(done.stdout + done.stderr)
    error = _reason(out, done) if done.returncode else ""
    return Result(row, base.release, time.monotonic() - started, error)


def _check_newest(row: Row, release: str) -> None:
    if not release.startswith(f"{row.name}."):
        raise LabError(
            f"{PACKAGES[row.base].suite} has Linux {release}, and lab/matrix.py ends with"
            f" {row.name}: add a row, and extend BUILD_EXCLUSIVE_KERNEL when it compiles"
        )


def _reason(out: Path, done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr + done.stdout).splitlines()
    errors = [line for line in lines if "error:" in line or "ERROR:" in line]
    first = (errors or lines or ["no message"])[0].replace(f"{out}/", "")
    return f"{first} (all messages: {out.relative_to(_CHECKOUT)}/log)"


def _doctored(row: Row, base: KernelTree) -> KernelTree:
    folder = cache_dir() / "matrix" / "doctored"
    root = folder / "root"
    types, tree = Types(base.vmlinux), Tree(base.headers_build_dir, root)
    for step in row.steps:
        step(types, tree)
    btf = folder / "btf"
    types.write(btf)
    return dataclasses.replace(base, vmlinux=btf, headers_build_dir=tree.build, root=root)


def _headers(name: str, refresh: bool) -> KernelTree:
    """The headers of one of PACKAGES, which have the types beside them; fetched once."""
    package = PACKAGES[name]
    folder = cache_dir() / "matrix"
    pin = folder / name
    release = pin.read_text().strip() if pin.exists() and not refresh else ""
    if not release or not (folder / release).is_dir():
        package.suite.update()
        release = _resolve(package)
        if not (folder / release).is_dir():
            _fetch(package, release, folder)
        write_atomically(pin, f"{release}\n".encode())
    root = folder / release / "root"
    build = root / f"usr/src/linux-headers-{release}"
    types = build / "vmlinux"
    return KernelTree(release, types, types, root, build, root, package.chroot_suite)


def _resolve(package: Package) -> str:
    matches = map(_HEADERS.match, package.suite.dependencies(package.metapackage))
    found = next(filter(None, matches), None)
    if found is None:
        raise LabError(f"{package.suite}: no {package.metapackage}: use another mirror")
    return found[1]


def _fetch(package: Package, release: str, folder: Path) -> None:
    names = package.suite.closure([f"linux-headers-{release}"], _WANTED.match)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    try:
        root = partial / "root"
        package.suite.unpack(names, root, f"headers of {release}")
        if package.relocated:
            kernel.relocate_headers(root / f"usr/src/linux-headers-{release}")
        partial.chmod(0o755)
        partial.rename(folder / release)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
