# SPDX-License-Identifier: GPL-2.0
"""The evaluation of the experiment on garbage collection, on prepared samples."""

import argparse

import pytest

from experiments.harness import EXAMPLES
from experiments.papers.hwabc import garbage, garbage_guest
from mqfair.bench import jobfile
from mqfair.text.errors import UsageError


def asked(**options):
    return argparse.Namespace(
        **{"scale": 3, "seconds": 2.0, "size_mb": 256, "raw": None, **options}
    )


def sample(at, read, written, **more):
    served = {"reader": {"rbytes": read, "rios": 1}, "writer": {"wbytes": written, "wios": 1}}
    return {"at": at, "served": served, **more}


def test_rates_are_in_the_drives_own_time():
    steps = [sample(100 + 0.3 * n, 3e6 * n, 6e6 * n) for n in range(11)]
    # The first WARM_S seconds are not counted.
    steps[0]["served"]["reader"]["rbytes"] = -1e9
    found = garbage.rates(steps, scale=3)
    assert found == pytest.approx({"reader": 30.0, "writer": 60.0})


def test_labels_are_shortened_by_their_common_part():
    whole = garbage.label("hwabc", 3, alpha_pct=50)
    own = f"depth={garbage.SLOTS}:period_ms=300:budget_ms=30"
    assert whole == f"hwabc:{own}:alpha_pct=50"
    assert garbage.short(whole, 3) == "hwabc:alpha_pct=50"
    assert garbage.short(garbage.label("mqfq", 3), 3) == "mqfq"


def test_scenarios_are_read_as_they_were_written(tmp_path):
    job = jobfile.load(str(EXAMPLES / "hot-and-spread.fio"))
    scenarios = [
        garbage.scenario(asked(), job, "none", only="hot"),
        garbage.costs_scenario(asked()),
    ]
    assert [load.group for load in scenarios[0].loads] == ["hot"]
    assert scenarios[0].seconds == 6.0
    assert [load.start_s for load in scenarios[1].loads] == pytest.approx([0, 0, 1.2, 2.4, 2.4])
    garbage_guest.write_plan(scenarios, tmp_path / garbage_guest.PLAN)
    assert garbage_guest.read_plan(tmp_path / garbage_guest.PLAN) == scenarios
    with pytest.raises(UsageError, match="holds other runs"):
        garbage.run_scenarios(asked(raw=tmp_path), scenarios[:1])


def test_kept_samples_are_judged_again(tmp_path):
    scenarios = [garbage.costs_scenario(asked())]
    garbage_guest.write_plan(scenarios, tmp_path / garbage_guest.PLAN)
    (tmp_path / garbage_guest.samples_name(0)).write_text("[1, 2]")
    assert garbage.run_scenarios(asked(raw=tmp_path), scenarios) == [[1, 2]]


def test_the_drives_time_for_a_page():
    before = sample(0, 0, 0, owners={"reader": {"busy_us": 5000}})
    owners = {"reader": {"busy_us": 13000}, "writer": {"busy_us": 40000}}
    after = sample(1, 4096 * 100, 4096 * 50, owners=owners)
    assert garbage.spent_us(before, after, "reader") == pytest.approx(80)
    assert garbage.spent_us(before, after, "writer") == pytest.approx(800)
    assert garbage.spent_us(after, after, "reader") is None


def test_a_page_costs_a_request_and_its_sectors():
    state = {
        "request_ps.read": 40e6, "sector_ps.read": 5e6, "request_ps.write": 10e6,
        "sector_ps.write": 1e6,
    }  # fmt: skip
    assert garbage.learned_us(state, "read") == pytest.approx(80)
    assert garbage.learned_us(state, "write") == pytest.approx(18)


def test_the_reader_is_judged_beside_none():
    default = garbage.label("hwabc", 3)
    found = {"none": {"reader": 20.0, "writer": 30.0}, default: {"reader": 40.0, "writer": 7.0}}
    checks = list(garbage.judge_reader(found, [default], 3))
    assert [one.holds for one in checks] == [True, True, False]
    assert checks[2].seen == pytest.approx(0.94)
