# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of kyber-fair, and the runs that show them here."""

from collections.abc import Iterator

from experiments import harness
from experiments.machine import Variant
from experiments.papers.drives.simulated import BFQ, P4500
from experiments.papers.entry import Absent, Bound, Entry, Paper, least, near
from experiments.papers.sources import Machines, Scene, at, index, total
from mqfair.bench import jobfile

KYBER_FAIR = "kyber-fair"
# The algorithms of the papers: without isolation, and a round ends by the clock or when all cgroups
# are exhausted. With the targets of Kyber.
_PAPER = "isolation=0:work_conserving=0"
PLAIN = f"{KYBER_FAIR}:{_PAPER}:read_lat_us=2000:write_lat_us=10000"
PLAIN_WDT = f"wdt:{_PAPER}"
WEIGHTS = (100, 250, 500, 1000)
CGROUPS = tuple((f"w{weight}", f"cgroup_weight={weight}") for weight in WEIGHTS)
# Table 2 of the paper, but for the time: 4 s are 40 periods.
_TABLE_2 = "numjobs=4 iodepth=32 size=25% ramp_time=1 runtime=4"


def _traces() -> Iterator[tuple[str, str]]:
    """The cgroups of examples/traces.fio, which says where the sizes are from."""
    for group in jobfile.load(str(harness.EXAMPLES / "traces.fio")).groups:
        own = group.jobs[0].section.own
        yield group.name, " ".join(str(option) for option in own if option.key != "cgroup")


def _four(name: str, words: str, options: str) -> Scene:
    return Scene(
        f"kyber-{name}",
        f"p4500: 4 cgroups of 4 threads, {words}",
        f"{_TABLE_2} {options}",
        CGROUPS,
        P4500,
        (PLAIN, KYBER_FAIR, BFQ),
    )


MIXED = _four("mixed", "half reads of 4 KiB", "rw=randrw bs=4k")
RANDOM_READ = _four("random-read", "random reads of 4 KiB", "rw=randread bs=4k")
RANDOM_WRITE = _four("random-write", "random writes of 4 KiB", "rw=randwrite bs=4k")
READ = _four("read", "reads of 1 MiB in order", "rw=read bs=1m")
WRITE = _four("write", "writes of 1 MiB in order", "rw=write bs=1m")
TRACES = Scene(
    "kyber-traces",
    "p4500: the sizes of four traces, each weight at each once",
    f"{_TABLE_2} rw=randrw",
    tuple(_traces()),
    P4500,
    (PLAIN, PLAIN_WDT, BFQ),
    rotated=True,
)


BFQ_LOCK = (
    "BFQ's lock lets 267,000 requests a second pass, as on a host of 2024. The model's drive does"
    " 330,000 of this mix, 470,000 random reads, and fewer than BFQ's lock of random writes."
)
ROUNDS = (
    "By default a round ends early if the cgroups with credit leave the drive idle. The heaviest"
    " one keeps 128 requests, fewer than its share of those inside. With `work_conserving=0` it is"
    " 1."
)
IN_ORDER = "The drive's link is the limit under both, and under BFQ one cgroup at a time uses it."


# The paper's drive, and a cgroup for each CPU.
SCALING = Machines(
    "two sockets, 64 CPUs with a cgroup and 128 reads of 1 KiB each, 490,000 IOPS",
    (
        Variant("none", "mqfq", ("policy=none", "drive=490", "ms=20")),
        Variant(KYBER_FAIR, "mqfq", (f"policy={KYBER_FAIR}", "drive=490", "ms=20")),
    ),
    cpus=(64,),
)


LITTLE_MORE = Bound(1, 1.25)
CLOSE = near(1, 0.1)


def _of_four(
    name: str, scene: Scene, stated: float | str, bound: Bound, reason: str
) -> tuple[Entry, ...]:
    return (
        Entry(
            f"4a.{name}",
            "4a",
            "bytes: `kyber-fair` / `bwf2q`",
            stated,
            bound,
            scene,
            total(PLAIN, BFQ),
            reason,
        ),
        Entry(
            f"4a.{name}.none",
            "4a",
            "bytes: `kyber-fair` / `none`",
            "close",
            CLOSE,
            scene,
            total(PLAIN),
        ),
        Entry(
            f"4b.{name}",
            "4b",
            "Jain's index, `kyber-fair`",
            "near 1",
            least(0.99),
            scene,
            index(PLAIN),
        ),
        Entry(
            f"4b.{name}.default",
            "4b",
            "the same, with isolation",
            "near 1",
            least(0.99),
            scene,
            index(KYBER_FAIR),
            ROUNDS,
        ),
    )


# fmt: off
ENTRIES = (
    Entry("1.bfq", "1", "bytes: `bwf2q` / `none`", 0.38,
          near(0.38), MIXED, total(BFQ), BFQ_LOCK),
    Entry("1.bfq.index", "1", "Jain's index, `bwf2q`", "by weight",
          least(0.99), MIXED, index(BFQ)),
    Entry("1.index", "1", "the same, `kyber-fair`", "by weight",
          least(0.99), MIXED, index(PLAIN)),
    *_of_four("random-read", RANDOM_READ, 2.68, near(2.68), BFQ_LOCK),
    *_of_four("random-write", RANDOM_WRITE, 3.61, near(3.61), BFQ_LOCK),
    *_of_four("read", READ, "little more", LITTLE_MORE, IN_ORDER),
    *_of_four("write", WRITE, "little more", LITTLE_MORE, IN_ORDER),
    Entry("5a", "5a", "bytes: `kyber-fair` / `bwf2q`", "1 to 1.33",
          Bound(1, 1.33), TRACES, total(PLAIN, BFQ)),
    Entry("5b", "5b", "Jain's index, `kyber-fair`", "above BFQ's",
          least(0.98), TRACES, index(PLAIN)),
    Entry("5b.bfq", "5b", "the same, `bwf2q`", "near that",
          least(0.9), TRACES, index(BFQ)),
    Entry("6", "6", "IOPS of 64 cgroups: `kyber-fair` / `none`", "close",
          CLOSE, SCALING, at(64, KYBER_FAIR, "none")),
)
# fmt: on

ABSENT = (
    Absent("6", "the same under BFQ", "no program of BFQ runs on the machine model"),
    Absent("5", "the traces themselves", "they are not shipped, so their sizes are drawn"),
)

PAPER = Paper(
    KYBER_FAIR,
    "Son, Oh, Ahn, the *Kyber-fairness* scheduler, Journal of Semiconductor Technology and Science",
    ENTRIES,
    ABSENT,
)
