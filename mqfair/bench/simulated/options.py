# SPDX-License-Identifier: GPL-2.0
"""From the options of a fio job file to the loads of sim-run (sim/describe.h).

Each process of a job, one for each numjobs, is one load on one CPU. The CPUs are taken in turn. An
option has the meaning that fio's manual gives it. An option without a counterpart in the simulator
is an error with file and line.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mqfair.bench import jobfile, replays
from mqfair.bench.fio_keys import (
    ABSORBED,
    ENGINE_DEFAULT,
    ENGINES_OF_ONE,
    REFUSED,
    REPLACED,
    WITHOUT_EFFECT,
    words_of,
)
from mqfair.bench.jobfile import Job, JobFile, Option
from mqfair.bench.simulated.drive import Drive
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.traces.replay import Replay
from mqfair.traces.request import REPLAYED_MOST

# The part of writes in a thousand, and whether places are in order.
_DIRECTIONS: Mapping[str, tuple[int | None, bool]] = {
    "read": (0, True),
    "write": (1000, True),
    "rw": (None, True),
    "readwrite": (None, True),
    "randread": (0, False),
    "randwrite": (1000, False),
    "randrw": (None, False),
    "trim": (0, True),
    "randtrim": (0, False),
}
_TRIMS = ("trim", "randtrim")
_IN_TURN = ("read", "write", "trim")
_ENGINES_WITH_DEPTH = ("libaio", "io_uring", "posixaio")
_BYTES_DEFAULT = 4096
# The values of other keys with which they change no request. None stands for a key alone.
_NEUTRAL: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            *("fsync", "fdatasync", "write_barrier", "uncached", "nowait", "hipri"),
            *("force_async", "sqthread_poll", "serialize_overlap", "thinkcycles", "thinktime_spin"),
            *("rate_ignore_thinktime", "bs_is_seq_rand", "blocksize_unaligned", "bs_unaligned"),
            *("zonerange", "zonesize", "zonecapacity", "zoneskip", "offset_align", "flow"),
            *("flow_id", "flow_sleep", "sprandom", "random_sequence_stride", "hipri_percentage"),
        ),
        ("0",),
    ),
    **dict.fromkeys(("sync", "write_hint"), ("0", "none")),
    **dict.fromkeys(("iodepth_batch", "iodepth_batch_submit"), ("1",)),
    **dict.fromkeys(
        ("iodepth_batch_complete", "iodepth_batch_complete_min", "iodepth_batch_complete_max"),
        ("0", "1"),
    ),
    "thinktime_blocks_type": ("complete",),
    "zonemode": ("none",),
    "random_distribution": ("random",),
    "percentage_random": ("100",),
}
# Keys that matter beside another key alone, which is refused: see _NEUTRAL. And keys of the way
# in which fio submits: a load does not wait for the drive in either.
_DEPENDENT = frozenset(
    words_of(
        "rw_sequencer read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits"
        " zone_reset_threshold zone_reset_frequency recover_zbd_write_error write_zone_remainders"
        " numa_mem_policy cpus_allowed_policy sqthread_poll_cpu spr_num_regions spr_op spr_cs"
        " atomic io_submit_mode fixedbufs registerfiles nonvectored libaio_vectored"
        " replay_redirect replay_align replay_scale replay_skip read_iolog_chunked"
    )
)
# Keys of places, which change nothing on a drive that has the same time for all of them.
_PLACES = frozenset(
    words_of(
        "blockalign ba offset_align random_distribution percentage_random random_sequence_stride"
        " zonerange zonesize zonecapacity zoneskip"
    )
)
_STRIDED = "strided"
# Other names of a key.
_ALIASES: Mapping[str, str] = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "ba": "blockalign",
    "fileoffset": "offset",
}
_ZONES = ("zonerange", "zonesize", "zonecapacity", "zoneskip")
# Keys of which the effect is not simulated, each with a note.
_NOT_FOLLOWED: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("nice", "prio", "prioclass", "priohint", "cmdprio_percentage", "cmdprio_class"),
            *("cmdprio_hint", "cmdprio", "cmdprio_bssplit"),
        ),
        "no scheduler of the simulator looks at priorities of tasks",
    ),
    "numa_cpu_nodes": "the simulator takes CPUs in turn, from each socket",
    "cpumask": "the simulator takes CPUs in turn: write cpus_allowed",
}
_BYTES = re.compile(r"(\d+)([kmgtp]?)(?:ib?|b)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_CPUS = re.compile(r"(\d+)(?:-(\d+))?")
_SECTOR = 512
_PAGE = 4096
_DEPTH_MOST = 65536
PROCESSES_MOST = 2048
_MS_MOST = 10**9
_SIZES_MOST = 32
# The other options of a replay are read by replays.py.
_OF_REPLAY = ("direct", "startdelay")


@dataclass(frozen=True)
class Load:
    """One process of a job: the words of sim-run's statement after the name of the flow. It has the
    requests of @replay that fall to its @piece, if there is one. It runs on @cpu, which the option
    at @place chooses, or on the next one in turn."""

    cgroup: str
    start_ms: int
    words: str
    replay: Replay | None = None
    piece: int = 0
    cpu: int | None = None
    place: str = ""


@dataclass
class _Draft:
    """One job while its options are read. Sizes are bytes, times µs unless the name differs."""

    place: str
    written: int = 0
    trims: bool = False
    in_order: bool = True
    mix: int | None = None
    mixed: Option | None = None
    rw_place: str = ""
    bytes: int = _BYTES_DEFAULT
    sizes: list[tuple[int, int]] = field(default_factory=list)
    depth: int = 1
    engine: str = ENGINE_DEFAULT
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
    by_direction: list[Option] = field(default_factory=list)
    align: Option | None = None
    cpus: tuple[int, ...] = ()
    cpus_place: str = ""

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
    if len(found) > PROCESSES_MOST:
        raise UsageError(
            f"{job.path}: {len(found)} processes: the simulator has at most {PROCESSES_MOST}:"
            " lower numjobs"
        )
    return found


def notes(job: JobFile) -> Iterator[str]:
    """Notes on options that the simulator does not follow to the letter, and on short traces."""
    yield from replays.notes(job)
    for group in job.groups:
        for one in group.jobs:
            for key, reason in _NOT_FOLLOWED.items():
                option = one.section.option(key)
                if option is not None:
                    yield f"{job.path}:{option.line}: {option} not followed: {reason}"
            rw = one.section.option(*jobfile.RW_KEYS)
            random = rw is not None and (rw.value or "").startswith("rand")
            if random and one.section.option("norandommap") is None:
                yield (
                    f"{job.path}: [{one.name}]: the simulator takes places at random, as with"
                    " norandommap"
                )


def _effective(job: Job) -> Iterator[Option]:
    """The options of @job that fio uses: the last one of each key."""
    last: dict[str, Option] = {}
    for option in (*job.section.inherited, *job.section.own):
        key = _ALIASES.get(option.key, option.key)
        last.pop(key, None)
        last[key] = option
    yield from last.values()


class _Reader:
    """Reads the options of one job."""

    def __init__(self, path: str, drive: Drive) -> None:
        self._path = path
        self._drive = drive
        self._handlers: Mapping[str, Callable[[_Draft, Option], None]] = {
            "rw": self._rw,
            "rwmixread": self._mix,
            "rwmixwrite": self._mix,
            "bs": self._bs,
            "bssplit": self._bssplit,
            "bsrange": self._bsrange,
            "blockalign": self._blockalign,
            "cpus_allowed": self._cpus_allowed,
            "iodepth": self._iodepth,
            "numjobs": self._numjobs,
            "ioengine": self._ioengine,
            "direct": self._direct,
            "buffered": self._buffered,
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
        for option in _effective(job):
            if self._is_neutral(option, job):
                continue
            if replay is not None and option.key not in _OF_REPLAY:
                continue
            handler = self._handlers.get(_ALIASES.get(option.key, option.key))
            if handler is None:
                raise self._wrong(
                    option,
                    f"the simulator has no option {option.key}: remove it, or use --on vm;"
                    f" it has {', '.join(sorted(self._handlers))}",
                )
            handler(draft, option)
        self._take_directions(draft)
        self._check(draft)
        if replay is not None:
            yield from self._replayed(cgroup, job, draft, replay)
            return
        for number in range(draft.processes):
            cpu = draft.cpus[number % len(draft.cpus)] if draft.cpus else None
            words = self._words(draft, number)
            yield Load(cgroup, draft.start_ms, words, cpu=cpu, place=draft.cpus_place)

    def _is_neutral(self, option: Option, job: Job) -> bool:
        """Whether @option of @job changes no request."""
        key = option.key
        if not self._drive.places and (
            key in _PLACES or (key == "zonemode" and option.value == _STRIDED)
        ):
            return True
        if key in _ZONES:
            mode = job.section.option("zonemode")
            if mode is not None and mode.value in _NEUTRAL["zonemode"]:
                return True
        return key in (
            *ABSORBED,
            *REPLACED,
            *REFUSED,
            *WITHOUT_EFFECT,
            *_DEPENDENT,
            *_NOT_FOLLOWED,
        ) or option.value in _NEUTRAL.get(key, ())

    def _replayed(self, cgroup: str, job: Job, draft: _Draft, replay: Replay) -> Iterator[Load]:
        drive_bytes = self._drive.bytes
        largest = replays.extent_of(job, self._path, replay, drive_bytes).largest
        words = f"depth 1 bytes {largest}"
        if draft.start_ms:
            words += f" start_ms {draft.start_ms}"
        for piece in range(replay.processes):
            yield Load(cgroup, draft.start_ms, words, replay, piece)

    # ------------------------------------------------------------------ checks

    def _take_directions(self, draft: _Draft) -> None:
        """Reads the options that may have a value for reads, one for writes and one for trims."""
        if draft.mixed is not None and draft.mix is not None:
            draft.written = draft.mix
        for option in sorted(draft.by_direction, key=lambda one: one.key == "bssplit"):
            value = self._of_direction(draft, option)
            if option.key == "bssplit":
                self._take_split(draft, option, value)
            else:
                self._take_range(draft, option, value)

    def _of_direction(self, draft: _Draft, option: Option) -> str:
        """The value of @option for the requests of @draft. One that is left out is that of the
        direction before."""
        values = (option.value or "").split(",")
        if len(values) > len(_IN_TURN):
            raise self._wrong(option, "give one value for reads, one for writes, one for trims")
        filled: list[str] = []
        for value in values:
            filled.append(value or (filled[-1] if filled else str(_BYTES_DEFAULT)))
        filled += [filled[-1]] * (len(_IN_TURN) - len(filled))
        used = {2} if draft.trims else {0, 1}
        if not draft.trims and draft.written in (0, 1000):
            used = {draft.written // 1000}
        found = {filled[index] for index in used}
        if len(found) > 1:
            raise self._wrong(
                option, "one size for reads and another for writes is not simulated: use one"
            )
        return found.pop()

    def _check(self, draft: _Draft) -> None:
        if not draft.direct:
            raise UsageError(
                f"{draft.place}: no direct=1: the simulator has no page cache: add direct=1"
            )
        if draft.align is not None and self._request(draft.align, draft.align.value or "") not in (
            _PAGE,
            draft.bytes,
        ):
            raise self._wrong(draft.align, f"places are those of whole pages: use {_PAGE}")
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
        if draft.trims:
            words.append("discard 1")
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
        # With :1, which is the default, each random request has a new place.
        name = (option.value or "").removesuffix(":1")
        if not self._drive.places:
            name = name.partition(":")[0]
        if name not in _DIRECTIONS:
            raise self._wrong(option, f"use {', '.join(_DIRECTIONS)}")
        written, draft.in_order = _DIRECTIONS[name]
        draft.trims = name in _TRIMS
        draft.mixed = option if written is None else None
        draft.written = 500 if written is None else written

    def _mix(self, draft: _Draft, option: Option) -> None:
        percent = self._number(option, 0, 100)
        draft.mix = 10 * (percent if option.key == "rwmixwrite" else 100 - percent)

    def _bs(self, draft: _Draft, option: Option) -> None:
        """A list of sizes counts before the others, as in fio."""
        draft.by_direction.append(option)

    _bssplit = _bsrange = _bs

    def _take_range(self, draft: _Draft, option: Option, text: str) -> None:
        """FROM-TO, or one size: the multiples of FROM have the same chance."""
        least, _, most = (part.strip() for part in text.partition("-"))
        low, high = self._request(option, least), self._request(option, most or least)
        sizes = [*range(low, high + 1, low)]
        if high < low or high % low or len(sizes) > _SIZES_MOST:
            raise self._wrong(
                option, f"use a range FROM-TO of at most {_SIZES_MOST} whole multiples of FROM"
            )
        draft.bytes, draft.sizes = low, [(size, 1) for size in sizes] if high > low else []

    def _take_split(self, draft: _Draft, option: Option, text: str) -> None:
        """SIZE/PERCENT:SIZE/PERCENT...; sizes without a percentage divide the rest equally."""
        pairs = [word.partition("/") for word in text.split(":")]
        if len(pairs) > _SIZES_MOST:
            raise self._wrong(option, f"use at most {_SIZES_MOST} sizes")
        given = [percent for _, _, percent in pairs if percent]
        if not all(is_number(one, 0, 100) for one in given):
            raise self._wrong(option, "write SIZE/PERCENT:SIZE/PERCENT..., such as 4k/60:64k/40")
        total, open_ones = sum(map(int, given)), len(pairs) - len(given)
        if total > 100 or (not open_ones and total != 100):
            raise self._wrong(option, f"the percentages add up to {total}: make it 100")
        # Hundredths of a percent, so that a rest divides well.
        rest = round(100 * (100 - total) / open_ones) if open_ones else 0
        weights = [100 * int(percent) if percent else rest for _, _, percent in pairs]
        sizes = [self._request(option, size) for size, _, _ in pairs]
        draft.sizes = [pair for pair in zip(sizes, weights, strict=True) if pair[1]]

    def _blockalign(self, draft: _Draft, option: Option) -> None:
        draft.align = option

    def _cpus_allowed(self, draft: _Draft, option: Option) -> None:
        """The processes of a job take the CPUs of the list in turn."""
        found: list[int] = []
        for word in (option.value or "").split(","):
            match = _CPUS.fullmatch(word.strip())
            if match is None or int(match[2] or match[1]) - int(match[1]) > PROCESSES_MOST:
                raise self._wrong(option, "write the numbers of CPUs, such as 0,2-3")
            found += range(int(match[1]), int(match[2] or match[1]) + 1)
        if not found:
            raise self._wrong(option, "write a range of CPUs with the lesser number first")
        draft.cpus, draft.cpus_place = tuple(found), f"{self._place(option)}: {option}"

    def _iodepth(self, draft: _Draft, option: Option) -> None:
        draft.depth = self._number(option, 1, _DEPTH_MOST)

    def _numjobs(self, draft: _Draft, option: Option) -> None:
        draft.processes = self._number(option, 1, PROCESSES_MOST)

    def _ioengine(self, draft: _Draft, option: Option) -> None:
        engines = (*_ENGINES_WITH_DEPTH, *ENGINES_OF_ONE)
        if option.value not in engines:
            raise self._wrong(option, f"use {', '.join(engines)}")
        draft.engine = option.value

    def _direct(self, draft: _Draft, option: Option) -> None:
        draft.direct = option.value is None or self._number(option, 0, 1) == 1

    def _buffered(self, draft: _Draft, option: Option) -> None:
        draft.direct = option.value is not None and self._number(option, 0, 1) == 0

    def _offset(self, draft: _Draft, option: Option) -> None:
        draft.offset, draft.size_place = self._extent(option), self._place(option)

    def _size(self, draft: _Draft, option: Option) -> None:
        draft.size, draft.size_place = self._extent(option), self._place(option)

    def _increment(self, draft: _Draft, option: Option) -> None:
        draft.increment, draft.size_place = self._extent(option), self._place(option)

    def _rate(self, draft: _Draft, option: Option) -> None:
        option = _same_for_all(option)
        if not _plain_bytes(option.value or ""):
            raise self._wrong(option, "write one number of bytes per second, such as 20m")
        draft.rate = option

    def _rate_iops(self, draft: _Draft, option: Option) -> None:
        option = _same_for_all(option)
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
        if not is_number(text, least, most):
            raise self._wrong(option, f"use a number in {least}..{most}")
        return int(text)

    def _request(self, option: Option, text: str) -> int:
        found = _plain_bytes(text)
        if not found or found % _SECTOR or found > REPLAYED_MOST:
            most = f"{REPLAYED_MOST >> 30}g"
            raise self._wrong(option, f"a request has a multiple of 512 bytes, at most {most}")
        return found

    def _extent(self, option: Option) -> int:
        """Bytes of the drive, given as such or as a percentage, in whole pages."""
        text = option.value or ""
        if text.endswith("%") and is_number(text[:-1], 0, 100):
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


def _same_for_all(option: Option) -> Option:
    """@option with one value, if those of all directions are the same."""
    values = set((option.value or "").split(","))
    return dataclasses.replace(option, value=values.pop()) if len(values) == 1 else option


def _plain_bytes(text: str) -> int | None:
    match = _BYTES.fullmatch(text)
    return int(match[1]) * _UNITS[match[2].lower()] if match else None
