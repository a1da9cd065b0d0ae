# SPDX-License-Identifier: GPL-2.0
"""Findings about a cgroup's weight on a disk, from the root of the hierarchy downwards."""

from collections.abc import Iterator
from fractions import Fraction

from mqfair.check.below_due import below_due
from mqfair.check.finding import Finding, note, ok, problem, warn
from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk
from mqfair.machine.cgroup import (
    LATENCY_FILE,
    WEIGHT_DEFAULT,
    WEIGHT_FILE,
    Cgroup,
    levels_without,
    root_cgroup,
    v1_blkio_mount,
)
from mqfair.machine.controllers import domain_of, enabling, enabling_all
from mqfair.machine.fs import Fs
from mqfair.text.output import human_bytes, percent, quoted
from mqfair.watch import pressure
from mqfair.watch.sample import (
    NO_FIGURES,
    Figures,
    flows_file,
    flows_of_path,
    parse_io_stat,
)

LIMITS = {"io.max": "a limit that may be below the share", "io.latency": "a latency target"}


def hierarchy_findings(fs: Fs) -> Iterator[Finding]:
    """Whether cgroup v2 has the io controller."""
    root = root_cgroup(fs)
    controllers = root.file("cgroup.controllers")
    if root.controls("io"):
        yield ok("hierarchy", "cgroup v2 has the io controller", controllers)
        return
    v1 = v1_blkio_mount(fs)
    if v1:
        yield problem(
            "hierarchy",
            f"cgroup v1 holds the io controller (blkio at {v1})",
            "/proc/self/mounts",
            f"umount {v1}, or boot with systemd.unified_cgroup_hierarchy=1",
        )
    else:
        yield problem(
            "hierarchy",
            "cgroup v2 has no io controller",
            controllers,
            "boot without cgroup_disable=io, on a kernel with CONFIG_BLK_CGROUP",
        )


def iocost_findings(fs: Fs, disk: Disk) -> Iterator[Finding]:
    root = root_cgroup(fs)
    number = disk.number
    entry = _settings(root, "io.cost.qos").get(number or "")
    if entry is not None and "enable=1" in entry:
        path = root.file("io.cost.qos")
        yield problem(
            "iocost",
            f"iocost is enabled on {disk.name} and throttles by io.weight before the scheduler",
            path,
            f"echo '{number} enable=0' > {quoted(path)}",
        )


def cgroup_findings(group: Cgroup, disk: Disk) -> Iterator[Finding]:
    """All findings about @group, which is not the root, on @disk."""
    yield from _controller(group)
    yield from _threaded(group)
    yield from _weight(group, disk)
    yield from _siblings(group, disk)
    yield from _processes(group)
    yield from _limits(group, disk)
    yield from _writeback(group)
    yield from _activity(group, disk)


def _settings(group: Cgroup, name: str) -> dict[str, list[str]]:
    lines = (line.split() for line in (group.text(name) or "").splitlines())
    return {words[0]: words[1:] for words in lines if words}


def _controller(group: Cgroup) -> Iterator[Finding]:
    if not root_cgroup(group.fs).controls("io"):
        return  # hierarchy_findings() says so, and no lower level can correct it
    # A threaded cgroup cannot have the controller: its domain has it.
    domain = domain_of(group)
    levels = levels_without(domain, "io")
    for level in levels:
        yield problem(
            "io controller",
            f"{level.name} does not enable the io controller for its children",
            level.file("cgroup.subtree_control"),
            enabling(domain, level, "io"),
        )
    if not levels:
        yield ok(
            "io controller",
            f"enabled on every level down to {domain.name}",
            group.file("cgroup.controllers"),
        )


def _threaded(group: Cgroup) -> Iterator[Finding]:
    domain = domain_of(group)
    if domain.path == group.path:
        return
    yield problem(
        "threads",
        f"{group.name} is threaded: its I/O is charged to {domain.name}, the domain cgroup above",
        group.file("cgroup.type"),
        f"mqfair weight {quoted(domain.path)} N" if domain.path else "use a cgroup of type domain",
    )


def _weight(group: Cgroup, disk: Disk) -> Iterator[Finding]:
    path = group.file(WEIGHT_FILE)
    weights = group.weights()
    if weights is not None:
        weight = weights.on(disk.number)
        yield ok("weight", f"{group.name} has weight {weight} on {disk.name}", path)
    elif not kmod.loaded(group.fs):
        yield problem("weight", "the file does not exist", path, kmod.hint(group.fs))
    elif group.controls("io"):
        yield problem(
            "weight",
            f"the file does not exist although module {kmod.MODULE} is loaded",
            path,
            "see the reason in the kernel log (dmesg)",
        )


def _weight_on(group: Cgroup, disk: Disk) -> int:
    weights = group.weights()
    return weights.on(disk.number) if weights else WEIGHT_DEFAULT


def _siblings(group: Cgroup, disk: Disk) -> Iterator[Finding]:
    siblings = group.siblings()
    where = group.parent.directory if group.parent else group.directory
    if siblings:
        least = percent(int(1_000_000 * _least_share(group, disk)))
        seen = f"due {least} while every sibling, on this level and above, asks for all"
        yield ok("siblings", seen, where)
    else:
        yield _alone(group, where)
    for ancestor in group.ancestors():
        if ancestor.path and not ancestor.siblings() and _weighted(ancestor, disk):
            yield warn(
                "siblings",
                f"{ancestor.name} has no siblings: its weight {_weight_on(ancestor, disk)} has no"
                " effect",
                ancestor.directory,
                "set the weight on a level where cgroups compete",
            )


def _weighted(group: Cgroup, disk: Disk) -> bool:
    return _weight_on(group, disk) != WEIGHT_DEFAULT


def _alone(group: Cgroup, where: str) -> Finding:
    if group.parent is not None and not group.parent.path:
        return warn(
            "siblings",
            f"{group.name} is the only cgroup on its level: its weight counts only against the"
            f" root's own I/O, which has weight {WEIGHT_DEFAULT}",
            where,
            "put the other loads into cgroups beside it",
        )
    rival = next((a for a in reversed(group.ancestors()) if a.path and a.siblings()), None)
    hint = (
        f"mqfair weight {quoted(rival.path)} N"
        if rival
        else "create cgroups for the loads it competes with"
    )
    return problem(
        "siblings",
        f"{group.name} has no siblings: its weight has no effect on this level",
        where,
        hint,
    )


def _least_share(group: Cgroup, disk: Disk) -> Fraction:
    """The part of the device due to @group while every sibling on every level is busy."""
    share = Fraction(1)
    for level in (*group.ancestors(), group):
        if level.path:
            own = _weight_on(level, disk)
            share *= Fraction(own, own + sum(_weight_on(s, disk) for s in level.siblings()))
    return share


def _processes(group: Cgroup) -> Iterator[Finding]:
    procs = group.words("cgroup.procs")
    if procs and group.words("cgroup.subtree_control"):
        yield warn(
            "inner node",
            f"{group.name} has {len(procs)} processes beside its child cgroups: the processes"
            f" compete as one child of weight {WEIGHT_DEFAULT}",
            group.file("cgroup.procs"),
            "move them into a child cgroup",
        )
    if "populated 0" in (group.text("cgroup.events") or ""):
        yield warn(
            "processes",
            f"no process is in {group.name} or below it",
            group.file("cgroup.events"),
            f"echo PID > {quoted(group.file('cgroup.procs'))}",
        )


def _limits(group: Cgroup, disk: Disk) -> Iterator[Finding]:
    for level in (*group.ancestors(), group):
        for name, meaning in LIMITS.items():
            entry = _limit(level, disk, name)
            if entry:
                path = level.file(name)
                off = "rbps=max wbps=max riops=max wiops=max" if name == "io.max" else "target=0"
                yield warn(
                    name,
                    f"{level.name} has {entry} on {disk.name}: {meaning}",
                    path,
                    f"echo '{disk.number} {off}' > {quoted(path)}",
                )


def _limit(level: Cgroup, disk: Disk, name: str) -> str:
    """The entry of @level for @disk in the file @name, or nothing if it limits nothing."""
    entry = _settings(level, name).get(disk.number or "", [])
    return "" if all(word.endswith("=max") for word in entry) else " ".join(entry)


def _writeback(group: Cgroup) -> Iterator[Finding]:
    levels = levels_without(group, "memory")
    root = root_cgroup(group.fs)
    if levels:
        hint = enabling_all(group, "memory")
        if not root.controls("memory"):
            hint = "boot with cgroup v2 alone and without cgroup_disable=memory"
        yield warn(
            "writeback",
            "without the memory controller, buffered writes are charged to the root and not to"
            f" {group.name}",
            levels[0].file("cgroup.subtree_control"),
            hint,
        )
    else:
        yield ok(
            "writeback",
            "buffered writes are charged to their cgroup on ext2, ext4, btrfs, f2fs and xfs",
            group.file("cgroup.controllers"),
        )


def _figures(group: Cgroup, disk: Disk) -> tuple[Figures, str]:
    """The figures of @group on @disk, and the file that has them."""
    if disk.head is not None:
        flows = flows_of_path(disk)
        return flows.get(group.name, NO_FIGURES), flows_file(disk)
    found = parse_io_stat((group.text("io.stat") or "").encode())
    return found.get(disk.number or "", NO_FIGURES), group.file("io.stat")


def _activity(group: Cgroup, disk: Disk) -> Iterator[Finding]:
    figures, where = _figures(group, disk)
    done = figures.bytes
    if done is None:
        yield note("activity", f"no I/O of {group.name} scheduled on {disk.name} yet", where)
        return
    share = percent(figures.share_ppm or 0)
    yield ok("activity", f"{human_bytes(done)} scheduled, share now {share}", where)
    limits = ((level, _limit(level, disk, "io.max")) for level in (*group.ancestors(), group))
    limit = next((f"io.max of {level.name} ({entry})" for level, entry in limits if entry), "")
    reason = below_due(group, disk, limit)
    if reason is not None:
        judge = warn if reason.lacks else note
        yield judge("due", reason.sentence, where, reason.hint)
    yield from _pressure(group)
    yield from _goal(group, disk)


def _pressure(group: Cgroup) -> Iterator[Finding]:
    """The kernel's own account of the time that the tasks lose."""
    found = pressure.last_10_s((group.text(pressure.FILE) or "").encode())
    if found is not None:
        yield note(
            "pressure",
            f"in the last 10 s some task of {group.name} waited for I/O of any drive for"
            f" {found[0]:.1f} % of the time, and all its tasks at once for {found[1]:.1f} %",
            group.file(pressure.FILE),
        )


def _goal(group: Cgroup, disk: Disk) -> Iterator[Finding]:
    goal = group.goals().get(disk.number or "", {})
    if "met" not in goal:
        return
    path = group.file(LATENCY_FILE)
    seen = (
        f"{goal.get('pct')} % of the requests take at most {goal.get('achieved')}, the goal is"
        f" {goal.get('target')}, and {goal.get('loss')} of the throughput is given up"
    )
    if goal["met"] == "1":
        yield ok("goal", seen, path)
    else:
        yield warn("goal", seen, path, "set a longer target, or raise the tunable isolation")
