# SPDX-License-Identifier: GPL-2.0
"""From --device to the statements of sim-run that describe the drive (sim/describe.h)."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from mqfair.bench import device as devices
from mqfair.bench import ssd
from mqfair.bench.device import NULL_REQUEST_BYTES, NULL_TIMER, Device
from mqfair.bench.variant import IOCOST, NONE, THROTTLE, is_ours
from mqfair.machine.blockdev import NR_REQUESTS_MAX
from mqfair.text.errors import UsageError
from mqfair.tune.enable import (
    AUTO_SLOTS,
    CORE_SLOTS_COUNTED,
    CORE_TAGS_PER_SLOT,
    TAGS_PER_SLOT,
    slots_of,
)

_MIB = 1 << 20
# CPU time of a request: `none` takes 8435 instructions (doc/measurements/mqfq.md). A guest with
# counted time does one in a nanosecond, and a fast core three.
_GUEST_REQUEST_NS = 8400
FAST_REQUEST_NS = 2800
# io.max, iocost and io.latency hold bios back before they get a tag. The block layer of CFQ had 128
# requests for each cgroup, and no tags for all.
_WITHOUT_TAGS = (THROTTLE, IOCOST, "iolatency", "cfq")
# The defaults of null_blk and of kernel/ssd/config.c.
_NULL_COMPLETION_NS = 10_000
_NULL_DEPTH = 64
_NULL_GB = 250
SSD_PLAIN: Mapping[str, str] = {
    "model": "p3700",
    "hw_depth": "256",
    "ftl": "device",
    "time_scale": "1",
    "write_times": "1",
    "fill": "0",
    "fill_pattern": "steady",
}
# kernel/ssd/drive.c: the largest request.
_SSD_REQUEST_BYTES = 512 << 10
# The parameters of null_blk that sim-run has, and those that change no request.
_NULL_SIMULATED = (
    "queue_mode",
    "submit_queues",
    "irqmode",
    "completion_nsec",
    "hw_queue_depth",
    "gb",
    "max_sectors",
    "shared_tag_bitmap",
)
_NULL_WITHOUT_EFFECT = ("bs", "memory_backed", "discard", "fua", "home_node", "rotational")


@dataclass(frozen=True)
class Drive:
    """@slots are the driver tags of each of @maps maps, which serve @queues hardware queues.
    @places says that the place of a request matters, so that ranges of the drive do. @request_ns is
    the CPU time of a request unless the user names one. @settings are those of a virtual SSD.
    """

    statements: tuple[str, ...]
    bytes: int
    most_bytes: int
    slots: int
    maps: int
    queues: int
    request_ns: int = _GUEST_REQUEST_NS
    places: bool = False
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def sched_tags(self, scheduler: str, depth: str | None) -> int:
        """The scheduler tags of each map. Ours get those that `mqfair enable` leaves,
        where @depth is the tunable of that name, and comparators those of a switch. Without a
        scheduler a request takes a driver tag, in the same way. 0 means that no task waits."""
        if scheduler == NONE:
            return self.slots
        if scheduler in _WITHOUT_TAGS:
            return 0
        at_switch = CORE_TAGS_PER_SLOT * min(self.slots, CORE_SLOTS_COUNTED)
        if not is_ours(scheduler):
            return at_switch
        takes = self.slots * self.maps
        wanted = TAGS_PER_SLOT * (slots_of(depth or "auto", takes) or min(takes, AUTO_SLOTS))
        return max(at_switch, min(-(-wanted // self.queues), NR_REQUESTS_MAX))


def unstretched(device: Device) -> Device:
    """@device at the speed of its model unless the user's text has a time_scale. In a guest the
    default stretches the drive for a slow processor, which the simulator does not have."""
    if device.kind != devices.SSD or "time_scale=" in device.text:
        return device
    colon = "" if device.text.endswith(":") else ","
    return dataclasses.replace(
        device,
        text=f"{device.text}{colon}time_scale=1",
        settings={**device.settings, "time_scale": "1"},
    )


def drive(device: Device, cpus: int, flows: Mapping[str, str]) -> Drive:
    """The drive of @device for a host of @cpus. @flows has the name in sim-run of each cgroup.
    Raises UsageError for a drive that is not simulated."""
    if device.kind == devices.NULL:
        return _null(device, cpus)
    if device.kind == devices.SSD:
        return _ssd(device, cpus, flows)
    raise UsageError(
        f"--device {device.text}: the simulator has no such drive: use null:... or ssd:model=NAME"
    )


def _null(device: Device, cpus: int) -> Drive:
    given = device.parameters
    if given.get("irqmode") != NULL_TIMER:
        raise UsageError(
            f"--device {device.text}: the simulator has no processor time, which is all that a"
            " request of this drive takes: add irqmode=2 and completion_nsec"
        )
    for name, value in given.items():
        if value and name not in (*_NULL_SIMULATED, *_NULL_WITHOUT_EFFECT):
            raise UsageError(
                f"--device {device.text}: {name}={value} is not simulated: leave it out, or use"
                " --on vm"
            )
    depth = given.get("hw_queue_depth", _NULL_DEPTH)
    queues = min(given.get("submit_queues", 1), cpus)
    maps = 1 if given.get("shared_tag_bitmap", 0) else queues
    completion_ns = max(1, given.get("completion_nsec", _NULL_COMPLETION_NS))
    sectors = given.get("max_sectors", 0)
    most = sectors * 512 if sectors else NULL_REQUEST_BYTES
    lines = (
        f"device {depth * maps} {completion_ns} 0",
        f"tags {depth}",
        f"tag_maps {maps}",
        f"most_bytes {most}",
    )
    return Drive(lines, given.get("gb", _NULL_GB) << 30, most, depth, maps, queues)


def _ssd(device: Device, cpus: int, flows: Mapping[str, str]) -> Drive:
    plain = {"queues": str(cpus), **SSD_PLAIN, **device.settings}
    fill = plain["fill"]
    parts = ssd.parts_of(plain)
    queues = min(int(plain["queues"]), cpus)
    pattern = plain["fill_pattern"]
    filled = parts or int(fill)
    percent = "" if parts or not filled else f" {fill}"
    own = (f"model {plain['model']} {plain[ssd.PARAMS]}",) if ssd.PARAMS in plain else ()
    lines = (
        *own,
        f"drive {plain['model']} {plain['size_mb']} {pattern if filled else 'empty'}{percent}",
        f"ftl {plain['ftl']}",
        f"time_scale {plain['time_scale']}",
        f"write_times {plain['write_times']}",
        f"tags {plain['hw_depth']}",
        f"tag_maps {queues}",
        f"most_bytes {_SSD_REQUEST_BYTES}",
        *((f"fetch {plain[ssd.FETCH]}",) if ssd.FETCH in plain else ()),
        *(f"part {flows[one.cgroup]} {one.percent} {one.overwrites}" for one in parts),
    )
    names = (*ssd.PLAIN, ssd.PARAMS, ssd.PARTS, ssd.FETCH)
    shown = {name: plain[name] for name in names if name in plain}
    capacity = int(plain["size_mb"]) * _MIB
    fast = plain["time_scale"] == "1"
    return Drive(
        lines,
        capacity,
        _SSD_REQUEST_BYTES,
        int(plain["hw_depth"]),
        queues,
        queues,
        FAST_REQUEST_NS if fast else _GUEST_REQUEST_NS,
        places=True,
        settings=shown,
    )
