# SPDX-License-Identifier: GPL-2.0
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
