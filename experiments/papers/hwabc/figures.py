# SPDX-License-Identifier: GPL-2.0
"""The figures of the paper of hwabc, and the runs that show them here."""

from experiments.papers.drives.simulated import FOUR_DIES
from experiments.papers.entry import Absent, Entry, Paper, least, most, near
from experiments.papers.sources import Scene, bytes_of, megabytes, total
from mqfair.bench.variant import NONE

# The slots of doc/measurements/hwabc.md, and none of our additions.
HWABC = "hwabc:depth=24:isolation=0:work_conserving=0"
DEFAULT = "hwabc"
GARBAGE = Scene(
    "hwabc-garbage",
    "four-dies: a reader in order and a random writer, depth 16",
    "bs=4k iodepth=16 ramp_time=2 runtime=20",
    (("reader", "rw=read size=40%"), ("writer", "rw=randwrite offset=40% size=45%")),
    FOUR_DIES,
    (HWABC, DEFAULT),
    cpus=4,
    sockets=1,
)

ROUNDS = (
    "By default a round ends early if the cgroups with credit leave the drive idle. The reader"
    " keeps 16 requests, and the writer does not wait for it."
)

# fmt: off
ENTRIES = (
    Entry("2a", "2a", "bytes: reader / writer, `none`", "below 1",
          most(1), GARBAGE, bytes_of("reader", "writer", NONE)),
    Entry("2b", "2b", "the same, `hwabc`", "above 1",
          least(1), GARBAGE, bytes_of("reader", "writer", HWABC)),
    Entry("2b.default", "2b", "the same, `hwabc` with defaults", "above 1",
          least(1), GARBAGE, bytes_of("reader", "writer", DEFAULT),
          ROUNDS),
    Entry("2.none", "2a", "MB/s of both, `none`", 201.0,
          None, GARBAGE, megabytes(NONE)),
    Entry("2.hwabc", "2b", "MB/s of both, `hwabc`", 193.0,
          None, GARBAGE, megabytes(HWABC)),
    Entry("2.total", "2", "bytes of both: `hwabc` / `none`", 0.96,
          near(0.96), GARBAGE, total(HWABC)),
)
# fmt: on

ABSENT: tuple[Absent, ...] = ()

PAPER = Paper(
    "hwabc",
    "Lee, Han, Shin, *Host-Level Workload-Aware Budget Compensation I/O Scheduling for Open-Channel"
    " SSDs*",
    ENTRIES,
    ABSENT,
)
