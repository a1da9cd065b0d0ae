# SPDX-License-Identifier: GPL-2.0
"""mqfair top: the picture, its keys, --once and --json, and its errors."""

import dataclasses
import itertools
import json
import os
import subprocess
import sys

import pytest
from test_main import CHECKOUT, output_to

from mqfair.machine.blockdev import find_disk
from mqfair.machine.fs import Fs
from mqfair.watch import top_lines as view
from mqfair.watch.sample import Sampler, Use

FIGURES = (
    "259:0 rbytes=4096 mqfair.weight={weight} mqfair.share_ppm={share} mqfair.bytes={bytes}"
    " mqfair.ios={ios} mqfair.wait_us={wait} mqfair.done={ios} mqfair.drive_us={drive}"
    " mqfair.cost={bytes} mqfair.short_ms={short} mqfair.slowdown_percent=210 mqfair.p50_us=640"
    " mqfair.p99_us=2500 mqfair.inside_x100=400 mqfair.waiting_x100={waiting}"
)
STATE = "window 40\nwindow_tried 80\nisolation_loss_permille 20\nisolation_met_ppm 910000"
# In each step of 2 s, some task of the cgroup and of those below it waits for so many us.
PRESSURE = {"prod": 1_500_000, "prod/db": 1_000_000, "prod/web": 0}
PSI = """\
some avg10=46.80 avg60=31.29 avg300=9.52 total={some}
full avg10=43.51 avg60=28.72 avg300=8.72 total={full}
"""
LIST = {
    "prod/db": {"weight": 900, "share": 600000, "part": 3},
    "prod/web": {"weight": 100, "share": 300000, "part": 1},
    "batch": {"weight": 100, "share": 100000, "part": 4},
}


ONCE = """\
nvme0n1  mqfq  4.0 IOPS  4.0 MiB/s  3 in flight
  D 128 auto  T 64 KiB auto  window 40, loss 2.0 %
CGROUP                WGHT  DUE%  GOT%  IOPS  MiB/s     Q    IN  WAIT  SERV   P99  SLOW  PSI% S
batch                  100  10.0  50.0   2.0    2.0   2.0   4.0  1.0m  300u  2.5m   2.1     -
prod                   800  90.0  50.0   2.0    2.0   4.0   8.0  1.0m  300u     -     -  75.0 S
  db                   900  60.0  37.5   1.5    1.5   2.0   4.0  1.0m  300u  2.5m   2.1  50.0 S
  web                  100  30.0  12.5   0.5    0.5   2.0   4.0  1.0m  300u  2.5m   2.1   0.0 Q
"""


def write(machine, step):
    """Each step serves `part` requests of 1 MiB of each cgroup."""
    for name, one in LIST.items():
        done = step * one["part"]
        figures = {
            "bytes": done << 20, "ios": done, "wait": 1000 * done, "drive": 300 * done,
            "short": 5 * step if name == "prod/db" else 0, "waiting": 200,
        }  # fmt: skip
        machine.put(f"/sys/fs/cgroup/{name}/io.stat", FIGURES.format(**one, **figures))
    for name, us in PRESSURE.items():
        text = PSI.format(some=7 + step * us, full=step * us // 2)
        machine.put(f"/sys/fs/cgroup/{name}/io.pressure", text)
    machine.put("/sys/block/nvme0n1/stat", f"{8 * step} 0 {step << 14} 5 0 0 0 0 3 9 9 0 0 0 0 0 0")


@pytest.fixture
def host(machine, monkeypatch):
    """A machine. Its clock and its counters move when the program sleeps."""
    machine.install_module()
    machine.disk(active="mqfq")
    machine.disk("vda", "254:0", active="mq-deadline")
    machine.cgroup("prod", subtree="io", weight="default 800")
    for name in LIST:
        machine.cgroup(name)
    machine.put("/sys/kernel/debug/block/nvme0n1/sched/state", STATE)
    write(machine, 1)
    steps = itertools.count(2)
    machine.slept = []
    now = [0.0]

    def sleep(seconds):
        machine.slept.append(seconds)
        now[0] += seconds
        write(machine, next(steps))

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return machine


def test_once_as_text(host, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "99")
    result = run("top", "--once", "--interval", "2")
    assert (result.code, result.err) == (0, "")
    assert host.slept == [2.0]
    assert result.out == ONCE


def test_once_as_json(host, run):
    report = run("top", "--once", "--json", "--sort", "name").json
    assert report["schema"] == "mqfair.top/2"
    (disk,) = report["disks"]
    groups = {one["cgroup"]: one for one in disk.pop("cgroups")}
    assert list(groups) == ["batch", "prod", "prod/db", "prod/web"]
    assert groups["prod/db"]["achieved_ppm"] == 375000
    assert groups["prod/db"]["due_ppm"] == 600000
    assert groups["prod/db"]["short_ms"] == 5
    assert groups["prod"]["weight"] == 800
    pressure = {name: one["pressure_some_ppm"] for name, one in groups.items()}
    assert pressure == {"batch": None, "prod": 750_000, "prod/db": 500_000, "prod/web": 0}
    assert groups["prod/db"]["pressure_full_ppm"] == 250_000
    assert disk == {
        "device": "nvme0n1",
        "number": "259:0",
        "scheduler": "mqfq",
        "ours": True,
        "iops": 4,
        "bytes_per_s": 4 << 20,
        "in_flight": 3,
        "depth": "128 auto",
        "threshold_kb": "64 auto",
        "window": 40,
        "loss_permille": 20,
        "met_ppm": 910000,
    }


def test_json_lines_until_interrupted(host, run, monkeypatch):
    import time

    real = time.sleep
    left = [3]

    def sleep(seconds):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        real(seconds)

    monkeypatch.setattr("time.sleep", sleep)
    result = run("top", "--json", "--interval", "1")
    assert result.code == 130
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["disks"][0]["iops"] for line in lines] == [8, 8]


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["--sort", "weight"], ["prod", "db", "web", "batch"]),
        (["--sort", "name"], ["batch", "prod", "db", "web"]),
        (["--filter", "web"], ["prod", "web"]),
        (["--filter", "nosuch"], ["no"]),
    ],
)
def test_order_and_filter(host, run, argv, names):
    lines = run("top", "--once", *argv).out.splitlines()
    rows = lines[3:] if names != ["no"] else lines[2:]
    assert [line.split()[0] for line in rows] == names


def test_80_columns_are_enough(host, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for columns, kept in (
        ("rates", "DUE% Q P99 SLOW"),
        ("times", "Q SERV P99 SLOW"),
        ("past", "Q"),
    ):
        lines = run("top", "--once", "--view", columns).out.splitlines()
        assert max(map(len, lines)) <= 80
        assert set(kept.split()) < set(lines[2].split())


@pytest.mark.parametrize("width", range(80, 240, 5))
@pytest.mark.parametrize("columns", sorted(view.VIEWS))
def test_a_wider_terminal_has_no_column_less(width, columns):
    chosen = view.fitting(columns, width, past=True)
    assert (
        set(view.VIEWS[columns]) <= set(view.fitting(columns, width - 5, past=True)) <= set(chosen)
    )
    assert view.room(chosen) <= width - view.NAME_LEAST
    assert view.fitting(columns, 240, past=True) == tuple(view.COLUMNS)


def test_figures_stand_beside_the_names(screen):
    """The longest name is that of batch. A column of figures begins after it at any width."""
    for width in (80, 200):
        lines = [
            line for line in text(screen, width=width).splitlines() if line.startswith("batch")
        ]
        assert lines[0].index("100") < view.NAME_LEAST + 6


def test_levels_below_have_their_sums_above(host, run, screen):
    lines = run("top", "--once", "--levels", "1").out.splitlines()[3:]
    assert [line.split()[:2] for line in lines] == [["batch", "100"], ["prod", "+2"]]
    assert lines[1].split()[2:5] == ["800", "90.0", "50.0"]
    found = run("top", "--once", "--json", "--levels", "1").json["disks"][0]["cgroups"]
    assert [one["cgroup"] for one in found] == ["batch", "prod"]
    screen.press("c")
    assert names(screen) == ["batch", "prod"]
    assert "levels 1" in text(screen)
    screen.press("c")
    screen.press("C")
    assert names(screen) == ["batch", "prod", "db", "web"]
    assert "levels" not in text(screen)


def bars(screen, name):
    (line,) = [one for one in text(screen, width=200).splitlines() if one.split()[:1] == [name]]
    return line.split()[-2] if line.split()[-1] in "SQ" else line.split()[-1]


def test_the_past_of_each_line(screen):
    """The one step before: batch got five times its due, prod 50 of 90 %, and web 12.5 of 30 %."""
    assert [bars(screen, name) for name in ("batch", "prod", "web")] == ["█", "▅", "▄"]
    for _ in range(view.PAST_MOST):
        screen.after_step()
    assert bars(screen, "batch") == "█" * view.PAST_MOST
    screen.press("v")
    screen.press("v")
    assert "GOT/DUE PAST" in text(screen)
    assert "█" * view.PAST_MOST in text(screen)


@pytest.mark.parametrize(
    ("part", "shown"),
    [(None, " "), (0.0, "▁"), (0.45, "▄"), (0.5, "▄"), (0.89, "▇"), (0.9, "█"), (1.0, "█")],
)
def test_a_bar_tells_the_part_of_the_due(part, shown):
    assert view.bar(part) == shown


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--interval", "0"], 2, "--interval 0: use a number of seconds in 0.1..3600"),
        (["--interval", "soon"], 2, "--interval soon: use a number of seconds"),
        (["--sort", "iopss"], 2, "did you mean iops?"),
        (["sdz"], 2, "unknown device 'sdz'"),
        (["vda"], 1, "vda has no mqfair scheduler but mq-deadline: mqfair enable vda"),
        (["--levels", "0"], 2, "--levels 0: use a number from 1 on, as --levels 2"),
        (["--levels", "all"], 2, "--levels all: use a number from 1 on"),
        ([], 2, "the live picture needs a terminal: add --once or --json"),
    ],
)
def test_errors_are_one_line(host, run, argv, code, said):
    result = run("top", *argv)
    assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
    assert said in result.err


@pytest.mark.parametrize(
    ("installed", "said"), [(False, "run `make install`"), (True, "mqfair enable DEVICE")]
)
def test_no_device_of_ours(machine, run, installed, said):
    machine.disk()
    if installed:
        machine.install_module(loaded=False)
    result = run("top", "--once")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert result.err.startswith("mqfair: no device runs an mqfair scheduler: ")
    assert said in result.err


def test_without_debugfs_the_picture_says_so(host, run):
    host.host("/sys/kernel/debug/block/nvme0n1/sched/state").unlink()
    assert "window unknown: debugfs is for root" in run("top", "--once").out


def test_a_module_of_another_version_tells_no_window(host, run):
    host.put("/sys/kernel/debug/block/nvme0n1/sched/state", "threshold 65536")
    assert "window none" in run("top", "--once").out
    assert run("top", "--once", "--json").json["disks"][0]["window"] is None


def test_a_drive_without_io(machine, run):
    machine.install_module()
    machine.disk(active="mqfq")
    result = run("top", "--once")
    assert result.code == 0
    assert "no cgroup has done I/O yet" in result.out


def test_a_full_disk_is_one_line(machine, tmp_path):
    machine.install_module()
    machine.disk(active="mqfq")
    done = output_to("/dev/full", tmp_path, "top", "--once", "--interval", "0.1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_a_reader_that_ends_is_quiet(machine, tmp_path):
    machine.install_module()
    machine.disk(active="mqfq")
    command = f"{sys.executable} -m mqfair top --json --interval 0.1 | head -1"
    done = subprocess.run(
        ["/bin/bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, cwd=CHECKOUT, timeout=60, check=False,
        env={**os.environ, "MQFAIR_ROOT": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, b"")


# --- the live picture, without a terminal


@pytest.fixture
def screen(host):
    screen = pytest.importorskip("mqfair.watch.top_screen")
    fs = Fs()
    built = screen.Screen(Sampler(fs, [find_disk(fs, "nvme0n1")]), 2.0, view.Picked(), "rates")

    def step():
        import time

        time.sleep(2.0)
        built.step()

    built.after_step = step
    step()
    return built


def text(screen, width=80, height=24):
    lines = screen.frame(width, height)
    assert len(lines) == height
    plain = view.plain(lines)
    assert max(map(len, plain)) <= width
    return "\n".join(plain)


def names(screen, **size):
    rows = [line for line in text(screen, **size).splitlines()[:-1] if line][3:]
    return [line.split()[0] for line in rows]


def test_keys_sort_filter_and_hide(screen):
    assert names(screen) == ["batch", "prod", "db", "web"]
    screen.press("s")
    assert "sort name" in text(screen)
    screen.press("r")
    assert names(screen) == ["prod", "web", "db", "batch"]
    for key in ("/", "w", "x", "backspace", "e", "enter"):
        screen.press(key)
    assert names(screen) == ["prod", "web"]
    for key in ("/", "escape"):
        screen.press(key)
    assert names(screen) == ["prod", "web"]
    screen.press("q")
    assert screen.ended


def test_pause_keeps_the_picture_and_the_next_covers_all_the_time(screen):
    screen.press(" ")
    before = text(screen)
    assert "PAUSED" in before
    screen.after_step()
    assert text(screen) == before
    screen.press(" ")
    screen.after_step()
    assert "PAUSED" not in text(screen)
    assert "4.0 IOPS" in text(screen)


def test_the_view_and_the_help(screen):
    assert "DUE%" in text(screen)
    screen.press("v")
    assert "DUE%" not in text(screen)
    assert "SLOW" in text(screen)
    assert "SLOW" in text(screen, width=200)
    assert "DUE%" in text(screen, width=200)
    screen.press("?")
    assert "achieved share" in text(screen)
    assert "any key: back" in text(screen)
    screen.press("x")
    assert "achieved share" not in text(screen)


def test_a_long_list_scrolls(screen):
    assert "2 more below" in text(screen, height=6)
    screen.press("end")
    assert "web" in text(screen, height=6)
    assert "more below" not in text(screen, height=6)
    screen.press("home")
    assert "nvme0n1" in text(screen, height=6)


def test_the_interval_stays_in_its_range(screen):
    for _ in range(20):
        screen.press("-")
    assert "0.1 s" in text(screen)
    screen.press("+")
    assert "0.2 s" in text(screen)


def test_a_scheduler_that_goes_is_named(screen, host):
    host.put("/sys/block/nvme0n1/queue/scheduler", "mqfq [none]")
    screen.after_step()
    assert "no mqfair scheduler: mqfair enable nvme0n1" in text(screen)


def test_keys_of_a_terminal():
    screen = pytest.importorskip("mqfair.watch.top_screen")
    keys = list(screen.keys_of("q\x1b[A\x1bOB\x1b[5~\t\r\x7fä"))
    assert keys == ["q", "up", "down", "page up", "tab", "enter", "backspace", "ä"]


# --- words


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (7.25, "7.2"), (999.4, "999"), (9999, "9999"), (12_345, "12.3k"), (4.5e7, "45.0M")],
)
def test_counts_have_five_characters(number, said):
    assert view.count(number) == said


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (None, "-"),
        (999, "999u"),
        (1500, "1.5m"),
        (99_960, "100m"),
        (999_999, "1000m"),
        (2e6, "2.0s"),
    ],
)
def test_durations_have_five_characters(us, said):
    assert view.duration(us) == said


@pytest.mark.parametrize(
    ("figures", "letter"),
    [
        ({"achieved_ppm": 890_000, "waiting_x100": 150, "short_ms": 5}, "S"),
        ({"achieved_ppm": 890_000, "waiting_x100": 150}, "Q"),
        ({"achieved_ppm": 910_000, "waiting_x100": 150}, ""),
        ({"iops": 0.0, "waiting_x100": 0, "inside_x100": 0, "due_ppm": 0, "achieved_ppm": 0}, ""),
    ],
)
def test_a_due_that_is_missed_has_its_reason(figures, letter):
    use = Use("db", 950, 1_000_000, 1_000_000, 25.0, 1e5, 0, 100)
    assert view.reason_of(dataclasses.replace(use, **figures)) == letter


def test_names_of_any_kind_have_their_width():
    assert view.fit("web", 5) == "web  "
    assert view.fit("a-long-name", 5) == "a-lo…"
    assert view.cells(view.fit("日本語の名前", 7)) == 7
    assert view.printable("a\x1b[2Jb") == "a?[2Jb"
