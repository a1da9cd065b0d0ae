# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of ifq, and the runs that show them here."""

from experiments.papers.drives.simulated import PRO_980
from experiments.papers.entry import Absent, Entry, Paper, least, most, near
from experiments.papers.sources import Scene, Test, alone, faster, latency, noted, tail, tails
from mqfair.bench.variant import NONE

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
# The paper's D, and windows of 5 s for all: shorter ones than the paper's 100 s, and longer than a
# turn of all slices. The two readers stand for its traces: a web search engine and a bank, with
# arrivals at random. Six others read as fast as they can.
PLAIN = "ifq:depth=8:isolation=0:window_ms=5000"
# Our reading of a few words, so no figure beside it is judged.
MFAP = "mfap:window_ms=5000"
MFAP_S = f"{MFAP}:slice_ms=10"
_WAITING = "rw=randread iodepth=1 rate_process=poisson"
_READERS = (
    ("websearch", f"{_WAITING} bssplit=8k/40:16k/40:32k/20 rate_iops=150"),
    ("financial", f"{_WAITING} bssplit=512/15:2k/60:4k/20:8k/5 rate_iops=90"),
)
_HEAVY = tuple((f"heavy{n}", "rw=randread bs=64k iodepth=16") for n in range(1, 7))
BESIDE = Scene(
    "ifq-interference",
    "980pro: two readers at random times beside six of depth 16 and 64 KiB",
    "ramp_time=12 runtime=20",
    (*_READERS, *_HEAVY),
    PRO_980,
    (MFAP, MFAP_S, PLAIN),
    cpus=8,
    sockets=1,
)
# The paper's programs and their reads are not at hand. One load that reads and computes in turn
# stands for them. Its weight is 101 of 100, so that CFQ-P can raise it, and 1 % too high.
CFQ = "cfq"
CFQ_P = "cfq:realtime_weight=101"
STF = "stf:depth=8"
START = Scene(
    "ifq-startup",
    "980pro: 16 KiB and 200 µs of computing in turn, beside four of depth 16 and 64 KiB",
    "rw=randread ramp_time=12 runtime=8",
    (("program", "bs=16k thinktime=200 cgroup_weight=101"), *_HEAVY[:4]),
    PRO_980,
    (CFQ, STF, MFAP, PLAIN, CFQ_P),
    cpus=8,
    sockets=1,
)
EXAMPLE = Test("6 slots, weights 2:2:1 given", "ifq", "ifq/example")
DUE = Test("8 slots, 512 MiB/s, windows of 2 s", "ifq", "ifq/due-weights")

# fmt: off
ENTRIES = (
    Entry("1.4k", "1", "bytes: 16 readers / 1, 4 KiB", "rises",
          least(2), READERS, alone("many-4k", "one-4k", NONE)),
    Entry("1.128k", "1", "the same, 128 KiB", "rises",
          least(2), READERS, alone("many-128k", "one-128k", NONE)),
    Entry("3", "3", "p99.9 / mean under MFAP, websearch", "long",
          None, BESIDE, tail("websearch", "mean", MFAP)),
    Entry("4.a", "4", "end of A", 6.17,
          near(6.17, 0.01), EXAMPLE, noted(r"done at ([\d.]+) and")),
    Entry("4.b", "4", "end of B", 8.17,
          near(8.17, 0.01), EXAMPLE, noted(r"done at [\d.]+ and ([\d.]+)")),
    Entry("4.c", "4", "units of C at t = 12", 36.0,
          near(36, 0.01), EXAMPLE, noted(r"C has ([\d.]+) at 12")),
    Entry("5a", "5a", "a weight is off its due, %", "very fair",
          most(10), DUE, noted(r"within ([\d.]+) %")),
    Entry("6.stf", "6", "speed of a program: STF / `cfq`", "better",
          least(1), START, faster("program", STF, CFQ)),
    Entry("6.mfap", "6", "the same, MFAP / STF", "better",
          None, START, faster("program", MFAP, STF)),
    Entry("6.ifq", "6", "the same, `ifq` / MFAP", "very close",
          None, START, faster("program", PLAIN, MFAP)),
    Entry("6.cfq-p", "6", "the same, CFQ-P / `ifq`", "best",
          least(1), START, faster("program", CFQ_P, PLAIN)),
    Entry("7.websearch", "7", "mean latency: MFAP / `ifq`, websearch", "equal",
          None, BESIDE, latency("websearch", "mean", MFAP, PLAIN)),
    Entry("7.financial", "7", "the same, financial", "equal",
          None, BESIDE, latency("financial", "mean", MFAP, PLAIN)),
    Entry("8.short", "8", "p99.9: MFAP / MFAP-S, websearch", "more",
          None, BESIDE, latency("websearch", "p999", MFAP, MFAP_S)),
    Entry("8.websearch", "8", "p99.9: MFAP-S / `ifq`, websearch", "more",
          None, BESIDE, latency("websearch", "p999", MFAP_S, PLAIN)),
    Entry("8.financial", "8", "the same, financial", "more",
          None, BESIDE, latency("financial", "p999", MFAP_S, PLAIN)),
    Entry("9", "9", "p99.9 / median: MFAP-S / `ifq`, websearch", "wider",
          None, BESIDE, tails("websearch", "p50", MFAP_S, PLAIN)),
)
# fmt: on

ABSENT = (
    Absent("3", "the same on a disk", "the simulator has no disk"),
    Absent("5b", "weights under MFAP beside their due", "`mfap` has slices and no weights to read"),
    Absent("6", "the four applications themselves", "their reads are not at hand"),
    Absent("7, 8, 9", "the traces and the web server", "they are not shipped"),
)

PAPER = Paper(
    "ifq",
    "Sui, Ye, Yang, Tong, *An Interference Fair Queueing I/O Scheduler under High Performance"
    " Processors*, Acta Scientiarum Naturalium Universitatis Pekinensis, 2020",
    ENTRIES,
    ABSENT,
)
