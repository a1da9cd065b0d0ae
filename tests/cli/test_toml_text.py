# SPDX-License-Identifier: GPL-2.0
"""The reader of TOML files takes each line that it advises, and refuses all others in one line."""

import re

import pytest

from mqfair.drives import data_sheet, model_file
from mqfair.follow import config
from mqfair.text.errors import UsageError

MODEL = model_file.toml(model_file.built_in("p4500"), {}, []) + "in_place = false\n"
TUNABLES = 'tunables = { depth = 64, cost = "bytes" }'
CONF = f"""\
mirror = true
[[device]] # the fast ones
match = "nvme0n1"
nr_requests = 512
{TUNABLES}
[[weight]]
weight = 900
cgroup = 'a #b' # c
[[device]]
match = "sda"
[device.tunables]
depth = 32
[kubernetes]
burstable = 300
"""
SHEET = """\
[[figure]]
rw = "read"
bs = "4k"
iops = 460_000
[[figure]]
latency_us = 80
rw = "randread"
bs = 4096
"""
FILES = {"conf": (CONF, config.parse), "model": (MODEL, model_file.parse),
         "sheet": (SHEET, data_sheet.parse)}  # fmt: skip


def wrong(kind, old, new):
    """The text of the file @kind with @new for the line @old, and the error about it."""
    text, parse = FILES[kind]
    parse(text, "f.toml")
    changed = text.replace(old, new, 1)
    assert changed != text
    with pytest.raises(UsageError) as caught:
        parse(changed, "f.toml")
    return changed, str(caught.value)


@pytest.mark.parametrize(
    ("kind", "old", "new", "advised"),
    [
        ("conf", "mirror = true", "mirror = True", "mirror = true"),
        ("conf", "mirror = true", "mirror = no", "mirror = false"),
        ("conf", "nr_requests = 512", "nr_requests = 1k", "nr_requests = 1000"),
        ("conf", "nr_requests = 512", "nr_requests = 1,024 # most", "nr_requests = 1024"),
        ("conf", "weight = 900", "weight=0100", "weight = 100"),
        ("conf", "weight = 900", "weight 900", "weight = 900"),
        ("conf", "weight = 900", "weight = \u201c900\u201d", "weight = 900"),
        ("conf", "weight = 900", "weight = 900;", "weight = 900"),
        ("conf", 'match = "nvme0n1"', 'match: "nvme0n1";', 'match = "nvme0n1"'),
        ("conf", 'match = "sda"', "match = sda", 'match = "sda"'),
        ("conf", "depth = 32", "depth = 64 auto", 'depth = "64 auto"'),
        ("conf", "burstable = 300", "burstable = 3k", "burstable = 3000"),
        ("conf", TUNABLES, 'tunables = { depth = 64, cost = "bytes", }', TUNABLES),
        ("conf", TUNABLES, 'tunables = { depth = 64, cost = "bytes"', TUNABLES),
        ("conf", TUNABLES, 'tunables = { depth = 64,\n # c\n cost = "bytes" }', TUNABLES),
        ("conf", TUNABLES, 'tunables = {\n depth = 64 # c\n cost = "bytes"\n}', TUNABLES),
        ("conf", "[[weight]]", "[[weight]", "[[weight]]"),
        ("conf", "[kubernetes]", "[kubernetes", "[kubernetes]"),
        ("conf", "[device.tunables]", "[[device.tunables]", "[device.tunables]"),
        ("conf", "cgroup = 'a #b'", r'unit = "a\x2db.service"', r"unit = 'a\x2db.service'"),
        ("conf", "cgroup = 'a #b' # c", 'cgroup = "a # b', 'cgroup = "a # b"'),
        ("conf", "cgroup = 'a #b' # c", 'cgroup = "a # b; # c', 'cgroup = "a # b; # c"'),
        ("conf", "cgroup = 'a #b' # c", "cgroup = \u201ca # b", 'cgroup = "a # b"'),
        ("conf", "cgroup = 'a #b'", "cgroup = \u201ca # b\u201d # c", 'cgroup = "a # b"'),
        ("conf", "cgroup = 'a #b'", "cgroup = it's # c", 'cgroup = "it\'s"'),
        ("conf", 'match = "sda"', 'match = "sda # b', 'match = "sda" # b'),
        ("conf", "weight = 900", "weight = '900 # c", "weight = 900 # c"),
        ("model", "channels = 12", "channels = 012", "channels = 12"),
        ("model", "channels = 12", "channels = 12,", "channels = 12"),
        ("model", "page_bytes = 4_096", "page_bytes = 4k", "page_bytes = 4096"),
        ("model", "in_place = false", "in_place = True", "in_place = true"),
        ("model", 'name = "p4500"', "name = 1k", 'name = "1k"'),
        ("sheet", "iops = 460_000", "iops=460,000", "iops = 460000"),
        ("sheet", "iops = 460_000", "iops=460k", "iops = 460000"),
        ("sheet", "latency_us = 80", "latency_us = .5", "latency_us = 0.5"),
        ("sheet", 'rw = "read"', "rw = read", 'rw = "read"'),
        ("sheet", "[[figure]]", "[figure", "[[figure]]"),
    ],
)  # fmt: skip
def test_the_advised_line_is_taken(kind, old, new, advised):
    changed, said = wrong(kind, old, new)
    found = re.search(r": write (.*?)(?:, in (?:straight |single )?quotes|, on one line)?$", said)
    assert found is not None and found[1] == advised, said
    FILES[kind][1](changed.replace(new, advised, 1), "f.toml")


@pytest.mark.parametrize(
    ("kind", "old", "new", "mend"),
    [
        ("conf", "mirror = true", "mirror = banana", "use true or false"),
        ("conf", "weight = 900", "weight = 99k", "use a whole number in 1..10000, without quotes"),
        ("conf", "weight = 900", "weight = 1x", "use a whole number in 1..10000, without quotes"),
        ("conf", '"nvme0n1"', "sda1", 'a partition has no scheduler: use "sda"'),
        ("conf", '"sda"', "sda cost = 'bytes'", "write key = value: a text in quotes, a number,"),
        ("conf", "cgroup = 'a #b'", 'cgroup = "a #b" x', "write key = value: a text in quotes"),
        ("conf", "mirror = true", "x = [", "close the bracket or the quotes that a line"),
        ("conf", "burstable = 300", "x = [\n1", "close the bracket or the quotes that a line"),
        ("conf", "weight = 900", "weight = 900 // x", "a comment begins with #"),
        ("conf", "[[weight]]", "[[weight]] x", "a head is one name, in [[ and ]] or in [ and ]"),
        ("conf", "weight = 900", "weight = 9\nweight = 5", "remove one, or begin another [[wei"),
        ("conf", "mirror = true", "mirror = true\nmirror = true", "has each key once: remove one"),
        ("conf", "burstable", "besteffort = 1\n[kubernetes]\nburstable",
         "kubernetes is there already: put its keys where it is first"),
        ("model", "dies = 3", "dies = 3\ndies = 3", "a table has each key once: remove one"),
        ("model", "dies = 3", "dies = many", "use a whole number in 1..4096, without quotes"),
        ("sheet", "latency_us = 80", "latency_us = 85us", "use a number without quotes"),
    ],
)  # fmt: skip
def test_without_a_line_that_would_be_taken_the_mistake_is_named(kind, old, new, mend):
    _, said = wrong(kind, old, new)
    assert re.search(r"^f\.toml:\d+: .* is no TOML \(.*\): ", said) and mend in said


@pytest.mark.parametrize("second", ["[figure]", "[[figure]]"])
def test_a_table_of_a_list_has_two_brackets_each_time(second):
    text = SHEET.replace("[[figure]]", "[figure]", 1).replace("[[figure]]", second)
    with pytest.raises(UsageError, match=r"f\.toml:5: .*: write \[\[figure\]\] each time$"):
        data_sheet.parse(text, "f.toml")


LINES = {"conf": "nr_requests = 512", "model": "channels = 12", "sheet": "bs = 4096"}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("number", ["9" * 5000, "9" * 20, "-1" + "0" * 40, "0x" + "f" * 5000])
def test_a_huge_number_is_named_with_its_line(kind, number):
    key = LINES[kind].partition(" ")[0]
    for value in (number, f"[{number}]", f"{{ x = {number} }}"):
        changed, said = wrong(kind, LINES[kind], f"{key} = {value}")
        line = changed.splitlines().index(f"{key} = {value}") + 1
        assert said.startswith(f"f.toml:{line}: '{key} = ")
        assert said.endswith(": a number has 64 bits or more: write a smaller one")
        assert len(said) < 200


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("text", ["x = " + "[" * 20_000, "x." * 20_000 + "x = 1"])
def test_deep_nesting_is_refused(kind, text):
    with pytest.raises(UsageError, match=r"^f\.toml: brackets are nested too deep: remove them$"):
        FILES[kind][1](text, "f.toml")


@pytest.mark.parametrize(
    ("kind", "old", "key"),
    [("conf", "depth = 32", "depth"), ("model", "dies = 3", "dies"), ("sheet", "4096", "bs")],
)
def test_a_long_text_for_a_number_is_refused(kind, old, key):
    digits = '"' + "9" * 5000 + '"'
    new = old.replace("32", digits).replace("= 3", f"= {digits}").replace("4096", digits)
    _, said = wrong(kind, old, new)
    assert re.match(rf'f\.toml:\d+: {key} = "9+…: use a ', said) and len(said) < 200


@pytest.mark.parametrize("kind", FILES)
def test_a_byte_order_mark_is_no_part_of_a_file(kind):
    text, parse = FILES[kind]
    assert parse("\ufeff" + text, "f.toml") == parse(text, "f.toml")


@pytest.mark.parametrize("line", ['match = "/dev/\\u0000x"', 'match = "/srv/\\u0000x"'])
def test_a_path_with_a_nul_is_refused(line):
    _, said = wrong("conf", 'match = "sda"', line)
    assert said.endswith(": no path has a NUL: leave it out")
