# SPDX-License-Identifier: GPL-2.0
"""The bench's cgroups: made for one run below the bench's own cgroup, and removed after it."""

import contextlib
import time
from collections.abc import Iterator, Mapping

from mqfair.bench.variant import BFQ, IOCOST, OURS
from mqfair.machine.cgroup import Cgroup, root_cgroup, v1_blkio_mount
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure

ROOT_NAME = "mqfair-bench"
BFQ_WEIGHT_MAX = 1000

WEIGHT_FILES: Mapping[str, str] = {
    BFQ: "io.bfq.weight",
    IOCOST: "io.weight",
    **dict.fromkeys(OURS, "io.mqfair.weight"),
}

_REMOVE_TIMEOUT_S = 10.0


def scheduler_weights(scheduler: str, weights: Mapping[str, int]) -> dict[str, int]:
    """@weights in the scheduler's range. BFQ's is 1..1000: if a weight is greater, all are scaled
    so that the greatest is 1000; the least stays at least 1."""
    most = max(weights.values())
    if scheduler != BFQ or most <= BFQ_WEIGHT_MAX:
        return dict(weights)
    return {name: max(1, round(weight * BFQ_WEIGHT_MAX / most)) for name, weight in weights.items()}


@contextlib.contextmanager
def io_controller(fs: Fs) -> Iterator[Cgroup]:
    """Makes the bench's own cgroup, with the io controller enabled for its children.

    Raises Failure if cgroup v2 has no io controller or another bench runs.
    """
    root = root_cgroup(fs)
    if not root.controls("io"):
        taken = v1_blkio_mount(fs)
        where = f"cgroup v1 has it at {taken}" if taken else "this kernel lacks it"
        raise Failure(
            f"no io controller in {root.file('cgroup.controllers')}: {where}:"
            " boot with cgroup_no_v1=all"
        )
    handed_down = "io" in root.words("cgroup.subtree_control")
    own = Cgroup(fs, root.mount, ROOT_NAME)
    if fs.is_dir(own.directory):
        raise Failure(f"{own.directory} exists: another bench runs; if none does, rmdir it")
    try:
        if not handed_down:
            fs.write(root.file("cgroup.subtree_control"), "+io")
        fs.host_path(own.directory).mkdir()
        fs.write(own.file("cgroup.subtree_control"), "+io")
        yield own
    finally:
        _remove(own)
        if not handed_down:
            fs.write(root.file("cgroup.subtree_control"), "-io")


@contextlib.contextmanager
def tree(own: Cgroup, weights: Mapping[str, int]) -> Iterator[dict[str, Cgroup]]:
    """Makes a cgroup for each name in @weights, parents first, for the time of a block. Processes
    that are still in them at its end are killed."""
    groups = {
        name: Cgroup(own.fs, own.mount, f"{own.path}/{name}")
        for name in sorted(weights, key=lambda name: (name.count("/"), name))
    }
    try:
        for name, group in groups.items():
            own.fs.host_path(group.directory).mkdir()
            if any(other.startswith(f"{name}/") for other in weights):
                own.fs.write(group.file("cgroup.subtree_control"), "+io")
        yield groups
    finally:
        for group in reversed(groups.values()):
            _remove(group)


def set_weight(group: Cgroup, scheduler: str, weight: int) -> None:
    """Writes @weight to the file of @scheduler; does nothing for a scheduler without weights."""
    file = WEIGHT_FILES.get(scheduler)
    if file is not None:
        group.fs.write(group.file(file), str(weight))


def _remove(group: Cgroup) -> None:
    if not group.fs.is_dir(group.directory):
        return
    group.fs.write(group.file("cgroup.kill"), "1")
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while True:
        try:
            group.fs.host_path(group.directory).rmdir()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise Failure(
                    f"cannot remove {group.directory}: {error.strerror}: kill its processes"
                ) from error
            time.sleep(0.02)
