# SPDX-License-Identifier: GPL-2.0
"""The pressure of cgroups: io.pressure of the kernel, and its parts of a time."""

import pytest

from mqfair.watch import pressure
from mqfair.watch.pressure import Part, Pressure

TEXT = b"""\
some avg10=46.80 avg60=31.29 avg300=9.52 total=32201422
full avg10=43.51 avg60=28.72 avg300=8.72 total=29547030
"""


def test_the_file_of_the_kernel():
    assert pressure.parse(TEXT) == Pressure(32201422, 29547030)
    assert pressure.last_10_s(TEXT) == (46.8, 43.51)


def test_the_root_may_lack_the_second_line():
    assert pressure.parse(TEXT.splitlines()[0]) == Pressure(32201422, 0)
    assert pressure.last_10_s(TEXT.splitlines()[0]) == (46.8, 0.0)


@pytest.mark.parametrize("text", [None, b"", b"\n", b"some avg10=x total=3\n", b"full total=3"])
def test_a_kernel_without_it(text):
    assert pressure.parse(text) is None
    assert pressure.last_10_s(text) is None


def test_parts_of_the_time():
    before = {"a": Pressure(0, 0), "b": Pressure(10, 10), "new": Pressure(900, 0)}
    after = {
        "a": Pressure(500_000, 100_000), "b": Pressure(9_000_000, 10), "new": Pressure(3, 0),
        "first": Pressure(7, 7),
    }  # fmt: skip
    found = pressure.parts(before, after, 2.0)
    assert found == {"a": Part(250_000, 50_000), "b": Part(1_000_000, 0)}
