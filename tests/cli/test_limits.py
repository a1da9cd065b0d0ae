# SPDX-License-Identifier: GPL-2.0
"""mqfair/bench/limits.py: the name of the limit of a simulated run, and its table."""

from __future__ import annotations

import json

import pytest
from conftest import main

from mqfair.bench import limits

IDLE = {"controller": 0.1, "link": 0.1, "channels": 0.1, "planes": 0.2, "busiest_cpu": 0.1}
NONE = {"interval_ms": 100, "inside": [5.0, 10.0]}
FULL = {**NONE, "window": [64, 10]}


@pytest.mark.parametrize(
    ("pressure", "depth", "said"),
    [
        ({}, NONE, "load"),
        ({}, {**NONE, "window": [10, 64]}, "load"),
        ({}, FULL, "slots"),
        ({"busiest_cpu": 0.96}, FULL, "CPU"),
        ({"planes": 0.85, "busiest_cpu": 0.96}, FULL, "drive: planes"),
        ({"planes": 0.85, "link": 0.95}, FULL, "drive: link"),
    ],
)
def test_the_limit_is_the_first_that_is_full(pressure, depth, said):
    assert limits.limit({**IDLE, **pressure}, depth) == said


@pytest.mark.parametrize(
    ("load", "scheduler", "said"),
    [
        ((4, 2), "none", "load"),
        ((512, 16), "none", "drive: controller"),
        ((512, 16), "mqfq:depth=16:isolation=0", "slots"),
        ((256, 1), "none", "CPU"),
    ],
)
def test_a_run_says_its_limit_in_table_and_document(tmp_path, capsys, load, scheduler, said):
    depth, cpus = load
    job = tmp_path / "j.fio"
    job.write_text(
        f"[a]\ncgroup=a\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nnorandommap\n"
        f"iodepth={depth // cpus}\nnumjobs={cpus}\nruntime=200ms\nramp_time=100ms\n"
    )
    out = tmp_path / "r.json"
    device = "ssd:model=980pro,size_mb=256,fill=85,fill_pattern=random,hw_depth=1023"
    argv = ["sim", str(job), "--cpus", str(cpus), "--device", device, "--schedulers", scheduler]
    assert main([*argv, "--json", str(out)]) == 0
    (run,) = json.loads(out.read_text())["runs"]
    assert run["limit"] == said
    table = capsys.readouterr().out.partition("where the limit is")[2].splitlines()
    assert any(line.strip().endswith(said) for line in table), table
