# SPDX-License-Identifier: GPL-2.0
"""The forms of JSON that mqfair writes: their fields, types, units and meanings.

    python3 -m mqfair.manual.json_forms > doc/json.md          the page for people
    python3 -m mqfair.manual.json_forms --schemas FOLDER       a JSON Schema of each form

FORMS is the only source of both. A line of a form has a path, a type and a meaning. In a path,
`[]` is each item of a list and `*` each key of an object. A type is one of TYPES, or the name of
another form. `|null` after a type: the value may be null. `?` after a type: the field may be
absent. The module needs the standard library alone.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TYPES: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "count": {"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
    "number": {"type": "number", "minimum": 0},
    "signed": {"type": "number"},
    # The end is that of the year 9999.
    "time": {"type": "number", "minimum": 0, "maximum": 253402300799},
    "fraction": {"type": "number", "minimum": 0, "maximum": 1},
    "weight": {"type": "integer", "minimum": 1, "maximum": 10000},
    "flag": {"type": "boolean"},
    "setting": {"type": ["integer", "string"]},
    "object": {"type": "object"},
    "list": {"type": "array"},
    "filled": {"type": "array", "minItems": 1},
}


HEAD = """\
# JSON

Every document that `mqfair` writes as JSON names its form in the field `schema`. Fields are added
to a form; a change of a field makes `/2` ([compatibility.md](compatibility.md)). In a path, `[]` is
each item of a list and `*` each key. A field with `?` may be absent. A `count` is an integer
from 0, of 64 bits at most. A `number` is 0 or more, a `signed` number may be negative, and a
`fraction` is a number from 0 to 1. A `weight` is an integer from 1 to 10000. A `time` is a number
of seconds from 1970 to the year 9999. A `filled` list has an item. A `setting` is an integer or a
text.

`python3 -m mqfair.manual.json_forms --schemas FOLDER` writes a JSON Schema of each form. Without
`--schemas` it writes this page. Results of `experiments/` have forms of their own, without a
promise.
"""


@dataclass(frozen=True)
class Form:
    """One form: its name without `mqfair.` and the number, the command that writes it, what it
    is."""

    name: str
    command: str
    about: str
    lines: str
    number: int = 1

    @property
    def schema(self) -> str:
        return f"mqfair.{self.name}/{self.number}"


@dataclass
class Node:
    """A value: its type, and the values that it contains, by key; an item of a list is `[]`."""

    kind: str = "object"
    null: bool = False
    optional: bool = False
    about: str = ""
    children: dict[str, "Node"] = field(default_factory=dict)


_WRITES = """
dry_run flag true if the files were not written
writes list the files of sysfs and cgroupfs, in the order of the writes
writes[] object
writes[].path text the file
writes[].value text what was written
"""
_FIGURES = """
requests count requests
reads count of these, reads
trims count of these, discards
bytes count bytes of all requests
mean_bytes number bytes of a request
median_bytes count bytes of a request
largest_bytes count bytes of a request
seconds number from the first request to the last
iops number requests per second
peak_iops count requests in the busiest second
bytes_per_s number bytes per second
sequential count requests that begin where the one before ended
unaligned count requests that do not begin and end at 4 KiB
end count bytes: the end of the farthest request
"""


def _below(path: str, lines: str) -> str:
    return "".join(f"{path}.{line}\n" for line in lines.split("\n") if line)


_CURVE = """
size_kib count KiB of a request
full_bytes_per_s number bytes per second of the flat part
noise fraction spread of repeated points
tolerance fraction what a point may lack of the flat part
rising flag true if the last point is the best by more than the tolerance
points list the measured points
points[] object
points[].bytes_per_s number bytes per second
"""

FORMS: tuple[Form, ...] = (
    Form(
        "bench",
        "mqfair bench --json FILE, mqfair sim --json FILE",
        "A scheduler is identified by its label, such as mqfq or mqfq:depth=64. Shares are shares"
        " of bytes.",
        """
job text name of the job file
where object the machine or the simulator
where.kernel text? release of the kernel
where.accel text? kvm, tcg, uml, host, sim, or unknown
where.cpus count? processors
where.sockets count? sockets of the simulated machine
where.seed count? seed of the simulation
where.device text? the drive, as the option --device names it
where.drive text? model and firmware of the drive, of mqfair qualify
where.ssd object? parameters of the virtual SSD
where.ssd.* text
where.versions object? version of each program
where.versions.* text
notes list cautions about the figures
notes[] text
runs list one for each scheduler and repeat
runs[] object
runs[].scheduler text label
runs[].repeat count from 0
runs[].total_iops number requests per second of all cgroups
runs[].total_bytes_per_s number bytes per second of all cgroups
runs[].jain fraction Jain's index of share / due
runs[].cgroups filled at least one
runs[].cgroups[] object
runs[].cgroups[].name text
runs[].cgroups[].weight weight
runs[].cgroups[].due fraction share that is due, by demands and weights
runs[].cgroups[].share fraction share of the bytes of this run
runs[].cgroups[].iops number requests per second
runs[].cgroups[].bytes_per_s number bytes per second
runs[].cgroups[].lat_ns object latency in nanoseconds
runs[].cgroups[].lat_ns.mean number
runs[].cgroups[].lat_ns.p50 number
runs[].cgroups[].lat_ns.p99 number
runs[].cgroups[].lat_ns.p999 number
runs[].cgroups[].backlogged flag true if it asks for more than its due
runs[].cgroups[].lat_histogram object? latencies in buckets of 1/16 of an octave, as two lists
runs[].cgroups[].lat_histogram.end_ns list the greatest latency of each bucket in nanoseconds
runs[].cgroups[].lat_histogram.end_ns[] count
runs[].cgroups[].lat_histogram.requests list the requests in each bucket
runs[].cgroups[].lat_histogram.requests[] count
runs[].seed count? seed of this run of the simulation
runs[].tunables object? the scheduler's tunables at the end of a simulated run
runs[].tunables.* setting
runs[].depth object? requests over time, from the start of the jobs, in a simulated run
runs[].depth.interval_ms count milliseconds of an interval
runs[].depth.inside list mean number of requests in driver and drive, for each interval
runs[].depth.inside[] number
runs[].depth.window list? most slots in use at the end of each interval, if the scheduler has one
runs[].depth.window[] count
runs[].pressure object? the part of the time for which each resource of a simulated run works
runs[].pressure.* number
runs[].limit text? where the limit of a simulated run is: drive, CPU, slots or load
runs[].cpu object? work of all processors in the counted time, of mqfair qualify
runs[].cpu.ios count requests that the drive served, of all programs
runs[].cpu.elapsed_us count microseconds
runs[].cpu.busy_us count microseconds of all processors, for tasks and interrupts
runs[].cpu.cycles count?
runs[].cpu.instructions count?
runs[].cpu.context_switches count?
summary list medians over the repeats, and their extremes
summary[] object
summary[].scheduler text label
summary[].worst text the cgroup with the least share / due
summary[].met number|null share / due of `worst`
summary[].total_iops number|null requests per second
summary[].ratio_to_none number|null relative to none in the same repeat; null without none
summary[].jain fraction|null Jain's index; null unless all are backlogged
summary[].min object least of the repeats
summary[].min.met number|null
summary[].min.total_iops number|null requests per second
summary[].min.ratio_to_none number|null
summary[].min.jain fraction|null
summary[].max object greatest of the repeats
summary[].max.met number|null
summary[].max.total_iops number|null requests per second
summary[].max.ratio_to_none number|null
summary[].max.jain fraction|null
solo list? with --solo: each cgroup alone
solo[] object
solo[].scheduler text label
solo[].repeat count from 0
solo[].cgroup text
solo[].alone_bytes_per_s number bytes per second without the others
solo[].shared_bytes_per_s number bytes per second beside the others
solo[].slowdown number|null alone over shared
left_out object? schedulers that could not run
left_out.* text the reason
""",
        2,
    ),
    Form(
        "bench-several",
        "mqfair bench --device A --device B --json FILE",
        "The results of several drives.",
        """
devices list one for each drive
devices[] bench
""",
    ),
    Form(
        "bench-timeline",
        "mqfair bench --timeline FILE, mqfair sim --timeline FILE",
        "Bytes of each cgroup over time.",
        """
device text? the drive, as the option --device names it
interval_ms count milliseconds of an interval
runs list one for each scheduler and repeat
runs[] object
runs[].scheduler text label
runs[].repeat count from 0
runs[].cgroups list
runs[].cgroups[] object
runs[].cgroups[].name text
runs[].cgroups[].bytes list of each interval
runs[].cgroups[].bytes[] count bytes
""",
    ),
    Form(
        "bench-timeline-several",
        "mqfair bench --device A --device B --timeline FILE",
        "The timelines of several drives.",
        """
devices list one for each drive
devices[] bench-timeline
""",
    ),
    Form(
        "check",
        "mqfair check --json",
        "What the machine has, and what keeps weights from having effect.",
        """
device text|null the disk
cgroup text|null the cgroup that was named
in_force flag true if weights have effect
findings list
findings[] object
findings[].severity text ok, note, warn or problem; only a problem keeps a weight out of force
findings[].topic text
findings[].seen text what was found
findings[].where text|null the file or program that shows it
findings[].mend text|null the command that mends it
""",
    ),
    Form(
        "compare",
        "mqfair compare A B --json",
        "Ratios of two results of bench.",
        """
notes list differences of the machines
notes[] text
figures list
figures[] object
figures[].scheduler text the drive or the load, if there are several, and the label
figures[].name text the figure and its unit
figures[].a list value of each repeat of A
figures[].a[] number
figures[].b list value of each repeat of B
figures[].b[] number
figures[].ratio number|null B over A
figures[].low number|null end of the confidence interval, if there is one
figures[].high number|null end of the confidence interval, if there is one
figures[].b_has text more, less, the same, one run, or no interval
""",
    ),
    Form(
        "demo",
        "make demo",
        "The results of the demonstration, in build/demo/result.json.",
        """
results list one for each job file
results[] bench
""",
    ),
    Form(
        "disable",
        "mqfair disable DISK --json",
        "The scheduler that a disk has now.",
        """
device text the disk
scheduler text
previous text the scheduler before
"""
        + _WRITES
        + """
notes list
notes[] text
""",
    ),
    Form(
        "disable-several",
        "mqfair disable DISK DISK --json",
        "The same of several disks.",
        """
devices list one for each disk
devices[] disable
""",
    ),
    Form(
        "enable",
        "mqfair enable DISK --json",
        "The scheduler and the tunables that a disk has now.",
        """
device text the disk
scheduler text
previous text the scheduler before
tunables object each file of queue/iosched/
tunables.* text
nr_requests count|null scheduler tags of a hardware queue
calibration object? with --calibrate
calibration.depth count D
calibration.threshold_kb count|null T in KiB
calibration.threads count that submitted
calibration.hardware_slots count|null tags of the driver
calibration.seconds number that it took
calibration.reasons list how D and T were found
calibration.reasons[] text
calibration.notes list
calibration.notes[] text
calibration.depth_curves list throughput over requests in the drive, for each size
calibration.depth_curves[] object
calibration.depth_curves[].depth count the least that fills the drive
calibration.depth_curves[].points[].depth count requests in the drive
"""
        + _below("calibration.depth_curves[]", _CURVE)
        + """
calibration.threshold_curve object|null throughput over T
calibration.threshold_curve.threshold_kb count KiB
calibration.threshold_curve.points[].threshold_kb count KiB
"""
        + _below("calibration.threshold_curve", _CURVE)
        + _WRITES
        + """
notes list
notes[] text
""",
    ),
    Form(
        "enable-several",
        "mqfair enable DISK DISK --json",
        "The same of several disks.",
        """
devices list one for each disk
devices[] enable
""",
    ),
    Form(
        "fit",
        "mqfair fit FILE --json",
        "A model of a drive, and how far each of its figures is from the input.",
        """
base text the model at which the search began
fill text order in which the drive was written: sequential or random
runs count runs of the simulator
model object fields of the model, as in a file for --device ssd:file=FILE
model.name text
model.* count
figures filled the figures of the input
figures[] object
figures[].place text file, and line or job
figures[].rw text randread, read, randwrite or write
figures[].bytes count bytes of a request
figures[].depth count requests of a process
figures[].jobs count processes
figures[].what text latency_us, p99_us, iops or mb_per_s
figures[].input number in the unit that `what` names
figures[].model number the same of the model
figures[].off_percent signed difference, in percent of the input
""",
    ),
    Form(
        "follow",
        "mqfair follow --once --json",
        "What mqfair.conf and the weights of systemd changed.",
        """
cgroups count cgroups that were read
changes list weights that were carried over
changes[] object
changes[].path text the cgroup
changes[].key text default, or the number of a disk
changes[].old count|null weight before
changes[].new count|null weight now
changes[].source text the file or rule that it comes from
devices list what was done with disks
devices[] text
by_hand list weights that a person set, which stay
by_hand[] object
by_hand[].path text the cgroup
by_hand[].key text default, or the number of a disk
by_hand[].weight count weight in force
by_hand[].wanted count|null weight of the source
by_hand[].source text
"""
        + _WRITES
        + """
errors list
errors[] text
notes list
notes[] text
""",
    ),
    Form(
        "follow-check",
        "mqfair follow --check --json",
        "What the rules of mqfair.conf match now.",
        """
config text the file
mirror flag true if io.weight is carried over
devices list
devices[] object
devices[].place text file and line
devices[].scheduler text
devices[].disks list that match
devices[].disks[] text
weights list
weights[] object
weights[].place text file and line
weights[].weight weight
weights[].cgroups list that match
weights[].cgroups[] text
weights[].disks list? of a rule with device
weights[].disks[] text
""",
    ),
    Form(
        "follow-state",
        "mqfair follow (its file /run/mqfair/follow.json)",
        "The weights that it wrote last.",
        """
mirrored object by cgroup
mirrored.* object by default or the number of a disk
mirrored.*.* count weight
""",
    ),
    Form(
        "lab",
        "mqfair lab --json",
        "How a command ended in a guest.",
        """
status integer exit status of the command
timed_out flag
died flag true if the guest ended before the command
stdout text
stderr text
dmesg text messages of the guest's kernel
console text
out_dir text|null folder with the files that the command left
kernel text release
accel text kvm, tcg or uml
boot_s number seconds
wall_s number seconds
""",
    ),
    Form(
        "latency",
        "mqfair latency CGROUP --json",
        "The latency goals of a cgroup.",
        """
cgroup text
device text|null the disk that was named
goals object by number of a disk: the words of io.mqfair.latency
goals.* object
goals.*.* text
"""
        + _WRITES,
    ),
    Form(
        "metrics",
        "mqfair metrics --json",
        "The metrics that Prometheus reads.",
        """
metrics list
metrics[] object
metrics[].name text with its unit
metrics[].type text gauge or counter
metrics[].labels object
metrics[].labels.* text
metrics[].value signed
""",
    ),
    Form(
        "qualify",
        "mqfair qualify DISK",
        "The measurements of one drive, in qualify.json of its folder.",
        """
drive object from sysfs, without a serial number
drive.model text|null
drive.firmware text|null
drive.transport text|null of an NVMe drive, such as pcie
drive.bytes count size of the drive
drive.rotational flag true for a hard disk
drive.logical_block_bytes count bytes
drive.write_cache text|null write back or write through
drive.hardware_queues count queues for ordinary I/O
drive.hardware_depth count|null slots of a hardware queue
kernel text release of the kernel
processor text name of the processor
cpus count processors
destructive flag true if the drive was written to
repeat count runs of each scheduler
runtime_s number seconds that are counted in each run
notes list cautions about the figures
notes[] text
benches filled one for each load
benches[] bench
""",
    ),
    Form(
        "record",
        "mqfair record --out FILE",
        "The first line of the file. Each other line is a sample: `at` (seconds since the first)"
        " and `disks`, by name: `number`, `scheduler`, `state`, `ios`, `bytes`, `in_flight`,"
        " `tunables`, `flows` (the figures of each cgroup that changed) and `gone` (cgroups that"
        " ended). `pressure` has `some_us` and `full_us` of io.pressure for each cgroup where they"
        " changed, and null for a cgroup that ended.",
        """
started time of the first sample
interval_s number seconds between two samples
kernel text release
version text of mqfair
""",
    ),
    Form(
        "record-summary",
        "mqfair record --out FILE --json",
        "What was recorded.",
        """
file text
samples count
disks list names
disks[] text
cgroups count with I/O
""",
    ),
    Form(
        "record-trace",
        "mqfair record --trace --out FILE --json",
        "What was recorded.",
        """
file text
requests count
bytes count
seconds number from the first request to the last
cgroups list
cgroups[] text
without_data count requests without data
lost count events that the kernel dropped
""",
    ),
    Form(
        "report",
        "mqfair report FILE --json",
        "The files that were written.",
        """
files list recordings that were read
files[] text
html text|null
csv text|null
""",
    ),
    Form(
        "status",
        "mqfair status --json",
        "Disks, their schedulers, and shares since the switch to the scheduler.",
        """
devices list
devices[] object
devices[].device text the disk
devices[].number text major:minor
devices[].scheduler text|null
devices[].available list schedulers
devices[].available[] text
devices[].ours flag true if the scheduler is one of mqfair
devices[].queues count|null hardware queues
devices[].nr_requests count|null scheduler tags of a hardware queue
devices[].tunables object each file of queue/iosched/
devices[].tunables.* text
devices[].cgroups list
devices[].cgroups[] object
devices[].cgroups[].cgroup text
devices[].cgroups[].weight count|null
devices[].cgroups[].share_ppm count|null share by weight among those active, in millionths
devices[].cgroups[].due_ppm count|null part of the work that is due now, in millionths
devices[].cgroups[].part_ppm count|null part of the work done, by cost, in millionths
devices[].cgroups[].bytes count|null bytes since the switch to the scheduler
devices[].cgroups[].ios count|null requests since the switch to the scheduler
devices[].cgroups[].wait_us count|null microseconds: the sum of all waits outside the drive
devices[].cgroups[].p50_us count|null microseconds from insert to completion, in the last seconds
devices[].cgroups[].p99_us count|null microseconds from insert to completion, in the last seconds
devices[].cgroups[].short_ms count|null milliseconds for which it was short
devices[].cgroups[].slowdown_percent count|null latency in the drive beside the least one
devices[].cgroups[].cost_inside count|null cost of its requests in the drive
""",
    ),
    Form(
        "top",
        "mqfair top --once --json",
        "One interval. Without --once, a line for each interval.",
        """
disks list
disks[] object
disks[].device text
disks[].number text major:minor
disks[].scheduler text
disks[].ours flag true if the scheduler is one of mqfair
disks[].iops number requests per second
disks[].bytes_per_s number bytes per second
disks[].in_flight count|null requests in the drive
disks[].depth text|null D
disks[].threshold_kb text|null T in KiB
disks[].window count|null most requests that isolation lets into the drive
disks[].loss_permille count|null part of the work that isolation gives up, in thousandths
disks[].met_ppm count|null least part of what it asks for that a cgroup gets, in millionths
disks[].cgroups list
disks[].cgroups[] object
disks[].cgroups[].cgroup text
disks[].cgroups[].own flag true if its own processes have I/O beside its children
disks[].cgroups[].depth count levels below the first
disks[].cgroups[].weight count|null
disks[].cgroups[].due_ppm count|null share of the work that is due, in millionths
disks[].cgroups[].achieved_ppm count|null part of the work done, by cost, in millionths
disks[].cgroups[].iops number requests per second
disks[].cgroups[].bytes_per_s number bytes per second
disks[].cgroups[].waiting_x100 count|null hundredths of a request that wait, mean
disks[].cgroups[].inside_x100 count|null hundredths of a request in the drive, mean
disks[].cgroups[].wait_us number|null microseconds in the scheduler, mean
disks[].cgroups[].service_us number|null microseconds in the drive, mean
disks[].cgroups[].p50_us count|null microseconds from insert to completion, in the last seconds
disks[].cgroups[].p99_us count|null microseconds from insert to completion, in the last seconds
disks[].cgroups[].slowdown_percent count|null latency in the drive beside the least one
disks[].cgroups[].short_ms count|null milliseconds for which it was short
disks[].cgroups[].goal_us number|null microseconds of its latency goal
disks[].cgroups[].pressure_some_ppm count|null part of the time for which some task waited for I/O
disks[].cgroups[].pressure_full_ppm count|null part of the time for which all tasks waited for I/O
""",
        2,
    ),
    Form(
        "trace",
        "mqfair trace FILE --json",
        "What a trace of requests contains.",
        "format text\nlines_without_data count lines that are no requests\n"
        + _FIGURES
        + "sources object? the same of each source\nsources.* object\n"
        + _below("sources.*", _FIGURES),
    ),
    Form(
        "weight",
        "mqfair weight CGROUP --json",
        "The weights of a cgroup.",
        """
cgroup text
device text|null the disk that was named
weight count|null weight in force
default count|null weight without a disk
devices object by number of a disk
devices.* count weight
"""
        + _WRITES,
    ),
)


BY_NAME = {form.name: form for form in FORMS}


def _cut(lines: str) -> Iterator[tuple[str, str, str]]:
    """Path, type and meaning of each line."""
    for line in filter(None, lines.split("\n")):
        path, kind, *about = line.split(" ", 2)
        yield path, kind, about[0] if about else ""


def tree(form: Form) -> Node:
    """The root of @form's values."""
    root = node_of(form.lines)
    schema = Node("text", about=f"`{form.schema}`")
    return Node(children={"schema": schema, **root.children})


def node_of(lines: str) -> Node:
    """The root of the values that the @lines of a form state."""
    root = Node()
    for path, kind, about in _cut(lines):
        node = root
        for key in re.findall(r"\[\]|[^.\[]+", path):
            node = node.children.setdefault(key, Node())
        node.optional = kind.endswith("?")
        name, _, null = kind.removesuffix("?").partition("|")
        node.kind, node.null, node.about = name, null == "null", about
    return root


def _rule(node: Node) -> dict[str, Any]:
    if node.kind not in TYPES:
        return _rule(tree(BY_NAME[node.kind]))
    rule = dict(TYPES[node.kind])
    if node.null:
        rule["type"] = [rule["type"], "null"]
    if node.about:
        rule["description"] = node.about
    children = dict(node.children)
    if node.kind in ("list", "filled"):
        rule["items"] = _rule(children["[]"])
    elif node.kind == "object":
        other = children.pop("*", None)
        rule["properties"] = {key: _rule(child) for key, child in children.items()}
        rule["required"] = [key for key, child in children.items() if not child.optional]
        rule["additionalProperties"] = _rule(other) if other else False
    return rule


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of the form @name, such as `bench`. Raises KeyError if there is none."""
    form = BY_NAME[name]
    rule = _rule(tree(form))
    rule["properties"]["schema"] = {"const": form.schema}
    return {"$schema": DIALECT, "title": form.schema, "description": form.about, **rule}


def page() -> str:
    """The text of doc/json.md."""
    parts = [*HEAD.splitlines(), "", "| form | written by |", "|---|---|"]
    parts += [f"| [{form.schema}](#{_anchor(form)}) | `{form.command}` |" for form in FORMS]
    for form in FORMS:
        parts += ["", f"## {form.schema}", "", form.about, "", "| field | type | meaning |"]
        parts += ["|---|---|---|"]
        parts += [
            f"| `{path}` | {_as_words(kind)} | {about} |" for path, kind, about in _cut(form.lines)
        ]
    return "\n".join(parts) + "\n"


def _anchor(form: Form) -> str:
    return re.sub(r"[^a-z0-9-]", "", form.schema)


def _as_words(kind: str) -> str:
    bare = kind.removesuffix("?")
    words = bare.replace("|", " or ")
    if bare.partition("|")[0] not in TYPES:
        words = f"as `{BY_NAME[bare].schema}`"
    return words + " ?" * (kind != bare)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mqfair.manual.json_forms", description="doc/json.md")
    parser.add_argument("--schemas", metavar="FOLDER", help="write JSON Schemas there")
    args = parser.parse_args(argv)
    if args.schemas is None:
        print(page(), end="")
        return 0
    folder = Path(args.schemas)
    folder.mkdir(parents=True, exist_ok=True)
    for form in FORMS:
        text = json.dumps(schema(form.name), indent=2) + "\n"
        (folder / f"{form.name}.schema.json").write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
