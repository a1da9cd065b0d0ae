# SPDX-License-Identifier: GPL-2.0
"""The virtual SSD as a device of the bench: what --device ssd:... may say, and a drive of one that
is made for the time of a block. Whether a model exists the kernel alone knows."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mqfair.benchlib.kernel_log import messages, open_log
from mqfair.cgroup import Cgroup
from mqfair.errors import Failure, UsageError
from mqfair.fs import Fs

MODULE = "mqfair-ssd"
PATH = "/dev/ssd-bench"

_DRIVES = "/sys/kernel/config/mqfair_ssd"
DRIVE = f"{_DRIVES}/bench"
_OWNERS = "/sys/kernel/debug/mqfair_ssd/ssd-bench/owners"
_COMPLAINT = "mqfair-ssd: ssd-bench: "

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
_PLAIN = ("model", *_NUMBERS, *_CHOICES)
SETTINGS = (*_PLAIN, PARTS)
_OVERWRITES_MOST = 1000
_PART = re.compile(r"(.+):(\d{1,9}):(\d{1,9})")

# An emulated CPU is good for some ten thousand requests a second, the fastest drive for four
# million. The size decides how much memory the guest gets.
_DEFAULTS: Mapping[str, str] = {"time_scale": "100", "size_mb": "1024"}


@dataclass(frozen=True)
class Part:
    """So much of the capacity is filled for that cgroup of the job file, and overwritten so often
    on average; parts follow each other from the beginning of the drive on."""

    cgroup: str
    percent: int
    overwrites: int


def parts_of(settings: Mapping[str, str]) -> tuple[Part, ...]:
    """Of settings that parse_settings() has seen."""
    found = map(_PART.fullmatch, settings.get(PARTS, "").split("+"))
    return tuple(Part(match[1], int(match[2]), int(match[3])) for match in found if match)


def parse_settings(text: str, rest: str) -> dict[str, str]:
    """Of @rest, NAME=VALUE,...; @text is what the user wrote."""
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
        raise UsageError(f"--device {text}: fill and {PARTS}: give one of them")
    return {**_DEFAULTS, **found}


def _value(text: str, name: str, value: str) -> str:
    if name in _CHOICES:
        if value not in _CHOICES[name]:
            raise UsageError(f"--device {text}: {name}={value}: use {' or '.join(_CHOICES[name])}")
        return value
    if name in _NUMBERS:
        least, most = _NUMBERS[name]
        number = value.removesuffix("%") if name == "fill" else value
        if not number.isdecimal() or not least <= int(number) <= most:
            raise UsageError(f"--device {text}: {name}={value}: use a number in {least}..{most}")
        return number
    if name == PARTS:
        _check_parts(text, value)
        return value
    if not value:
        raise UsageError(f"--device {text}: {name}=: name a model, such as p4500")
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
    """A drive at PATH; gives its settings as the kernel has them. Whose its pages are is not known
    before there are cgroups: fill_parts() comes later."""
    drive = fs.host_path(DRIVE)
    drive.mkdir()
    try:
        for name, value in settings.items():
            if name != PARTS:
                fs.write(f"{DRIVE}/{name}", value, {errno.EINVAL: _hint(fs, name)})
        _power_on(fs)
        plain = {name: fs.read(f"{DRIVE}/{name}").strip() for name in _PLAIN}
        yield {**plain, **({PARTS: settings[PARTS]} if PARTS in settings else {})}
    finally:
        drive.rmdir()


def busy_us(fs: Fs, groups: Mapping[str, Cgroup]) -> dict[str, int]:
    """How long planes of the drive have been busy for each of @groups, those within included."""
    lines = [line.split(maxsplit=6) for line in fs.read(_OWNERS).splitlines()]
    figures = [(words[-1], words[-2].removeprefix("busy_us=")) for words in lines]
    found: dict[str, int] = {}
    for name, group in groups.items():
        own = f"/{group.path}"
        found[name] = sum(
            int(number) for path, number in figures if f"{path}/".startswith(f"{own}/")
        )
    return found


def fill_parts(fs: Fs, parts: tuple[Part, ...], groups: Mapping[str, Cgroup]) -> None:
    """A new drive at PATH, whose pages belong to these cgroups."""
    lines = [f"{part.percent} {part.overwrites} /{groups[part.cgroup].path}" for part in parts]
    fs.write(f"{DRIVE}/power", "0")
    fs.write(f"{DRIVE}/{PARTS}", "\n".join(lines))
    _power_on(fs)


def _hint(fs: Fs, name: str) -> str:
    models = fs.read(f"{_DRIVES}/models").split()
    return f"use {', '.join(models)}" if name == "model" else "the kernel does not take this value"


def _power_on(fs: Fs) -> None:
    """What the kernel says of a drive that cannot be made is in its log."""
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
    """What a reader of the results must know."""
    scale = int(settings["time_scale"])
    if scale > 1:
        yield (
            f"the drive ({settings['model']}) is {scale} times slower than the real one:"
            " multiply rates by that, divide latencies"
        )
