# SPDX-License-Identifier: GPL-2.0
import contextlib
import errno
import os
from pathlib import Path

import pytest

from mqfair.text import output


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1 << 40, "1.0 TiB"),
        (1 << 70, "1024.0 EiB"),
    ],
)
def test_bytes(count, text):
    assert output.human_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"), [(999, "999 us"), (1000, "1.0 ms"), (2_500_000, "2.5 s")]
)
def test_microseconds(count, text):
    assert output.human_microseconds(count) == text


def test_colour_on_terminals_only(monkeypatch):
    assert output.paint("x", "red") == "x"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.paint("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint("x", "red") == "x"


@pytest.mark.parametrize("exists", [True, False])
def test_a_file_is_the_same_by_each_of_its_names(exists, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if exists:
        (tmp_path / "a").write_text("")
        (tmp_path / "hard").hardlink_to("a")
        assert output.same_file("a", "hard")
    (tmp_path / "soft").symlink_to("a")
    for name in ("a", "./a", tmp_path / "a", f"../{tmp_path.name}/a", "soft"):
        assert output.same_file("a", name) and output.same_file(name, "a")
    assert not output.same_file("a", "b")


@contextlib.contextmanager
def whole_folder(name):
    with output.whole_folder("--out", name) as folder:
        yield folder / "x"


@pytest.fixture(params=[output.whole_output, output.whole_file, whole_folder])
def whole(request):
    """A helper that writes an output whole or not at all."""
    return request.param


def full(_made):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def unmade(made):
    """@made is a path or an open file."""
    path = made if isinstance(made, Path) else Path(made.name)
    (path.parent / "none/x").touch()


@pytest.mark.parametrize("fails", [full, unmade])
def test_an_error_of_an_output_names_it_as_the_user_does(whole, fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(output.NotWrittenError) as error, whole("./out") as made:
        fails(made)
    assert error.value.filename == "./out"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("read", ["none", "file/x", "folder", ".mqfair-none", "out-none"])
def test_an_error_of_another_file_names_that_file(whole, read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder").mkdir()
    with pytest.raises(OSError) as error, whole("out"):
        Path(read).read_text()
    assert not isinstance(error.value, output.NotWrittenError)
    assert error.value.filename == read
    assert {one.name for one in tmp_path.iterdir()} == {"file", "folder"}
