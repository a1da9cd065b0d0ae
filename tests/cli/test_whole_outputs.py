# SPDX-License-Identifier: GPL-2.0
"""Each command that is asked for a file writes it whole or not at all."""

import argparse
import dataclasses
import json
import resource
import signal

import pytest
from test_bench_resume import guest  # noqa: F401 -- a fixture
from test_compare import bench as result
from test_qualify import host, qualify  # noqa: F401 -- fixtures

from mqfair.__main__ import SUBCOMMANDS, build_parser
from mqfair.bench import command as bench
from mqfair.bench import demo, session
from mqfair.drives import command as drives
from mqfair.drives import model_file
from mqfair.qualify import command as qualification
from mqfair.text import output

SHEET = '[[figure]]\nrw = "randread"\nbs = "4k"\ndepth = 1\nlatency_us = 90\n'
BENCH = "bench {job} --schedulers none,bfq --device null:gb=1"
pytestmark = pytest.mark.usefixtures("guest")

# The words that write each output.
WRITING = {
    "report --out": "report {a}",
    "report --csv": "report {a}",
    "compare --csv": "compare {a} {b}",
    "fit --out": "fit {sheet}",
    "trace --out": "trace --generate websearch --requests 100",
    "bench --json": BENCH,
    "bench --timeline": BENCH,
    "bench --picture": BENCH,
    "bench --cdf": BENCH,
}
# A simulated bench writes its results as another bench does. A folder is filled step by step, a
# recording keeps its samples, and test_metrics.py has the file of metrics.
OTHERS = {
    "sim --json", "sim --timeline", "sim --picture", "sim --cdf", "qualify --out", "record --out",
    "metrics --textfile", "lab --out",
}  # fmt: skip
ENDINGS = {"--out": ".html", "--picture": ".png", "--cdf": ".svg"}
NAMES = ("--out", "--csv", "--json", "--timeline", "--picture", "--cdf", "--textfile")


def options_of(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from options_of(below)
        elif action.nargs != 0:
            yield from action.option_strings


def test_each_option_with_an_output_is_here():
    found = set()
    for verb in SUBCOMMANDS:
        verbs = build_parser([verb.name])._subparsers._group_actions[0]
        found |= {f"{verb.name} {one}" for one in options_of(verbs.choices[verb.name])}
    assert {one for one in found if one.split()[1] in NAMES} == {*WRITING, *OTHERS}


@pytest.fixture
def small_files():
    """A function after which no file may be longer than 10 bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def beginning_with(begin, function):
    """@function after a call of @begin."""

    def call(*args, **options):
        begin()
        return function(*args, **options)

    return call


@pytest.fixture(params=WRITING)
def writing(request, tmp_path, run, four, monkeypatch):
    """A function that runs a command over a file with content, and that file. It first calls its
    argument, but a bench makes its runs before."""
    verb, option = request.param.split()
    (tmp_path / "sheet.toml").write_text(SHEET)
    files = {
        "a": result(tmp_path / "a.json", [1.0, 2.0]), "b": result(tmp_path / "b.json", [3.0, 4.0]),
        "sheet": tmp_path / "sheet.toml", "job": four,
    }  # fmt: skip
    model = model_file.built_in(drives.BASE)
    monkeypatch.setattr(drives, "_fitted", lambda *_: (model, [90.0], 1))
    place = tmp_path / "place"
    place.mkdir()
    kept = place / f"kept{ENDINGS.get(option, '')}"
    kept.write_text("precious")
    words = [word.format_map(files) for word in WRITING[request.param].split()]

    def call(begin):
        if verb == "bench":
            monkeypatch.setattr(bench, "_show", beginning_with(begin, bench._show))
        else:
            begin()
        return run(*words, option, str(kept))

    return call, kept


def test_a_full_disk_leaves_the_file_as_it_was(writing, small_files):
    call, kept = writing
    got = call(small_files)
    assert got.code == 1
    assert got.err.splitlines()[-1].startswith(f"mqfair: cannot write {kept}: File too large")
    assert "incomplete" not in got.err
    assert kept.read_text() == "precious"
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_the_file_as_it_was(writing, monkeypatch, how):
    """It comes when the new file is written and has not its name yet."""
    monkeypatch.setattr(output, "_give_rights", lambda *_: signal.raise_signal(how))
    call, kept = writing
    got = call(lambda: None)
    assert (got.code, got.err.splitlines()[-1]) == (130, "mqfair: interrupted")
    assert kept.read_text() == "precious"
    assert list(kept.parent.iterdir()) == [kept]


def test_a_file_that_is_written_takes_the_place_of_the_one_before(writing):
    call, kept = writing
    assert call(lambda: None).code == 0
    assert not kept.read_bytes().startswith(b"precious")
    assert list(kept.parent.iterdir()) == [kept]


def test_a_full_disk_leaves_a_qualification_as_it_was(
    qualify,  # noqa: F811
    tmp_path,
    monkeypatch,
    small_files,
):
    assert qualify("--repeat", "1").code == 0
    files = [tmp_path / "q/qualify.json", tmp_path / "q/qualify.html"]
    before = [file.read_text() for file in files]
    written = beginning_with(small_files, qualification._write)
    monkeypatch.setattr(qualification, "_write", written)
    got = qualify("--repeat", "2", "--resume")
    assert got.code == 1
    assert got.err.endswith(f"{files[0]}: File too large: free space, then use --resume\n")
    assert [file.read_text() for file in files] == before
    assert json.loads(before[0])["schema"] == "mqfair.qualify/1"


def raw_results(_request, folder, _progress):
    (folder / "fio.json").write_text("of many bytes")


# The step that writes each file of the demo.
STEPS = {
    "mqfair-demo-": (session, "run", raw_results),
    "demo/result.json": (demo, "save", demo.save),
    "demo/shares.png": (demo, "draw", demo.draw),
}


@pytest.fixture
def demonstration(tmp_path, four, monkeypatch):
    """The demo, with a short job and its files in @tmp_path."""

    def short(asked):
        return dataclasses.replace(asked, schedulers=("none",))

    monkeypatch.setattr(demo, "CASES", {str(four): "reads"})
    monkeypatch.setattr(demo, "OUT", tmp_path / "demo")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(session, "with_built_module", short)
    return demo.main


@pytest.mark.parametrize("file", STEPS)
def test_a_full_disk_ends_the_demo_with_one_message(
    demonstration, monkeypatch, capsys, small_files, file
):
    room, name, step = STEPS[file]
    monkeypatch.setattr(room, name, beginning_with(small_files, step))
    assert demonstration() == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"demo: cannot write {demo.OUT.parent}/{file}")
    assert "File too large: " in said
    assert ": free space, or " in said
