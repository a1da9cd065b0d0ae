# SPDX-License-Identifier: GPL-2.0
"""mqfair top on a terminal: the whole screen at two sizes, its keys, its end, and its cost."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT, require
from rich.console import Console

from mqfair.machine.fs import Fs
from mqfair.watch.drives import watched
from mqfair.watch.sample import Sampler
from mqfair.watch.top_lines import Picked
from mqfair.watch.top_screen import Screen

PATIENCE_S = 20
INTERVAL_S = 2.0
# Of one CPU, by a picture every INTERVAL_S, on a machine with other work.
COST_MOST = 0.02
FRAMES = 15
SUM = r"(\w{32})  -"


class Terminal:
    """A shell in tmux, which keeps the screen as a terminal would show it."""

    def __init__(self, socket, columns, lines):
        self._argv = [require("tmux"), "-S", str(socket)]
        size = ["-x", str(columns), "-y", str(lines)]
        self.tmux("-f", "/dev/null", "new-session", "-d", *size, "env PS1='$ ' sh")

    def tmux(self, *argv):
        return subprocess.run(
            [*self._argv, *argv], capture_output=True, text=True, check=True, timeout=PATIENCE_S
        ).stdout

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def lines(self):
        return self.tmux("capture-pane", "-p").splitlines()

    def wait_for(self, pattern):
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, "\n".join(self.lines()), re.MULTILINE):
            shown = "\n".join(self.lines())
            assert time.monotonic() < deadline, f"no {pattern!r} on the screen:\n{shown}"
            time.sleep(0.1)
        return self.lines()

    def close(self):
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def open_one(columns, lines):
        opened.append(Terminal(tmp_path / "tmux", columns, lines))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def start(terminal, cluster, *options):
    words = " ".join([sys.executable, "-m", "mqfair", "top", "--interval", "0.5", *options])
    terminal.press(f"cd {ROOT}; MQFAIR_ROOT={cluster.root} {words}; echo status $?", "Enter")
    terminal.wait_for(r"^nvme0n1 +mqfq")
    # Two samples of a machine that moved.
    cluster.step()
    return terminal.wait_for(r"container-\d\d .*[1-9]")


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (200, 50)])
def test_the_screen(terminal, cluster, columns, lines):
    shown = start(terminal(columns, lines), cluster)
    assert len(shown) <= lines
    assert max(map(len, shown)) <= columns
    assert shown[1] == "  D 128 auto  T 64 KiB auto  window 40, loss 2.0 %"
    title = shown[2].split()
    assert title[:4] == ["CGROUP", "WGHT", "DUE%", "GOT%"]
    assert {"Q", "SLOW"} < set(title)
    assert ("SERV" in title) == (columns == 200)
    assert shown[5].index(" 10") < 40
    assert shown[3].startswith("pods.slice ")
    assert shown[4].startswith("  pod00")
    assert shown[5].startswith("    container-0")
    assert "? help" in shown[-1]


def test_keys_on_a_terminal(terminal, cluster):
    screen = terminal(80, 24)
    start(screen, cluster)
    screen.press("/", "container-03", "Enter")
    shown = screen.wait_for("filter container-03")
    assert sum("container-" in line for line in shown[:-1]) == 4
    screen.press("Tab", "Tab")
    screen.wait_for(r"\Anvme1n1 +ifq")
    screen.tmux("resize-window", "-x", "100", "-y", "12")
    screen.wait_for(r"SLOW")
    screen.press("Space")
    screen.wait_for("PAUSED")
    screen.press("q")
    screen.wait_for(r"status 0$")


@pytest.mark.parametrize("ending", ["C-c", "TERM"])
def test_the_terminal_is_as_before_afterwards(terminal, cluster, ending):
    screen = terminal(80, 24)
    screen.press("stty -a | md5sum", "Enter")
    (before,) = re.findall(SUM, "\n".join(screen.wait_for(SUM)))
    start(screen, cluster)
    if ending == "TERM":
        pane = screen.tmux("display", "-p", "#{pane_pid}").strip()
        (child,) = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", pane], capture_output=True, text=True, check=True
        ).stdout.split()
        os.kill(int(child), 15)
    else:
        screen.press(ending)
    screen.wait_for(r"status 0$")
    screen.press("clear; stty -a | md5sum", "Enter")
    screen.wait_for(rf"{before}  -")


def test_a_picture_of_500_cgroups_takes_little_of_a_cpu(large_cluster, monkeypatch, capsys):
    """All cgroups have done I/O on both drives since the picture before. The least of several is
    taken, because other programs disturb the caches. The kernel's time for the files of real
    cgroups is not in it."""
    monkeypatch.setenv("MQFAIR_ROOT", str(large_cluster.root))
    fs = Fs()
    screen = Screen(Sampler(fs, watched(fs, [])), INTERVAL_S, Picked(), "rates")
    with Path(os.devnull).open("w") as null:
        screen._console = Console(file=null, force_terminal=True, width=200, height=50)
        costs = []
        with screen._console.screen():
            for _ in range(FRAMES):
                large_cluster.step()
                begun = time.process_time()
                screen.step()
                screen._draw()
                costs.append(time.process_time() - begun)
    part = min(costs) / INTERVAL_S
    with capsys.disabled():
        print(f"\nfigure: 500 cgroups on two drives: {100 * part:.2f} % of a CPU")
    assert part <= COST_MOST
