# SPDX-License-Identifier: GPL-2.0
"""The cases of experiments.isolation, as data.

A case has tenants. The first of them is the *subject*: the tenant that must be isolated from the
others. All sizes are bytes and all times milliseconds. A tenant has one or more jobs, and each job
is a closed loop on a queue of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

KIB = 1024
QUEUES_MOST = 16
# In every case: the time that passes before anything is measured.
WARM_MS = 500


@dataclass(frozen=True)
class Tenant:
    """@depth requests of each job are outstanding. @bytes_most is not 0 if sizes are mixed. With
    @pauses (on, off), the tenant is silent for `off` after every `on`, from the start of the
    measured time. @writes are a thousandth each. @think_us passes from the end of a request to the
    next one."""

    name: str
    weight: int
    depth: int
    bytes: int
    jobs: int = 1
    bytes_most: int = 0
    writes: int = 0
    pauses: tuple[int, int] | None = None
    think_us: int = 0


@dataclass(frozen=True)
class Goal:
    """The bounds that the scheduler under test must keep at its defaults; None is no bound.

    @total: least total / none. @curve: greatest slowdown / the curve's. @p99: greatest p99 / that
    of none. @none: greatest slowdown / that of none. @part: least part of the subject / its due
    part. @most_part: the same, greatest. @jain: least Jain's index relative to the weights.
    """

    total: float | None = None
    curve: float | None = None
    p99: float | None = None
    none: float | None = None
    part: float | None = None
    most_part: float | None = None
    jain: float | None = None


@dataclass(frozen=True)
class Window:
    """A part of the measured time that has figures of its own: from @first to @last, and again
    after each @every, unless that is 0."""

    name: str
    goal: Goal
    first: int
    last: int
    every: int = 0

    def covers(self, begin: int, end: int) -> bool:
        """Whether the interval from @begin to @end lies in the window."""
        if self.every:
            begin, end = begin % self.every, begin % self.every + end - begin
        return self.first <= begin and end <= self.last


@dataclass(frozen=True)
class Case:
    """@fills is empty if every fill applies. @events are (time, statement of sim-run) pairs.
    @interval is the length of the intervals from which the windows are made."""

    name: str
    about: str
    tenants: tuple[Tenant, ...]
    goal: Goal = Goal()
    fills: tuple[str, ...] = ()
    run_ms: int = 2000
    windows: tuple[Window, ...] = ()
    interval: int = 10
    events: tuple[tuple[int, str], ...] = ()

    @property
    def subject(self) -> Tenant:
        return self.tenants[0]

    @property
    def queues(self) -> int:
        return min(QUEUES_MOST, sum(tenant.jobs for tenant in self.tenants))

    @property
    def outstanding(self) -> int:
        return sum(tenant.jobs * tenant.depth for tenant in self.tenants)


READER = Tenant("reader", weight=1000, depth=1, bytes=4 * KIB)
OTHERS = Tenant("others", weight=100, depth=32, bytes=64 * KIB, jobs=4)
WRITERS = replace(OTHERS, name="writers", writes=1000)
DEEP = Tenant("deep", weight=1000, depth=64, bytes=4 * KIB)
DEEP_OTHERS = Tenant("others", weight=100, depth=64, bytes=4 * KIB, jobs=4)

# The pauses of a reader that reads now and then.
PAUSES_MS = (1, 6, 25, 100)

GOAL_A = Goal(total=0.92, curve=1.0, p99=0.2)
GOAL_WRITERS = Goal(total=0.9, none=1 / 3)
GOAL_B = Goal(total=0.88, part=0.6)
GOAL_FULL = Goal(total=0.99, jain=0.999)
GOAL_ADVERSARY = Goal(total=0.92, most_part=1.0)


def _a(
    name: str,
    about: str,
    reader: Tenant = READER,
    others: Tenant = OTHERS,
    run_ms: int = 2000,
) -> Case:
    return Case(name, about, (reader, others), GOAL_A, run_ms=run_ms)


def _rare_readers() -> list[Case]:
    return [
        _a(
            f"A-every-{pause}ms",
            f"A, the reader pauses for {pause} ms after each read",
            replace(READER, think_us=1000 * pause),
            # A hundred reads or more.
            run_ms=max(2000, 100 * pause),
        )
        for pause in PAUSES_MS
    ]


def _reader_variants() -> list[Case]:
    return [
        _a("A", "a reader of 4 KiB at depth 1 beside 4 jobs x 32 of 64 KiB"),
        _a("A-reader16k", "A, the reader reads 16 KiB", replace(READER, bytes=16 * KIB)),
        _a("A-depth4", "A, the reader at depth 4", replace(READER, depth=4)),
        _a(
            "A-reader16k-depth4",
            "A, the reader reads 16 KiB at depth 4",
            replace(READER, bytes=16 * KIB, depth=4),
        ),
        _a("A-1to1", "A, equal weights", replace(READER, weight=100)),
        _a("A-100to1", "A, weights 100 to 1", replace(READER, weight=10000)),
    ]


def _others_variants() -> list[Case]:
    mixed = replace(OTHERS, bytes=4 * KIB, bytes_most=128 * KIB)
    return [
        _a("A-others16k", "A, the others read 16 KiB", others=replace(OTHERS, bytes=16 * KIB)),
        _a("A-others128k", "A, the others read 128 KiB", others=replace(OTHERS, bytes=128 * KIB)),
        _a("A-mixed", "A, the others read 4 to 128 KiB", others=mixed),
        _a("A-jobs2", "A, two other jobs", others=replace(OTHERS, jobs=2)),
        _a("A-jobs8", "A, eight other jobs", others=replace(OTHERS, jobs=8)),
        _a(
            "A-jobs8-mixed-1to1",
            "A, eight other jobs of 4 to 128 KiB, equal weights",
            replace(READER, weight=100),
            replace(mixed, jobs=8),
        ),
    ]


def _writers() -> list[Case]:
    sizes = {"4k": (4, 0), "16k": (16, 0), "64k": (64, 0), "mixed": (4, 64)}
    return [
        Case(
            f"A-writers-{name}",
            f"A, the others write {least}{f' to {most}' if most else ''} KiB",
            (READER, replace(WRITERS, bytes=least * KIB, bytes_most=most * KIB)),
            GOAL_WRITERS,
            fills=("steady",),
        )
        for name, (least, most) in sizes.items()
    ]


def _b() -> list[Case]:
    def case(name: str, about: str, deep: Tenant = DEEP, others: Tenant = DEEP_OTHERS) -> Case:
        return Case(name, about, (deep, others), GOAL_B)

    return [
        case("B", "64 reads of 4 KiB outstanding beside 4 such jobs, weights 10 to 1"),
        case("B-depth8", "B, the subject at depth 8", replace(DEEP, depth=8)),
        case("B-depth16", "B, the subject at depth 16", replace(DEEP, depth=16)),
        case("B-depth32", "B, the subject at depth 32", replace(DEEP, depth=32)),
        case("B-all8", "B, all at depth 8", replace(DEEP, depth=8), replace(DEEP_OTHERS, depth=8)),
        case("B-2to1", "B, weights 2 to 1", replace(DEEP, weight=200)),
        case("B-100to1", "B, weights 100 to 1", replace(DEEP, weight=10000)),
    ]


def _full() -> list[Case]:
    def tenants(count: int, sizes: tuple[int, ...]) -> tuple[Tenant, ...]:
        # Few tenants need more requests each, so that all of them wait outside of the drive.
        depth = 256 if count <= 4 else 64
        return tuple(
            Tenant(f"t{i}", 100 * (1 + i % 4), depth, sizes[i % len(sizes)]) for i in range(count)
        )

    return [
        *(
            Case(
                f"full-{count}",
                f"{count} tenants with deep queues of 4 KiB, weights 1 to 4",
                tenants(count, (4 * KIB,)),
                GOAL_FULL,
            )
            for count in (2, 4, 16, 64)
        ),
        Case(
            "full-4-sizes",
            "4 tenants with deep queues of 4 and 64 KiB, weights 1 to 4",
            tenants(4, (4 * KIB, 64 * KIB)),
            GOAL_FULL,
        ),
    ]


def _changing() -> list[Case]:
    visitor = replace(READER, pauses=(1000, 9000))
    storm = Tenant("storm", 100, 32, 4 * KIB, jobs=2, writes=1000, pauses=(1000, 1000))
    throttled = ((1000, "retime 200"), (3000, "retime 100"))
    return [
        Case(
            "visits",
            "A, the reader comes for 1 s in 10",
            (visitor, OTHERS),
            run_ms=20000,
            windows=(
                Window("arrival", Goal(total=0.92), 20, 100, 10000),
                Window("visit", GOAL_A, 20, 1000, 10000),
                Window("return", Goal(total=0.99), 1020, 1100, 10000),
                Window("after", Goal(total=0.99), 1020, 10000, 10000),
            ),
        ),
        Case(
            "bursts",
            "A, the reader comes for 20 ms in 100",
            (replace(READER, pauses=(20, 80)), OTHERS),
            windows=(
                Window("burst", Goal(total=0.92), 0, 20, 100),
                Window("after", Goal(total=0.99), 50, 100, 100),
            ),
        ),
        Case(
            "bursts-50",
            "A, the reader comes for 50 ms in 100",
            (replace(READER, pauses=(50, 50)), OTHERS),
            windows=(
                Window("begin", Goal(total=0.92), 0, 30, 100),
                Window("burst", GOAL_A, 30, 50, 100),
                Window("after", Goal(total=0.99), 80, 100, 100),
            ),
        ),
        Case(
            "stall",
            "A, the drive completes nothing for 1 s",
            (READER, OTHERS),
            run_ms=4000,
            windows=(Window("before", GOAL_A, 0, 1000), Window("after", GOAL_A, 2020, 4000)),
            events=((1000, "stall 1000"),),
        ),
        Case(
            "throttled",
            "A, the drive takes twice as long for 2 s",
            (READER, OTHERS),
            run_ms=5000,
            windows=(
                Window("before", GOAL_A, 0, 1000),
                Window("slow", GOAL_A, 1020, 3000),
                Window("after", GOAL_A, 3020, 5000),
            ),
            events=throttled,
        ),
        Case(
            "storm",
            "A, two jobs of 4 KiB writes come for 1 s in 2",
            (READER, OTHERS, storm),
            fills=("steady",),
            run_ms=4000,
            windows=(
                Window("storm", GOAL_WRITERS, 20, 1000, 2000),
                Window("calm", GOAL_A, 1020, 2000, 2000),
            ),
        ),
    ]


def _adversaries() -> list[Case]:
    victims = replace(OTHERS, name="victims", weight=1000)
    pretender = Tenant("pretender", 1000, 1, 4 * KIB, pauses=(2, 2))
    small = tuple(Tenant(f"small{i}", 10, 1, 4 * KIB) for i in range(32))
    flicker = tuple(replace(one, pauses=(2, 2)) for one in small)
    return [
        Case(
            "pretender",
            "one request at a time, on and off, beside victims of the same weight",
            (pretender, victims),
            GOAL_ADVERSARY,
        ),
        Case(
            "cgroups",
            "32 cgroups of one request each, beside victims",
            (*small, victims),
            GOAL_ADVERSARY,
        ),
        Case(
            "cgroups-pretend",
            "32 cgroups of one request each, on and off, beside victims",
            (*flicker, victims),
            GOAL_ADVERSARY,
        ),
    ]


def all_cases() -> dict[str, Case]:
    cases = [
        *_reader_variants(),
        *_rare_readers(),
        *_others_variants(),
        *_writers(),
        *_b(),
        *_full(),
        *_changing(),
        *_adversaries(),
    ]
    return {case.name: case for case in cases}


CASES: Mapping[str, Case] = all_cases()
