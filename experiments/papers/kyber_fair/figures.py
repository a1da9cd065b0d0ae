# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of kyber-fair, and the runs that show them here."""

from collections.abc import Iterator

from experiments import harness
from experiments.machine import Variant
from experiments.papers.drives.simulated import BFQ, P4500
from experiments.papers.entry import Absent, Bound, Entry, Paper, least, most
from experiments.papers.sources import Machines, Scene, at, index, total
from mqfair.bench import jobfile

KYBER_FAIR = "kyber-fair"
# The algorithms of the papers, without our isolation.
# Without isolation, and with the targets of Kyber.
PLAIN = f"{KYBER_FAIR}:isolation=0:read_lat_us=2000:write_lat_us=10000"
PLAIN_WDT = "wdt:isolation=0"
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
ISOLATION = "Isolation is the cause: the row above has `isolation=0`."


# The paper's drive, and a cgroup for each CPU.
SCALING = Machines(
    "two sockets, 64 CPUs with a cgroup and 128 reads of 1 KiB each, 490,000 IOPS",
    (
        Variant("none", "mqfq", ("policy=none", "drive=490", "ms=20")),
        Variant(KYBER_FAIR, "mqfq", (f"policy={KYBER_FAIR}", "drive=490", "ms=20")),
    ),
    cpus=(64,),
)


def _of_four(name: str, scene: Scene, stated: float | str, bound: Bound) -> tuple[Entry, ...]:
    return (
        Entry(
            f"4a.{name}",
            "4a",
            "bytes: `kyber-fair` / `bwf2q`",
            stated,
            bound,
            scene,
            total(PLAIN, BFQ),
            BFQ_LOCK,
        ),
        Entry(
            f"4a.{name}.none",
            "4a",
            "bytes: `kyber-fair` / `none`",
            "close",
            least(0.9),
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
            ISOLATION,
        ),
    )


# fmt: off
ENTRIES = (
    Entry("1.bfq", "1", "bytes: `bwf2q` / `none`", 0.38,
          most(0.38), MIXED, total(BFQ), BFQ_LOCK),
    Entry("1.bfq.index", "1", "Jain's index, `bwf2q`", "by weight",
          least(0.99), MIXED, index(BFQ)),
    Entry("1.index", "1", "the same, `kyber-fair`", "by weight",
          least(0.99), MIXED, index(PLAIN)),
    *_of_four("random-read", RANDOM_READ, 2.68, least(2.68)),
    *_of_four("random-write", RANDOM_WRITE, 3.61, least(3.61)),
    *_of_four("read", READ, "little more", least(1)),
    *_of_four("write", WRITE, "little more", least(1)),
    Entry("5a", "5a", "bytes: `kyber-fair` / `bwf2q`", "1 to 1.33",
          least(1), TRACES, total(PLAIN, BFQ)),
    Entry("5b", "5b", "Jain's index, `kyber-fair`", "above BFQ's",
          least(0.98), TRACES, index(PLAIN)),
    Entry("5b.bfq", "5b", "the same, `bwf2q`", "near that",
          least(0.9), TRACES, index(BFQ)),
    Entry("6", "6", "IOPS of 64 cgroups: `kyber-fair` / `none`", "close",
          least(0.9), SCALING, at(64, KYBER_FAIR, "none")),
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
