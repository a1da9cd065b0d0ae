# SPDX-License-Identifier: GPL-2.0
"""From the options of a fio job file to the loads of sim-run (sim/describe.h).

Each process of a job, one for each numjobs, is one load on one CPU. The CPUs are taken in turn. An
option has the meaning that fio's manual gives it. An option without a counterpart in the simulator
is an error with file and line.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mqfair.bench import jobfile, replays
from mqfair.bench.jobfile import ABSORBED, REPLACED, Job, JobFile, Option
from mqfair.bench.simulated.drive import Drive
from mqfair.text.errors import UsageError
from mqfair.traces.replay import Replay

# The part of writes in a thousand, and whether places are in order.
_DIRECTIONS: Mapping[str, tuple[int | None, bool]] = {
    "read": (0, True),
    "write": (1000, True),
    "rw": (None, True),
    "readwrite": (None, True),
    "randread": (0, False),
    "randwrite": (1000, False),
    "randrw": (None, False),
}
_ENGINES_WITH_DEPTH = ("libaio", "io_uring", "posixaio")
_ENGINES_OF_ONE = ("psync", "sync", "vsync", "pvsync", "pvsync2")
# fio's engine for a job that names none.
_ENGINE_DEFAULT = "psync"
_BYTES_DEFAULT = 4096
# Options that change no request that reaches the drive.
_WITHOUT_EFFECT = frozenset(
    {
        "allrandrepeat",
        "buffer_compress_percentage",
        "buffer_pattern",
        "clat_percentiles",
        "description",
        "disable_clat",
        "disable_slat",
        "fadvise_hint",
        "fallocate",
        "invalidate",
        "lat_percentiles",
        "name",
        "norandommap",
        "percentile_list",
        "randrepeat",
        "randseed",
        "refill_buffers",
        "scramble_buffers",
        "slat_percentiles",
        "unified_rw_reporting",
        "zero_buffers",
    }
)
_BYTES = re.compile(r"(\d+)([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SECTOR = 512
_PAGE = 4096
_DEPTH_MOST = 65536
_PROCESSES_MOST = 2048
_MS_MOST = 10**9
_SIZES_MOST = 32
# The other options of a replay are read by replays.py.
_OF_REPLAY = ("direct", "startdelay")


@dataclass(frozen=True)
class Load:
    """One process of a job: the words of sim-run's statement after the name of the flow. It has the
    requests of @replay that fall to its @piece, if there is one."""

    cgroup: str
    start_ms: int
    words: str
    replay: Replay | None = None
    piece: int = 0


@dataclass
class _Draft:
    """One job while its options are read. Sizes are bytes, times µs unless the name differs."""

    place: str
    written: int = 0
    in_order: bool = True
    mix: int | None = None
    mixed: Option | None = None
    rw_place: str = ""
    bytes: int = _BYTES_DEFAULT
    sizes: list[tuple[int, int]] = field(default_factory=list)
    depth: int = 1
    engine: str = _ENGINE_DEFAULT
    direct: bool = False
    processes: int = 1
    start_ms: int = 0
    offset: int = 0
    increment: int = 0
    size: int | None = None
    size_place: str = ""
    rate: Option | None = None
    rate_iops: Option | None = None
    random_arrivals: bool = False
    think_us: int = 0
    think_blocks: int | None = None
    think_iotime_us: int = 0

    @property
    def largest(self) -> int:
        return max((size for size, _ in self.sizes), default=self.bytes)


def loads(job: JobFile, drive: Drive) -> list[Load]:
    """The loads of @job, in the order of the file; raises UsageError with file and line."""
    found = [
        load
        for group in job.groups
        for one in group.jobs
        for load in _Reader(job.path, drive).loads(group.name, one)
    ]
    if len(found) > _PROCESSES_MOST:
        raise UsageError(
            f"{job.path}: {len(found)} processes: the simulator has at most {_PROCESSES_MOST}:"
            " lower numjobs"
        )
    return found


def notes(job: JobFile) -> Iterator[str]:
    """Notes on options that the simulator does not follow to the letter, and on short traces."""
    yield from replays.notes(job)
    for group in job.groups:
        for one in group.jobs:
            rw = one.section.option(*jobfile.RW_KEYS)
            random = rw is not None and (rw.value or "").startswith("rand")
            if random and one.section.option("norandommap") is None:
                yield (
                    f"{job.path}: [{one.name}]: the simulator takes places at random, as with"
                    " norandommap"
                )


class _Reader:
    """Reads the options of one job."""

    def __init__(self, path: str, drive: Drive) -> None:
        self._path = path
        self._drive = drive
        self._handlers: Mapping[str, Callable[[_Draft, Option], None]] = {
            "rw": self._rw,
            "readwrite": self._rw,
            "rwmixread": self._mix,
            "rwmixwrite": self._mix,
            "bs": self._bs,
            "blocksize": self._bs,
            "bssplit": self._bssplit,
            "iodepth": self._iodepth,
            "numjobs": self._numjobs,
            "ioengine": self._ioengine,
            "direct": self._direct,
            "offset": self._offset,
            "size": self._size,
            "offset_increment": self._increment,
            "rate": self._rate,
            "rate_iops": self._rate_iops,
            "rate_process": self._rate_process,
            "thinktime": self._thinktime,
            "thinktime_blocks": self._thinktime_blocks,
            "thinktime_iotime": self._thinktime_iotime,
            "startdelay": self._startdelay,
        }

    def loads(self, cgroup: str, job: Job) -> Iterator[Load]:
        draft = _Draft(f"{self._path}:{job.section.line}")
        replay = replays.replay_of(job, self._path)
        for option in (*job.section.inherited, *job.section.own):
            if option.key in ABSORBED or option.key in REPLACED or option.key in _WITHOUT_EFFECT:
                continue
            if replay is not None and option.key not in _OF_REPLAY:
                continue
            handler = self._handlers.get(option.key)
            if handler is None:
                raise self._wrong(
                    option,
                    f"the simulator has no option {option.key}: remove it, or use --on vm;"
                    f" it has {', '.join(sorted(self._handlers))}",
                )
            handler(draft, option)
        self._check(draft)
        if replay is not None:
            yield from self._replayed(cgroup, job, draft, replay)
            return
        for number in range(draft.processes):
            yield Load(cgroup, draft.start_ms, self._words(draft, number))

    def _replayed(self, cgroup: str, job: Job, draft: _Draft, replay: Replay) -> Iterator[Load]:
        drive_bytes = self._drive.bytes
        largest = replays.extent_of(job, self._path, replay, drive_bytes).largest
        words = f"depth 1 bytes {largest}"
        if draft.start_ms:
            words += f" start_ms {draft.start_ms}"
        for piece in range(replay.processes):
            yield Load(cgroup, draft.start_ms, words, replay, piece)

    # ------------------------------------------------------------------ checks

    def _check(self, draft: _Draft) -> None:
        if not draft.direct:
            raise UsageError(
                f"{draft.place}: no direct=1: the simulator has no page cache: add direct=1"
            )
        if draft.mixed is not None and draft.mix is not None:
            draft.written = draft.mix
        pace = draft.rate or draft.rate_iops
        if pace is not None and 0 < draft.written < 1000:
            raise self._wrong(pace, "a rate of reads and writes together is not simulated")
        if draft.rate is not None and draft.rate_iops is not None:
            raise self._wrong(draft.rate, "rate beside rate_iops: give one of them")
        if draft.rate is not None and draft.sizes:
            raise self._wrong(draft.rate, "rate beside bssplit is not simulated: use rate_iops")

    def _range(self, draft: _Draft, number: int) -> tuple[int, int]:
        """First byte and bytes of process @number."""
        first = draft.offset + number * draft.increment
        if first >= self._drive.bytes:
            raise UsageError(
                f"{draft.size_place or draft.place}: process {number + 1} begins at byte {first},"
                f" and the drive ends at {self._drive.bytes}: lower offset or offset_increment"
            )
        size = self._drive.bytes - first if draft.size is None else draft.size
        if first + size > self._drive.bytes:
            raise UsageError(
                f"{draft.size_place or draft.place}: process {number + 1} ends at byte"
                f" {first + size}, and the drive at {self._drive.bytes}: lower size or offset"
            )
        if draft.largest > size:
            raise UsageError(
                f"{draft.size_place or draft.place}: requests of {draft.largest} bytes in"
                f" {size} bytes: raise size, or lower bs"
            )
        return first, size

    # ------------------------------------------------------------------- output

    def _words(self, draft: _Draft, number: int) -> str:
        words = [f"depth {draft.depth if draft.engine in _ENGINES_WITH_DEPTH else 1}"]
        if draft.sizes:
            split = ",".join(f"{size}/{weight}" for size, weight in draft.sizes)
            words.append(f"sizes {split}")
        else:
            words.append(f"bytes {draft.bytes}")
        words.append(f"write {draft.written}")
        if draft.in_order:
            words.append("order sequential")
        first, size = self._range(draft, number)
        if self._drive.places:
            words.append(f"first_kib {first >> 10} kib {size >> 10}")
        if draft.start_ms:
            words.append(f"start_ms {draft.start_ms}")
        words += self._pace(draft)
        words += self._think(draft)
        return " ".join(words)

    @staticmethod
    def _pace(draft: _Draft) -> list[str]:
        if draft.rate_iops is not None:
            gap_ns = round(1e9 / int(draft.rate_iops.value or "0"))
        elif draft.rate is not None:
            gap_ns = round(1e9 * draft.bytes / (_plain_bytes(draft.rate.value or "") or 1))
        else:
            return []
        kind = "random" if draft.random_arrivals else "even"
        return [f"pace_ns {max(1, gap_ns)} arrivals {kind}"]

    @staticmethod
    def _think(draft: _Draft) -> list[str]:
        """fio waits for all outstanding I/Os before each pause."""
        if not draft.think_us:
            return []
        words = [f"think_us {draft.think_us}"]
        if draft.think_iotime_us:
            words.append(f"burst_us {draft.think_iotime_us}")
        if draft.think_blocks is not None or not draft.think_iotime_us:
            words.append(f"burst_ios {draft.think_blocks or 1}")
        return words

    # ------------------------------------------------------------------ options

    def _rw(self, draft: _Draft, option: Option) -> None:
        if option.value not in _DIRECTIONS:
            raise self._wrong(option, f"use {', '.join(_DIRECTIONS)}")
        written, draft.in_order = _DIRECTIONS[option.value or ""]
        draft.mixed = option if written is None else None
        draft.written = 500 if written is None else written

    def _mix(self, draft: _Draft, option: Option) -> None:
        percent = self._number(option, 0, 100)
        draft.mix = 10 * (percent if option.key == "rwmixwrite" else 100 - percent)

    def _bs(self, draft: _Draft, option: Option) -> None:
        if "," in (option.value or ""):
            raise self._wrong(
                option, "one size for reads and another for writes is not simulated: use one"
            )
        draft.bytes, draft.sizes = self._request(option, option.value or ""), []

    def _bssplit(self, draft: _Draft, option: Option) -> None:
        """SIZE/PERCENT:SIZE/PERCENT...; sizes without a percentage divide the rest equally."""
        if "," in (option.value or ""):
            raise self._wrong(
                option, "sizes of reads and others of writes are not simulated: use one list"
            )
        pairs = [word.partition("/") for word in (option.value or "").split(":")]
        if len(pairs) > _SIZES_MOST:
            raise self._wrong(option, f"use at most {_SIZES_MOST} sizes")
        given = [percent for _, _, percent in pairs if percent]
        if not all(one.isdecimal() and int(one) <= 100 for one in given):
            raise self._wrong(option, "write SIZE/PERCENT:SIZE/PERCENT..., such as 4k/60:64k/40")
        total, open_ones = sum(map(int, given)), len(pairs) - len(given)
        if total > 100 or (not open_ones and total != 100):
            raise self._wrong(option, f"the percentages add up to {total}: make it 100")
        # Hundredths of a percent, so that a rest divides well.
        rest = round(100 * (100 - total) / open_ones) if open_ones else 0
        weights = [100 * int(percent) if percent else rest for _, _, percent in pairs]
        sizes = [self._request(option, size) for size, _, _ in pairs]
        draft.sizes = [pair for pair in zip(sizes, weights, strict=True) if pair[1]]

    def _iodepth(self, draft: _Draft, option: Option) -> None:
        draft.depth = self._number(option, 1, _DEPTH_MOST)

    def _numjobs(self, draft: _Draft, option: Option) -> None:
        draft.processes = self._number(option, 1, _PROCESSES_MOST)

    def _ioengine(self, draft: _Draft, option: Option) -> None:
        engines = (*_ENGINES_WITH_DEPTH, *_ENGINES_OF_ONE)
        if option.value not in engines:
            raise self._wrong(option, f"use {', '.join(engines)}")
        draft.engine = option.value

    def _direct(self, draft: _Draft, option: Option) -> None:
        draft.direct = option.value is None or self._number(option, 0, 1) == 1

    def _offset(self, draft: _Draft, option: Option) -> None:
        draft.offset, draft.size_place = self._extent(option), self._place(option)

    def _size(self, draft: _Draft, option: Option) -> None:
        draft.size, draft.size_place = self._extent(option), self._place(option)

    def _increment(self, draft: _Draft, option: Option) -> None:
        draft.increment, draft.size_place = self._extent(option), self._place(option)

    def _rate(self, draft: _Draft, option: Option) -> None:
        if not _plain_bytes(option.value or ""):
            raise self._wrong(option, "write one number of bytes per second, such as 20m")
        draft.rate = option

    def _rate_iops(self, draft: _Draft, option: Option) -> None:
        self._number(option, 1, 10**9)
        draft.rate_iops = option

    def _rate_process(self, draft: _Draft, option: Option) -> None:
        if option.value not in ("linear", "poisson"):
            raise self._wrong(option, "use linear or poisson")
        draft.random_arrivals = option.value == "poisson"

    def _thinktime(self, draft: _Draft, option: Option) -> None:
        draft.think_us = round(jobfile.seconds(option, self._path, "us") * 1e6)

    def _thinktime_blocks(self, draft: _Draft, option: Option) -> None:
        draft.think_blocks = self._number(option, 1, 10**9)

    def _thinktime_iotime(self, draft: _Draft, option: Option) -> None:
        draft.think_iotime_us = round(jobfile.seconds(option, self._path) * 1e6)

    def _startdelay(self, draft: _Draft, option: Option) -> None:
        draft.start_ms = milliseconds(
            jobfile.seconds(option, self._path), f"{self._place(option)}: {option}"
        )

    # ------------------------------------------------------------------- values

    def _place(self, option: Option) -> str:
        return f"{self._path}:{option.line}"

    def _wrong(self, option: Option, hint: str) -> UsageError:
        return UsageError(f"{self._place(option)}: {option}: {hint}")

    def _number(self, option: Option, least: int, most: int) -> int:
        text = option.value or ""
        if not text.isdecimal() or not least <= int(text) <= most:
            raise self._wrong(option, f"use a number in {least}..{most}")
        return int(text)

    def _request(self, option: Option, text: str) -> int:
        found = _plain_bytes(text)
        if not found or found % _SECTOR or found > 1 << 30:
            raise self._wrong(option, "a request has a multiple of 512 bytes, at most 1g")
        return found

    def _extent(self, option: Option) -> int:
        """Bytes of the drive, given as such or as a percentage, in whole pages."""
        text = option.value or ""
        if text.endswith("%") and text[:-1].isdecimal() and int(text[:-1]) <= 100:
            return self._drive.bytes * int(text[:-1]) // 100 // _PAGE * _PAGE
        found = _plain_bytes(text)
        if found is None:
            raise self._wrong(option, "write bytes, such as 512m, or a percentage up to 100%")
        return found // _PAGE * _PAGE


def milliseconds(seconds: float, place: str) -> int:
    """@seconds in ms; raises UsageError, which names @place, if they are not whole."""
    found = round(seconds * 1000)
    if abs(seconds * 1000 - found) > 1e-6 or found > _MS_MOST:
        raise UsageError(f"{place}: the simulator counts whole milliseconds, up to {_MS_MOST}")
    return found


def _plain_bytes(text: str) -> int | None:
    match = _BYTES.fullmatch(text)
    return int(match[1]) * _UNITS[match[2].lower()] if match else None
