# SPDX-License-Identifier: GPL-2.0
"""The way in which a controller is switched on for a cgroup, by the program that owns each level.

systemd owns the levels above a unit, and takes back what another program writes there. The levels
at and below a unit belong to the unit, if systemd has delegated them. A threaded cgroup has no
controller of resources of its own: its domain has.
"""

import os
from collections.abc import Mapping

from mqfair.machine.cgroup import Cgroup, levels_without
from mqfair.machine.group_name import UNITS
from mqfair.text.output import quoted

_ACCOUNTING: Mapping[str, str] = {"io": "IOAccounting", "memory": "MemoryAccounting"}
_SYSTEMD = "/run/systemd/system"
# systemd marks a delegated cgroup with one of them.
_DELEGATED = ("user.delegate", "trusted.delegate")
_PROCESSES = (".service", ".scope")
_USER_MANAGER = "user@"


def domain_of(group: Cgroup) -> Cgroup:
    """The cgroup to which the I/O of @group is charged: @group itself unless it is threaded."""
    while (group.text("cgroup.type") or "").strip() == "threaded" and group.parent is not None:
        group = group.parent
    return group


def _unit_of(path: str) -> tuple[str, int] | None:
    """The unit of systemd's system manager in @path, and the number of names up to it: the first
    service or scope, else the last slice."""
    names = path.split("/")
    for number, name in enumerate(names, 1):
        if name.endswith(_PROCESSES):
            return name, number
    slices = [(name, number) for number, name in enumerate(names, 1) if name.endswith(UNITS)]
    return slices[-1] if slices else None


def _is_delegated(group: Cgroup) -> bool:
    folder = group.fs.host_path(group.directory)
    for name in _DELEGATED:
        try:
            if os.getxattr(folder, name) == b"1":
                return True
        except OSError:
            continue
    return False


def enabling(group: Cgroup, level: Cgroup, controller: str) -> str:
    """The commands that switch @controller on for the children of @level, an ancestor of @group
    or the cgroup itself."""
    file = quoted(level.file("cgroup.subtree_control"))
    inner = bool(level.path) and bool(level.words("cgroup.procs"))
    plain = (
        f"{'move its processes into a child, then ' if inner else ''}echo +{controller} > {file}"
    )
    depth = level.path.count("/") + 1 if level.path else 0
    unit = _unit_of(group.path)
    if unit is None:
        managed = depth == 0 and group.fs.is_dir(_SYSTEMD)
        return (
            f"systemctl set-property system.slice {_ACCOUNTING[controller]}=yes"
            if managed
            else plain
        )
    name, number = unit
    if depth < number:
        runtime = "--runtime " if name.endswith(".scope") else ""
        return f"systemctl set-property {runtime}{quoted(name)} {_ACCOUNTING[controller]}=yes"
    top = Cgroup(group.fs, group.mount, "/".join(group.path.split("/")[:number]))
    if _is_delegated(top):
        return plain
    if name.startswith(_USER_MANAGER):
        return (
            "systemctl edit user@.service, with the lines [Service] and"
            " Delegate=cpu cpuset io memory pids; then log in again"
        )
    return f"systemctl edit {quoted(name)}, with Delegate=yes, and restart it; then {plain}"


def enabling_all(group: Cgroup, controller: str) -> str:
    """The commands for all levels above @group that lack @controller, each once; empty for none."""
    found = [enabling(group, level, controller) for level in levels_without(group, controller)]
    return " && ".join(dict.fromkeys(found))
