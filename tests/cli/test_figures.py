# SPDX-License-Identifier: GPL-2.0
"""experiments.papers: the table of figures, the values that it reads, and its page."""

import dataclasses
import json
from dataclasses import dataclass

import pytest
from conftest import ROOT

from experiments import machine
from experiments.papers import __main__ as command
from experiments.papers import sources
from experiments.papers.entry import Absent, Entry, Paper, least, most, near
from experiments.papers.page import Measured, full_name, page
from experiments.papers.sources import Options, Player, scenes_of
from mqfair.bench.plan import Case, PlannedGroup
from mqfair.bench.result import CaseResult, CgroupResult, RunResult, SoloResult
from mqfair.bench.simulated import session
from mqfair.text.errors import Failure, UsageError

ENTRIES = [(paper, entry) for paper in command.PAPERS for entry in paper.entries]
SCENES = list(dict.fromkeys(s for _, e in ENTRIES for s in scenes_of(e.source)))


@dataclass(frozen=True)
class Fixed:
    """A source that returns its words, and counts how often it is played."""

    words: str
    plays: list = None

    def play(self, _options):
        self.plays.append(self.words)
        return [1.0, 3.0, 2.0]

    def __hash__(self):
        return hash(self.words)


def entry(stated=2.0, bound=None, name="1", source=None):
    source = source or Fixed("jobs", [])
    return Entry(name, "1", "IOPS", stated, bound, source, lambda r: r, "The drive is slow.")


def paper(*entries, absent=()):
    return Paper("mqfq", "A title", entries, absent)


def test_each_scene_is_one_that_the_simulator_accepts():
    for scene in SCENES:
        request = scene.request(Options())
        session.check(request)
        session._scenes(request)


def test_each_figure_has_a_name_of_its_own():
    names = [full_name(paper, entry) for paper, entry in ENTRIES]
    assert len(set(names)) == len(names)
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_a_number_in_the_text_of_a_paper_has_a_bound_on_its_side():
    for _, one in ENTRIES:
        if not isinstance(one.stated, str) and one.bound:
            assert one.bound.holds(one.stated), one.name


def test_page_in_doc_has_each_figure_and_each_absent_one():
    text = (ROOT / "doc" / "figures.md").read_text()
    for paper_of, one in ENTRIES:
        assert f"| `{full_name(paper_of, one)}` | {one.place} | {one.what} |" in text
    for one in command.PAPERS:
        for absent in one.absent:
            assert f"| {absent.place} | {absent.what} | {absent.reason} |" in text


def test_reason_stands_below_a_figure_that_differs_and_nowhere_else():
    seen = [Measured(entry(2.0, least(2)), [1.0, 1.5], 60), Measured(entry(2.0, most(2)), [1.0], 6)]
    text = page([(paper(), seen)])
    assert "| ≥ 2 | **1.25 (1 … 1.5)** | 0.62 | 60 |" in text
    assert "| ≤ 2 | 1 | 0.50 | 6 |" in text
    assert text.count("The drive is slow.") == 1
    assert "1 of 2 bounds hold" in text


def test_words_of_a_paper_have_no_ratio_and_a_figure_without_bound_is_not_judged():
    text = page([(paper(), [Measured(entry("rises"), [7.0], 1)])])
    assert "| rises |  | 7 |  | 1 |" in text
    assert "0 of 0 bounds hold" in text
    assert "differ:" not in text


def test_absent_figures_stand_in_a_table_of_their_own():
    text = page([(paper(absent=(Absent("8", "BFQ", "no BFQ here"),)), [])])
    assert "| 8 | BFQ | no BFQ here |" in text


def test_runs_behind_several_figures_are_played_and_counted_once():
    source = Fixed("jobs", [])
    both = [entry(name="1", source=source), entry(name="2", source=source)]
    player = Player(Options())
    seen = [Measured(one, one.read(player.play(one.source)), 90) for one in both]
    assert source.plays == ["jobs"]
    assert seen[0].seen == 2
    assert "in 2 minutes" in page([(paper(), seen)])
    assert "- `1`, `2`: jobs" in page([(paper(), seen)])


def test_page_can_be_written_again_from_the_values_of_a_run(tmp_path):
    values = {"values": [1.0, 3.0, 2.0], "seconds": 5.0}
    file = tmp_path / "f.json"
    file.write_text(json.dumps({"figures": [{"name": "mqfq.9", **values}]}))
    [(_, [one])] = command.read_results(command.choose(["mqfq.9"]), str(file))
    assert (one.entry.name, one.seen, one.seconds) == ("9", 2.0, 5.0)
    again = command.document([(command.PAPERS[0], [one])])
    assert again["figures"][0]["values"] == values["values"]
    with pytest.raises(UsageError, match=r"no 'mqfq.8.none': name a file of --json all"):
        command.read_results(command.choose(["mqfq.8.none"]), str(file))
    file.write_text("[1]")
    with pytest.raises(UsageError, match="not a file that --json wrote"):
        command.read_results(command.choose(["mqfq.9"]), str(file))
    with pytest.raises(UsageError, match="No such file"):
        command.read_results(command.choose(["mqfq.9"]), str(tmp_path / "absent"))


def test_names_choose_a_figure_a_paper_or_all():
    one = command.choose(["mqfq.9"])
    assert [(p.scheduler, [e.name for e in found]) for p, found in one] == [("mqfq", ["9"])]
    assert [p.scheduler for p, _ in command.choose(["ifq", "mqfq.9"])] == ["mqfq", "ifq"]
    assert len(command.choose(["all"])) == len(command.PAPERS)
    with pytest.raises(
        UsageError, match=r"no figure 'mqfq.99': use all, mqfq, .* of --list: did you mean"
    ):
        command.choose(["mqfq.99"])


def test_command_refuses_no_name_and_a_page_of_some_figures(tmp_path, capsys):
    assert command.main([]) == 2
    assert "no figure is named" in capsys.readouterr().err
    assert command.main(["mqfq.9", "--document", str(tmp_path / "d.md")]) == 2
    assert "the page has all figures: name all" in capsys.readouterr().err
    assert command.main(["all", "--json", str(tmp_path / "absent" / "f.json")]) == 2


def test_show_prints_a_job_file_with_its_command(capsys):
    assert command.main(["mqfq.5.sizes.none", "--show"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# mqfair sim mqfq-sizes.fio --cpus 16 --sockets 2 --schedulers none,")
    assert "\n[small]\ncgroup=small\nnumjobs=8\nbs=4k\n" in text


def group(name, rate):
    return CgroupResult(name, 100, 0.5, rate / 400, 1.0, rate, {})


def case(runs, solo=()):
    named = tuple(PlannedGroup(name, ()) for name in ("a", "b"))
    return CaseResult(Case("job", named, {"a": 100, "b": 100}, 0, 1), runs, solo, {})


def run(scheduler, repeat, a, b, jain=1.0):
    groups = (group("a", a), group("b", b))
    return RunResult(scheduler, repeat, 1.0, a + b, jain, groups)


def test_totals_are_compared_within_a_seed():
    cases = [case((run("none", 0, 10, 10), run("x", 0, 5, 5), run("none", 1, 4, 4)))]
    assert sources.total("x")(cases) == [0.5]
    assert sources.index("none")(cases) == [1.0, 1.0]
    assert sources.bytes_of("a", "b", "x")([case((run("x", 0, 6, 3),))]) == [2.0]
    assert sources.megabytes("x")([case((run("x", 0, 6e6, 3e6),))]) == [9.0]


def beside(alone, shared):
    """A case in which cgroup a has the rate @alone without a scheduler, and @shared under x."""
    solo = (
        SoloResult("x", 0, "a", 30, 10, 3.0),
        SoloResult("x", 0, "b", 15, 10, 1.5),
        SoloResult("none", 0, "a", alone, 9, 11.0),
    )
    return case((run("x", 0, shared, 3),), solo)


def test_slowdown_and_rates_alone_are_those_of_the_named_cgroup():
    cases = [beside(99, 9)]
    assert sources.slowdown("a", "x")(cases) == [11.0]
    assert sources.alone("a", "b", "x")(cases) == [2.0]


def test_figures_of_one_drive_and_their_mean_over_two():
    cases = [beside(99, 9), beside(30, 10)]
    assert sources.of_drive(1, sources.slowdown("a", "x"))(cases) == [3.0]
    both = [sources.slowdown("a", "x")] * 2
    assert sources.mean_of_drives(*both)(cases) == [7.0]


def test_drives_play_the_cases_of_all_scenes(monkeypatch):
    monkeypatch.setattr(sources.Scene, "play", lambda scene, _options: (scene.name,))
    one = SCENES[0]
    both = sources.Drives((one, dataclasses.replace(one, name="other", words="another drive")))
    assert both.play(Options()) == (one.name, "other")
    assert both.words == f"{one.words}. another drive"


def waiting(scheduler, p50, p999):
    groups = (dataclasses.replace(group("a", 1), lat_ns={"p50": p50, "p999": p999}),)
    return RunResult(scheduler, 0, 1.0, 1, 1, groups)


def test_latencies_and_their_tails_are_compared():
    cases = [case((waiting("x", 2.0, 40.0), waiting("y", 1.0, 5.0)))]
    assert sources.latency("a", "p999", "x", "y")(cases) == [8.0]
    assert sources.tail("a", "p50", "x")(cases) == [20.0]
    assert sources.tails("a", "p50", "x", "y")(cases) == [4.0]


def machine_run(variant, cpus, rate, looks):
    fetched = [0.5 * looks, 0, 0, 0.5 * looks]
    return machine.Run("epyc", variant, cpus, rate, 1, 1, 1, fetched, 0, 0, 0, looks, {})


def test_peaks_runs_at_a_number_of_cpus_and_looks_are_compared():
    results = machine.Results(
        [
            machine_run("a", 8, 6e6, 1),
            machine_run("a", 32, 3e6, 6),
            machine_run("b", 8, 2e6, 2),
            machine_run("b", 32, 3e6, 3),
        ]
    )
    assert sources.peak("a", "b")(results) == [2.0]
    assert sources.at(32, "a", "b")(results) == [1.0]
    assert sources.at_full("b", "a")(results) == [2e6 / 6e6]
    assert sources.looks(32, "a", "b")(results) == [2.0]
    assert sources.misses(32, "a", "b")(results) == [2.0]


def test_variants_are_those_of_the_machine_model_by_name():
    assert [one.name for one in sources.variants("mqfq", "scan")] == ["mqfq", "scan"]


def test_number_is_read_from_the_note_of_a_test():
    read = sources.noted(r"is (\d+) permille", 0.001)
    assert read("ok 1 - bound: greatest is 900 permille of it") == [pytest.approx(0.9)]
    with pytest.raises(Failure, match="no figure in the note"):
        read("ok 1 - bound")


def test_bounds_in_words():
    assert [str(b) for b in (least(2), most(1.5), near(10, 0.1))] == ["≥ 2", "≤ 1.5", "9 … 11"]
    assert near(10, 0.1).holds(9.5)
    assert not near(10, 0.1).holds(11.5)
