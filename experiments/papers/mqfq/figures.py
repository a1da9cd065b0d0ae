# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of mqfq, and the runs that show them here."""

from experiments.machine import Variant
from experiments.papers.drives.simulated import BFQ, FABRIC, P3700
from experiments.papers.entry import Absent, Bound, Entry, Paper, least, most, near
from experiments.papers.sources import (
    Drives,
    Machines,
    Scene,
    Test,
    at,
    at_full,
    bytes_of,
    index,
    looks,
    mean_of_drives,
    noted,
    of_drive,
    peak,
    slowdown,
    total,
    variants,
)
from mqfair.bench.variant import MQFQ, NONE

# The algorithm of the paper: D as the paper measured it for the drive, and none of our additions.
_PLAIN = "isolation=0"
ON_SSD = f"mqfq:depth=64:{_PLAIN}"
ON_FABRIC = f"mqfq:depth=128:{_PLAIN}"

_FIO = "rw=randread iodepth=128 ramp_time=300ms runtime=1"
# A turn of BFQ lasts 125 ms.
_LONG_FIO = _FIO.replace("runtime=1", "runtime=4")
_FAST_FIO = "rw=randread ramp_time=100ms runtime=300ms"

SIZES = Scene(
    "mqfq-sizes",
    "p3700: 8 threads of 4 KiB beside 8 of 64 KiB",
    _LONG_FIO,
    (("small", "numjobs=8 bs=4k"), ("large", "numjobs=8 bs=64k")),
    P3700,
    (ON_SSD, BFQ),
)
QUEUES = Scene(
    "mqfq-queues",
    "p3700: 4 threads of 4 KiB beside 8",
    f"{_FIO} bs=4k",
    (("four", "numjobs=4"), ("eight", "numjobs=8")),
    P3700,
    (ON_SSD, BFQ),
    solo=True,
)
WEIGHTS = Scene(
    "mqfq-weights",
    "p3700: weights 1:2:3, 8 threads of 4 KiB each",
    f"{_LONG_FIO} bs=4k numjobs=8",
    tuple((f"w{n}", f"cgroup_weight={n}00") for n in (1, 2, 3)),
    P3700,
    (ON_SSD, BFQ),
    cpus=24,
    solo=True,
)
FULL = Scene(
    "mqfq-fabric",
    "fabric: 16 threads of 1 KiB, depth 128",
    _FAST_FIO,
    (("fio", "bs=1k iodepth=128 numjobs=16"),),
    FABRIC,
    (ON_FABRIC, BFQ),
)
# The two applications are not at hand. These are loads with the properties that the text states.
# The first keeps few requests, and computes between them. The second reads 512 bytes nearly a
# million times a second. The text tells neither the time for computing nor the second's depth. So
# each is fitted to the figure of `none` on the fabric, which is not judged. The paper divides the
# CPUs between the application and fio, and here each has half of them.
_GRAPH = (("graph", "iodepth=1 thinktime=210"), ("fio", "iodepth=128"))
_GRAPH_WORDS = "16 threads that read 4 KiB and compute for 210 µs in turn, 16 with 128 reads"
GRAPH = Drives(
    (
        Scene(
            "mqfq-graph",
            f"fabric: {_GRAPH_WORDS}",
            f"{_FAST_FIO} bs=4k numjobs=16",
            _GRAPH,
            FABRIC,
            (ON_FABRIC, MQFQ, BFQ),
            cpus=32,
            solo=True,
        ),
        Scene(
            "mqfq-graph-ssd",
            "The same on the p3700",
            f"{_FIO} bs=4k numjobs=16",
            _GRAPH,
            P3700,
            (ON_SSD, MQFQ, BFQ),
            cpus=32,
            solo=True,
        ),
    )
)
STORE = Scene(
    "mqfq-store",
    "fabric: a million reads of 512 bytes a second beside 16 threads of 4 KiB",
    f"{_FAST_FIO} numjobs=16",
    (("store", "bs=512 iodepth=7 rate_iops=62500"), ("fio", "bs=4k iodepth=128")),
    FABRIC,
    (ON_FABRIC, MQFQ, BFQ),
    cpus=32,
    solo=True,
)
# T is 1 MiB where the paper's T is the least that costs no throughput (experiments/machine.py).
PEAKS = Machines("two sockets, 1 to 64 CPUs", variants("none", "mqfq", "one lock"))
SLOTS = Machines("two sockets, 32 CPUs", variants("mqfq", "counter", "bitmap"), cpus=(32,))
# The drive of the model is faster than the paper's. There 32 CPUs did not fill it.
_FAST = ("drive=16000",)
SAME = (
    "Over runs of 8 to 14 ms the IOPS are 0.94 to 1.01, and the runs of a queue 0.91 to 1. So the"
    " wheel does no more than polling here."
)
CLOCK = Machines(
    "two sockets, 32 CPUs, 16 million IOPS",
    (
        Variant(MQFQ, "mqfq", _FAST),
        Variant("scan", "scan", _FAST),
        Variant("polling 1 us", "poll", (*_FAST, "poll_ns=1000")),
        Variant("polling 5 us", "poll", (*_FAST, "poll_ns=5000")),
    ),
    cpus=(32,),
)
_MIXES = "random mixes of loads"
ONE = Test(_MIXES, "mqfq", "bound/one-at-a-time")
WIDE = Test(_MIXES, "mqfq", "bound/threshold")
DEEP = Test(_MIXES, "mqfq", "bound/depth")

_FAIR = near(1, 0.02)
_BOTH = (ON_FABRIC, ON_SSD)
_GRAPH_MQFQ = mean_of_drives(*(slowdown("graph", label) for label in _BOTH))
_FIO_MQFQ = mean_of_drives(*(slowdown("fio", label) for label in _BOTH))
_PART = noted(r"difference is (\d+) permille", 0.001)

BFQ_ALL_OUT = (
    "1024 requests of 4 KiB are less than a budget. All are in the drive then, and their cgroup"
    " misses turns. With `budget_kb=65536` the ratio is 1.01."
)
BFQ_LOCK = (
    "BFQ's lock lets 267,000 requests a second pass, as on a host of 2024. The paper's did 155,000."
)
FIO_ALONE = (
    "Alone, the model's fio does 3 million requests a second. Beside the store it gets a bit more"
    " than half of what BFQ's lock lets pass."
)
LINE = (
    "A request waits 34 of its 39 µs for the counter's line, and 18 of 22 for the bitmap's. The"
    " paper's numbers mean about half of that."
)
LAZY = (
    "A queue publishes its tag only if that moves the least tag, so the array is scanned less often"
    " than in the paper, at each dispatch."
)
# fmt: off
ENTRIES = (
    Entry("5.sizes.none", "5 left", "bytes: 64 KiB / 4 KiB, `none`", "as sizes, 16",
          near(16, 0.1), SIZES, bytes_of("large", "small", NONE)),
    Entry("5.sizes.mqfq", "5 left", "the same, `mqfq`", "equal",
          _FAIR, SIZES, bytes_of("large", "small", ON_SSD)),
    Entry("5.sizes.bfq", "5 left", "the same, `bwf2q`", "equal",
          _FAIR, SIZES, bytes_of("large", "small", BFQ),
          BFQ_ALL_OUT),
    Entry("5.queues.none", "5 middle", "bytes: 8 threads / 4, `none`", "as queues, 2",
          near(2, 0.1), QUEUES, bytes_of("eight", "four", NONE)),
    Entry("5.queues.mqfq", "5 middle", "the same, `mqfq`", "equal",
          _FAIR, QUEUES, bytes_of("eight", "four", ON_SSD)),
    Entry("5.queues.four", "5 middle", "slowdown of 4 threads, `mqfq`", 2.0,
          near(2, 0.1), QUEUES, slowdown("four", ON_SSD)),
    Entry("5.queues.eight", "5 middle", "slowdown of 8 threads, `mqfq`", 2.0,
          near(2, 0.1), QUEUES, slowdown("eight", ON_SSD)),
    Entry("5.weights.mqfq", "5 right", "Jain's index, `mqfq`", "by weight",
          least(0.99), WEIGHTS, index(ON_SSD)),
    Entry("5.weights.bfq", "5 right", "the same, `bwf2q`", "by weight",
          least(0.99), WEIGHTS, index(BFQ)),
    Entry("5.weights.w1", "5 right", "slowdown of weight 1, `mqfq`", "its share, 6",
          near(6, 0.1), WEIGHTS, slowdown("w1", ON_SSD)),
    Entry("5.weights.w3", "5 right", "slowdown of weight 3, `mqfq`", "its share, 2",
          near(2, 0.1), WEIGHTS, slowdown("w3", ON_SSD)),
    Entry("5.cost", "5", "bytes of all: `mqfq` / `bwf2q`", "much more",
          least(1), WEIGHTS, total(ON_SSD, BFQ)),
    Entry("6.graph.none", "6", "slowdown of the graph scan, `none`, fabric", 3.78,
          None, GRAPH, of_drive(0, slowdown("graph", NONE))),
    Entry("6.graph.mqfq", "6", "the same, `mqfq` of the paper, mean of both drives", 1.33,
          near(1.33), GRAPH, _GRAPH_MQFQ),
    Entry("6.graph.default", "6", "the same, `mqfq` with defaults", 1.33,
          near(1.33), GRAPH, mean_of_drives(slowdown("graph", MQFQ), slowdown("graph", MQFQ))),
    Entry("6.graph.bfq", "6", "the same, `bwf2q`, fabric", "below 2",
          Bound(1, 2), GRAPH, of_drive(0, slowdown("graph", BFQ))),
    Entry("6.fio.mqfq", "6", "slowdown of fio, `mqfq` of the paper, mean of both drives", 1.14,
          near(1.14), GRAPH, _FIO_MQFQ),
    Entry("7.store.none", "7", "slowdown of the store, `none`", 6.57,
          None, STORE, slowdown("store", NONE)),
    Entry("7.store.mqfq", "7", "the same, `mqfq` of the paper", 1.03,
          near(1.03), STORE, slowdown("store", ON_FABRIC)),
    Entry("7.store.default", "7", "the same, `mqfq` with defaults", 1.03,
          near(1.03), STORE, slowdown("store", MQFQ)),
    Entry("7.fio.mqfq", "7", "slowdown of fio, `mqfq` of the paper", 1.2,
          near(1.2), STORE, slowdown("fio", ON_FABRIC)),
    Entry("7.fio.bfq", "7", "the same, `bwf2q`", 15.0,
          near(15), STORE, slowdown("fio", BFQ),
          FIO_ALONE),
    Entry("8.none", "8", "`mqfq` / `none` where `none` first fills the drive", 0.71,
          near(0.71), PEAKS, at_full("mqfq", "none")),
    Entry("8.serial", "8", "peak: `mqfq` / one lock", 2.6,
          near(2.6), PEAKS, peak("mqfq", "one lock")),
    Entry("8.bfq", "8", "IOPS: `mqfq` / `bwf2q`", 20.0,
          near(20), FULL, total(ON_FABRIC, BFQ),
          BFQ_LOCK),
    Entry("9", "9", "IOPS: mindicator / array scan", 1.4,
          near(1.4), CLOCK, at(32, MQFQ, "scan"),
          LAZY),
    Entry("10.1us", "10 left", "IOPS: wheel / polling each 1 µs", "more",
          least(1), CLOCK, at(32, MQFQ, "polling 1 us")),
    Entry("10.5us", "10 left", "IOPS: wheel / polling each 5 µs", "more",
          least(1), CLOCK, at(32, MQFQ, "polling 5 us"),
          SAME),
    Entry("10.looks", "10 right", "runs of a queue for a request: polling 1 µs / wheel", "more",
          least(1), CLOCK, looks(32, "polling 1 us", MQFQ),
          SAME),
    Entry("11.counter", "11", "IOPS: token tree / counter", 2.0,
          near(2), SLOTS, at(32, "mqfq", "counter"),
          LINE),
    Entry("11.bitmap", "11", "IOPS: token tree / bitmap", 1.36,
          near(1.36), SLOTS, at(32, "mqfq", "bitmap"),
          LINE),
    Entry("depth.ssd", "section 4", "bytes: `mqfq` with D = 64 / `none`", "all",
          near(1, 0.05), WEIGHTS, total(ON_SSD)),
    Entry("depth.fabric", "section 4", "bytes: `mqfq` with D = 128 / `none`", "all",
          near(1, 0.05), FULL, total(ON_FABRIC)),
    Entry("theorem1.sfq", "theorem 1", "greatest difference / bound, T = 0", 1.0,
          most(1), ONE, _PART),
    Entry("theorem1", "theorem 1", "the same, T up to 1 MiB", 1.0,
          most(1), WIDE, _PART),
    Entry("theorem2", "theorem 2", "the same, D up to 128", 1.0,
          most(1), DEEP, _PART),
)
# fmt: on

ABSENT = (
    Absent("5 bottom", "the fabric's half of figure 5", "its text has no number beyond the SSD's"),
    Absent(
        "7 on the SSD",
        "the store and fio with half of the drive each",
        "the text does not say the size of fio's requests, and halves depend on it",
    ),
    Absent("table 1", "the machine", "a set-up without a result"),
)

PAPER = Paper(
    "mqfq",
    "Hedayati, Shen, Scott, Marty, *Multi-Queue Fair Queueing*, USENIX ATC 2019",
    ENTRIES,
    ABSENT,
)
