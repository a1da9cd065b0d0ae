# SPDX-License-Identifier: GPL-2.0
"""The virtual SSD as a device of the bench."""

import errno
import os
from pathlib import Path

import pytest

from mqfair.bench import jobfile, runner, session, ssd
from mqfair.bench.device import parse_device
from mqfair.bench.plan import read_plan, write_plan
from mqfair.machine.cgroup import Cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError


def request(**options):
    asked = {"schedulers": ("none",), "jobs": (), **options}
    return session.Request(**asked)


def test_settings_have_defaults_that_slow_the_drive_down():
    device = parse_device("ssd:model=p4500,fill=85%,size_mb=4096,ftl=host")
    assert device.kind == "ssd"
    assert dict(device.settings) == {
        "time_scale": "100",
        "size_mb": "4096",
        "model": "p4500",
        "fill": "85",
        "ftl": "host",
    }
    assert parse_device("ssd:time_scale=1").settings["time_scale"] == "1"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("speed=1", "unknown setting 'speed'"),
        ("fill=101", "fill=101: use a number in 0..100"),
        ("fill=%", "fill=%: use a number"),
        ("size_mb=1%", "size_mb=1%: use a number"),
        ("size_mb=0", "size_mb=0: use a number in 1.."),
        ("queues=", "queues=: use a number in 1.."),
        ("ftl=both", "ftl=both: use device or host"),
        ("fill_pattern=x", "fill_pattern=x: use sequential or random or steady"),
        ("model", "model=: use p3700, p4500"),
        ("model=nosuch", "model=nosuch: use p3700, p4500, 980pro"),
        ("fill=1,fill=2", "fill is given twice"),
        ("write_times=0", "write_times=0: use a number in 1.."),
        ("fill_parts=", "'' is not CGROUP:PERCENT:OVERWRITES"),
        ("fill_parts=a:40", "'a:40' is not CGROUP:PERCENT:OVERWRITES, such as writer:45:3"),
        ("fill_parts=a:40:0+b:0:0", "'b:0:0' is not"),
        ("fill_parts=a:101:0", "'a:101:0' is not"),
        ("fill_parts=a:1:1001", "'a:1:1001' is not"),
        ("fill_parts=:40:0", "':40:0' is not"),
        ("fill_parts=a:60:0+b:41:0", "101 % in all: use at most 100"),
        ("fill=10,fill_parts=a:40:0", "fill and fill_parts exclude each other"),
    ],
)
def test_bad_settings(words, complaint):
    with pytest.raises(UsageError, match="--device ssd:") as caught:
        parse_device(f"ssd:{words}")
    assert complaint in str(caught.value)


def test_the_plan_carries_the_settings(tmp_path):
    plan = session.plan_for(request(device=parse_device("ssd:model=980pro,queues=2")))
    write_plan(plan, tmp_path / "plan.json")
    device = read_plan(tmp_path / "plan.json").device
    assert (device.path, device.parameters) == (ssd.PATH, None)
    assert device.ssd == {"time_scale": "100", "size_mb": "1024", "model": "980pro", "queues": "2"}


JOB = """\
[a]
cgroup=a
rw=read
[b]
cgroup=top/b
rw=write
"""


def test_parts_are_for_cgroups_of_the_job():
    job = jobfile.parse(JOB, "x.fio")
    parts = "fill_parts=a:40:0+top/b:45:3"
    device = parse_device(f"ssd:model=p4500,{parts}")
    assert ssd.parts_of(device.settings) == (ssd.Part("a", 40, 0), ssd.Part("top/b", 45, 3))
    assert ssd.parts_of(parse_device("ssd:fill=85").settings) == ()
    with pytest.raises(UsageError, match=r"x\.fio has no cgroup 'c': use a, top, top/b"):
        session.check(request(device=parse_device("ssd:fill_parts=c:1:0"), jobs=(job,)))


def test_the_ssd_module_is_beside_mqfair(tmp_path):
    device = parse_device("ssd:model=p4500")
    module = tmp_path / "mqfair.ko"
    module.write_bytes(b"")
    with pytest.raises(UsageError, match=r"mqfair-ssd\.ko: run `make module`"):
        session.check(request(device=device, module=module))
    with pytest.raises(UsageError, match="no module: run `make module`"):
        session.check(request(device=device))
    (tmp_path / "mqfair-ssd.ko").write_bytes(b"")
    session.check(request(device=device, module=module))


def test_a_virtual_ssd_is_refused_on_the_host():
    with pytest.raises(UsageError, match="exists only in a guest"):
        session.check(request(device=parse_device("ssd:model=p4500"), on="host"))


class Configfs(Fs):
    """A directory of configfs: its files appear and disappear with the directory."""

    def __init__(self, root):
        super().__init__(str(root))
        self.refused = ""
        self.drives = root / "sys/kernel/config/mqfair_ssd"
        self.drives.mkdir(parents=True)
        (self.drives / "models").write_text("p3700\np4500\n")

    def _store(self, path, value):
        if path.rpartition("/")[2] == self.refused:
            raise OSError(errno.EINVAL, "Invalid argument")
        super()._store(path, value)


@pytest.fixture
def configfs(tmp_path, monkeypatch):
    fs = Configfs(tmp_path)
    files = dict.fromkeys((*ssd.PLAIN, ssd.PARTS, ssd.PARAMS, "power"), "1\n")
    make, remove = type(tmp_path).mkdir, type(tmp_path).rmdir

    def mkdir(path, *arguments, **options):
        make(path, *arguments, **options)
        if path.parent == fs.drives:
            for name, text in files.items():
                (path / name).write_text(text)

    def rmdir(path):
        fs.left = {name: (path / name).read_text() for name in files}
        for name in files:
            (path / name).unlink()
        remove(path)

    monkeypatch.setattr(type(tmp_path), "mkdir", mkdir)
    monkeypatch.setattr(type(tmp_path), "rmdir", rmdir)
    monkeypatch.setattr(ssd, "open_log", lambda: os.open(os.devnull, os.O_RDONLY))
    monkeypatch.setattr(ssd, "messages", lambda fd: iter(()))
    return fs


def test_a_drive_is_configured_switched_on_and_removed(configfs):
    with ssd.made(configfs, {"model": "p4500", "fill": "85"}) as settings:
        assert settings["model"] == "p4500"
        assert settings["fill"] == "85"
        assert settings["queues"] == "1"
        assert (configfs.drives / "bench/power").read_text() == "1"
    assert configfs.left["fill"] == "85"
    assert not (configfs.drives / "bench").exists()


def test_parts_are_filled_for_existing_cgroups(configfs):
    groups = {name: Cgroup(configfs, "/sys/fs/cgroup", f"bench/{name}") for name in ("a", "top/b")}
    settings = {"model": "p4500", "fill_parts": "a:40:0+top/b:45:3"}
    with ssd.made(configfs, settings) as made:
        assert made["fill_parts"] == settings["fill_parts"]
        assert (configfs.drives / "bench/fill_parts").read_text() == "1\n"
        ssd.fill_parts(configfs, ssd.parts_of(made), groups)
        assert (configfs.drives / "bench/power").read_text() == "1"
    assert configfs.left["fill_parts"] == "40 0 /bench/a\n45 3 /bench/top/b"


def test_each_run_has_a_new_drive(configfs, monkeypatch):
    told = []
    write = type(configfs).write

    def noted(fs, path, text, *rest):
        told.append((path.rpartition("/")[2], text))
        write(fs, path, text, *rest)

    monkeypatch.setattr(runner.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(runner, "require_number", lambda disk: "259:7")
    asked = request(device=parse_device("ssd:fill=85"))
    one = runner.Runner(session.plan_for(asked), Path(configfs.root))
    one._fs = configfs
    with ssd.made(configfs, {"model": "p4500", "fill": "85"}) as one._ssd:
        monkeypatch.setattr(type(configfs), "write", noted)
        one._fill(None, {})
    assert told == [("power", "0"), ("power", "1")]
    assert one._number == "259:7"


def test_an_unknown_model_is_refused_with_the_known_ones(configfs):
    configfs.refused = "model"
    with pytest.raises(Failure, match="use p3700, p4500"), ssd.made(configfs, {"model": "x"}):
        pytest.fail("it was made")
    assert not (configfs.drives / "bench").exists()


def test_the_kernels_reason_for_refusing_a_drive_is_quoted(configfs, monkeypatch):
    said = ["other\n", "mqfair-ssd: ssd-bench: model=p4500 size_mb=1: the size must be more\n"]
    monkeypatch.setattr(ssd, "messages", lambda fd: iter(said))
    configfs.refused = "power"
    with (
        pytest.raises(UsageError, match="--device ssd: model=p4500 size_mb=1: the size must"),
        ssd.made(configfs, {}),
    ):
        pytest.fail("it was made")


def test_a_slowed_drive_is_noted():
    assert not list(ssd.notes({"model": "p4500", "time_scale": "1"}))
    assert "100 times slower" in " ".join(ssd.notes({"model": "p4500", "time_scale": "100"}))


def test_busy_time_includes_the_cgroups_below(machine):
    machine.put(
        "/sys/kernel/debug/mqfair_ssd/ssd-bench/owners",
        "0 valid=1 invalid=0 written=1 copied=0 busy_us=7 -\n"
        "1 valid=9 invalid=2 written=11 copied=3 busy_us=50 /\n"
        "5 valid=9 invalid=2 written=11 copied=3 busy_us=1000 /bench/a b\n"
        "6 valid=9 invalid=2 written=11 copied=3 busy_us=200 /bench/a b/c\n"
        "7 valid=9 invalid=2 written=11 copied=3 busy_us=30 /bench/ab",
    )
    fs = Fs(str(machine.root))
    groups = {name: Cgroup(fs, "/sys/fs/cgroup", f"bench/{name}") for name in ("a b", "ab", "d")}
    assert ssd.busy_us(fs, groups) == {"a b": 1200, "ab": 30, "d": 0}


def test_a_model_of_the_user_is_written_by_its_fields(configfs):
    settings = {"model": "mine", "params": "channels 8 dies 2", "fill": "10"}
    with ssd.made(configfs, settings) as made:
        assert made["model"] == "mine"
        assert made["params"] == settings["params"]
    assert configfs.left["params"] == "channels 8 dies 2"
    assert configfs.left["model"] == "1\n"
