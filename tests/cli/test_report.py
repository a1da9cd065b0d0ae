# SPDX-License-Identifier: GPL-2.0
"""The page of mqfair report: the first table, its verdicts, its size, and names that mean tags."""

import html.parser
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from test_compare import bench

from mqfair.report import plots, summary
from mqfair.report.steps import Step
from mqfair.text.palette import CURVES, MARK
from mqfair.watch.pressure import Pressure
from mqfair.watch.recording import Head, Recording
from mqfair.watch.sample import DiskSample, Figures, Sample, Use


def step(at, **uses):
    """@uses: due and got in percent, and the time short in ms."""
    return Step(
        float(at),
        None,
        {
            name: Use(name, 100, due * 10_000, got * 10_000, 50.0, 1e6, 150, 100, p99_us=p99,
                      short_ms=short)
            for name, (due, got, short, p99) in uses.items()
        },
    )  # fmt: skip


def verdicts(found):
    return {one.name: one.verdict for one in summary.of_steps(found)}


def test_a_verdict_for_each_tenant():
    found = [
        step(n, db=(60, 30, 900, 5000), web=(20, 10, 0, 100), log=(20, 60, 0, 100))
        for n in range(9)
    ]
    assert verdicts(found) == {
        "db": "below its due: others slow it in the drive",
        "web": "below its due: its requests wait outside",
        "log": "has its due",
    }
    db = summary.of_steps(found)[0]
    assert (db.due, db.got, db.met) == (pytest.approx(0.6), pytest.approx(0.3), pytest.approx(0.5))
    assert summary.headline(summary.of_steps(found)) == (
        "2 of 3 tenants are below their due. The worst is db: it got 30.0 % of the work, and 60.0 %"
        " was due."
    )


@pytest.mark.parametrize(
    ("bad", "said"),
    [(0, "has its due"), (1, "has its due"), (3, "below its due for 30 % of the time: its req")],
)
def test_a_tenant_that_lacks_seldom_has_its_due(bad, said):
    good = [step(n, db=(50, 60, 0, 10), web=(50, 40, 0, 10)) for n in range(10 - bad)]
    found = good + [step(9, db=(50, 40, 0, 10), web=(50, 60, 0, 10)) for _ in range(bad)]
    assert verdicts(found)["db"].startswith(said)


def test_the_median_and_the_worst_of_the_percentiles():
    found = [step(n, db=(100, 100, 0, p99)) for n, p99 in enumerate((1000, 9000, 2000))]
    (db,) = summary.of_steps(found)
    assert (db.p99_ms, db.p99_worst_ms) == (2.0, 9.0)


def test_time_without_work_counts_for_nothing():
    busy = [step(n, db=(100, 100, 0, 10)) for n in range(2)]
    assert summary.of_steps([*busy, step(9, db=(0, 0, 0, None))])[0].got == pytest.approx(1.0)
    assert summary.of_steps([step(1, db=(0, 0, 0, None))]) == []


# --- the page


def recorded(samples=4, groups=3, disks=1, name="prod/g{}", pressure=True):
    """Counters that grow by a request of 4 KiB times the number of the cgroup."""

    def flows(at):
        return {
            name.format(n): Figures(
                weight=100, share_ppm=10_000, bytes=4096 * at * (n + 1), ios=at * (n + 1),
                done=at * (n + 1), cost=4096 * at * (n + 1), wait_us=at * 37 * (n % 5),
                drive_us=at * at * 11, p99_us=500 + (at * 7919 * (n + 1)) % 90_000,
                waiting_x100=(at * 31) % 400, inside_x100=100, short_ms=at * (n % 3),
            )
            for n in range(groups)
        }  # fmt: skip

    def sample(at):
        of_disks = {
            f"nvme{d}n1": DiskSample(
                f"nvme{d}n1", f"259:{d}", "mqfq", {"depth": "8"}, flows=flows(at)
            )
            for d in range(disks)
        }
        us = {name.format(n): Pressure(at * 250_000, at * 1000) for n in range(groups) if pressure}
        return Sample(float(at), float(at), of_disks, us)

    return Recording(Head(0.0, 1.0, "6.1", "0"), tuple(map(sample, range(samples))))


class Page(html.parser.HTMLParser):
    """The tags, the text, and the cells of a page. Each tag must be closed in its turn."""

    VOID = ("meta", "link", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words, self.cells = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open[-1:] in (["td"], ["th"]):
            self.cells[-1] += data


def test_the_table_is_first_and_each_plot_has_its_sentence():
    text = plots.of_recording(recorded())
    page = Page(text)
    assert page.cells[:8] == [
        "tenant", "weight", "due %", "got %", "got / due", "p99 ms", "worst p99 ms", "verdict",
    ]  # fmt: skip
    assert text.index("<table>") < text.index("<svg")
    assert page.tags.count("svg") == 1 + len(plots.PLOTS) == page.tags.count("h3")
    assert {"prod/g0", "prod/g1", "prod/g2"} < set(page.cells)
    assert text.count('<p class="note">') >= page.tags.count("h3")
    assert "script" not in page.tags


def test_a_kernel_without_pressure_has_no_plot_of_it():
    titles = {with_it: plots.of_recording(recorded(pressure=with_it)) for with_it in (True, False)}
    assert [text.count("<h3>Pressure") for text in titles.values()] == [1, 0]


def test_colours_do_not_repeat():
    assert len({*CURVES, MARK}) == len(CURVES) + 1
    text = plots.of_recording(recorded(groups=20))
    assert f"{20 - plots.DRAWN_MOST} others together" in text


def test_the_worst_cgroups_are_drawn_though_others_do_more():
    tenants = [
        summary.Tenant(f"g{n}", 1, 0.1, 0.01 * n, None, None, "below its due") for n in (1, 2)
    ]
    order = [f"g{n}" for n in range(20, 0, -1)]
    drawn = plots.with_colours(tenants, order)
    assert len(drawn) == plots.DRAWN_MOST
    assert {"g1", "g2", "g20"} <= set(drawn)


def test_tables_of_many_drives_are_shorter(monkeypatch):
    monkeypatch.setattr(plots, "DRIVES_MOST", 1)
    text = plots.of_recording(recorded(samples=3, groups=30, disks=80))
    assert len(text.encode()) <= plots.SIZE_MOST
    assert text.count("15 more tenants, which got ") == 80


@pytest.mark.parametrize("size", [{"samples": 200, "groups": 9, "disks": 3}, {"groups": 600}])
def test_a_large_recording_has_a_small_page(size, monkeypatch):
    monkeypatch.setattr(plots, "SIZE_MOST", 650_000)
    monkeypatch.setattr(plots, "DRIVES_MOST", 2)
    text = plots.of_recording(recorded(**size))
    assert len(text.encode()) <= 650_000
    if size["groups"] > plots.ROWS_MOST:
        assert f"{size['groups'] - plots.ROWS_MOST} more tenants" in text
    else:
        assert "Only the 2 busiest drives have plots." in text
        assert "intervals; of percentiles, the highest" in text


@pytest.mark.parametrize(
    "name", ["</td><script>alert({})</script>", "$x_{}$", "_begins{}", 'a"b&c{}', "\x1b[2J{}"]
)
def test_names_are_names(name):
    """A name of a cgroup has no meaning to HTML, to SVG or to matplotlib."""
    page = Page(plots.of_recording(recorded(name=name)))
    assert "script" not in page.tags
    shown = name.format(2).replace("\x1b", "?")
    assert shown in page.cells
    assert sum(shown in word for word in page.words) >= 1 + len(plots.PLOTS)


def test_a_drive_without_io():
    assert "No cgroup did I/O on this drive." in plots.of_recording(recorded(groups=0))


def test_results_of_bench(tmp_path, run):
    files = [
        bench(tmp_path / "a.json", [100.0, 101.0]),
        bench(tmp_path / "b.json", [90.0], scheduler="none", share=0.5),
    ]
    out = tmp_path / "r.html"
    assert run("report", *files, "--out", str(out)).code == 0
    page = Page(out.read_text())
    rows = [page.cells[at : at + 10] for at in range(10, 30, 10)]
    assert [row[1:6] for row in rows] == [
        ["mqfq", "prod", "900", "90.0", "90.0"],
        ["none", "prod", "900", "90.0", "50.0"],
    ]
    assert [row[-1] for row in rows] == ["has its due", "below its due"]
    assert "A figure of one run has no spread: use --repeat 5." in page.words


def test_a_result_of_the_first_form_has_no_verdict(tmp_path, run):
    file = tmp_path / "a.json"
    text = bench(file, [100.0])
    old = json.loads(file.read_text().replace("mqfair.bench/2", "mqfair.bench/1"))
    for one in old["runs"]:
        for group in one["cgroups"]:
            del group["due"]
    file.write_text(json.dumps(old))
    assert run("report", text, "--out", str(tmp_path / "r.html")).code == 0
    assert Page((tmp_path / "r.html").read_text()).cells[9:18][-1] == "-"


@pytest.mark.parametrize("names", [("f", "f"), ("f", "./f"), ("f", "link"), ("-", "-")])
def test_two_files_are_not_written_to_one_name(names, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = bench(tmp_path / "a.json", [100.0])
    (tmp_path / "link").symlink_to("f")
    result = run("report", file, "--out", names[0], "--csv", names[1])
    said = f"mqfair: --csv {names[1]}: --out writes it, too: name another file\n"
    assert (result.code, result.out, result.err) == (2, "", said)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize("option", ["--out", "--csv"])
def test_a_result_comes_through_a_pipe(option, tmp_path, run):
    file = tmp_path / "a.json"
    bench(file, [100.0])
    read, write = os.pipe()
    os.write(write, file.read_bytes())
    os.close(write)
    result = run("report", f"/dev/fd/{read}", option, str(tmp_path / "r"))
    os.close(read)
    assert (result.code, result.err) == (0, "")
    assert (tmp_path / "r").stat().st_size


def test_a_qualification_needs_no_optional_field(tmp_path, run):
    one = json.loads(Path(bench(tmp_path / "a.json", [100.0])).read_text())
    drive = dict.fromkeys(("model", "firmware", "transport", "write_cache", "hardware_depth"))
    drive |= {"bytes": 1, "rotational": False, "logical_block_bytes": 512, "hardware_queues": 1}
    found = {
        "schema": "mqfair.qualify/1", "drive": drive, "kernel": "6.1", "processor": "p", "cpus": 1,
        "destructive": False, "repeat": 1, "runtime_s": 1, "notes": [], "benches": [one],
    }  # fmt: skip
    (tmp_path / "q.json").write_text(json.dumps(found))
    assert run("report", str(tmp_path / "q.json"), "--out", str(tmp_path / "r.html")).code == 0
