# SPDX-License-Identifier: GPL-2.0
"""experiments.fidelity: the rows of its table, and the bounds that it checks."""

import argparse
import dataclasses
import json

import pytest

from experiments import fidelity
from mqfair.bench.result import CgroupResult
from mqfair.text.errors import UsageError


def group(share, p99_ms):
    return CgroupResult("a", 100, 0.5, share, 1.0, 1.0, {"p99": p99_ms * 1e6})


def row(shares, p99s):
    seeds = [group(share, p99) for share, p99 in zip(shares, p99s, strict=True)]
    return fidelity.Row("job", "mqfq", [[group(0.5, 10)]], [seeds])


def test_median_of_the_seeds_is_compared_and_a_large_deviation_is_bold():
    near = row([0.4, 0.51, 0.6], [1, 12, 90])
    assert near.share_off == pytest.approx([0.02])
    assert near.p99_off == pytest.approx([0.2])
    assert near.cells()[4] == "+2.0"
    far = row([0.3, 0.4, 0.4], [12, 13, 20])
    assert far.cells()[4] == "**-20.0**"
    assert far.cells()[7] == "**+30.0**"
    assert [check.holds for check in fidelity.judge([near, far])] == [True, True, False, False]


def test_a_row_has_all_cgroups_and_tells_the_worst():
    found = fidelity.Row(
        "job",
        "wdt",
        [[group(0.2, 10), group(0.22, 10), group(0.2, 10)], [group(0.8, 40)]],
        [[group(0.208, 10)], [group(0.72, 60)]],
    )
    assert found.cells() == [
        *("job", "wdt", "20.00, 80.00 ± 10 %", "20.80, 72.00", "**-10.0**"),
        *("10, 40 ± 0 %", "10, 60", "**+50.0**"),
    ]
    assert [check.holds for check in fidelity.judge([found])] == [True, True, False, False]


DOCUMENT = """\
<!-- summary -->
<!-- end -->
<!-- table -->
| head |
|---|
| nested | none | 1 | 2 | **+9.0** | 3 | 4 | **-30.0** |
| flash-randread | none | 5 | 6 | +0.0 | 7 | 8 | +1.0 |
| nested | mqfq | 9 | 9 | **+9.0** | 9 | 9 | +9.0 |
<!-- end -->
"""


def test_the_rows_of_the_cases_that_ran_replace_theirs_and_all_rows_are_counted():
    found = dataclasses.replace(row([0.5], [10]), case="nested")
    text = fidelity.updated(DOCUMENT, [found])
    assert text.splitlines()[1] == (
        "Of 2 rows 2 have all shares within 5 %, and 2 all p99 within 25 %."
    )
    lines = text.splitlines()[4:-1]
    assert len({line.count("|") for line in lines}) == 1
    assert lines[2:] == [
        "| flash-randread | none | 5 | 6 | +0.0 | 7 | 8 | +1.0 |",
        "| nested | mqfq | 50.00 | 50.00 | +0.0 | 10 | 10 | +0.0 |",
    ]
    again = fidelity.updated(DOCUMENT, [dataclasses.replace(found, case="traces")])
    assert "Of 4 rows 2 have all shares within 5 %, and 3 all p99" in again


def test_median_of_several_runs_of_the_guest_is_compared():
    found = dataclasses.replace(row([0.5], [10]), guest=[[group(s, 20) for s in (0.2, 0.4, 0.9)]])
    assert found.share_off == pytest.approx([0.25])
    assert found.cells()[2:5] == ["40.00 ± 125 %", "50.00", "**+25.0**"]


def bench(accel, *shares):
    """A document of the bench with a run for each of @shares."""
    runs = [
        {"scheduler": "mqfq", "cgroups": [dataclasses.asdict(group(share, 10))]} for share in shares
    ]
    return {"job": "nested", "where": {"accel": accel}, "runs": runs}


def test_runs_of_a_guest_are_read_from_several_files_and_those_of_the_simulator_are_not(tmp_path):
    names = []
    for number, results in enumerate(([bench("tcg", 0.1), bench("sim", 0.7)], [bench("tcg", 0.3)])):
        names.append(str(tmp_path / f"{number}.json"))
        (tmp_path / f"{number}.json").write_text(json.dumps({"results": results}))
    found = fidelity.read_guest(names)
    assert [one[0].share for one in found["nested", "mqfq"]] == [0.1, 0.3]
    with pytest.raises(UsageError, match="--guest: no run of nested under none: name its file"):
        fidelity.run(argparse.Namespace(document=None, cases="nested", guest=names))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"results": [{"where": {}}]}'])
def test_wrong_file_of_a_guest_is_named(tmp_path, text):
    file = tmp_path / "wrong.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"--guest .*wrong.json: not a file that --json wrote"):
        fidelity.read_guest([str(file)])
    with pytest.raises(UsageError, match="absent: No such file or directory: name a file"):
        fidelity.read_guest([str(tmp_path / "absent")])


def test_each_case_has_a_job_file():
    assert len(fidelity.CASES) == 15
    assert all((job.folder / f"{name}.fio").is_file() for name, job in fidelity.CASES.items())


def test_document_without_a_place_for_the_table_is_refused_before_a_run(tmp_path):
    text = tmp_path / "d.md"
    text.write_text("# no table\n")
    with pytest.raises(UsageError, match="no place for summary, table"):
        fidelity.run(argparse.Namespace(document=text, cases="nested"))
