# SPDX-License-Identifier: GPL-2.0
"""mqfair compare: intervals against values of the literature, the table, CSV, and errors."""

import csv
import functools
import io
import json
import operator
from pathlib import Path

import pytest

from mqfair.report.compare import ratio_interval, t_quantile


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.706), (2, 4.303), (4.5, 2.659), (10, 2.228), (30, 2.042), (1000, 1.962)],
)
def test_quantiles_are_those_of_the_table(freedom, t):
    assert t_quantile(0.95, freedom) == pytest.approx(t, rel=5e-4)


def test_an_interval_by_hand():
    """Logs 0, 1 and 2, 3: means 0.5 and 2.5, variances 1/2, so 2 +- 4.3027 * sqrt(1/2)."""
    e = 2.718281828459045
    low, high = ratio_interval([1, e], [e**2, e**3])
    assert low == pytest.approx(e ** (2 - 4.30265 * 0.5**0.5), rel=1e-3)
    assert high == pytest.approx(e ** (2 + 4.30265 * 0.5**0.5), rel=1e-3)


def test_the_interval_holds_the_truth_as_often_as_it_says():
    import random

    source = random.Random(1)
    held = 0
    for _ in range(300):
        a = [source.lognormvariate(3, 0.1) for _ in range(5)]
        b = [source.lognormvariate(3.2, 0.2) for _ in range(3)]
        low, high = ratio_interval(a, b)
        held += low <= 2.718281828**0.2 <= high
    assert 0.92 <= held / 300 <= 0.98


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([1, 2], [3]), ([0, 1], [1, 2])])
def test_without_two_positive_values_there_is_no_interval(a, b):
    assert ratio_interval(a, b) is None


def bench(path, totals, kernel="6.1.0", scheduler="mqfq", share=0.9):
    latency = {"mean": 1e6, "p50": 1e6, "p99": 4e6, "p999": 5e6}
    groups = [
        {"name": "prod", "weight": 900, "due": 0.9, "backlogged": True, "share": share,
         "iops": 90.0, "bytes_per_s": 9.0, "lat_ns": latency},
    ]  # fmt: skip
    runs = [
        {"scheduler": scheduler, "repeat": number, "total_iops": total, "total_bytes_per_s": 1.0,
         "jain": 0.99, "cgroups": groups}
        for number, total in enumerate(totals)
    ]  # fmt: skip
    document = {
        "schema": "mqfair.bench/2",
        "job": "four",
        "where": {"kernel": kernel},
        "runs": runs,
    }
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def pair(tmp_path):
    before = bench(tmp_path / "a.json", [100.0, 101.0, 102.0])
    return before, bench(tmp_path / "b.json", [150.0, 151.0, 149.0], kernel="6.12", share=0.8)


def test_the_table(pair, run):
    result = run("compare", *pair)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].split() == ["SCHEDULER", "FIGURE", "A", "B", "B/A", "95", "%", "B", "HAS"]
    (total,) = [line for line in lines if "total IOPS" in line]
    assert total.split()[:6] == ["mqfq", "total", "IOPS", "101", "150", "1.485"]
    assert total.endswith("more")
    (share,) = [line for line in lines if "prod share" in line]
    assert share.endswith("less")
    (p99,) = [line for line in lines if "prod p99 " in line]
    assert p99.endswith("1.000 .. 1.000  no difference seen")
    assert lines[-1] == "note: kernel differs: 6.1.0 and 6.12"


def test_json_and_csv(pair, run, tmp_path):
    report = run("compare", *pair, "--json").json
    assert report["schema"] == "mqfair.compare/1"
    total = report["figures"][0]
    assert (total["name"], total["a"], total["b_has"]) == ("total IOPS", [100, 101, 102], "more")
    assert total["low"] < total["ratio"] < total["high"]
    rows = list(csv.DictReader(io.StringIO(run("compare", *pair, "--csv", "-").out)))
    assert rows[0]["figure"] == "total IOPS"
    assert float(rows[0]["ratio"]) == pytest.approx(total["ratio"])
    file = tmp_path / "out.csv"
    assert run("compare", *pair, "--csv", str(file)).code == 0
    assert file.read_text().startswith("scheduler,figure,a,b,")


def figures(result):
    return {one["name"]: one["a"] for one in result.json["figures"]}


def test_jains_index_is_compared_only_where_all_are_backlogged(pair, tmp_path, run):
    found = figures(run("compare", *pair, "--json"))
    assert found["worst of its due"] == pytest.approx([1, 1, 1])
    assert found["Jain index"] == [0.99] * 3
    modest = json.loads((tmp_path / "a.json").read_text())
    modest["runs"][1]["cgroups"] = [{**modest["runs"][1]["cgroups"][0], "backlogged": False}]
    (tmp_path / "a.json").write_text(json.dumps(modest))
    assert figures(run("compare", *pair, "--json"))["Jain index"] == [0.99] * 2


def test_a_result_of_the_first_form_has_no_dues(pair, tmp_path, run):
    old = (tmp_path / "a.json").read_text().replace("mqfair.bench/2", "mqfair.bench/1")
    (tmp_path / "a.json").write_text(old.replace('"due": 0.9, "backlogged": true', '"entitled": 1'))
    found = figures(run("compare", *pair, "--json"))
    assert "worst of its due" not in found
    assert found["Jain index"] == [0.99] * 3
    assert run("report", *pair, "--csv", "-").code == 0


def test_one_run_is_no_evidence(tmp_path, run):
    files = [bench(tmp_path / name, [value]) for name, value in (("a", 100.0), ("b", 900.0))]
    out = run("compare", *files).out
    assert "more" not in out
    assert "one run tells no difference from chance: use mqfair bench --repeat 5" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{\n"schema',
            "no JSON (Unterminated string starting at, line 2): `mqfair bench JOB --json FILE`",
        ),
        ("[]", "no result of mqfair bench"),
        ('{"schema": "mqfair.top/1"}', "no result of mqfair bench"),
        ('{"schema": "mqfair.bench/2", "job": "", "where": {}, "runs": []}', "has no finished run"),
        ('{"schema": "mqfair.bench-several/1", "devices": []}', "has no finished run"),
        ('{"schema": "mqfair.bench/2", "runs": 5}', "a damaged result: job is missing"),
        ('{"schema": ["mqfair.bench/2"]}', "no result of mqfair bench"),
        ('{"schema": "mqfair.qualify/1"}', "drive is missing: qualify the drive again"),
        ("[" * 9999, "no JSON (brackets are nested too deep): `mqfair bench"),
    ],
)
def test_other_files_are_named(pair, tmp_path, run, text, said):
    (tmp_path / "c").write_text(text)
    result = run("compare", pair[0], str(tmp_path / "c"))
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert f"{tmp_path}/c: " in result.err
    assert said in result.err


def test_files_that_cannot_be_used(pair, tmp_path, run):
    result = run("compare", pair[0], "/nosuch")
    assert result.code == 2
    assert result.err.startswith("mqfair: /nosuch: No such file or directory: `mqfair bench")
    other = bench(tmp_path / "c", [1.0], scheduler="wdt")
    assert run("compare", pair[0], other).err.endswith(
        f"{other} has wdt: run a bench with the --schedulers of the other\n"
    )
    result = run("compare", *pair, "--csv", "/nosuch/x.csv")
    assert (result.code, result.out) == (2, "")
    assert "--csv /nosuch/x.csv: No such file or directory: name a file" in result.err
    result = run("compare", *pair, "--csv", "/dev/full")
    assert (result.code, result.err.count("\n")) == (1, 1)


# A damage of one field, and the words of the message.
DAMAGES = [
    (("runs", 0, "total_iops"), None, "runs[0].total_iops is null, which is no number"),
    (("runs", 1, "total_iops"), "many", 'runs[1].total_iops is "many", which is no number'),
    (("runs", 0, "total_iops"), float("nan"), "runs[0].total_iops is NaN, which is no number"),
    (("runs", 0, "jain"), 10**400, f"runs[0].jain is 1{'0' * 78}…, which is no fraction"),
    (("runs", 0, "scheduler"), 7, "runs[0].scheduler is 7, which is no text"),
    (("runs", 0, "cgroups"), [], "runs[0].cgroups is [], which is no filled list"),
    (("where", "kernel"), ["6.1"], 'where.kernel is ["6.1"], which is no text'),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=[said for _, _, said in DAMAGES])
@pytest.mark.parametrize("schema", ["mqfair.bench/1", "mqfair.bench/2"])
def test_a_damaged_field_is_named(pair, run, damage, schema):
    place, value, said = damage
    document = json.loads(Path(pair[1]).read_text()) | {"schema": schema}
    *above, last = place
    functools.reduce(operator.getitem, above, document)[last] = value
    Path(pair[1]).write_text(json.dumps(document))
    told = (2, "", f"mqfair: {pair[1]}: a damaged result: {said}: run the bench again\n")
    for argv in (("compare", *pair), ("report", pair[1], "--csv", "-")):
        result = run(*argv)
        assert (result.code, result.out, result.err) == told


def test_numbers_beyond_a_ratio_have_none(tmp_path, run):
    files = [
        bench(tmp_path / name, totals)
        for name, totals in (("a", [5e-324, 960.0]), ("b", [1e99, 1e99]), ("c", [5e-324] * 2))
    ]
    for others in (files[:2], files[:0:-1], files[2:0:-1]):
        total = run("compare", *others, "--json").json["figures"][0]
        assert total["high"] is None
        assert total["b_has"] == "no interval"


def test_a_byte_order_mark_is_left_out(pair, run):
    Path(pair[0]).write_text(Path(pair[0]).read_text(), encoding="utf-8-sig")
    assert run("compare", *pair).code == 0


def link_to(path, how):
    """Another name of @path."""
    other = path.parent / "link"
    if how == "hard":
        other.hardlink_to(path)
    elif how == "symbolic":
        other.symlink_to(path)
    return {"same": path, "dots": f"{path.parent}/../{path.parent.name}/{path.name}"}.get(
        how, other
    )


@pytest.mark.parametrize("how", ["same", "dots", "hard", "symbolic"])
@pytest.mark.parametrize("argv", [("compare", "--csv"), ("report", "--csv"), ("report", "--out")])
def test_a_file_that_is_read_is_not_written(pair, run, argv, how):
    verb, option = argv
    before = Path(pair[1]).read_text()
    name = str(link_to(Path(pair[1]), how))
    result = run(verb, *pair, option, name)
    said = f"mqfair: {option} {name}: it is a file that is read: name another file\n"
    assert (result.code, result.out, result.err) == (2, "", said)
    assert Path(pair[1]).read_text() == before
