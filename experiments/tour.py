# SPDX-License-Identifier: GPL-2.0
"""A transcript of mqfair on a Debian machine: doc/tour.md.

    python3 -m experiments.tour --machine debian12
    python3 -m experiments.tour --machine debian13
    python3 -m experiments.tour --render        # write the document again from the results

Runs the commands of tour_steps.py one by one: in a guest with systemd and udev, and those of DKMS
in a chroot of its machine. The results stay in the folder of --results, one file for each machine.
The document has the commands with the outputs of the first machine, and a table of all machines.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lab
from experiments import tour_guest
from experiments.tour_steps import DISK, Section, sections
from lab import debian
from lab.errors import LabError
from mqfair import __version__
from mqfair.text.errors import Failure

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build/tour"
DOCUMENT = ROOT / "doc/tour.md"
SCHEMA = "mqfair.tour/1"
# The folder of the packages in the machine, where each command starts.
FOLDER = "/srv"
IOPS = 500
CPUS = 2
AROUND = "RELEASE"
GUEST_S = 5400.0
P99 = re.compile(r"percentiles \((\w+)\).*?99\.00th=\[\s*(\d+)\]", re.DOTALL)
UNITS_MS = {"nsec": 1e-6, "usec": 1e-3, "msec": 1.0, "sec": 1e3}

Result = dict[str, Any]
Step = dict[str, Any]
Record = dict[str, Any]


def later_than(version: str) -> str:
    head, _, last = version.rpartition(".")
    return f"{head}.{int(last) + 1}"


# -- the run


def build_packages(folder: Path, this: str, later: str) -> list[Path]:
    """The packages of both versions. The command and the module are enough; the virtual SSD is
    another tour."""
    for version in (this, later):
        argv: list[str | Path] = [
            ROOT / "packaging/deb",
            "--no-lint",
            "--version",
            version,
            "--out",
            folder / version,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(done.stderr.strip())
    return [one for one in sorted(folder.glob("*/*.deb")) if "-ssd-" not in one.name]


def parts(found: Sequence[Section]) -> Iterator[list[Section]]:
    """Neighbouring sections that run in the same place."""
    now: list[Section] = []
    for section in found:
        if now and now[-1].chroot != section.chroot:
            yield now
            now = []
        now.append(section)
    if now:
        yield now


def results_of(output: str) -> list[Result]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def merged(found: Sequence[Section], results: Sequence[Result]) -> list[dict[str, Any]]:
    """The sections with the result of each step that has one. So a record stays whole if the tour
    changes."""
    left = iter(results)
    return [
        {
            "title": section.title,
            "intro": section.intro,
            "steps": [
                {**asdict(step), "result": result}
                for step, result in zip(section.steps, left, strict=False)
            ],
        }
        for section in found
    ]


def run(name: str, folder: Path, only: str) -> Record:
    """Runs the tour on the machine @name: the sections with titles in which @only is found, and the
    installation."""
    this, later = __version__, later_than(__version__)
    folder.mkdir(parents=True, exist_ok=True)
    packages = build_packages(folder, this, later)
    shutil.copy2(str(tour_guest.__file__), folder / "tour_guest.py")
    record: Record = {"schema": SCHEMA, "machine": name, "this": this, "later": later}
    record["iops"] = IOPS
    results: list[Result] = []
    with debian.changed(name, [folder]) as machine:
        for package in packages:
            shutil.copy2(package, machine.root / FOLDER.lstrip("/"))
        chosen = [one for one in sections(this, later) if one.first or re.search(only, one.title)]
        for part in parts(chosen):
            commands = folder / "commands.json"
            commands.write_text(
                json.dumps([one.command for section in part for one in section.steps])
            )
            program = [
                "/usr/bin/python3",
                "-B",
                str(folder / "tour_guest.py"),
                str(commands),
                FOLDER,
            ]
            if part[0].chroot:
                status, output = machine.call(*program)
                if status:
                    raise Failure(output)
                # The kernel around a chroot is no part of the machine.
                results += results_of(output.replace(os.uname().release, AROUND))
            else:
                results += in_guest(machine, folder, program, record)
    record["missing"] = sum(len(section.steps) for section in chosen) - len(results)
    return {**record, "sections": merged(chosen, results)}


def in_guest(
    machine: debian.Machine, folder: Path, program: Sequence[str], record: Record
) -> list[Result]:
    spec = lab.GuestSpec(
        cpus=CPUS,
        memory_mb=3072,
        drives=(lab.Drive(size=1 << 30, iops=IOPS),),
        machine=str(machine.base),
        timeout_s=GUEST_S,
        host_dirs=(lab.HostDir(folder, read_only=True),),
    )
    output = bytearray()

    def sink(stream: str, data: bytes) -> None:
        if stream == "stdout":
            output.extend(data)
            for line in data.decode(errors="replace").splitlines():
                say(line)

    done = lab.run(spec, list(program), sink=sink)
    record.update(
        kernel=done.kernel, accel=done.accel, boot_s=done.boot_s, wall_s=done.wall_s,
        trouble=done.trouble(), dmesg=done.dmesg,
    )  # fmt: skip
    return results_of(output.decode(errors="replace"))


def say(line: str) -> None:
    """The progress: the command and its time, for a whole line of results."""
    try:
        one = json.loads(line)
        print(f"{one['seconds']:7.1f} s  {one['status']:3}  {one['command'][:80]!r}", flush=True)
    except (ValueError, KeyError, TypeError):
        pass


# -- the judgement


def wrong(step: Step) -> str | None:
    """The reason why the result of a step is not that of a right tour; None for a right one."""
    result = step["result"]
    if step["status"] is not None and result["status"] != step["status"]:
        return f"exit status {result['status']}, not {step['status']}"
    lines = result["output"].splitlines()
    if step["mistake"] and (len(lines) != 1 or not lines[0].startswith("mqfair: ")):
        return f"{len(lines)} lines in place of one that begins with mqfair:"
    if step["expect"] and not re.search(step["expect"], result["output"]):
        return f"no {step['expect']!r} in the output"
    return None


def steps_of(record: Record) -> list[Step]:
    return [step for section in record["sections"] for step in section["steps"]]


def judge(record: Record) -> list[str]:
    """The failures of a run, as lines."""
    failures = [
        f"{step['command'].splitlines()[0]}: {reason}"
        for step in steps_of(record)
        if (reason := wrong(step))
    ]
    if record["missing"]:
        failures.append(f"{record['missing']} commands did not run: {record.get('trouble')}")
    times = p99_ms(record)
    if len(turns(record)) > 1 and (len(times) != 2 or times[1] >= times[0]):
        failures.append(f"p99 of db in ms, before and after: {times}")
    return failures


def turns(record: Record) -> list[str]:
    """The output of each step that prints db's percentiles: all runs of fio in the journal."""
    return [one["result"]["output"] for one in steps_of(record) if "99.00th" in one["command"]]


def p99_ms(record: Record) -> list[float]:
    """The p99 of db without mqfair and with it, as fio has it in the journal; or less."""
    texts = turns(record)
    found = re.findall(
        r"percentiles \((\w+)\).*?99\.00th=\[\s*(\d+)\]", texts[-1] if texts else "", re.S
    )
    times = [UNITS_MS[unit] * int(number) for unit, number in found]
    return [times[0], times[-1]] if len(times) > 1 else times


# -- the document

HEAD = """\
# A tour

This is a transcript. `python3 -m experiments.tour --machine {machine}` has run each command
below and written its output and exit status. The machine is a Debian {suite} with systemd and udev,
in a guest with {cpus} emulated processors, beside other work. Its disk `/dev/{disk}` does {iops}
requests a second. Each command runs as root in `{folder}`.

DKMS compiles, and an emulated processor takes long for that. So the commands of the first and the
last section ran in a chroot of the same machine, where the processor is not emulated. All others
ran in the guest. `{around}` stands for the kernel around the chroot.
"""
TABLE = """\
## Machines

The command makes a column for each `--machine` on which it runs. With `--only` it runs a part of
the sections.
"""


def shown(output: str, most: int) -> list[str]:
    """The lines of @output as a terminal shows them, where a carriage return begins a line anew.
    Lines in the middle are left out if there are more than @most."""
    whole = output.expandtabs().rstrip().split("\n") if output.strip() else []
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in whole]
    if len(lines) > most:
        left = len(lines) - most
        head = most // 2
        lines = [*lines[:head], f"[… {left} lines …]", *lines[len(lines) - most + head :]]
    return lines


def block(step: Step) -> list[str]:
    command = step["command"].splitlines()
    result = step["result"]
    lines = [f"$ {command[0]}", *command[1:], *shown(result["output"], step["lines"])]
    lines.append(f"[status {result['status']}, {result['seconds']:.1f} s]")
    return ["```text", *(line.rstrip() for line in lines), "```"]


def wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 98:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def document(records: Sequence[Record]) -> str:
    first = records[0]
    head = HEAD.format(
        machine=first["machine"],
        suite=suite(first),
        cpus=CPUS,
        disk=DISK,
        iops=first["iops"],
        folder=FOLDER,
        around=AROUND,
    )
    lines = head.splitlines()
    for section in first["sections"]:
        lines += ["", f"## {section['title']}", ""]
        if section["intro"]:
            lines += [*wrapped(section["intro"]), ""]
        for step in section["steps"]:
            lines += [*wrapped(step["text"]), "", *block(step), ""]
        lines.pop()
    lines += ["", *TABLE.splitlines(), "", *comparison(records)]
    return "\n".join(lines) + "\n"


def suite(record: Record) -> str:
    return str(record["machine"]).removeprefix("debian")


def comparison(records: Sequence[Record]) -> list[str]:
    header = ["", *(f"Debian {suite(one)}" for one in records)]
    rows = [
        ["kernel", *(one["kernel"] for one in records)],
        ["requests a second of the disk", *(str(one["iops"]) for one in records)],
        ["p99 of db without mqfair", *(p99_shown(one, 0) for one in records)],
        ["p99 of db with mqfair", *(p99_shown(one, -1) for one in records)],
        ["sections of the tour", *(str(len(one["sections"])) for one in records)],
        ["start of the guest", *(f"{one['boot_s']:.0f} s" for one in records)],
        ["all of the guest", *(f"{one['wall_s']:.0f} s" for one in records)],
        ["commands with the expected status", *map(counted, records)],
    ]
    return ["| " + " | ".join(row) + " |" for row in [header, ["---"] * len(header), *rows]]


def p99_shown(record: Record, number: int) -> str:
    times = p99_ms(record)
    return f"{times[number]:.1f} ms" if times else "-"


def counted(record: Record) -> str:
    steps = steps_of(record)
    return f"{sum(wrong(step) is None for step in steps)} of {len(steps) + record['missing']}"


def write(folder: Path, file: Path) -> None:
    found = [folder / f"{name}.json" for name in debian.MACHINES]
    records = [json.loads(one.read_text()) for one in found if one.exists()]
    if not records:
        raise Failure(
            f"{folder} has no results: run this with --machine {next(iter(debian.MACHINES))}"
        )
    file.write_text(document(records))
    print(f"{file}: {', '.join(one['machine'] for one in records)}")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="experiments.tour", description=__doc__)
    found.formatter_class = argparse.RawDescriptionHelpFormatter
    chosen = found.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--machine", choices=tuple(debian.MACHINES), help="machine to run on")
    chosen.add_argument("--render", action="store_true", help="write the document again")
    found.add_argument("--only", default="", metavar="REGEX", help="run these sections alone")
    found.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    found.add_argument("--document", type=Path, default=DOCUMENT, help="document to write")
    return found


def main() -> int:
    args = parser().parse_args()
    failures: list[str] = []
    try:
        if args.machine:
            record = run(args.machine, args.results.absolute() / args.machine, args.only)
            (args.results / f"{args.machine}.json").write_text(json.dumps(record, indent=1) + "\n")
            failures = judge(record)
        write(args.results, args.document)
    except (Failure, LabError) as error:
        print(f"experiments.tour: {error}", file=sys.stderr)
        return 1
    for line in failures:
        print(f"experiments.tour: {line}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
