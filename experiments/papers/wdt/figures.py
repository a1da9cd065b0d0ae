# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of wdt, and the runs that show them here."""

from experiments.machine import Variant
from experiments.papers.drives.simulated import SATA, SLOTS_64
from experiments.papers.entry import Absent, Entry, Paper, least, most
from experiments.papers.kyber_fair.figures import CGROUPS, PLAIN_WDT, TRACES
from experiments.papers.sources import Machines, Scene, at, index, misses, total
from mqfair.bench.variant import NONE

# The drive's 4000 requests of 4 KiB a second, divided by the sum of the weights.
THROTTLE = "throttle:kib_per_weight=8"
MOVING = Scene(
    "wdt-moving",
    "4000 IOPS, four weights, the heaviest idle half of the time",
    "rw=randread bs=4k iodepth=128 ramp_time=1 runtime=8",
    (*CGROUPS[:-1], ("w1000", "cgroup_weight=1000 thinktime=2s thinktime_iotime=2s")),
    SLOTS_64,
    (THROTTLE, PLAIN_WDT),
    cpus=2,
    sockets=1,
)

CFQ = "cfq"
ON_SATA = Scene(
    "wdt-sata",
    "one queue of 32 commands, 100,000 IOPS, four weights",
    "rw=randread bs=4k iodepth=128 ramp_time=1 runtime=8",
    CGROUPS,
    SATA,
    (CFQ,),
    cpus=2,
    sockets=1,
)

# A drive of 16 million IOPS is not the limit, and the paper has no slots.
_FREE = ("policy=wdt", "slots=16384", "drive=16000", "ms=60")
LOCKS = Machines(
    "four sockets, 32 CPUs, a cgroup with 128 requests of 1 KiB on each, 16 million IOPS",
    (Variant("wdt", "mqfq", _FREE), Variant("wdt-", "mqfq", (*_FREE, "single_lock=1"))),
    "four-sockets",
    cpus=(32,),
)

BY_THE_CLOCK = (
    "The cgroup that pauses keeps its credit until the clock ends the interval. The others wait."
    " With `work_conserving=1` it is 1.00."
)

# fmt: off
ENTRIES = (
    Entry("motivation.cfq", "motivation", "Jain's index, `cfq` on SATA", "by weight",
          least(0.95), ON_SATA, index(CFQ)),
    Entry("motivation.none", "motivation", "the same, `none`", "not by weight",
          most(0.9), ON_SATA, index(NONE)),
    Entry("static", "first attempt", "bytes: `throttle` / `none`", "too few",
          most(0.9), MOVING, total(THROTTLE)),
    Entry("dynamic", "TotalCredit", "bytes: `wdt` / `none`", "no idle time",
          least(0.95), MOVING, total(PLAIN_WDT),
          BY_THE_CLOCK),
    Entry("result1", "result 1", "Jain's index of synthetic traces", "by weight",
          least(0.95), TRACES, index(PLAIN_WDT)),
    Entry("result2", "result 2", "IOPS: WDT / WDT-", "more",
          least(1), LOCKS, at(32, "wdt", "wdt-")),
    Entry("locks", "locks", "lines fetched for a request: WDT- / WDT", "38.2 to 12.8 %",
          least(1), LOCKS, misses(32, "wdt-", "wdt")),
)
# fmt: on

ABSENT = (Absent("result 1", "traces of UMass and SNIA", "they are not shipped"),)

PAPER = Paper(
    "wdt",
    "Ahn, La, Kim, *Improving I/O Resource Sharing of Linux Cgroup for NVMe SSDs on Multi-core"
    " Systems*, USENIX HotStorage 2016 (slides)",
    ENTRIES,
    ABSENT,
)
