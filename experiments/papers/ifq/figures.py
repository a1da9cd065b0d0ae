# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of ifq, and the runs that show them here."""

from experiments.papers.drives.simulated import PRO_980
from experiments.papers.entry import Absent, Entry, Paper, least, most, near
from experiments.papers.sources import Scene, Test, alone, noted
from mqfair.benchlib.variant import NONE

READERS = Scene(
    "ifq-readers",
    "980pro: 1 and 16 readers that wait for each request",
    "rw=randread ramp_time=100ms runtime=1",
    (
        ("one-4k", "bs=4k"),
        ("many-4k", "bs=4k numjobs=16"),
        ("one-128k", "bs=128k"),
        ("many-128k", "bs=128k numjobs=16"),
    ),
    PRO_980,
    (),
    solo=True,
)
EXAMPLE = Test("6 slots, weights 2:2:1 given", "ifq", "ifq/example")
DUE = Test("8 slots, 512 MiB/s, windows of 2 s", "ifq", "ifq/due-weights")

# fmt: off
ENTRIES = (
    Entry("1.4k", "1", "bytes: 16 readers / 1, 4 KiB", "rises",
          least(2), READERS, alone("many-4k", "one-4k", NONE)),
    Entry("1.128k", "1", "the same, 128 KiB", "rises",
          least(2), READERS, alone("many-128k", "one-128k", NONE)),
    Entry("4.a", "4", "end of A", 6.17,
          near(6.17, 0.01), EXAMPLE, noted(r"done at ([\d.]+) and")),
    Entry("4.b", "4", "end of B", 8.17,
          near(8.17, 0.01), EXAMPLE, noted(r"done at [\d.]+ and ([\d.]+)")),
    Entry("4.c", "4", "units of C at t = 12", 36.0,
          near(36, 0.01), EXAMPLE, noted(r"C has ([\d.]+) at 12")),
    Entry("5a", "5a", "a weight is off its due, %", "very fair",
          most(10), DUE, noted(r"within ([\d.]+) %")),
)
# fmt: on

_NO_MFAP = "the simulator has no MFAP"
ABSENT = (
    Absent("3", "p99.9 / mean of MFAP, disk and SSD", f"{_NO_MFAP} and no disk"),
    Absent("5b", "weights under MFAP beside their due", _NO_MFAP),
    Absent("6", "start of four applications", "no CFQ, CFQ-P, STF or MFAP, and not their reads"),
    Absent("7", "mean latency of four traces", f"{_NO_MFAP}; the traces are not shipped"),
    Absent("8", "p99.9: MFAP, MFAP-S, IFQ", _NO_MFAP),
    Absent("9", "latencies of a web server", _NO_MFAP),
)

PAPER = Paper(
    "ifq",
    "Sui, Ye, Yang, Tong, *An Interference Fair Queueing I/O Scheduler under High Performance"
    " Processors*, Acta Scientiarum Naturalium Universitatis Pekinensis, 2020",
    ENTRIES,
    ABSENT,
)
