# SPDX-License-Identifier: GPL-2.0
"""Files of samples: JSON lines, the first of which tells the schema and the machine.

    {"schema": "mqfair.record/1", "started": S, "interval_s": S, "kernel": "...", "version": "..."}
    {"at": S, "disks": {"nvme0n1": {..., "flows": {"prod/db": {"ios": N, ...}}, "gone": []}},
     "pressure": {"prod/db": {"some_us": N, "full_us": N}}}

A sample leaves out the cgroups with the same figures as in the sample before. `gone` names those
that it no longer has. `pressure` has the microseconds in io.pressure of the cgroups where they have
changed, and null for a cgroup that is gone. So each line can be written at once, and a file that
ends early has all samples but the last. `at` is the time since the first sample, by a clock that is
never set.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TextIO

from mqfair.manual.json_check import require
from mqfair.manual.json_forms import BY_NAME, Node, node_of, tree
from mqfair.text import json_text
from mqfair.text.json_text import WrongJsonError
from mqfair.watch.pressure import Pressure
from mqfair.watch.sample import DiskSample, Figures, Sample

SCHEMA = "mqfair.record/1"
MAKER = "mqfair record --out FILE"
# A line after the first, in the words of json_forms.py.
_SAMPLE = (
    """
at number seconds since the first sample
disks object by name
disks.* object
disks.*.number text|null major:minor
disks.*.scheduler text|null
disks.*.state object|null of debugfs
disks.*.state.* integer
disks.*.ios count|null
disks.*.bytes count|null
disks.*.in_flight count|null
disks.*.tunables object
disks.*.tunables.* text
disks.*.flows object cgroups that changed
disks.*.flows.* object
"""
    + "".join(f"disks.*.flows.*.{name} count?\n" for name in Figures._fields)
    + """
disks.*.gone list cgroups that ended
disks.*.gone[] text
pressure object? cgroups that changed
pressure.* object|null
pressure.*.some_us count
pressure.*.full_us count
"""
)


@dataclass(frozen=True)
class Head:
    """The first line of a file."""

    started: float
    interval_s: float
    kernel: str
    version: str


@dataclass(frozen=True)
class Recording:
    head: Head
    samples: tuple[Sample, ...]


def _flows(before: DiskSample | None, now: DiskSample) -> dict[str, Any]:
    was: Mapping[str, Figures] = before.flows if before else {}
    changed = {name: own for name, own in now.flows.items() if was.get(name) != own}
    return {
        "flows": {
            name: {key: value for key, value in own._asdict().items() if value is not None}
            for name, own in changed.items()
        },
        "gone": [name for name in was if name not in now.flows],
    }


def _disk(before: DiskSample | None, now: DiskSample) -> dict[str, Any]:
    own = {
        name: getattr(now, name)
        for name in ("number", "scheduler", "state", "ios", "bytes", "in_flight")
    }
    return {**own, "tunables": dict(now.tunables), **_flows(before, now)}


def _pressure(before: Sample | None, now: Sample) -> dict[str, Any]:
    was: Mapping[str, Pressure] = before.pressure if before else {}
    changed = {name: own for name, own in now.pressure.items() if was.get(name) != own}
    return {
        **{name: own._asdict() for name, own in changed.items()},
        **{name: None for name in was if name not in now.pressure},
    }


def write(file: TextIO, head: Head, samples: Iterable[Sample]) -> Iterator[Sample]:
    """Writes each of @samples as it comes, and passes it on."""
    print(json.dumps({"schema": SCHEMA, **asdict(head)}), file=file, flush=True)
    before: Sample | None = None
    first = 0.0
    for sample in samples:
        first = sample.at if before is None else first
        disks = {
            name: _disk(before.disks.get(name) if before else None, disk)
            for name, disk in sample.disks.items()
        }
        line = {
            "at": sample.at - first, "disks": disks, "pressure": _pressure(before, sample),
        }  # fmt: skip
        print(json.dumps(line), file=file, flush=True)
        before = sample
        yield sample


def _read_disk(name: str, before: DiskSample | None, line: Mapping[str, Any]) -> DiskSample:
    flows = dict(before.flows) if before else {}
    for gone in line["gone"]:
        flows.pop(gone, None)
    for path, found in line["flows"].items():
        flows[path] = Figures(**{key: found[key] for key in Figures._fields if key in found})
    own = {key: line[key] for key in ("number", "scheduler", "state", "ios", "bytes", "in_flight")}
    return DiskSample(name, tunables=line["tunables"], flows=flows, **own)


def _read_pressure(before: Sample | None, line: Mapping[str, Any]) -> dict[str, Pressure]:
    found = dict(before.pressure) if before else {}
    for name, own in line.get("pressure", {}).items():
        if own is None:
            found.pop(name, None)
        else:
            found[name] = Pressure(own["some_us"], own["full_us"])
    return found


def _parsed(line: str, form: Node, number: int) -> dict[str, Any]:
    try:
        words: dict[str, Any] = json_text.read(line)
        require(words, form)
    except WrongJsonError as error:
        raise WrongJsonError(f"line {number}: {error}") from error
    return words


def read(text: str) -> Recording:
    """The recording in @text. A last line that is cut off is left out. Raises WrongJsonError for
    any other text."""
    first, *lines = text.split("\n")
    words = _parsed(first, tree(BY_NAME["record"]), 1)
    if words["schema"] != SCHEMA:
        raise WrongJsonError(f"line 1: its schema is not {SCHEMA}")
    head = Head(**{one.name: words[one.name] for one in fields(Head)})
    form = node_of(_SAMPLE)
    samples: list[Sample] = []
    for number, line in enumerate(lines, 2):
        if not line or (number == len(lines) + 1 and _is_cut(line)):
            continue
        words = _parsed(line, form, number)
        last = samples[-1] if samples else None
        before = last.disks if last else {}
        disks = {
            name: _read_disk(name, before.get(name), disk) for name, disk in words["disks"].items()
        }
        pressed = _read_pressure(last, words)
        samples.append(Sample(words["at"], head.started + words["at"], disks, pressed))
    return Recording(head, tuple(samples))


def _is_cut(line: str) -> bool:
    try:
        json_text.read(line)
    except WrongJsonError:
        return True
    return False
