# SPDX-License-Identifier: GPL-2.0
"""The evaluation of the experiments on interference, on prepared samples."""

import pytest

from experiments.papers.ifq import interference, parallelism
from experiments.papers.ifq.interference import SETTLING, WindowWeights
from mqfair.bench.plan import Case
from mqfair.bench.result import CaseResult, CgroupResult, RunResult
from mqfair.text.errors import Failure, UsageError


def sample(window, **flows):
    return {
        "window": window,
        "flows": {
            name: {"weight_scale_milli": scale, "served_last_bytes": served}
            for name, (scale, served) in flows.items()
        },
    }


def test_the_weights_of_a_window_are_compared_with_its_served_bytes():
    samples = [
        sample(6, user1=(1000, 1), user2=(1000, 1)),
        sample(7, user1=(1000, 1), user2=(1000, 1)),
        sample(8, user1=(1000, 300), user2=(2000, 100)),
        sample(9, user1=(1000, 5), user2=(1000, 5)),
    ]
    found = interference.windows_of(samples, ("user1", "user2"))
    assert [one.number for one in found] == [7, 8]
    # The actual weights are 1 : 1, the due weights 1 : 3.
    assert found[0].due == (0.25, 0.75)
    assert found[0].off == pytest.approx(1.0)
    # The actual weights are 1 : 2, the due weights 1 : 1.
    assert found[1].off == pytest.approx(1 / 3)


def test_a_window_in_which_a_user_was_served_nothing_is_an_error():
    samples = [sample(1, user1=(1000, 1)), sample(2, user1=(1000, 0))]
    with pytest.raises(Failure, match="a user was served nothing"):
        interference.windows_of(samples, ("user1",))


def window(number, heavy):
    return WindowWeights(number, (0.5, 0.5), (0.5, 0.5), (100, 100 if heavy else 10))


def test_of_turns_the_last_windows_of_each_turn_are_judged():
    turn = SETTLING + 3
    found = [window(number, number // turn == 1) for number in range(3 * turn)]
    judged = [one.number for one in interference.settled_windows(found, "turns")]
    assert judged == [8, 9, turn + 8, turn + 9, 2 * turn + 8, 2 * turn + 9]


def test_of_figure_5_all_but_the_first_windows_are_judged():
    found = [window(number, False) for number in range(SETTLING + 2)]
    judged = interference.settled_windows(found, "weights")
    assert [one.number for one in judged] == [SETTLING, SETTLING + 1]


def test_an_unknown_drive_is_named():
    with pytest.raises(UsageError, match="--drives floppy: no such drive: use 8-slots"):
        parallelism.drives_in("8-slots,floppy")


# By depth: the total of the six relative to none, and each reader's p99.9 relative to alone.
def depth_case(totals, tails):
    def run(scheduler, heavy, tail_ns):
        readers = [
            CgroupResult(name, 100, 0.0, 0.0, 0.0, 0.0, {"p999": tail_ns})
            for name in interference.READERS
        ]
        six = CgroupResult("heavy1", 100, 0.0, 0.0, heavy, heavy, {})
        return RunResult(scheduler, 0, heavy, heavy, 1.0, (*readers, six))

    runs = [run("none", 1000.0, 9e6)]
    for depth, total, tail in zip(parallelism.DEPTHS, totals, tails, strict=True):
        runs.append(run(parallelism.label_of(depth), 1000.0 * total, 1e6 * tail))
    case = Case("interference", (), {}, 1.0, 2.0)
    shared = CaseResult(case, tuple(runs), (), {})
    return shared, CaseResult(case, (run("none", 0.0, 1e6),), (), {})


def test_the_least_depth_that_the_six_need_is_judged_by_the_readers():
    shared, lone = depth_case((0.3, 0.6, 0.95, 1.0), (2.0, 2.0, 2.5, 9.0))
    judged = list(parallelism.judge_depth("drive", shared, lone))
    assert [(one.scheduler, one.seen, one.holds) for one in judged] == [
        ("ifq:depth=32", 2.5, True)
    ] * len(interference.READERS)
    shared, lone = depth_case((0.3, 0.6, 0.95, 1.0), (2.0, 2.0, 3.5, 9.0))
    assert not any(one.holds for one in parallelism.judge_depth("drive", shared, lone))


def test_a_lack_of_a_sufficient_depth_is_a_failed_check():
    shared, lone = depth_case((0.1, 0.2, 0.4, 0.8), (1.0, 1.0, 1.0, 1.0))
    (judged,) = parallelism.judge_depth("drive", shared, lone)
    assert (judged.scheduler, judged.holds) == ("ifq:depth=64", False)
