# SPDX-License-Identifier: GPL-2.0
"""Figures of drives and cgroups as metrics."""

import contextlib
import os
import socket
import socketserver
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from mqfair import __version__
from mqfair.follow import config
from mqfair.machine import kmod
from mqfair.machine.blockdev import Disk
from mqfair.machine.cgroup import root_cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import visible
from mqfair.tune import chosen_by_hand
from mqfair.watch import openmetrics
from mqfair.watch.openmetrics import Family
from mqfair.watch.pressure import Pressure
from mqfair.watch.sample import PPM, DiskSample, Figures, Sampler

# A client that sends nothing for so long loses its connection. The next one waits for that, and
# Prometheus gives up after 10 s.
CLIENT_S = 3.0
READABLE = 0o644


@dataclass(frozen=True)
class Metric:
    """One metric of a cgroup on a drive: its name, its text, and its value, None to leave it out.
    A counter only grows."""

    name: str
    text: str
    value: Callable[[Figures], float | None]
    counter: bool = False


def _part(number: int | None, unit: int) -> float | None:
    return None if number is None else number / unit


CGROUP = (
    Metric("weight", "Weight of the cgroup on the drive.", lambda f: f.weight),
    Metric("achieved_ratio", "Part of the work done in the last quarter of a second.",
           lambda f: _part(f.part_ppm, PPM)),
    Metric("waiting_requests", "Mean requests that wait outside the drive.",
           lambda f: _part(f.waiting_x100, 100)),
    Metric("inside_requests", "Mean requests in the drive.", lambda f: _part(f.inside_x100, 100)),
    Metric("slowdown_ratio", "Mean time in the drive, relative to the least known.",
           lambda f: _part(f.slowdown_percent, 100)),
    Metric("bytes", "Bytes sent to the drive.", lambda f: f.bytes, True),
    Metric("requests", "Requests sent to the drive.", lambda f: f.ios, True),
    Metric("done", "Requests completed.", lambda f: f.done, True),
    Metric("cost", "Cost of the requests completed, in bytes of 4 KiB reads.",
           lambda f: f.cost, True),
    Metric("wait_seconds", "Time of all requests outside the drive.",
           lambda f: _part(f.wait_us, PPM), True),
    Metric("drive_seconds", "Time of all requests in the drive.",
           lambda f: _part(f.drive_us, PPM), True),
    Metric("short_seconds", "Time for which the cgroup lacked a part of what it asks for.",
           lambda f: _part(f.short_ms, 1000), True),
)  # fmt: skip

# Of a drive, by the name in sched/state: metric, text, unit, and whether it only grows.
STATE = {
    "depth": ("depth", "Most requests in the drive (D).", 1.0, False),
    "window": ("window", "Most requests in the drive outside of trials.", 1.0, False),
    "window_trials": ("window_trials", "Trials of half or double the window.", 1.0, True),
    "isolation_loss_permille": ("loss_ratio", "Throughput that is given up.", 1e3, False),
    "isolation_met_ppm": (
        "met_ratio",
        "Least part of what it asks for that a cgroup gets.",
        1e6,
        False,
    ),
    "watchdog": ("watchdog", "Queues that were forgotten. More than 0 is a bug.", 1.0, True),
    "null_dispatches": ("null_dispatches", "Dispatches that found no request.", 1.0, True),
    "tag_waiters": ("tag_waiters", "Tasks that wait for a scheduler tag.", 1.0, False),
    "tag_waiters_stuck": ("tag_waiters_stuck", "Of these: for a minute or more.", 1.0, False),
}


class Collector:
    """Reads the figures anew for each collection. @disks names the drives, which come and go."""

    def __init__(self, fs: Fs, disks: Callable[[], Sequence[Disk]]) -> None:
        self._fs = fs
        self._disks = disks
        self._known: list[tuple[str, str | None]] = []
        self._sampler = Sampler(fs, [])

    def collect(self) -> Iterator[Family]:
        return (family for family in self._families() if family.samples)

    def _families(self) -> Iterator[Family]:
        disks = self._disks()
        known = [(disk.name, disk.number) for disk in disks]
        if known != self._known:
            self._known, self._sampler = known, Sampler(self._fs, disks)
        sample = self._sampler.sample()
        command = Family("mqfair", "The command.", "info", ("version",))
        command.add([__version__], 1.0)
        yield command
        loaded = Family("mqfair_module_loaded", "1 if the kernel module is loaded.")
        loaded.add([], float(kmod.loaded(self._fs)))
        yield loaded
        found = list(sample.disks.values())
        yield from _of_disks(found)
        yield self._rules(disks)
        ours = [disk for disk in found if disk.ours]
        yield from _of_cgroups(ours)
        yield _of_pressure(sample.pressure)
        yield from self._goals(ours)

    def _rules(self, disks: Sequence[Disk]) -> Family:
        """Whether the disks run the schedulers of their rules. A choice by hand is no rule."""
        family = Family(
            "mqfair_disk_rule_met",
            f"1 if the disk runs the scheduler of its rule in {config.PATH}.",
            labels=("disk",),
        )
        try:
            rules = config.load(self._fs) or config.Config()
        except UsageError:
            # mqfair.service says so.
            return family
        for disk in disks:
            rule = rules.device_rule(self._fs, disk)
            selector = disk.selector()
            if rule is None or selector is None:
                continue
            if chosen_by_hand.chosen(disk) in (None, rule.scheduler):
                family.add([disk.name], selector.active == rule.scheduler)
        return family

    def _goals(self, disks: Sequence[DiskSample]) -> Iterator[Family]:
        """The goals and whether they are met, of the cgroups that have one."""
        target = Family("mqfair_cgroup_goal_seconds", "Latency goal.", labels=("disk", "cgroup"))
        met = Family("mqfair_cgroup_goal_met", "1 if the goal is met.", labels=("disk", "cgroup"))
        for disk in disks:
            for name, figures in disk.flows.items():
                if figures.goal_us:
                    target.add([disk.name, visible(name)], figures.goal_us / PPM)
                    for word in self._met(name, disk):
                        met.add([disk.name, visible(name)], float(word == "1"))
        yield from (target, met)

    def _met(self, path: str, disk: DiskSample) -> list[str]:
        with contextlib.suppress(Failure):
            group = replace(root_cgroup(self._fs), path="" if path == "/" else path)
            goal = group.goals().get(disk.number or "", {})
            return [goal["met"]] if "met" in goal else []
        return []


def _family(name: str, text: str, counter: bool, labels: Sequence[str]) -> Family:
    return Family(name, text, "counter" if counter else "gauge", labels)


def _of_disks(disks: Sequence[DiskSample]) -> Iterator[Family]:
    active = Family(
        "mqfair_disk_scheduler", "1 for the scheduler in force.", labels=("disk", "scheduler")
    )
    ours = Family("mqfair_disk_ours", "1 if the scheduler is one of mqfair.", labels=("disk",))
    for disk in disks:
        active.add([disk.name, disk.scheduler or "none"], 1.0)
        ours.add([disk.name], float(disk.ours))
    yield from (active, ours)
    for key, (name, text, unit, counter) in STATE.items():
        family = _family(f"mqfair_disk_{name}", text, counter, ("disk",))
        for disk in disks:
            value = disk.of_state(key)
            if value is not None:
                family.add([disk.name], value / unit)
        yield family


def _of_cgroups(disks: Sequence[DiskSample]) -> Iterator[Family]:
    due = Family(
        "mqfair_cgroup_due_ratio",
        "Part of the work that was due in the last quarter of a second.",
        labels=("disk", "cgroup"),
    )
    for disk in disks:
        for name, ppm in disk.due_now.items():
            due.add([disk.name, visible(name)], ppm / PPM)
    yield due
    for metric in CGROUP:
        labels = ("disk", "cgroup")
        family = _family(f"mqfair_cgroup_{metric.name}", metric.text, metric.counter, labels)
        for disk in disks:
            for name, figures in disk.flows.items():
                value = metric.value(figures)
                if value is not None:
                    family.add([disk.name, visible(name)], value)
        yield family
    latency = Family(
        "mqfair_cgroup_latency_seconds",
        "Latency in the last seconds, outside and in the drive.",
        labels=("disk", "cgroup", "quantile"),
    )
    for disk in disks:
        for name, figures in disk.flows.items():
            for quantile, value in (("0.5", figures.p50_us), ("0.99", figures.p99_us)):
                if value:
                    latency.add([disk.name, visible(name), quantile], value / PPM)
    yield latency


def _of_pressure(found: Mapping[str, Pressure]) -> Family:
    family = Family(
        "mqfair_cgroup_pressure_seconds",
        "Time for which some task, or all tasks, of the cgroup waited for I/O of any drive.",
        "counter",
        ("cgroup", "kind"),
    )
    for name, own in found.items():
        family.add([visible(name), "some"], own.some_us / PPM)
        family.add([visible(name), "full"], own.full_us / PPM)
    return family


# --- ways out --------------------------------------------------------------------------------


def text(figures: Collector) -> str:
    return openmetrics.openmetrics(figures.collect())


def as_list(figures: Collector) -> list[dict[str, object]]:
    return [
        {"name": sample.name, "type": family.type, "labels": sample.labels, "value": sample.value}
        for family in figures.collect()
        for sample in family.samples
    ]


def write_textfile(figures: Collector, name: str) -> None:
    path = Path(name)
    # node_exporter reads only the files with the ending of @name.
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        try:
            partial.write_text(openmetrics.plain(figures.collect()))
            # A collector of another user reads it, whatever the umask.
            partial.chmod(READABLE)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        mend = "it is as before: free space, or name a file in another folder"
        raise Failure(f"cannot write {name}: {error.strerror}: {mend}") from error


class _Handler(WSGIRequestHandler):
    """No line for each request on standard error."""

    timeout = CLIENT_S

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(WSGIServer):
    """A server on a socket that listens already."""

    def __init__(self, listening: socket.socket, idle_s: float | None) -> None:
        socketserver.TCPServer.__init__(
            self, listening.getsockname(), _Handler, bind_and_activate=False
        )
        self.socket.close()
        self.socket = listening
        self.server_name, self.server_port = "localhost", listening.getsockname()[1]
        self.setup_environ()
        self.timeout = idle_s
        self.is_idle = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of this program."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def handle_timeout(self) -> None:
        self.is_idle = True


def serve(figures: Collector, listening: socket.socket, idle_s: float | None) -> None:
    """Answers requests, one after the other, until none has come for @idle_s."""
    with _Server(listening, idle_s) as server:
        server.set_app(openmetrics.application(figures.collect))
        while not server.is_idle:
            server.handle_request()
