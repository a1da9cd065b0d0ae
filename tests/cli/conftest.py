# SPDX-License-Identifier: GPL-2.0
"""A machine made of files, with a kernel that responds to writes like the real one."""

import contextlib
import errno
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest

from mqfair.__main__ import main
from mqfair.machine.fs import Fs
from mqfair.manual import json_forms

RELEASE = "6.1.0-56-amd64"
OURS = ("mqfq", "ifq", "kyber-fair", "wdt", "hwabc")
NEW_TUNABLES = {
    "depth": "128 auto",
    "threshold_kb": "64 auto",
    "cost": "bytes",
}
LINEAR = "linear 0 1024 0 1024"
ROOT = Path(__file__).resolve().parents[2]


def program(name: str) -> ModuleType:
    """The module that `python3 -m` runs."""
    package = (ROOT / name.replace(".", "/") / "__main__.py").is_file()
    return importlib.import_module(f"{name}.__main__" if package else name)


def loaded(path: str | Path, name: str) -> ModuleType:
    """The program at @path of the checkout as a module; dataclasses look themselves up by @name."""
    loader = SourceFileLoader(name, str(ROOT / path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Machine:
    """Builds the tree. `refuse` and `ignore` make single writes fail or have no effect."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stores: list[str] = []
        self.refuse: dict[str, list[int]] = defaultdict(list)
        self.ignore: set[str] = set()
        self.schedulers = ["mq-deadline", "none"]
        self.put("/proc/sys/kernel/osrelease", RELEASE)
        self.put("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0")
        self.put("/sys/block/.keep", "").unlink()
        self.cgroup("", controllers="cpu io memory", subtree="cpu io memory")

    # -- files

    def host(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def put(self, path: str, text: str) -> Path:
        file = self.host(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        return file

    def get(self, path: str) -> str:
        return self.host(path).read_text().strip()

    def link(self, path: str, target: str) -> None:
        link = self.host(path)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(self.host(target), link.parent))

    def snapshot(self) -> dict[str, str]:
        return {str(f): f.read_text() for f in self.root.rglob("*") if f.is_file()}

    # -- devices

    def device(self, name: str, number: str | None, size: int = 1 << 30) -> str:
        path = f"/sys/devices/virtual/block/{name}"
        self.put(f"{path}/size", str(size))
        self.link(f"/sys/block/{name}", path)
        self.link(f"/sys/class/block/{name}", path)
        self.put(f"/dev/{name}", "")
        if number:
            self.put(f"{path}/dev", number)
            self.link(f"/sys/dev/block/{number}", path)
        return path

    def disk(self, name="nvme0n1", number="259:0", *, active="none", queues=2, tags=64):
        path = self.device(name, number)
        self.put(f"{path}/queue/scheduler", self._selection(active))
        self.put(f"{path}/queue/nr_requests", str(2 * min(tags, 128)))
        self.put(f"{path}/queue/zoned", "none")
        for queue in range(queues):
            self.queue(name, queue, cpus=str(queue), tags=tags)
        if active in OURS:
            self._create_tunables(path)

    def queue(self, disk: str, index: int, cpus: str, tags: int = 64) -> None:
        path = f"/sys/devices/virtual/block/{disk}/mq/{index}"
        self.put(f"{path}/nr_tags", str(tags))
        self.put(f"{path}/cpu_list", cpus)

    def partition(self, disk: str, name: str, number: str) -> None:
        path = f"/sys/devices/virtual/block/{disk}/{name}"
        self.put(f"{path}/partition", "1")
        self.put(f"{path}/dev", number)
        self.link(f"/sys/class/block/{name}", path)
        self.link(f"/sys/dev/block/{number}", path)
        self.put(f"/dev/{name}", "")

    def stacked(self, name: str, number: str, kind: str, slaves: tuple[str, ...] = ()) -> None:
        """A bio-based device."""
        path = self.device(name, number)
        if kind:
            self.put(f"{path}/{kind}/name", name)
        for slave in slaves:
            self.link(f"{path}/slaves/{slave}", str(Path("/sys/class/block") / slave))

    # -- module and cgroups

    def install_module(self, loaded: bool = True) -> None:
        aliases = "\n".join(f"alias {name}-iosched mqfair" for name in OURS)
        self.put(f"/lib/modules/{RELEASE}/modules.alias", aliases)
        if loaded:
            self.load_module()

    def load_module(self) -> None:
        self.put("/sys/module/mqfair/refcnt", "0")
        self.schedulers = ["mq-deadline", *OURS, "none"]
        for file in self.root.glob("sys/devices/virtual/block/*/queue/scheduler"):
            if "[" in file.read_text():
                active = file.read_text().split("[")[1].split("]")[0]
                file.write_text(self._selection(active) + "\n")
        for directory in self.root.glob("sys/fs/cgroup/**/cgroup.controllers"):
            self._add_weight(directory.parent)

    def _add_weight(self, directory: Path) -> None:
        has_io = "io" in (directory / "cgroup.controllers").read_text().split()
        if directory != self.host("/sys/fs/cgroup") and has_io:
            (directory / "io.mqfair.weight").write_text("default 100\n")
            (directory / "io.mqfair.latency").write_text("")

    def cgroup(self, path, controllers="cpu io memory", subtree="", weight=None, stat="", **files):
        directory = f"/sys/fs/cgroup/{path}".rstrip("/")
        self.put(f"{directory}/cgroup.controllers", controllers)
        self.put(f"{directory}/cgroup.subtree_control", subtree)
        self.put(f"{directory}/cgroup.procs", files.pop("procs", "17" if not subtree else ""))
        self.put(f"{directory}/io.stat", stat)
        for name, text in files.items():
            self.put(f"{directory}/{name.replace('_', '.')}", text)
        if self.host("/sys/module/mqfair").exists():
            self._add_weight(self.host(directory))
        if weight is not None:
            self.put(f"{directory}/io.mqfair.weight", weight)

    # -- the kernel's side of a write

    def store(self, path: str, value: str) -> None:
        self.stores.append(f"write '{value}' to '{path}'")
        if self.refuse[path]:
            code = self.refuse[path].pop(0)
            raise OSError(code, os.strerror(code))
        if not self.host(path).exists():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if path in self.ignore:
            return
        name = path.rpartition("/")[2]
        if name == "scheduler":
            self._switch(path.removesuffix("/queue/scheduler"), value)
        elif name == "io.mqfair.weight":
            self._weigh(path, value)
        elif name == "io.mqfair.latency":
            self._set_goal(path, value)
        elif value == "auto":
            self.put(path, NEW_TUNABLES[name])
        else:
            self.put(path, LINEAR if value == "linear" else value)

    def _selection(self, active: str) -> str:
        return " ".join(f"[{name}]" if name == active else name for name in self.schedulers)

    def _create_tunables(self, path: str) -> None:
        for name, value in NEW_TUNABLES.items():
            self.put(f"{path}/queue/iosched/{name}", value)

    def _switch(self, path: str, name: str) -> None:
        if name not in self.schedulers:
            alias = self.host(f"/lib/modules/{RELEASE}/modules.alias")
            if not alias.exists() or f"alias {name}-iosched " not in alias.read_text():
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            self.load_module()
        self.put(f"{path}/queue/scheduler", self._selection(name))
        for file in self.host(f"{path}/queue").glob("iosched/*"):
            file.unlink()
        if name in OURS:
            self._create_tunables(path)
        tags = int(self.get(f"{path}/mq/0/nr_tags"))
        self.put(f"{path}/queue/nr_requests", str(2 * min(tags, 128)))

    def _weigh(self, path: str, value: str) -> None:
        key, _, weight = value.partition(" ")
        lines = dict(line.split() for line in self.get(path).splitlines())
        lines[key] = weight
        if weight == "default":
            del lines[key]
        self.put(path, "\n".join(f"{k} {v}" for k, v in lines.items()))

    def _set_goal(self, path: str, value: str) -> None:
        key, _, goal = value.partition(" ")
        lines = dict(line.split(" ", 1) for line in self.get(path).splitlines())
        lines[key] = goal
        if goal == "target=none":
            del lines[key]
        self.put(path, "\n".join(f"{k} {v}" for k, v in lines.items()))


@pytest.fixture
def delays(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("mqfair.machine.fs.time.sleep", slept.append)
    return slept


@pytest.fixture
def machine(tmp_path, monkeypatch, delays):
    built = Machine(tmp_path)
    monkeypatch.setenv("MQFAIR_ROOT", str(tmp_path))
    monkeypatch.setattr(Fs, "_store", lambda self, path, value: built.store(path, value))
    return built


@pytest.fixture
def four(tmp_path):
    """A job file of two cgroups for a bench."""
    path = tmp_path / "four.fio"
    path.write_text(
        "[global]\nruntime=3\nrw=read\n[a]\ncgroup=a\n[b]\ncgroup=b\ncgroup_weight=300\n"
    )
    return path


@pytest.fixture
def run(capsys):
    def call(*argv: str) -> Result:
        code = main(list(argv))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def systemd_service(host, tmp_path):
    """Starts `mqfair follow` as systemd does: yields the program, and the socket to which it
    tells its state. A message may take @patience_s seconds."""

    @contextlib.contextmanager
    def start(patience_s, stdout):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.bind(str(tmp_path / "notify"))
            sock.settimeout(patience_s)
            env = {
                **os.environ, "MQFAIR_ROOT": str(host.root), "PYTHONPATH": str(ROOT),
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
            }  # fmt: skip
            argv = [sys.executable, "-m", "mqfair", "follow"]
            with subprocess.Popen(argv, env=env, stdout=stdout, text=True) as program:
                yield program, sock

    return start


@pytest.fixture(autouse=True)
def forms_are_kept(monkeypatch):
    """Each document that the command writes in this process holds to mqfair.manual.json_forms."""
    write = json.dumps

    def checked(value, *args, **options):
        text = write(value, *args, **options)
        ours = sys._getframe(1).f_globals["__name__"].startswith("mqfair.")
        name = str(value.get("schema", "")) if ours and isinstance(value, dict) else ""
        form = name.removeprefix("mqfair.").removesuffix("/1")
        if form in json_forms.BY_NAME:
            jsonschema.validate(json.loads(text), json_forms.schema(form))
        return text

    monkeypatch.setattr(json, "dumps", checked)
