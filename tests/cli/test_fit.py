# SPDX-License-Identifier: GPL-2.0
"""mqfair fit: figures of fio and of data sheets, and the model that the search finds."""

import json
import re
from itertools import chain
from pathlib import Path

import pytest

from mqfair.__main__ import main
from mqfair.bench.simulated import program
from mqfair.drives import data_sheet, fio_results, fit, measure, model_file
from mqfair.drives.figures import IOPS, LATENCY, P99, RATE, Figure, Load, size_of
from mqfair.drives.measure import Measurement
from mqfair.text.errors import UsageError

# The numbers of the P4500, and others.
BASE = model_file.built_in("p4500")
KNOWN = model_file.Model(
    "known",
    {
        **BASE.values,
        "dies": 4,
        "command_ns": 1500,
        "read_fixed_ns": 12_000,
        "write_fixed_ns": 11_000,
        "link_ns": 1_000,
        "channel_ns": 6_000,
        "read_ns": 45_000,
        "program_ns": 700_000,
        "spare_permille": 200,
        "read_spread_permille": 250,
    },
)
LOADS = (
    ("randread", "4k", 1, LATENCY),
    ("randread", "4k", 1, P99),
    ("randread", "4k", 16, IOPS),
    ("randread", "4k", 64, IOPS),
    ("randread", "4k", 256, IOPS),
    ("randread", "64k", 1, LATENCY),
    ("randread", "64k", 16, RATE),
    ("read", "128k", 32, RATE),
    ("write", "128k", 32, RATE),
    ("randwrite", "4k", 64, IOPS),
    ("randwrite", "4k", 1, LATENCY),
)


def job(name="j", numjobs=1, group=0, entries=1, failed=0, **options):
    """The results of a job as fio writes them; each entry has 1000 requests."""
    side = {
        "total_ios": 1000,
        "iops": 50_000.0,
        "slat_ns": {"mean": 2000.0},
        "clat_ns": {"mean": 78_000.0, "percentile": {"99.000000": 98_000}},
        "lat_ns": {"mean": 80_000.0},
    }
    none = {"total_ios": 0, "iops": 0.0}
    writes = "write" in options.get("rw", "")
    one = {
        "jobname": name,
        "groupid": group,
        "error": failed,
        "job options": {"numjobs": str(numjobs), "direct": "1", "ioengine": "libaio", **options},
        "read": none if writes else side,
        "write": side if writes else none,
    }
    return [one] * entries


def replaced(old, new):
    """The results of a job with @new in place of the text @old."""
    text = results(job())
    assert old in text
    return text.replace(old, new, 1)


def results(*jobs, **common):
    return json.dumps(
        {"fio version": "fio-3.33", "global options": common, "jobs": [*chain(*jobs)]}
    )


# ------------------------------------------------------------------------ results of fio


def test_a_job_of_one_request_gives_latencies_and_others_give_rates():
    jobs = (
        job("a", rw="randread", bs="4k", group=0),
        job("b", rw="randread", bs="4k", iodepth="32", group=1),
        job("c", rw="write", bs="128k", iodepth="8", group=2),
    )
    found = fio_results.parse("fio: a line before\n" + results(*jobs), "x.json")
    assert [(one.load.rw, one.load.outstanding, one.what, one.value) for one in found] == [
        ("randread", 1, LATENCY, 80.0),
        ("randread", 1, P99, 100.0),
        ("randread", 32, IOPS, 50_000.0),
        ("randread", 32, P99, 100.0),
        ("write", 8, RATE, 50_000 * 131072 / 1e6),
        ("write", 8, P99, 100.0),
    ]
    assert all(one.load.host for one in found)
    assert found[0].place == "x.json: job a"


@pytest.mark.parametrize(("entries", "iops"), [(1, 50_000.0), (4, 200_000.0)])
def test_processes_are_in_one_result_or_in_one_for_each(entries, iops):
    found = fio_results.parse(
        results(job(numjobs=4, entries=entries, rw="randread"), iodepth="16"), "x.json"
    )
    assert found[0].value == iops
    assert str(found[0].load) == "randread 4 KiB, depth 16 x 4"


def test_a_synchronous_engine_has_one_request_and_global_options_count():
    found = fio_results.parse(results(job(ioengine="psync"), rw="randread", iodepth="9"), "x")
    assert found[0].load.depth == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.json: no results of fio: use the output of fio --output-format=json"),
        ("{", "x.json: no JSON (Expecting property name"),
        ("[1]", "x.json: no results of fio: use the output of fio"),
        ('{"jobs": [1]}', "x.json: no results of fio (AttributeError("),
        ('{"jobs": [{"jobname": "j"}]}', "x.json: job j: no direct=1: it measured the page cache"),
        ('{"jobs": []}', "x.json: no job: use the output of fio with a job in it"),
        (results(job(direct="0")), "x.json: job j: no direct=1: it measured the page cache"),
        (results(job(rw="randrw")), "x.json: job j: rw=randrw: use one of randread, read,"),
        (results(job(bs="4k,8k")), "x.json: job j: bs=4k,8k: use one size: a multiple of 512"),
        (results(job(iodepth="0")), "x.json: job j: iodepth=0: use a number in 1..65536"),
        (results(job(numjobs=300)), "x.json: job j: numjobs=300: use a number in 1..256"),
        (results(job(rate_iops="5")), "x.json: job j: rate_iops=5: the result is not the drive's"),
        (
            "fio: a line\n{\n{",
            "x.json: no JSON (Expecting property name enclosed in double quotes, line 3)",
        ),
        (
            '{"jobs": ' + "[" * 100_000,
            "x.json: no JSON (brackets are nested too deep): use the out",
        ),
        (replaced("50000.0", "NaN"), "x.json: no JSON (NaN is no number of JSON): use the output"),
        (replaced("50000.0", "-Infinity"), "x.json: no JSON (-Infinity is no number of JSON)"),
        (replaced("50000.0", "1e999"), "x.json: no JSON (a number is too large): use the output"),
        (replaced("50000.0", "9" * 5000), "x.json: no JSON (a number has 5000 digits): use the"),
        (
            replaced("80000.0", "0"),
            "x.json: job j: latency_us is 0, no number above 0, up to 1e+09",
        ),
        (replaced("80000.0", "-5"), "x.json: job j: latency_us is -0.005, no number above 0"),
        (results(job(bs="9" * 5000)), "x.json: job j: bs=999"),
        (results(job(iodepth="9" * 5000)), "x.json: job j: iodepth=999"),
        (results(job(failed=5)), "x.json: job j: it failed or had no request: run it again"),
        (
            results(job("a", group=3), job("b", group=3)),
            "x.json: the jobs a and b ran at the same time: add stonewall to each",
        ),
    ],
)
def test_wrong_results_are_refused_with_job_and_mend(text, message):
    with pytest.raises(UsageError) as caught:
        fio_results.parse(text, "x.json")
    assert str(caught.value).startswith(message)


# -------------------------------------------------------------------------- data sheets

SHEET = """\
# a comment
[[figure]]
rw = "randread"
bs = "4k"
latency_us = 85
p99_us = 100

[[figure]]
rw = "read"
bs = 131072
mb_per_s = 3_200
"""


def test_a_data_sheet_gives_figures_of_the_drive_alone():
    found = data_sheet.parse(SHEET, "s.toml")
    assert found == [
        Figure(Load("randread", 4096, 1, 1, False), LATENCY, 85.0, "s.toml:5"),
        Figure(Load("randread", 4096, 1, 1, False), P99, 100.0, "s.toml:6"),
        Figure(Load("read", 131072, 32, 1, False), RATE, 3200.0, "s.toml:11"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[[figure]]", "[[figures]]", ":2: no key 'figures' of a data sheet: write a table [["),
        (SHEET, "", ": no figure: add a table [[figure]]"),
        (SHEET, "figure = 5", ":1: figure is no list: write [[figure]]"),
        ("mb_per_s", "mb_pre_s", ":11: 'mb_pre_s' is no key of a figure: did you mean mb_per_s?"),
        ('rw = "read"', 'rw = "reed"', ':9: rw = "reed": use one of randread, read,'),
        ('rw = "read"', "", ":8: the figure has no rw: use one of randread, read,"),
        ("bs = 131072", "bs = 1000", ':10: bs = 1000: use a text such as "4k": a multiple of 512'),
        ("bs = 131072", "bs = true", ':10: bs = true: use a text such as "4k": a multiple of 512'),
        ("bs = 131072", "", ':8: the figure has no bs: use a text such as "4k"'),
        ("mb_per_s = 3_200", "", ":8: the figure has no value: add one of latency_us, p99_us,"),
        ("3_200", '"3200"', ':11: mb_per_s = "3200": use a number without quotes'),
        ("3_200", "-5", ":11: mb_per_s = -5: use a number above 0"),
        ("3_200", "nan", ":11: mb_per_s = nan: use a number above 0"),
        ("3_200", "3 200", ":11: 'mb_per_s = 3 200' is no TOML"),
        ("3_200", "1\ndepth = 0", ":12: depth = 0: use a whole number in 1..65536"),
    ],
)
def test_a_wrong_data_sheet_is_named_with_line_value_and_mend(old, new, message):
    with pytest.raises(UsageError) as caught:
        data_sheet.parse(SHEET.replace(old, new), "s.toml")
    assert str(caught.value).startswith(f"s.toml{message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4k", 4096), ("4KiB", 4096), ("512", 512), ("1m", 1 << 20), ("2m", None), ("x", None)],
)
def test_sizes(text, size):
    assert size_of(text) == size


# --------------------------------------------------------------------------- the search


def test_quantities_and_models_are_the_same():
    for name in model_file.BUILT_IN:
        model = model_file.built_in(name)
        found = fit.Quantities.of(model).model(model)
        assert found is not None
        for field, value in model.values.items():
            assert abs(found[field] - value) <= 1, (name, field)
    with pytest.raises(UsageError, match=r"no model with the geometry of p4500 has such"):
        figures = [Figure(Load("randread", 4096, 1, 1, False), LATENCY, 0.5, "x")]
        fit.Fit(BASE, figures, None, print)._begin()


@pytest.fixture
def known(monkeypatch):
    """The figures of the known model, as a data sheet. Random writes are measured on half of the
    usual drive, which takes half of the time."""
    monkeypatch.setattr(measure, "_STEADY_MIB", 2048)
    binary = program.ensure()
    figures = [
        Figure(Load(rw, size_of(bs), depth, 1, False), what, 1.0, "x")
        for rw, bs, depth, what in LOADS
    ]
    with Measurement(binary, "sequential", 0) as measurement:
        # The time of a run follows from the figure, so the second time has the right one.
        for _ in range(3):
            values = measurement.values(KNOWN, figures)
            figures = [
                Figure(one.load, one.what, value, "x")
                for one, value in zip(figures, values, strict=True)
            ]
    tables = [
        f'[[figure]]\nrw = "{rw}"\nbs = "{bs}"\ndepth = {depth}\n{what} = {one.value}\n'
        for (rw, bs, depth, what), one in zip(LOADS, figures, strict=True)
    ]
    return "\n".join(tables)


def test_the_fit_finds_a_known_model_again(known, tmp_path, capsys):
    """Each figure and each number of the model is within 10 %."""
    sheet, out = tmp_path / "sheet.toml", tmp_path / "mine.toml"
    sheet.write_text(known)
    assert main(["fit", str(sheet), "--json", "--out", str(out)]) == 0
    got = capsys.readouterr()
    document = json.loads(got.out)
    assert len(document["figures"]) == len(LOADS)
    for one in document["figures"]:
        assert abs(one["off_percent"]) < 10, one
    model = model_file.load(str(out))
    assert {"name": model.name, **model.values} == document["model"]
    assert model.name == "mine"
    for field, value in KNOWN.values.items():
        assert abs(model[field] / value - 1) < 0.1 if value else not model[field], field
    lines = [line for line in got.err.splitlines() if line != "fit: building the simulator"]
    assert re.fullmatch(r"fit: start 1 of \d+, \d+ runs, error \d+\.\d %", lines[0])
    assert re.fullmatch(r"fit: writes: round 7 of 7, \d+ runs, error \d\.\d %", lines[-1])
    text = out.read_text()
    assert "# randread 4 KiB, depth 1" in text
    assert re.search(r"^channels = 12 +# as p4500$", text, re.MULTILINE)
    assert re.search(r"^read_ns = [\d_]+ +# fitted$", text, re.MULTILINE)


SMALL = '[[figure]]\nrw = "randread"\nbs = "1k"\ndepth = 64\niops = 3_000_000\n'


def test_the_table_shows_how_far_each_figure_is(tmp_path, capsys):
    """Two figures contradict each other."""
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(f"{SMALL}\n{SMALL.replace('64', '128').replace('3_0', '1_0')}")
    assert main(["fit", str(sheet), "--base", "fabric"]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert lines[0].split() == ["load", "figure", "input", "model", "off"]
    for depth, value, line in ((64, "3,000,000", lines[1]), (128, "1,000,000", lines[2])):
        pattern = rf"randread 1 KiB, depth {depth} +IOPS +{value} +[\d,]+ +[+-][\d.]+ %"
        assert re.fullmatch(pattern, line)
    assert "2 of 2 figures are more than 10 % off: another --base may be nearer" in shown
    assert lines[-1] == "--out FILE writes the model"


def test_the_host_is_in_results_of_fio_alone():
    load = Load("randread", 4096, 4, 2, host=True)
    with Measurement(None, "random", 2800) as measurement:
        text = measurement.description(BASE, load, 100_000)
        assert "submit_ns 2000\ncomplete_ns 800\n" in text
        assert text.count("load a queue") == 2
        assert "drive m 256 random" in text
        alone = Load("randwrite", 4096, 4, 1, host=False)
        text = measurement.description(BASE, alone, 100_000)
        assert "submit_ns 0\ncomplete_ns 0\n" in text
        assert "drive m 4096 steady" in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["/no/such.json"], "/no/such.json: No such file or directory: name results of fio"),
        (
            ["S", "--base", "p450"],
            "--base p450: no such model: did you mean p4500?, or a file such",
        ),
        (["S", "--base", "/no.toml"], "/no.toml: No such file or directory: name a TOML file"),
        (["S", "--request-ns", "9" * 5000], "999: use a number in 0..1000000"),
        (["S", "--request-ns", "x"], "--request-ns x: use a number in 0..1000000"),
        (["S", "--out", "S"], "it is a file that is read: name another file"),
        (["S", "--out", "/no/such/x.toml"], "--out /no/such/x.toml: No such file or directory"),
        (["S", "--fill", "full"], "unknown --fill 'full': use sequential, random"),
        ([], "the following arguments are required: FILE"),
    ],
)
def test_a_wrong_command_line_is_refused(argv, message, tmp_path, capsys):
    sheet = tmp_path / "sheet.toml"
    sheet.write_text(SMALL)
    assert main(["fit", *(word.replace("S", str(sheet)) for word in argv)]) == 2
    got = capsys.readouterr()
    assert message in got.err
    assert (got.out, got.err.count("\n")) == ("", 1)


@pytest.mark.parametrize("link", [None, Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("read", ["sheet.toml", "base.toml"])
def test_a_file_that_is_read_is_not_replaced(link, read, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = {"sheet.toml": SMALL, "base.toml": model_file.toml(BASE, {}, [])}
    for name, text in texts.items():
        Path(name).write_text(text)
    out = tmp_path / read
    if link is not None:
        out = tmp_path / "out.toml"
        link(out, tmp_path / read)
    assert main(["fit", "sheet.toml", "--base", "./base.toml", "--out", str(out)]) == 2
    assert f"--out {out}: it is a file that is read: name another" in capsys.readouterr().err
    assert {name: Path(name).read_text() for name in texts} == texts


def test_a_figure_without_a_request_is_named(tmp_path, capsys):
    sheet = tmp_path / "sheet.toml"
    sheet.write_text('[[figure]]\nrw = "randread"\nbs = "4k"\nlatency_us = 950_000\n')
    assert main(["fit", str(sheet)]) == 2
    said = capsys.readouterr().err
    assert f"mqfair: {sheet}:4: randread 4 KiB, depth 1: latency_us 950000: no request" in said
