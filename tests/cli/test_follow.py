# SPDX-License-Identifier: GPL-2.0
"""mqfair follow: one pass, the events of a tree that changes, and the service as a program."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT

from mqfair.follow import carried_weights as mirrors
from mqfair.follow.carried_weights import Mirror
from mqfair.follow.follow import STATE_FILE, Follower
from mqfair.machine.cgroup import root_cgroup
from mqfair.machine.fs import Fs
from mqfair.machine.inotify import Inotify

PATIENCE_S = 10


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk()
    machine.host("/run").mkdir()
    machine.cgroup("system.slice", subtree="io", io_weight="default 100")
    machine.cgroup("system.slice/nginx.service", io_weight="default 900")
    machine.cgroup("system.slice/cron.service", io_weight="default 100")
    return machine


def weight(host, path):
    return host.get(f"/sys/fs/cgroup/{path}/io.mqfair.weight")


def set_io_weight(host, path, text, name="io.weight"):
    host.put(f"/sys/fs/cgroup/{path}/{name}", text)


# -- one pass


def test_once_carries_the_weights(host, run):
    result = run("follow", "--once")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "system.slice/nginx.service: 100 -> 900 (io.weight)",
        "cgroups: 4, weights written: 1, kept as set by hand: 0",
    ]
    assert weight(host, "system.slice/nginx.service") == "default 900"
    assert weight(host, "system.slice/cron.service") == "default 100"
    assert run("follow", "--once").out == "cgroups: 4, weights written: 0, kept as set by hand: 0\n"


def test_a_dry_run_only_tells(host, run):
    before = host.snapshot()
    result = run("follow", "--dry-run")
    path = "/sys/fs/cgroup/system.slice/nginx.service/io.mqfair.weight"
    assert result.out.splitlines() == [
        f"write 'default 900' to '{path}'",
        "cgroups: 4, weights to write: 1, kept as set by hand: 0",
    ]
    assert host.snapshot() == before


def test_json(host, run):
    host.cgroup("prod", io_weight="default 300", weight="default 500")
    found = run("follow", "--once", "--json").json
    assert (found["schema"], found["cgroups"], found["errors"]) == ("mqfair.follow/1", 5, [])
    assert found["changes"] == [
        {
            "path": "system.slice/nginx.service", "key": "default",
            "old": 100, "new": 900, "source": "io.weight",
        }
    ]  # fmt: skip
    assert found["by_hand"] == [
        {"path": "prod", "key": "default", "weight": 500, "wanted": 300, "source": "io.weight"}
    ]
    assert run("follow", "--json").code == 2


def test_a_weight_by_hand_stays(host, run):
    host.cgroup("prod", io_weight="default 300", weight="default 500")
    assert "prod: stays at 500, set by hand (io.weight: 300)" in run("follow", "--once").out
    assert weight(host, "prod") == "default 500"
    assert run("weight", "prod", "default").code == 0
    assert "prod: 100 -> 300 (io.weight)" in run("follow", "--once").out


def test_its_own_weight_changes_and_returns_to_the_default(host, run):
    run("follow", "--once")
    set_io_weight(host, "system.slice/nginx.service", "default 700")
    assert ": 900 -> 700 (io.weight)" in run("follow", "--once").out
    set_io_weight(host, "system.slice/nginx.service", "default 100")
    assert ": 700 -> 100 (io.weight)" in run("follow", "--once").out


def test_without_its_memory_a_weight_counts_as_set_by_hand(host, run):
    run("follow", "--once")
    set_io_weight(host, "system.slice/nginx.service", "default 700")
    for text in (
        "{",
        '{"schema": 1}',
        "[]",
        '{"schema": "mqfair.follow-state/1", "mirrored": [1]}',
        "[" * 99_999,
    ):
        host.put(STATE_FILE, text)
        assert "stays at 900, set by hand (io.weight: 700)" in run("follow", "--once").out


def test_weights_of_devices(host, run):
    path = "system.slice/nginx.service"
    set_io_weight(host, path, "default 900\n259:0 50")
    run("follow", "--once")
    assert weight(host, path) == "default 900\n259:0 50"
    set_io_weight(host, path, "default 900\n259:0 60")
    run("follow", "--once")
    assert weight(host, path) == "default 900\n259:0 60"
    set_io_weight(host, path, "default 900")
    run("follow", "--once")
    assert weight(host, path) == "default 900"


def test_a_devices_weight_by_hand_stays(host, run):
    path = "system.slice/nginx.service"
    host.put(f"/sys/fs/cgroup/{path}/io.mqfair.weight", "default 100\n259:0 7")
    set_io_weight(host, path, "default 900\n259:0 50")
    out = run("follow", "--once").out
    assert f"{path} on 259:0: stays at 7, set by hand (io.weight: 50)" in out
    assert weight(host, path) == "default 900\n259:0 7"


@pytest.mark.parametrize(
    ("path", "said", "expected"),
    [
        # systemd presses 900 into 172 of 1000; 892 is the nearest that can be had back.
        ("system.slice/a.service", (None, "default 172"), 892),
        ("system.slice/a.service", (None, "172"), 892),
        ("system.slice/a.service", (None, "default 1000"), 10000),
        ("system.slice/a.service", (None, "default 40"), 40),
        ("docker-1.scope", (None, "default 172"), 172),
        # io.weight has the true value.
        ("system.slice/a.service", ("default 900", "default 172"), 900),
        # A runtime that prefers io.bfq.weight leaves io.weight alone.
        ("docker-1.scope", ("default 100", "default 500"), 500),
        ("docker-1.scope", ("default 100", "default 100"), 100),
        ("docker-1.scope", (None, None), 100),
    ],
)
def test_the_weight_of_bfq(host, run, path, said, expected):
    """@said is the content of io.weight and of io.bfq.weight; None is no such file."""
    files = dict(zip(("io_weight", "io_bfq_weight"), said, strict=True))
    host.cgroup(path, **{name: text for name, text in files.items() if text})
    assert run("follow", "--once").code == 0
    assert weight(host, path) == f"default {expected}"


def test_without_the_module_nothing_is_written(machine, run):
    machine.install_module(loaded=False)
    machine.cgroup("prod", io_weight="default 900")
    result = run("follow", "--once")
    assert result.code == 0
    assert "note: module mqfair is not loaded: `modprobe mqfair`" in result.out
    assert machine.stores == []


def test_a_refused_weight_is_an_error(host, run):
    path = "/sys/fs/cgroup/system.slice/nginx.service/io.mqfair.weight"
    host.refuse[path] = [13]
    result = run("follow", "--once")
    assert result.code == 1
    assert (
        f"error: cannot write 'default 900' to {path}: Permission denied: run as root" in result.out
    )


@pytest.mark.parametrize("text", ["", "default\n", "default max", "banana", "default 900 7"])
def test_text_that_is_no_weight_is_ignored(text):
    assert mirrors.parse(text) == {}


# -- events


@pytest.fixture
def mirror(host):
    found = Mirror(root_cgroup(Fs(str(host.root))), watches=Inotify())
    found.scan()
    yield found
    found.watches.close()


def test_a_change_is_carried_at_its_event(host, mirror):
    set_io_weight(host, "system.slice/cron.service", "default 250")
    mirror.handle()
    assert weight(host, "system.slice/cron.service") == "default 250"
    mirror.handle()
    host.stores.clear()
    mirror.handle()
    assert host.stores == []


def test_new_cgroups_are_found_with_those_below_them(host, mirror):
    host.cgroup("kube.slice/pod1/c1", io_weight="default 40")
    mirror.handle()
    assert weight(host, "kube.slice/pod1/c1") == "default 40"
    set_io_weight(host, "kube.slice/pod1/c1", "default 60")
    mirror.handle()
    assert weight(host, "kube.slice/pod1/c1") == "default 60"


def remove(host, path):
    folder = host.host(f"/sys/fs/cgroup/{path}")
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def test_removed_cgroups_are_forgotten(host, mirror):
    watched = len(mirror._watch_of)
    for _ in range(3):
        remove(host, "system.slice/nginx.service")
        mirror.handle()
        assert len(mirror._watch_of) == len(mirror._path_of) == watched - 1
        assert mirror.mirrored == {}
        host.cgroup("system.slice/nginx.service", io_weight="default 900")
        mirror.handle()
        assert weight(host, "system.slice/nginx.service") == "default 900"
        assert len(mirror._watch_of) == len(mirror._path_of) == watched


def test_a_controller_that_is_enabled_later(host, mirror):
    """The kernel makes the files of the children without an event."""
    mirror.watches.close()
    mirror.watches = Inotify()
    host.cgroup("late", subtree="")
    host.cgroup("late/a", controllers="", io_weight="default 800")
    mirror.rewatch()
    list(mirror.watches.read())
    assert not host.host("/sys/fs/cgroup/late/a/io.mqfair.weight").exists()
    quiet = mirror.watches
    mirror.watches = None
    host.put("/sys/fs/cgroup/late/a/io.mqfair.weight", "default 100")
    list(quiet.read())
    mirror.watches = quiet
    host.put("/sys/fs/cgroup/late/cgroup.subtree_control", "io")
    mirror.handle()
    assert weight(host, "late/a") == "default 800"


def test_a_weight_by_hand_is_respected_at_events(host, mirror, run):
    assert run("weight", "nginx.service", "333").code == 0
    mirror.handle()
    set_io_weight(host, "system.slice/nginx.service", "default 200")
    mirror.handle()
    assert weight(host, "system.slice/nginx.service") == "default 333"
    assert run("weight", "nginx.service", "default").code == 0
    host.put("/sys/fs/cgroup/system.slice/nginx.service/io.mqfair.weight", "default 100")
    mirror.handle()
    assert weight(host, "system.slice/nginx.service") == "default 200"


def test_after_a_loss_of_events_everything_is_visited(host, mirror, monkeypatch):
    from mqfair.machine import inotify

    set_io_weight(host, "system.slice/cron.service", "default 250")
    host.cgroup("new", io_weight="default 70")
    list(mirror.watches.read())
    lost = [inotify.Event(-1, inotify.OVERFLOW, "")]
    with monkeypatch.context() as patch:
        patch.setattr(Inotify, "read", lambda self: iter(lost))
        mirror.handle()
    assert weight(host, "system.slice/cron.service") == "default 250"
    assert weight(host, "new") == "default 70"
    set_io_weight(host, "new", "default 71")
    mirror.handle()
    assert weight(host, "new") == "default 71"


def test_too_few_watches(host, monkeypatch):
    def refuse(self, path, mask):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(Inotify, "add", refuse)
    found = Mirror(root_cgroup(Fs(str(host.root))), watches=Inotify())
    found.scan()
    assert found.unwatched.errno == 28
    assert weight(host, "system.slice/nginx.service") == "default 900"


# -- the program


@contextlib.contextmanager
def following(root):
    """The service on the tree @root, after its first pass."""
    env = {**os.environ, "MQFAIR_ROOT": str(root), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "mqfair", "follow"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(argv, **pipes, text=True, env=env) as program:
        assert program.stdout is not None
        for line in program.stdout:
            if line.startswith("follows "):
                break
        yield program
        program.kill()


@pytest.fixture
def service(host):
    """The running service."""
    with following(host.root) as program:
        yield program


def becomes(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "the service did not act"
        time.sleep(0.005)


def test_the_service_follows_and_ends_cleanly(host, service, run):
    assert weight(host, "system.slice/nginx.service") == "default 900"
    again = run("follow", "--once")
    assert again.code == 1
    assert f"runs already, as process {service.pid}" in again.err
    set_io_weight(host, "system.slice/cron.service", "default 250")
    becomes(lambda: weight(host, "system.slice/cron.service").startswith("default 250"))
    service.send_signal(signal.SIGHUP)
    service.send_signal(signal.SIGTERM)
    out = service.communicate(timeout=PATIENCE_S)[0]
    assert (service.returncode, "Traceback" in out) == (0, False)
    assert "system.slice/cron.service: 100 -> 250 (io.weight)\n" in out
    assert json.loads(host.get(STATE_FILE))["mirrored"] == {
        "system.slice/cron.service": {"default": 250},
        "system.slice/nginx.service": {"default": 900},
    }


def test_the_service_tells_systemd_that_it_is_ready(host, systemd_service):
    with systemd_service(PATIENCE_S, subprocess.DEVNULL) as (program, sock):
        assert sock.recv(100) == b"READY=1"
        assert weight(host, "system.slice/nginx.service") == "default 900"
        program.terminate()
        assert sock.recv(100) == b"STOPPING=1"
    assert program.returncode == 0


# -- the work, counted


@pytest.fixture
def work(monkeypatch):
    """Counts the files that are opened to be read, and the system calls of inotify."""
    counts = {"read": 0, "watch": 0}
    read, watch = os.open, Inotify.add

    def opened(path, flags, *rest):
        counts["read"] += flags & os.O_ACCMODE == os.O_RDONLY
        return read(path, flags, *rest)

    def watched(self, path, mask):
        counts["watch"] += 1
        return watch(self, path, mask)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(Inotify, "add", watched)

    def taken():
        found = dict(counts)
        counts.update(dict.fromkeys(counts, 0))
        return found

    return taken


def many(host, count, prefix="many.slice/c"):
    host.cgroup("many.slice", subtree="io", io_weight="default 100")
    paths = [f"{prefix}{n}.service" for n in range(count)]
    for path in paths:
        host.cgroup(path, io_weight="default 200")
    return paths


def settle(mirror):
    """Handles the events until there is none."""
    while select.select([mirror.watches.fd], [], [], 0)[0]:
        mirror.handle()


@pytest.mark.parametrize("bystanders", [0, 300])
def test_a_change_costs_three_reads_and_one_write_among_any_number_of_cgroups(
    host, work, bystanders
):
    """The two weights, and the own write when its event comes. No other cgroup is looked at."""
    paths = many(host, 20)
    many(host, bystanders, "many.slice/bystander")
    mirror = Mirror(root_cgroup(Fs(str(host.root))), watches=Inotify())
    mirror.scan()
    settle(mirror)
    work()
    host.stores.clear()
    for path in paths:
        set_io_weight(host, path, "default 300")
    settle(mirror)
    assert {weight(host, path) for path in paths} == {"default 300"}
    assert len(host.stores) == len(paths)
    assert work() == {"read": 3 * len(paths), "watch": 0}
    settle(mirror)
    assert work() == {"read": 0, "watch": 0}
    mirror.watches.close()


def test_the_first_pass_watches_and_reads_each_cgroup_once(host, work):
    paths = many(host, 50)
    mirror = Mirror(root_cgroup(Fs(str(host.root))), watches=Inotify())
    work()
    mirror.scan()
    # Two weights of each. Those of which io.weight has the default are asked for BFQ's, too.
    cgroups = len(paths) + len(["", "many.slice", "system.slice", "cron.service", "nginx.service"])
    defaults = len(["many.slice", "system.slice", "cron.service"])
    assert work() == {"read": 2 * (cgroups - 1) + defaults, "watch": cgroups}
    mirror.watches.close()


def test_words_about_weights_by_hand_are_made_when_they_change(host, monkeypatch):
    """They were made anew at each event, which took 7 ms with 10,000 of them."""
    for path in many(host, 30):
        host.put(f"/sys/fs/cgroup/{path}/io.mqfair.weight", "default 50")
    follower = Follower.create(Fs(str(host.root)), None, watches=True)
    follower.everything()
    lines = follower.lines()
    assert lines[-1] == "and 10 more weights stay, set by hand"
    settle(follower.mirror)
    made = []
    monkeypatch.setattr(mirrors.ByHand, "__str__", lambda self: made.append(self) or "words")
    set_io_weight(host, "system.slice/cron.service", "default 250")
    settle(follower.mirror)
    assert (follower.lines(), made) == (["system.slice/cron.service: 100 -> 250 (io.weight)"], [])
    host.put("/sys/fs/cgroup/many.slice/c1.service/io.mqfair.weight", "default 51")
    settle(follower.mirror)
    follower.lines()
    assert len(made) == 30


def test_a_weight_that_the_kernel_refuses_is_not_tried_again_at_its_own_event(
    host, mirror, monkeypatch
):
    """The kernel opens the file before it refuses, so the close is an event."""
    tries = []

    def refuse(self, path, value):
        tries.append(value)
        with host.host(path).open("r+"):
            raise OSError(19, "No such device")

    monkeypatch.setattr(Fs, "_store", refuse)
    set_io_weight(host, "system.slice/cron.service", "default 250")
    for _ in range(5):
        mirror.handle()
    assert tries == ["default 250"]
    set_io_weight(host, "system.slice/cron.service", "default 260")
    mirror.handle()
    assert tries == ["default 250", "default 260"]
