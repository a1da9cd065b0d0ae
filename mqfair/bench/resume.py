# SPDX-License-Identifier: GPL-2.0
"""A bench that was ended before its last run, and goes on in the folder of its raw results.

The folder has the plan, and a folder for each run. A run is finished once its record is there and
whole: the runner writes it last and in one step, but a power cut may leave an empty file. So a
bench can go on after an interruption, after a failure, and after a machine that was switched off.
The plan must be the same but for the number of repeats: a greater one adds runs behind the others.
"""

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mqfair.bench.plan import PLAN, RECORD, Plan, write_plan
from mqfair.manual.json_check import load
from mqfair.manual.json_forms import Node, node_of
from mqfair.text.errors import Failure, UsageError

# The options that a part of the plan comes from.
_OPTIONS: Mapping[str, str] = {
    "cases": "the job file or --runtime",
    "schedulers": "--schedulers",
    "device": "--device",
    "solo": "--solo",
    "nr_requests": "--nr-requests",
    "patience": "--icount",
    "module": "--module",
    "tunables": "--tunable",
    "calibrate_s": "--calibrate",
}
_ANY = Node()
_PLAN = node_of("repeat count")
MACHINE = "machine.json"
_MACHINE = node_of("""
kernel text
cpus count|null
fio text
python text
disk text
iocost_model object|null
calibration object|null
left_out object
left_out.* text
ssd object|null
module text|null
uncounted text?
""")
# The parts of a machine's record on which all figures depend.
_DECISIVE = ("kernel", "cpus", "fio", "disk", "module")
_LOG = "kernel.log"
_LOST = "kernel-lost.log"


def finished(folder: Path) -> int:
    """The number of finished runs in the folder of raw results."""
    return sum(_document(path) is not None for path in folder.glob(f"[0-9]*/{RECORD}"))


def run_folder(folder: Path, number: int) -> Path:
    return folder / f"{number:03d}"


def is_finished(folder: Path, number: int) -> bool:
    return _document(run_folder(folder, number) / RECORD) is not None


def has_begun(folder: Path) -> bool:
    """Whether a bench has begun in @folder, perhaps one with a plan that a user has deleted."""
    return (folder / PLAN).exists() or finished(folder) > 0


def _document(path: Path, form: Node = _ANY) -> dict[str, Any] | None:
    """The document @path; None if it is absent or damaged. One that was cut short is no JSON."""
    try:
        return dict(load(path, form, ""))
    except (FileNotFoundError, Failure):
        return None


def _before(path: Path, form: Node, what: str) -> dict[str, Any] | None:
    """The document @path, which has @what of the part before; None if it is absent. A damaged one
    is as good as absent if no run is finished. Otherwise it raises UsageError."""
    found = _document(path, form)
    if found is None and path.exists() and finished(path.parent):
        raise UsageError(
            f"--resume: {path} is damaged, so {what} of the finished runs is not known: delete the"
            " file if it is the same now, or use a new folder"
        )
    return found


def begin(plan: Plan, folder: Path) -> None:
    """Writes @plan to @folder. If a bench has begun there, it must be the same one, and its
    unfinished runs are removed. Raises UsageError for another one."""
    before = _before(folder / PLAN, _PLAN, "the command line")
    differing = _differing(before, plan) if before else []
    if differing:
        raise UsageError(
            f"--resume: the bench in {folder} had another value of {', '.join(differing)}: use the"
            " same command line, or a new folder"
        )
    machine_before(folder)
    write_plan(plan, folder / PLAN)
    for one in folder.glob("[0-9]*"):
        if _document(one / RECORD) is None:
            shutil.rmtree(one)


def _differing(before: Mapping[str, Any], plan: Plan) -> list[str]:
    now = json.loads(json.dumps(dataclasses.asdict(plan)))
    found = [words for name, words in _OPTIONS.items() if before.get(name) != now[name]]
    return [*found, "--repeat"] if before.get("repeat", 0) > plan.repeat else found


def keep_log(folder: Path) -> None:
    """Keeps the kernel log of the part before this one. A guest that was killed left none."""
    log = folder / _LOG
    if log.exists():
        log.rename(folder / f"kernel-{len(list(folder.glob('kernel*.log')))}.log")
    elif finished(folder):
        (folder / _LOST).touch()


def kernel_logs(folder: Path) -> Iterator[str]:
    """The kernel logs of all parts of a bench."""
    for path in sorted(folder.glob("kernel*.log")):
        yield path.read_text()


def log_is_missing(folder: Path) -> bool:
    """Whether a part of the bench has left no kernel log."""
    return (folder / _LOST).exists() or not (folder / _LOG).exists()


def machine_before(folder: Path) -> Mapping[str, Any] | None:
    """The record of the machine that an earlier part of the bench left in @folder. Raises
    UsageError for a damaged one."""
    return _before(folder / MACHINE, _MACHINE, "the machine")


def machine_of(folder: Path) -> Mapping[str, Any]:
    """The record of the machine that the runner left in @folder. Raises Failure."""
    return dict(load(folder / MACHINE, _MACHINE, "remove it, and add --resume"))


def require_same_machine(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises UsageError if the finished runs were made under other conditions."""
    for name in _DECISIVE:
        if before[name] != now[name]:
            raise UsageError(
                f"--resume: {name} was {_word(before[name])} in the finished runs and is"
                f" {_word(now[name])} now: restore it, or use a new folder"
            )


def _word(value: object) -> str:
    return "absent" if value is None else str(value).strip()
