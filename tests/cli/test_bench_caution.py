# SPDX-License-Identifier: GPL-2.0
"""Figures of a bench that need a caution."""

import pytest
from test_bench_interrupt import MACHINE
from test_bench_result import record

from mqfair.bench import jobfile, report, session


def test_a_ratio_of_single_runs_has_a_caution(four):
    def notes(**options):
        asked = session.Request((jobfile.load(str(four)),), **options)
        return [note for note in session._notes(asked, MACHINE) if "single runs" in note]

    assert len(notes(schedulers=("none", "bfq"))) == 1
    assert notes(schedulers=("none", "bfq"), repeat=2) == []
    assert notes(schedulers=("bfq",)) == []
    # Counted time repeats exactly.
    assert notes(schedulers=("none", "bfq"), icount=True, cpus=1) == []


@pytest.mark.parametrize(("repeats", "said"), [(1, True), (2, False)])
def test_the_column_of_single_ratios_says_so(four, tmp_path, repeats, said):
    for repeat in range(repeats):
        for number, name in enumerate(("none", "bfq")):
            record(tmp_path, 2 * repeat + number, scheduler=name, repeat=repeat,
                   rates={"a": 100, "b": 300}, end_ms=5000)  # fmt: skip
    case = session._case(jobfile.load(str(four)), session.Request(()))
    table = report.scheduler_table(session.analyse(tmp_path, case))
    headers = [str(column.header) for column in table.columns]
    assert ("ratio to none (one run)" in headers) == said
