# SPDX-License-Identifier: GPL-2.0
"""The man pages: their sections, their options, and that they render without a warning."""

import gzip
import re
import shutil
import subprocess
import sys

import pytest
from test_main import CHECKOUT

from mqfair.__main__ import SUBCOMMANDS, main
from mqfair.manual import man

PAGES = man.pages()
VERBS = [command.name for command in SUBCOMMANDS]


def sections(text):
    found = {}
    for line in text.splitlines():
        if line.startswith(".SH "):
            found[line.removeprefix(".SH ")] = lines = []
        elif found:
            lines.append(line)
    return {title: "\n".join(lines) for title, lines in found.items()}


def plain(text):
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-").replace("\\ ", " ")


def test_there_is_a_page_for_the_command_and_for_each_verb():
    assert set(PAGES) == {"mqfair.8", *(f"mqfair-{verb}.8" for verb in VERBS)}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verbs_page_has_name_synopsis_options_and_example(verb):
    found = sections(plain(PAGES[f"mqfair-{verb}.8"]))
    summary = next(one.summary for one in SUBCOMMANDS if one.name == verb)
    assert found["NAME"] == f"mqfair-{verb} - {summary}"
    assert f"mqfair {verb}" in found["SYNOPSIS"]
    assert "--json" in found["OPTIONS"]
    example = found.get("EXAMPLES") or found["EXAMPLE"]
    assert f"mqfair {verb} " in example
    assert "mqfair(8)" in found["SEE ALSO"]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "lab"])
def test_a_verbs_help_has_an_example_and_its_page_has_each_option_of_the_help(verb, capsys):
    with pytest.raises(SystemExit) as leave:
        main([verb, "--help"])
    text = capsys.readouterr().out
    assert leave.value.code == 0
    assert re.search(rf"^examples?:.*mqfair {verb}", text, re.M | re.S)
    assert "--json" in text
    options = sections(plain(PAGES[f"mqfair-{verb}.8"]))["OPTIONS"]
    for option in set(re.findall(r"^  (--[a-z-]+)", text, re.M)):
        assert re.search(rf"^{option}\b", options, re.M), option


def test_the_front_page_names_each_verb_and_the_exit_status():
    found = sections(plain(PAGES["mqfair.8"]))
    for verb in VERBS:
        assert f"\n{verb}\n" in found["VERBS"]
        assert f"mqfair-{verb}(8)" in found["SEE ALSO"]
    assert "--version" in found["OPTIONS"]
    assert found["EXIT STATUS"].count(".TP") == 4
    assert "mqfair enable nvme0n1" in found["EXAMPLES"]


def test_no_default_is_left_as_a_placeholder():
    for text in PAGES.values():
        assert "%(" not in text


@pytest.mark.parametrize("page", PAGES)
def test_a_page_renders_without_a_warning(page):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    argv = ["groff", "-man", "-Tutf8", "-ww", "-rLL=78n", "-P-cbou"]
    done = subprocess.run(argv, input=PAGES[page].encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert b"SYNOPSIS" in done.stdout


def test_special_characters_are_escaped():
    assert man.escaped(r"a\b") == r"a\eb"
    assert man.escaped(".TH") == r"\&.TH"
    assert man.escaped("--x…") == r"\-\-x\[u2026]"


def test_pages_need_the_standard_library_alone(tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from mqfair.manual.man import main;"
        f" sys.exit(main([{str(tmp_path)!r}]))"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == PAGES


def test_install_command_installs_the_pages(tmp_path):
    argv = ["make", "-s", "-C", str(CHECKOUT), "install-command", f"DESTDIR={tmp_path}"]
    subprocess.run(argv, check=True, capture_output=True)
    folder = tmp_path / "usr/local/share/man/man8"
    assert {path.name for path in folder.iterdir()} == {f"{name}.gz" for name in PAGES}
    assert gzip.decompress((folder / "mqfair.8.gz").read_bytes()).decode() == PAGES["mqfair.8"]
