# SPDX-License-Identifier: GPL-2.0
"""From the name that a user gives to a cgroup: a path, a systemd unit, or the id of a container.

A path is tried first. A unit's cgroup may be anywhere below the root. The id of a container is in
the name of its cgroup, such as docker-ID.scope (Docker), libpod-ID.scope (podman) or
cri-containerd-ID.scope (Kubernetes), or ID alone without systemd.
"""

import difflib
import os
import re

from mqfair.machine.cgroup import Cgroup, root_cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import UsageError
from mqfair.text.output import quoted, shortened, visible

CGROUP_HELP = "path below the cgroup2 mount, systemd unit, or id of a container"

# Names of cgroups that systemd makes and removes.
UNITS = (".service", ".slice", ".scope")
# The unit that stands for the root cgroup.
ROOT_SLICE = "-.slice"
# The longest name of a file, in bytes.
_NAME_MOST = 255
# The longest path, with room for the mount and the name of a file.
_PATH_MOST = 4000
_SHOWN = 3

# The start of an id that is long enough to be meant as one; `docker ps` shows twelve digits.
_ID = re.compile(r"[0-9a-f]{6,64}")
_CONTAINER = re.compile(r"(?P<maker>[a-z][a-z-]*-)?(?P<id>[0-9a-f]{64})(\.scope)?")
# systemd writes a minus and other characters of a machine's name so.
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_MONITORS = ("lxc.monitor.", "libpod-conmon-", "crio-conmon-")
# The program that watches a container of podman or CRI-O has a cgroup with the container's id.
_WATCHER = "conmon-"


def find_cgroup(fs: Fs, text: str) -> Cgroup:
    """The cgroup named @text: prod/db, /prod/db, the directory's full path, nginx.service, or the
    start of a container's id. Raises UsageError if there is none, or more than one."""
    root = root_cgroup(fs)
    path = text
    shown = visible(text)
    if text == root.mount or text.startswith(root.mount + "/"):
        path = text.removeprefix(root.mount)
    parts = [part for part in path.split("/") if part]
    if not text or any(part in (".", "..") for part in parts):
        raise UsageError(f"bad cgroup name '{shown}': use its path below {root.mount}")
    if text == ROOT_SLICE:
        return root
    _require_short(parts)
    group = Cgroup(fs, root.mount, "/".join(parts))
    if fs.is_dir(group.directory):
        return group
    if fs.exists(group.directory):
        folder = group.directory.rpartition("/")[0]
        raise UsageError(
            f"no cgroup '{shown}': {group.directory} is a file: name its folder, {folder}"
        )
    groups = {one.path: one for one in root.walk() if one.path}
    found = [one for path, one in groups.items() if "/" not in text and _means(text, path)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"'{shown}' is the name of {len(found)} cgroups: use one of {_listed(found)}"
        )
    alike = [groups[path] for path in _alike(group.path, list(groups))]
    raise UsageError(f"no cgroup '{shown}': {_why_none(group, alike)}")


def _require_short(parts: list[str]) -> None:
    """The kernel refuses a longer name before it looks for one."""
    longest = max(parts, key=len, default="")
    size = len(os.fsencode(longest))
    if size > _NAME_MOST:
        raise UsageError(
            f"no cgroup '{visible(shortened(longest))}': {size} bytes, and a name has at most"
            f" {_NAME_MOST}: check the name"
        )
    if len("/".join(parts)) > _PATH_MOST:
        raise UsageError(f"no cgroup has a path of {len(parts)} names: check the path")


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _means(text: str, path: str) -> bool:
    """Whether @text, which has no slash, names the unit or the container of the cgroup @path."""
    name = _base(path)
    if text.endswith(UNITS):
        return name == text
    container = _CONTAINER.fullmatch(name)
    if container is None or not _ID.fullmatch(text):
        return False
    return not (container["maker"] or "").endswith(_WATCHER) and container["id"].startswith(text)


def _stem(name: str) -> tuple[str, str]:
    """@name without the suffix of a unit, and that suffix. All units of one kind end alike, so the
    suffix must not count as likeness."""
    suffix = next((unit for unit in UNITS if name.endswith(unit)), "")
    return name.removesuffix(suffix), suffix


def _has_part(path: str, name: str) -> bool:
    """Whether the cgroup @path is that of a machine or a container called @name: its own name has
    @name as a part, as machine-qemu\\x2d3\\x2ddb1.scope, lxc.payload.web1 and
    systemd-nspawn@web.service have. The monitors of containers are others."""
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), _base(path))
    if name == "" or plain.startswith(_MONITORS):
        return False
    return re.search(rf"(?<![\w]){re.escape(name)}(?![\w-])", plain[1:]) is not None


def _alike(wanted: str, paths: list[str]) -> list[str]:
    """The paths that are spelt like @wanted, by their last name or as a whole, nearest first."""
    same = [path for path in paths if _base(path) == _base(wanted)]
    same = same or [path for path in paths if _has_part(path, _base(wanted))]
    if same:
        return same
    stem, suffix = _stem(_base(wanted))
    words: dict[str, list[str]] = {}
    for path in paths:
        other, kind = _stem(_base(path))
        if suffix in ("", kind):
            words.setdefault(other, []).append(path)
    if "/" in wanted:
        for path in paths:
            words.setdefault(path, []).append(path)
    near = difflib.get_close_matches(stem, words, n=_SHOWN)
    near += difflib.get_close_matches(wanted, words, n=_SHOWN, cutoff=0.8) if "/" in wanted else []
    return list(dict.fromkeys(path for word in near for path in words[word]))


def _listed(groups: list[Cgroup]) -> str:
    names = [quoted(one.path) for one in groups[:_SHOWN]]
    more = len(groups) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _why_none(group: Cgroup, alike: list[Cgroup]) -> str:
    if alike:
        names = [quoted(one.path) for one in alike[:_SHOWN]]
        return f"did you mean {' or '.join(names)}?"
    name = _base(group.path)
    if name.endswith(UNITS):
        return f"systemd makes it when the unit runs: systemctl start {quoted(name)}"
    if len(name) >= 12 and _ID.fullmatch(name):
        return "no running container has this id: see `docker ps` or `podman ps`"
    made = f"{group.directory} does not exist: mkdir {quoted(group.directory)}"
    if "/" in group.path:
        return made
    return f"{made}, or name a unit in full: {quoted(name)}.service"
