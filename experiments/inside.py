# SPDX-License-Identifier: GPL-2.0
"""Experiments that need a script of their own in the guest instead of the bench.

The host half calls run() with a module of this folder. The module runs in the guest. Its arguments
name the result folder, the schedulers and the number of repeats, and it calls leave() once.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lab import guest, kernel
from lab.errors import LabError
from lab.module import module_path
from lab.spec import GuestSpec
from lab.tree import DEFAULT_KERNEL
from mqfair.bench.kernel_log import splat
from mqfair.bench.session import ROOT
from mqfair.bench.variant import NONE, OURS, parse_variants, scheduler_of
from mqfair.machine.blockdev import Disk, find_disk
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError
from mqfair.tune.enable import Enabler, Plan

RESULT = "result.json"
DEVICE = Path("/dev/nullb0")

# ------------------------------------------------------------------------ the host


def schedulers(text: str) -> tuple[Any, ...]:
    """The names in @text, with none first, because figures are given relative to none.

    Raises UsageError for an unknown scheduler and for one with tunables.
    """
    labels = parse_variants(text)
    for label in labels:
        if label != scheduler_of(label):
            raise UsageError(
                f"--schedulers: {label}: this experiment takes no tunables:"
                f" write {scheduler_of(label)}"
            )
    return tuple(dict.fromkeys((NONE, *labels)))


def run(
    args: argparse.Namespace,
    script: str,
    words: Sequence[str],
    cpus: int,
    timeout_s: float,
    *,
    name: str = DEFAULT_KERNEL,
) -> tuple[str, Any]:
    """Runs module @script of this folder in a guest with kernel @name and @words as arguments.

    Returns a description of the machine, and the value that the module left. Raises UsageError
    when mqfair.ko is missing and Failure when the kernel is missing or the guest fails.
    """
    try:
        tree = kernel.ensure(name)
    except LabError as error:
        raise Failure(str(error)) from error
    built = args.module or module_path(tree)
    if not built.is_file():
        make = "make uml" if tree.is_uml else "make module"
        raise UsageError(f"--module {built}: no such file: run `{make}`")
    spec = GuestSpec(
        kernel=name, cpus=cpus, icount=args.icount, modules=(built,), timeout_s=timeout_s
    )
    with tempfile.TemporaryDirectory(prefix="mqfair-experiment-") as folder:
        argv = [sys.executable, "-m", f"experiments.{script}", guest.GUEST_OUT, *words]
        try:
            result = guest.run(spec, argv, env={"PYTHONPATH": str(ROOT)}, out_dir=Path(folder))
        except LabError as error:
            raise Failure(str(error)) from error
        trouble = result.trouble() or splat(result.dmesg)
        if trouble or result.status:
            raise Failure(f"the guest: {trouble or result.stderr.strip()[-2000:]}")
        found = json.loads((Path(folder) / RESULT).read_text())
    counted = ", counted time" if args.icount else ""
    return f"Linux {result.kernel}, {cpus} CPU ({result.accel}){counted}", found


# ----------------------------------------------------------------------- the guest


def null_blk(parameters: str) -> Disk:
    subprocess.run(["modprobe", "null_blk", "nr_devices=1", *parameters.split()], check=True)
    return find_disk(Fs(), str(DEVICE))


def switch(disk: Disk, scheduler: str) -> None:
    """Selects @scheduler for @disk; one of ours as `mqfair enable` does."""
    if scheduler in OURS:
        Enabler(disk, Plan(scheduler, {}, None)).run()
        return
    # Some schedulers are built into the kernel, so modprobe may fail.
    subprocess.run(["modprobe", "-q", f"{scheduler}-iosched"], check=False)
    disk.fs.write(disk.scheduler_file, scheduler)


def each(cells: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yields @cells and reports each on standard error as progress."""
    for number, cell in enumerate(cells, 1):
        print(
            f"run {number} of {len(cells)}: {', '.join(map(str, cell))}",
            file=sys.stderr,
            flush=True,
        )
        yield cell


def leave(folder: str, found: Any) -> None:
    """Writes @found where run() reads it."""
    (Path(folder) / RESULT).write_text(json.dumps(found))
