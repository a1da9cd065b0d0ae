# SPDX-License-Identifier: GPL-2.0
"""Models of drives in files: reading them, their messages, and the built-in ones."""

import re
from pathlib import Path

import pytest

from mqfair.__main__ import main
from mqfair.bench import jobfile, session, ssd
from mqfair.bench.device import in_words, parse_device
from mqfair.bench.simulated import drive
from mqfair.bench.simulated.program import ROOT
from mqfair.drives import generate, model_file
from mqfair.text.errors import UsageError

MODELS = ROOT / "mqfair" / "drives" / "models"
P4500 = (MODELS / "p4500.toml").read_text()


def changed(field, line):
    """The P4500 with another line for @field."""
    text, count = re.subn(rf"^{field} = .*", line, P4500, flags=re.MULTILINE)
    assert count == 1
    return text


def test_the_table_of_the_kernel_is_current():
    """python3 -m mqfair.drives.generate writes it."""
    assert generate.TABLE.read_text() == generate.text()


def test_each_file_is_a_built_in_model():
    assert {path.stem for path in MODELS.iterdir()} == set(model_file.BUILT_IN) == set(ssd.MODELS)
    for name in model_file.BUILT_IN:
        assert model_file.built_in(name).name == name


def test_the_fields_are_those_of_the_kernel():
    text = (ROOT / "flash" / "model.c").read_text()
    numbers = dict(re.findall(r"\t(\w+)\s*= (\d+(?: << \d+)?),", text))
    numbers |= dict(
        re.findall(r"\t(\w+)\s*= (\d+),", (ROOT / "flash" / "model.h").read_text()),
        TIME_MOST="10**9",
    )
    found = re.findall(r"\tFIELD\((\w+), (\w+)\),", text)
    assert [name for name, _ in found] == [field.name for field in model_file.FIELDS]
    for (name, most), field in zip(found, model_file.FIELDS, strict=True):
        assert eval(numbers.get(most, most)) == field.most, name


def test_a_model_is_written_as_it_is_read():
    for name in model_file.BUILT_IN:
        model = model_file.built_in(name)
        text = model_file.toml(model, {"read_ns": "fitted"}, ["A head.", ""])
        assert model_file.parse(text, "x.toml") == model
        assert re.search(r"^read_ns = [\d_]+ +# fitted$", text, re.MULTILINE)


def test_a_file_without_a_name_has_that_of_the_file():
    assert model_file.parse(changed("name", ""), "a/b/my-drive.toml").name == "my-drive"
    with pytest.raises(
        UsageError, match=r'my drive\.toml: name = "my drive": use a text of letters'
    ):
        model_file.parse(changed("name", ""), "my drive.toml")


@pytest.mark.parametrize(
    ("field", "line", "message"),
    [
        ("dies", 'dies = "8"', ':9: dies = "8": use a whole number in 1..4096, without quotes'),
        ("dies", "dies = 2.5", ":9: dies = 2.5: use a whole number in 1..4096"),
        ("dies", "dies = true", ":9: dies = true: use a whole number in 1..4096"),
        ("dies", "dies = [2]", ":9: dies is no number: write dies = N, a whole number in 1..4096"),
        ("dies", "dies = -1", ":9: dies = -1: use a whole number in 1..4096"),
        ("dies", "dies = 0", ":9: dies = 0: use a whole number in 1..4096"),
        ("dies", "dyes = 3", ":9: no field 'dyes' of a model: did you mean dies?"),
        ("dies", "[x]", ":9: no table 'x' of a model: use name, channels, dies, planes,"),
        ("dies", "", ": no dies: add dies = N, a whole number in 1..4096"),
        ("dies", "dies: 3 # x", ":9: 'dies: 3' is no TOML"),
        ("dies", "dies = 3\ndies = 4", ":10: 'dies = 4' is no TOML (Cannot overwrite a value)"),
        ("dies", "dies = 400", ":8: channels = 12: channels x dies x planes is 4800: use at most"),
        ("planes", "planes = 3", ":10: planes = 3: use a power of two, such as 2"),
        ("planes", "planes = 2", ":13: program_pages = 8: use planes x read_pages, which is 16"),
        ("block_programs", "block_programs = 8192", ":14: block_programs = 8192: use at most 4096"),
        ("buffer_pages", "buffer_pages = 15", ":18: buffer_pages = 15: use twice program_pages"),
        ("gc_stop", "gc_stop = 2", ":17: gc_stop = 2: use more than gc_start, which is 2"),
        ("read_ns", "read_ns = 9_999_999_999", ":24: read_ns = 9999999999: use a whole number in"),
        ("read_burst", "read_burst = 4\nin_place = 1", ":28: in_place = 1: use true or false"),
        ("name", "name = 5", ":7: name = 5: use a text of letters, digits, '.', '_' and '-'"),
        ("name", 'name = "a b"', ':7: name = "a b": use a text of letters'),
    ],
)
def test_a_wrong_file_is_named_with_line_value_and_mend(field, line, message):
    with pytest.raises(UsageError) as caught:
        model_file.parse(changed(field, line), "my.toml")
    assert str(caught.value).startswith(f"my.toml{message}")
    assert "\n" not in str(caught.value)


def test_a_drive_without_a_map_needs_no_numbers_of_flash():
    text = (MODELS / "fabric.toml").read_text()
    assert "channel_ns" not in text
    assert model_file.parse(text, "f.toml")["channel_ns"] == 0
    with pytest.raises(UsageError, match="no spare_permille: add"):
        model_file.parse(text.replace("in_place = true", ""), "f.toml")


def test_a_file_gives_the_drive_of_the_simulator(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text(changed("name", 'name = "mine"'))
    device = parse_device(f"ssd:file={path},size_mb=128,fill=50")
    lines = drive.drive(device, 2, {}).statements
    assert lines[0].startswith("model mine channels 12 dies 3 planes 1 page_bytes 4096 ")
    assert lines[1] == "drive mine 128 steady 50"
    path.unlink()
    assert in_words(device.text) == "virtual SSD my, 128 MiB, 50 % full, slowed down 100 times"


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("ssd:file=/no/such.toml", "/no/such.toml: No such file or directory: name a TOML file"),
        ("ssd:file=", "--device ssd:file=: file=: name a TOML file, such as my.toml"),
        ("ssd:file=a,model=p3700", "model and file exclude each other: leave out one"),
        ("ssd:fetch=0", "fetch=0: use a number in 1..65536"),
        ("ssd:params=channels", "unknown setting 'params': use model, file, size_mb,"),
    ],
)
def test_a_wrong_file_of_a_device_is_refused(device, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_device(device)


def test_a_drive_of_the_simulator_may_take_turns():
    device = parse_device("ssd:model=p4500,fetch=64")
    found = drive.drive(device, 2, {})
    assert "fetch 64" in found.statements
    assert found.settings["fetch"] == "64"
    assert "fetch" not in "".join(drive.drive(parse_device("ssd:"), 2, {}).statements)
    job = jobfile.parse("[a]\ncgroup=a\nrw=read\nruntime=1s\nsize=1m\n", "x.fio")
    with pytest.raises(
        UsageError, match="fetch: only the simulator has it: leave it out, or use mqfa"
    ):
        session.check(session.Request(jobs=(job,), schedulers=("none",), device=device))


def test_a_copy_of_a_built_in_model_has_its_figures(tmp_path, capsys):
    job = tmp_path / "j.fio"
    job.write_text("[a]\ncgroup=a\ndirect=1\nrw=randread\nruntime=20ms\nramp_time=0\n")
    shown = []
    for device in ("model=p4500", f"file={MODELS / 'p4500.toml'}"):
        argv = ["sim", str(job), "--schedulers", "none", "--device", f"ssd:{device},fill=100"]
        assert main(argv) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_a_wrong_file_ends_the_command_with_status_2(tmp_path, capsys):
    path = Path(tmp_path, "my.toml")
    path.write_text(changed("planes", "planes = 3"))
    job = str(ROOT / "examples" / "four-cgroups.fio")
    assert main(["sim", job, "--device", f"ssd:file={path}"]) == 2
    assert capsys.readouterr().err == (
        f"mqfair: {path}:10: planes = 3: use a power of two, such as 2\n"
    )
