# SPDX-License-Identifier: GPL-2.0
"""The start-up experiment: reads from the block tracepoints, and the trace that is replayed."""

import csv

from experiments.papers.ifq import startup, startup_guest
from experiments.papers.ifq.startup_guest import Issue, issues_of, read_trace

EVENTS = """\
 python3-9 [000] d..1.  1.000100: block_rq_issue: 252,0 R 4096 () 100 + 8 [python3]
 python3-9 [000] d..1.  1.000150: block_rq_issue: 252,0 RA 8192 () 200 + 16 [python3]
 python3-9 [000] d..1.  1.000160: block_rq_issue: 252,0 WS 4096 () 900 + 8 [python3]
  <idle>-0 [000] d.h1.  1.000400: block_rq_complete: 252,0 RA () 200 + 16 [0]
 python3-9 [000] d..1.  1.000450: block_rq_issue: 252,0 R 4096 () 300 + 8 [python3]
  <idle>-0 [000] d.h1.  1.000500: block_rq_complete: 252,0 R () 100 + 8 [0]
 python3-9 [000] d..1.  1.000503: block_rq_issue: 252,0 R 4096 () 400 + 8 [python3]
"""
ISSUES = [
    Issue(-1, 100, 100, 8),
    Issue(-1, 150, 200, 16),
    Issue(1, 50, 300, 8),
    Issue(0, 3, 400, 8),
]


def test_each_read_follows_the_last_completion_before_it():
    assert issues_of(EVENTS.splitlines(), start_us=1_000_000) == ISSUES


def test_a_trace_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "startup.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(startup_guest.COLUMNS)
        writer.writerows((one.after, one.think_us, one.sector, one.sectors) for one in ISSUES)
    assert read_trace(path) == ISSUES
    assert startup.describe(path) == "startup.csv: 4 reads, 0.0 MB"
