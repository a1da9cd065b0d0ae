# SPDX-License-Identifier: GPL-2.0
"""Scarce scheduler tags: a flow that uses its share gets the tags for it.

The time is counted. A submitter that does not run has no requests waiting.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fairlib import (
    COUNTED_GUEST,
    EIGHT_SLOTS,
    SLOTS,
    TAGS,
    Load,
    check_settled,
    mqfq,
    scheduled,
    served_bytes,
    state,
    tenants,
)
from guestlib import (
    PATIENCE_S,
    Cgroup,
    Disk,
    NullBlk,
    cases,
    kill_all,
    read,
    slow,
    slow_for,
    wait_until,
    write,
)

guest = COUNTED_GUEST

PAGE = 4096
READS = {"rw": "randread", "bs": "4k", "norandommap": 1}
# Each thread has one request, so every thread without a request in service waits for a tag.
GREEDY = {**READS, "ioengine": "psync", "numjobs": 24}
# The idler has nearly all of the weight and issues one request now and then.
IDLER = {**READS, "iodepth": 1, "thinktime": 20_000}
# A direct read of a page that was written lets the reading task write it out.
BUFFERED = {**READS, "rw": "randwrite", "ioengine": "psync", "direct": 0, "offset": "50%"}
TOLERANCE = 0.1


@cases("mqfq", "ifq")
def test_a_late_tenant_beside_one_that_does_not_use_its_share(scheduler: str) -> None:
    """Two tenants share the unused part by weight, although their own shares are less than one tag
    each."""
    tunables = {"depth": SLOTS} | ({"damping": 0} if scheduler == "ifq" else {})
    with (
        NullBlk(**EIGHT_SLOTS) as disk,
        tenants(idler=10000, first=100, late=200) as (idler, first, late),
        scheduled(disk, scheduler, **tunables),
    ):
        disk.set_queue("nr_requests", TAGS)
        with Load(disk, [idler], **IDLER), Load(disk, [first], **GREEDY) as load:
            load.goes_on(10 * TAGS)
            with Load(disk, [late], **GREEDY):
                check_ratio(disk, late, first, 2.0)


@slow
def test_one_heavy_among_eight_light() -> None:
    """The heavy tenant has the tags for its half of the device; a ninth of them would not do."""
    light = {f"light{number}": 10 for number in range(8)}
    with (
        NullBlk(**EIGHT_SLOTS) as disk,
        tenants(heavy=80, **light) as (heavy, *others),
        mqfq(disk, depth=SLOTS, threshold_kb=4),
    ):
        disk.set_queue("nr_requests", TAGS)
        few = {**READS, "ioengine": "psync", "numjobs": 2}
        with Load(disk, others, **few), Load(disk, [heavy], **GREEDY):
            check_ratio(disk, heavy, others, 1.0)


@cases("mqfq", "ifq")
@slow
def test_many_times_as_many_tasks_as_tags(scheduler: str) -> None:
    """Each tenant has ten tasks for each tag. Tags go to the tasks by weight, not in order of
    arrival."""
    tunables = {"depth": SLOTS} | ({"damping": 0} if scheduler == "ifq" else {})
    with (
        NullBlk(**EIGHT_SLOTS) as disk,
        tenants(light=100, heavy=300) as (light, heavy),
        scheduled(disk, scheduler, **tunables),
    ):
        disk.set_queue("nr_requests", TAGS)
        many = {**GREEDY, "numjobs": 10 * TAGS}
        with Load(disk, [light], **many) as load, Load(disk, [heavy], **many):
            # While the light tenant was alone, its tasks waited in the line of the block layer.
            load.goes_on(2 * many["numjobs"])
            check_ratio(disk, heavy, light, 3.0)


@cases("mqfq", "ifq", "kyber-fair", "wdt", "hwabc")
@slow
def test_a_buffered_writer_beside_a_reader(scheduler: str) -> None:
    """The flusher asks for tags in the name of the root. Half of the map is left for the reader,
    which has eight times the weight."""
    tunables = {"damping": 0} if scheduler == "ifq" else {}
    with (
        NullBlk(**EIGHT_SLOTS) as disk,
        tenants(writer=100, reader=800) as (writer, reader),
        small_background(),
        scheduled(disk, scheduler, **tunables),
    ):
        disk.set_queue("nr_requests", TAGS)
        disk.set_queue("max_sectors_kb", PAGE // 1024)
        with Load(disk, [reader], **GREEDY, size="50%"), Load(disk, [writer], **BUFFERED):
            # hwabc charges a write 2.4 times here, for the collection that follows.
            check_ratio(disk, reader, writer, 8.0 * (2.4 if scheduler == "hwabc" else 1.0))


@cases(200, 1000)
@slow_for(1000)
def test_a_crowd_has_the_share_of_its_parent(number: int) -> None:
    """A cgroup with many children, of one task each, takes its half of the drive and no more. There
    are 6 or 31 tasks for each tag."""
    with (
        NullBlk(**EIGHT_SLOTS) as disk,
        tenants(heavy=100, crowd=100) as (heavy, crowd),
        mqfq(disk, depth=SLOTS),
    ):
        disk.set_queue("nr_requests", TAGS)
        with readers_in_children(crowd, number, disk), Load(disk, [heavy], **GREEDY) as load:
            # A new cgroup has two requests before its debt counts. Each has one request in the
            # time in which the heavy one has as many as there are children.
            load.goes_on(2 * number)
            check_part(disk, heavy, 0.5, 6 * number)


@slow
def test_tasks_that_wait_for_a_minute_are_counted() -> None:
    """The drive serves 64 requests a second, and the light tenant gets one of 10,001."""
    large = {**GREEDY, "bs": "16k"}
    with (
        NullBlk(**{**EIGHT_SLOTS, "completion_nsec": 1_000_000}, mbps=1) as disk,
        tenants(heavy=10000, light=1) as (heavy, light),
        mqfq(disk, depth=SLOTS),
    ):
        disk.set_queue("nr_requests", SLOTS)
        with Load(disk, [heavy], **large) as load:
            load.goes_on(SLOTS)
            reader = ["dd", f"if={disk.path}", "of=/dev/null", "bs=16k", "count=4", "iflag=direct"]
            with subprocess.Popen(light.command(reader)) as dd:
                wait_until(lambda: state(disk)["tag_waiters"] > 1, "tasks wait for tags")
                assert state(disk)["tag_waiters_stuck"] == 0
                wait_until(lambda: state(disk)["tag_waiters_stuck"] == 1, "one is counted", 90)
                assert dd.poll() is None
                light.weight = 10000
                assert dd.wait(PATIENCE_S) == 0
        check_settled(disk)


@contextlib.contextmanager
def readers_in_children(parent: Cgroup, number: int, disk: Disk) -> Iterator[None]:
    """A task with one read at a time in each of @number children of @parent."""
    write(parent.path / "cgroup.subtree_control", "+io")
    children = [parent.path / str(index) for index in range(number)]
    script = f"""
        for child in {parent.path}/[0-9]*; do
            echo $$ > $child/cgroup.procs
            dd if={disk.path} of=/dev/null bs=4k iflag=direct 2> /dev/null &
        done
        echo $$ > {parent.path.parent}/cgroup.procs
        wait"""
    for child in children:
        child.mkdir()
    tasks = subprocess.Popen(["/bin/sh", "-c", script])
    try:
        wait_until(lambda: all(read(child / "cgroup.procs") for child in children), "all read")
        yield
    finally:
        for child in children:
            kill_all(child)
        tasks.wait()
        for child in children:
            child.rmdir()


def check_part(disk: Disk, group: Cgroup, due: float, requests: int) -> None:
    """Checks the part of @group in the next requests of the drive."""

    def read_so_far() -> int:
        return int(read(disk.sysfs / "stat").split()[0])

    begin, own = read_so_far(), served_bytes(group, disk)
    wait_until(lambda: read_so_far() >= begin + requests, f"{requests} more requests are served")
    own = (served_bytes(group, disk) - own) // PAGE
    part = own / (read_so_far() - begin)
    print(f"{group.name}: {part:.3f} of the requests, due {due}")
    assert abs(part / due - 1) <= TOLERANCE, f"{part:.3f} of the requests, due {due}"


@contextlib.contextmanager
def small_background() -> Iterator[None]:
    """Written pages go to the disk soon."""
    limit = Path("/proc/sys/vm/dirty_background_bytes")
    write(limit, 1 << 20)
    try:
        yield
    finally:
        write(limit.with_name("dirty_background_ratio"), 10)


def check_ratio(disk: Disk, one: Cgroup, other: Cgroup | list[Cgroup], due: float) -> None:
    """Checks the ratio of their bytes in the next two thousand requests."""
    groups = other if isinstance(other, list) else [other]
    serve(disk, [one, *groups], 400)
    before = served_bytes(one, disk), sum(served_bytes(group, disk) for group in groups)
    serve(disk, [one, *groups], 2000)
    own = served_bytes(one, disk) - before[0]
    others = sum(served_bytes(group, disk) for group in groups) - before[1]
    print(f"{own / PAGE:.0f} : {others / PAGE:.0f} requests, due {due:g} : 1")
    assert abs(own / others / due - 1) <= TOLERANCE, f"{own / others:.2f} : 1, due {due:g} : 1"


def serve(disk: Disk, groups: list[Cgroup], requests: int) -> None:
    def served() -> int:
        return sum(served_bytes(group, disk) for group in groups) // PAGE

    goal = served() + requests
    wait_until(lambda: served() >= goal, f"{requests} more requests are served")
