# SPDX-License-Identifier: GPL-2.0
"""The warnings of `mqfair follow` about cgroups that starve."""

import pytest

from mqfair.follow import follow
from mqfair.follow import starving as starved
from mqfair.follow.follow import Service
from mqfair.follow.starving import CONFIRM_S, EVERY_S, PAUSE_MOST_S, Starved, Waits, parse
from mqfair.machine.fs import Fs

FLOWS = "/sys/kernel/debug/block/nvme0n1/sched/flows"


def line(path, queued, ios):
    return (
        f"{path} weight=100 share_ppm=5 queued={queued} outstanding=0 ios={ios} bytes={4096 * ios}"
    )


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves when a test says so."""

    class Clock:
        now = 100.0
        cpu = 0.0

    monkeypatch.setattr(starved.time, "monotonic", lambda: Clock.now)
    monkeypatch.setattr(starved.time, "thread_time", lambda: Clock.cpu)
    return Clock


@pytest.fixture
def host(machine):
    machine.install_module()
    machine.disk(active="mqfq")
    return machine


def test_the_cgroups_that_wait():
    text = "\n".join([line("/", 0, 7), line("/a/b", 3, 9), line("/with space", 1, 0), "?"])
    assert parse(text) == {"a/b": Waits(3, 9), "with space": Waits(1, 0)}


def look(host, clock, after, *lines):
    """A look after @after seconds."""
    clock.now += after
    host.put(FLOWS, "\n".join(lines))
    return host.starved.look()


def test_a_cgroup_that_starves_is_told_once_and_so_is_the_end(host, clock):
    host.starved = Starved(Fs())
    assert look(host, clock, 0, line("/db", 3, 50), line("/batch", 64, 10)) == []
    assert look(host, clock, CONFIRM_S, line("/db", 4, 50), line("/batch", 64, 90)) == [
        "warning: nvme0n1: db starves: 4 of its requests wait, and none was dispatched for 1.1 s:"
        " `mqfair check nvme0n1 db`"
    ]
    assert look(host, clock, EVERY_S, line("/db", 5, 50), line("/batch", 64, 400)) == []
    assert look(host, clock, CONFIRM_S, line("/db", 5, 51)) == ["nvme0n1: db starves no more"]
    assert look(host, clock, CONFIRM_S, line("/db", 5, 51)) != []


@pytest.mark.parametrize("ios", [(1, 1), (1, 2)])
def test_a_cgroup_without_a_waiting_request_does_not_starve(host, clock, ios):
    host.starved = Starved(Fs())
    looks = [look(host, clock, CONFIRM_S, line("/db", 0, ios[0])) for _ in range(3)]
    assert looks == [[], [], []]


def test_less_than_a_second_is_no_verdict(host, clock):
    host.starved = Starved(Fs())
    assert look(host, clock, 0, line("/db", 3, 50)) == []
    assert look(host, clock, 0.9, line("/db", 3, 50)) == []


def test_two_looks_and_a_pause(host, clock):
    host.starved = Starved(Fs())
    waits = []
    for _ in range(4):
        look(host, clock, 0, line("/db", 3, 50))
        waits.append(round(host.starved.at - clock.now, 1))
    assert waits == [CONFIRM_S, EVERY_S, CONFIRM_S, EVERY_S]


@pytest.mark.parametrize(("cpu", "pause"), [(0.2, 20.0), (3.0, PAUSE_MOST_S)])
def test_a_look_that_takes_long_is_rare(host, clock, monkeypatch, cpu, pause):
    """But a cgroup that starves is told within a minute."""
    host.starved = Starved(Fs())
    monkeypatch.setattr(starved, "parse", lambda _: setattr(clock, "cpu", clock.cpu + cpu) or {})
    look(host, clock, 0)
    assert host.starved.at - clock.now == pytest.approx(pause)


def test_without_the_module_there_is_no_timer(machine, clock):
    machine.disk()
    found = Starved(Fs(), at=1.0)
    assert (found.look(), found.at) == ([], None)
    found.start()
    assert found.at is None
    machine.install_module()
    found.start()
    assert found.at == clock.now


def test_the_service_looks(host, monkeypatch, capsys):
    service = Service(Fs())
    host.put(FLOWS, line("/db", 3, 50))
    service.starved.start()
    service._wait()
    monkeypatch.setattr(follow.time, "monotonic", lambda now=service.starved.at: now + 0.1)
    service._wait()
    assert "warning: nvme0n1: db starves: 3 of its requests wait" in capsys.readouterr().out
