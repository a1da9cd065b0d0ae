# SPDX-License-Identifier: GPL-2.0
"""fio job files with one cgroup per section.

``cgroup=`` and ``cgroup_weight=`` are fio's own keys, but fio supports only cgroup v1 and weights
of 100..1000. This module removes them, and the keys of fio_keys.py that would change the
measurement. All other options reach fio unchanged. A section gives an inner cgroup's weight if it
has no rw, or if its cgroup has children and its rw comes from [global].
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mqfair.bench.fio_keys import (
    ABSORBED,
    BARRIERS,
    ENGINES_REFUSED,
    NEEDS,
    REFUSED,
    REPLACED,
    is_off,
)
from mqfair.machine.cgroup import WEIGHT_DEFAULT, WEIGHT_MAX, WEIGHT_MIN
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import nearest, shortened

RAMP_DEFAULT_S = 1.0
RUNTIME_DEFAULT_S = 5.0
# Of one run: a week. Each I/O of a run is logged, so memory ends sooner.
RUNTIME_MOST_S = 604_800.0

GLOBAL = "global"

RW_KEYS = ("rw", "readwrite")
# A section with one of them does I/O.
_IO_KEYS = (*RW_KEYS, "read_iolog")

_NAME = re.compile(r"[\w:@-][\w:@.-]*")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_TIME_UNITS_S = {
    "s": 1.0,
    "sec": 1.0,
    "ms": 1e-3,
    "msec": 1e-3,
    "us": 1e-6,
    "usec": 1e-6,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}


@dataclass(frozen=True)
class Option:
    key: str
    value: str | None
    line: int

    def __str__(self) -> str:
        return self.key if self.value is None else f"{self.key}={self.value}"


@dataclass(frozen=True)
class Section:
    """One job section. @inherited are the [global] options before it, @own its own."""

    name: str
    line: int
    inherited: tuple[Option, ...]
    own: tuple[Option, ...]

    def option(self, *keys: str) -> Option | None:
        """The last option with one of @keys, which is the one that fio uses."""
        found = [option for option in (*self.inherited, *self.own) if option.key in keys]
        return found[-1] if found else None

    def has_own(self, *keys: str) -> bool:
        return any(option.key in keys for option in self.own)


@dataclass(frozen=True)
class Job:
    """One section: its options for fio, and the seconds that it does I/O. @delayed means that it
    has a startdelay. @section has all its options as they are in the file, with their lines."""

    name: str
    options: tuple[str, ...]
    runtime_s: float
    delayed: bool
    section: Section


@dataclass(frozen=True)
class Group:
    """A cgroup that does I/O."""

    name: str
    weight: int
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class JobFile:
    """@weights has all cgroups, inner ones included; @notes name the options that were replaced.
    The job runs under @schedulers, or under all of the bench."""

    path: str
    groups: tuple[Group, ...]
    weights: Mapping[str, int]
    ramp_s: float
    notes: tuple[str, ...] = ()
    schedulers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.path).stem

    @property
    def window_s(self) -> float:
        """The seconds in which all jobs run."""
        return min(job.runtime_s for group in self.groups for job in group.jobs)

    @property
    def longest_s(self) -> float:
        return max(job.runtime_s for group in self.groups for job in group.jobs)


@dataclass
class _Draft:
    """A cgroup while the file is read."""

    line: int
    weight: Option | None = None
    jobs: list[Section] = field(default_factory=list)


def load(path: str, runtime_s: float | None = None, only: Sequence[str] = ()) -> JobFile:
    """Reads the job file at @path; raises UsageError with file and line.

    @runtime_s replaces the longest runtime; shorter ones keep their proportion to it. @only are the
    names of the sections that run; all of them for none.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {os.strerror(error.errno or 0)}: name a fio job file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not text: name a fio job file") from error
    return parse(text, path, runtime_s, only)


def parse(
    text: str, path: str, runtime_s: float | None = None, only: Sequence[str] = ()
) -> JobFile:
    """load() for a @text; @path is its name in messages and results."""
    sections = list(_sections(text, path))
    if not sections:
        raise UsageError(f"{path}: no job section: add one such as [a] with cgroup=a")
    sections = _chosen(sections, only, path)
    for number, section in enumerate(sections):
        _require_measurable(section, path, first=number == 0)
    drafts = _drafts(sections, path)
    jobs = {name: draft.jobs for name, draft in drafts.items() if draft.jobs}
    if not jobs:
        raise UsageError(f"{path}: no section does I/O: add rw= to one")
    _check_tree(drafts, path)
    weights = _weights(drafts, path)
    used = [section for members in jobs.values() for section in members]
    scale = _scale(used, path, runtime_s)
    groups = tuple(
        Group(name, weights[name], tuple(_job(section, path, scale) for section in members))
        for name, members in jobs.items()
    )
    return JobFile(path, groups, weights, _ramp_s(used, path), tuple(_notes(used, path)))


def _chosen(sections: list[Section], only: Sequence[str], path: str) -> list[Section]:
    """The sections with the names @only, in the order of the file; all for none."""
    names = [section.name for section in sections]
    for name in only:
        if name not in names:
            known = dict.fromkeys(names)
            mend = nearest(name, known) or f"use one of {', '.join(known)}"
            raise UsageError(f"--section {name}: {path} has no section of this name: {mend}")
    return [section for section in sections if not only or section.name in only]


def _require_measurable(section: Section, path: str, *, first: bool) -> None:
    """Raises UsageError for an option that would make the results those of something else. A
    barrier has no effect in the @first section that runs."""
    for key, mend in REFUSED.items():
        option = section.option(key)
        if option is None or is_off(key, option.value) or (first and key in BARRIERS):
            continue
        if key in NEEDS and section.option(NEEDS[key]) is None:
            continue
        raise UsageError(f"{path}:{option.line}: {key} is not supported: {mend}")
    engine = section.option("ioengine")
    name = (engine.value or "") if engine else ""
    if engine and name in ENGINES_REFUSED:
        raise UsageError(f"{path}:{engine.line}: {engine}: {ENGINES_REFUSED[name]}")


def _sections(text: str, path: str) -> Iterator[Section]:
    shared: list[Option] = []
    name: str | None = None
    opened_at = 0
    inherited: tuple[Option, ...] = ()
    own: list[Option] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.split(r"[;#]", raw, maxsplit=1)[0].strip()
        if not line:
            continue
        if line.startswith("["):
            if name is not None and name != GLOBAL:
                yield Section(name, opened_at, inherited, tuple(own))
            name, opened_at = _header(line, f"{path}:{number}"), number
            inherited, own = tuple(shared), []
            continue
        if name is None:
            raise UsageError(
                f"{path}:{number}: '{shortened(line)}' is before the first [section]:"
                " move it into one"
            )
        option = _option(line, number, f"{path}:{number}")
        (shared if name == GLOBAL else own).append(option)
    if name is not None and name != GLOBAL:
        yield Section(name, opened_at, inherited, tuple(own))


def _header(line: str, place: str) -> str:
    name = line[1:-1].strip()
    if not line.endswith("]") or not name:
        raise UsageError(f"{place}: '{line}' is not a section header: write [name]")
    return name


def _option(line: str, number: int, place: str) -> Option:
    words = line.split(None, 1)
    if words[0] == "include" and len(words) > 1:
        raise UsageError(f"{place}: include is not supported: {REFUSED['include']}")
    key, equals, value = (part.strip() for part in line.partition("="))
    if equals and not value:
        raise UsageError(f"{place}: {key} has no value: write {key}=VALUE")
    return Option(key, _expand(value, place) if equals else None, number)


def _expand(value: str, place: str) -> str:
    """@value with variables of the environment, which fio in a guest would not have."""

    def variable(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise UsageError(f"{place}: environment variable {match[1]} is not set: export it")
        return found

    return _VARIABLE.sub(variable, value)


def _drafts(sections: list[Section], path: str) -> dict[str, _Draft]:
    named = [(section, _cgroup_name(section, path)) for section in sections]
    drafts: dict[str, _Draft] = {}
    for section, name in named:
        draft = drafts.setdefault(name, _Draft(section.line))
        _take_weight(draft, section, name, path)
        inner = any(other.startswith(f"{name}/") for _, other in named)
        does_io = section.has_own(*_IO_KEYS) if inner else section.option(*_IO_KEYS) is not None
        if does_io:
            draft.jobs.append(section)
    return drafts


def _cgroup_name(section: Section, path: str) -> str:
    option = section.option("cgroup")
    if option is None or option.value is None:
        raise UsageError(
            f"{path}:{section.line}: section [{section.name}] has no cgroup=:"
            f" add one such as cgroup={section.name}"
        )
    parts = option.value.split("/")
    if not all(_NAME.fullmatch(part) and not part.startswith("cgroup.") for part in parts):
        raise UsageError(
            f"{path}:{option.line}: cgroup={option.value}: write a name such as web or prod/web,"
            " of letters, digits and _ - . : @"
        )
    return option.value


def _take_weight(draft: _Draft, section: Section, name: str, path: str) -> None:
    option = section.option("cgroup_weight")
    if option is None:
        return
    if draft.weight is not None and draft.weight.value != option.value:
        raise UsageError(
            f"{path}:{option.line}: cgroup {name} has weight {option.value} here and"
            f" {draft.weight.value} on line {draft.weight.line}: give it one weight"
        )
    draft.weight = option


def _check_tree(drafts: Mapping[str, _Draft], path: str) -> None:
    for name, draft in drafts.items():
        children = [other for other in drafts if other.startswith(f"{name}/")]
        if draft.jobs and children:
            raise UsageError(
                f"{path}:{draft.jobs[0].line}: cgroup {name} does I/O and contains {children[0]}:"
                f" in cgroup v2 only leaves do I/O; use cgroup={name}/{draft.jobs[0].name}"
            )
        if not draft.jobs and not children:
            raise UsageError(
                f"{path}:{draft.line}: no section in cgroup {name} does I/O:"
                f" add rw=, or a section below {name}/"
            )


def _weights(drafts: Mapping[str, _Draft], path: str) -> dict[str, int]:
    weights: dict[str, int] = {}
    for name, draft in drafts.items():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            weights.setdefault("/".join(parts[:depth]), WEIGHT_DEFAULT)
        weights[name] = _weight(draft.weight, path)
    return weights


def _weight(option: Option | None, path: str) -> int:
    if option is None:
        return WEIGHT_DEFAULT
    text = option.value or ""
    if not is_number(text, WEIGHT_MIN, WEIGHT_MAX):
        raise UsageError(
            f"{path}:{option.line}: cgroup_weight={text} is not a weight:"
            f" use {WEIGHT_MIN}..{WEIGHT_MAX}"
        )
    return int(text)


def seconds(option: Option, path: str, plain: str = "s") -> float:
    """The duration that is the value of @option; @plain is the unit of a number without one."""
    match = _TIME.fullmatch(option.value or "")
    unit = _TIME_UNITS_S.get(match[2].lower() or plain) if match else None
    if match is None or unit is None:
        raise UsageError(
            f"{path}:{option.line}: {option}: not a duration: write a number with the unit us, ms,"
            f" s, m or h (none is {plain})"
        )
    return float(match[1]) * unit


def _runtime_s(section: Section, path: str) -> float:
    option = section.option("runtime", "timeout")
    found = RUNTIME_DEFAULT_S if option is None else seconds(option, path)
    if option is not None and found <= 0:
        raise UsageError(f"{path}:{option.line}: {option}: use a time greater than 0")
    if option is not None and found > RUNTIME_MOST_S:
        raise UsageError(
            f"{path}:{option.line}: {option}: use at most {RUNTIME_MOST_S:.0f} seconds, a week"
        )
    return found


def _scale(sections: list[Section], path: str, runtime_s: float | None) -> float:
    if runtime_s is None:
        return 1.0
    return runtime_s / max(_runtime_s(section, path) for section in sections)


def _ramp_s(sections: list[Section], path: str) -> float:
    ramps = [option for section in sections if (option := section.option("ramp_time"))]
    return max((seconds(option, path) for option in ramps), default=RAMP_DEFAULT_S)


def _job(section: Section, path: str, scale: float) -> Job:
    kept = tuple(
        str(option)
        for option in (*section.inherited, *section.own)
        if option.key not in ABSORBED and option.key not in REPLACED and option.key not in REFUSED
    )
    delayed = section.option("startdelay") is not None
    return Job(section.name, kept, _runtime_s(section, path) * scale, delayed, section)


def _notes(sections: list[Section], path: str) -> list[str]:
    replaced = {
        (option.line, option.key): f"{path}:{option.line}: {option} not used: {reason}"
        for section in sections
        for option in (*section.inherited, *section.own)
        if (reason := REPLACED.get(option.key)) and not is_off(option.key, option.value)
    }
    return [replaced[place] for place in sorted(replaced)]
