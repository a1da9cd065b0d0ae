# SPDX-License-Identifier: GPL-2.0
"""The virtual SSD as a device of the bench: the settings of --device ssd:..., and a drive that
exists for the time of a block."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mqfair.bench.kernel_log import messages, open_log
from mqfair.drives import model_file
from mqfair.machine.cgroup import Cgroup
from mqfair.machine.fs import Fs
from mqfair.text.errors import Failure, UsageError
from mqfair.text.numbers import is_number

MODULE = "mqfair-ssd"
PATH = "/dev/ssd-bench"

_DRIVES = "/sys/kernel/config/mqfair_ssd"
DRIVE = f"{_DRIVES}/bench"
_OWNERS = "/sys/kernel/debug/mqfair_ssd/ssd-bench/owners"
_COMPLAINT = "mqfair-ssd: ssd-bench: "

MODELS = model_file.BUILT_IN
# A model that is no built-in one: the user names its FILE, and the machine gets its PARAMS, the
# fields as `FIELD VALUE ...`.
FILE = "file"
PARAMS = "params"
# The drive of the simulator alone has it: most commands inside, fetched from the queues in turn.
FETCH = "fetch"
_FETCH_MOST = 65536
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "size_mb": (1, 1 << 24),
    "queues": (1, 1024),
    "hw_depth": (1, 10240),
    "time_scale": (1, 100_000),
    "write_times": (1, 100),
    "fill": (0, 100),
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "ftl": ("device", "host"),
    "fill_pattern": ("sequential", "random", "steady"),
}
PARTS = "fill_parts"
PLAIN = ("model", *_NUMBERS, *_CHOICES)
SETTINGS = ("model", FILE, *PLAIN[1:], PARTS, FETCH)
_OVERWRITES_MOST = 1000
_PART = re.compile(r"(.+):(\d{1,9}):(\d{1,9})")

# An emulated CPU serves about ten thousand requests per second, the fastest drive four million, so
# the drive is slowed down. The guest needs memory for the drive's size.
_DEFAULTS: Mapping[str, str] = {"time_scale": "100", "size_mb": "1024"}


@dataclass(frozen=True)
class Part:
    """A part of the drive that is filled for one cgroup of the job file: @percent of the capacity,
    overwritten @overwrites times on average. Parts follow each other from the drive's beginning."""

    cgroup: str
    percent: int
    overwrites: int


def parts_of(settings: Mapping[str, str]) -> tuple[Part, ...]:
    """The parts in @settings, which parse_settings() has checked."""
    found = map(_PART.fullmatch, settings.get(PARTS, "").split("+"))
    return tuple(Part(match[1], int(match[2]), int(match[3])) for match in found if match)


def parse_settings(text: str, rest: str, *, read: bool = True) -> dict[str, str]:
    """The settings in @rest, NAME=VALUE,..., with defaults. @text is the user's text, for
    messages. With @read a file that is named gives the model and its PARAMS. Raises UsageError."""
    found: dict[str, str] = {}
    for word in filter(None, rest.split(",")):
        name, _, value = word.partition("=")
        if name not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UsageError(f"--device {text}: unknown setting '{name}': use {known}")
        if name in found:
            raise UsageError(f"--device {text}: {name} is given twice: give it once")
        found[name] = _value(text, name, value)
    if PARTS in found and "fill" in found:
        raise UsageError(f"--device {text}: fill and {PARTS} exclude each other: leave out one")
    if FILE in found and "model" in found:
        raise UsageError(f"--device {text}: model and {FILE} exclude each other: leave out one")
    if FILE in found and read:
        model = model_file.load(found.pop(FILE))
        found = {"model": model.name, PARAMS: model.words, **found}
    return {**_DEFAULTS, **found}


def file_of(text: str) -> str | None:
    """The model file that the device @text of --device names; None if it names none."""
    words = text.partition(":")[2].split(",")
    return next(
        (value for name, _, value in (one.partition("=") for one in words) if name == FILE), None
    )


def in_words(settings: Mapping[str, str]) -> str:
    """The drive with @settings in words, for the caption of a picture."""
    name = settings.get("model", Path(settings.get(FILE, "")).stem)
    words = [f"virtual SSD {name}".strip(), f"{settings['size_mb']} MiB"]
    if "fill" in settings:
        words.append(f"{settings['fill']} % full")
    if settings.get("ftl") == "host":
        words.append("map on the host")
    if int(settings["time_scale"]) > 1:
        words.append(f"slowed down {settings['time_scale']} times")
    return ", ".join(words)


def _value(text: str, name: str, value: str) -> str:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise UsageError(f"--device {text}: {name}={value}: use {' or '.join(_CHOICES[name])}")
        return value
    if name in _NUMBERS or name == FETCH:
        least, most = _NUMBERS.get(name, (1, _FETCH_MOST))
        number = value.removesuffix("%") if name == "fill" else value
        if not is_number(number, least, most):
            raise UsageError(f"--device {text}: {name}={value}: use a number in {least}..{most}")
        return number
    if name == PARTS:
        _check_parts(text, value)
        return value
    if name == FILE:
        if not value:
            raise UsageError(f"--device {text}: {FILE}=: name a TOML file, such as my.toml")
        return value
    if value not in MODELS:
        raise UsageError(f"--device {text}: {name}={value}: use {', '.join(MODELS)}")
    return value


def _check_parts(text: str, value: str) -> None:
    percent = 0
    for word in value.split("+"):
        match = _PART.fullmatch(word)
        if not match or not 1 <= int(match[2]) <= 100 or int(match[3]) > _OVERWRITES_MOST:
            raise UsageError(
                f"--device {text}: {PARTS}: '{word}' is not CGROUP:PERCENT:OVERWRITES, such as"
                f" writer:45:3: use 1..100 percent, 0..{_OVERWRITES_MOST} overwrites"
            )
        percent += int(match[2])
    if percent > 100:
        raise UsageError(f"--device {text}: {PARTS}: {percent} % in all: use at most 100")


@contextlib.contextmanager
def made(fs: Fs, settings: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Makes a drive at PATH for the time of a block; yields its settings as the kernel has them.

    fill_parts() sets the owners of its pages later, when the cgroups exist.
    """
    drive = fs.host_path(DRIVE)
    drive.mkdir()
    try:
        for name, value in settings.items():
            # Parts are filled later, and the kernel has no name for a model of the user.
            if name != PARTS and not (name == "model" and PARAMS in settings):
                fs.write(f"{DRIVE}/{name}", value, {errno.EINVAL: _hint(fs, name)})
        _power_on(fs)
        plain = {name: fs.read(f"{DRIVE}/{name}").strip() for name in PLAIN}
        if PARAMS in settings:
            plain["model"] = settings["model"]
        yield {**plain, **{name: settings[name] for name in (PARAMS, PARTS) if name in settings}}
    finally:
        drive.rmdir()


def busy_us(fs: Fs, groups: Mapping[str, Cgroup]) -> dict[str, int]:
    """The time in us that planes of the drive were busy for each of @groups, including the cgroups
    below it."""
    lines = [line.split(maxsplit=6) for line in fs.read(_OWNERS).splitlines()]
    figures = [(words[-1], words[-2].removeprefix("busy_us=")) for words in lines]
    found: dict[str, int] = {}
    for name, group in groups.items():
        own = f"/{group.path}"
        found[name] = sum(
            int(number) for path, number in figures if f"{path}/".startswith(f"{own}/")
        )
    return found


def remake(fs: Fs) -> None:
    """Makes the drive at PATH anew, filled as at first."""
    fs.write(f"{DRIVE}/power", "0")
    _power_on(fs)


def fill_parts(fs: Fs, parts: tuple[Part, ...], groups: Mapping[str, Cgroup]) -> None:
    """Makes the drive at PATH anew, with pages that belong to @groups."""
    lines = [f"{part.percent} {part.overwrites} /{groups[part.cgroup].path}" for part in parts]
    fs.write(f"{DRIVE}/power", "0")
    fs.write(f"{DRIVE}/{PARTS}", "\n".join(lines))
    _power_on(fs)


def _hint(fs: Fs, name: str) -> str:
    models = fs.read(f"{_DRIVES}/models").split()
    if name == "model":
        return f"use {', '.join(models)}"
    return "the kernel does not accept this value"


def _power_on(fs: Fs) -> None:
    """Switches the drive on. If the kernel refuses, the reason from its log is in the message."""
    log = open_log()
    try:
        fs.write(f"{DRIVE}/power", "1")
    except Failure as failure:
        said = [line.partition(_COMPLAINT)[2].strip() for line in messages(log)]
        if not any(said):
            raise
        raise UsageError(f"--device ssd: {'; '.join(filter(None, said))}") from failure
    finally:
        os.close(log)


def notes(settings: Mapping[str, str]) -> Iterator[str]:
    """Notes for a reader of the results."""
    scale = int(settings["time_scale"])
    if scale > 1:
        yield (
            f"the drive ({settings['model']}) is {scale} times slower than the real one:"
            " multiply rates by that, divide latencies"
        )
