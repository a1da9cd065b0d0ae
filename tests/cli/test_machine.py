# SPDX-License-Identifier: GPL-2.0
"""experiments.machine: ratios, tables, and the document that it writes."""

import argparse
import itertools

import pytest

from experiments import machine
from experiments.markdown import put
from mqfair.text.errors import UsageError


def run(name, variant, cpus, rate):
    hot = {"ready set": 40.0, "slots": 20.0}
    return machine.Run(name, variant, cpus, rate, 1, 1, 1, [0, 0, 0, 0], 0, 0, 0, 0, hot)


def results(rate=lambda variant, cpus: 1e6):
    names = [variant.name for variant in (*machine.VARIANTS, *machine.BETWEEN.values())]
    return machine.Results(
        [run("epyc", v, n, rate(v, n)) for v, n in itertools.product(names, machine.CPUS)]
    )


def test_peaks_are_compared_at_their_own_number_of_cpus():
    slower_with_more = {("mqfq", 8): 3e6, ("none", 64): 4e6}
    found = results(lambda variant, cpus: slower_with_more.get((variant, cpus), 1e6))
    assert found.ratio(machine.CLAIMS[0], "epyc") == pytest.approx(0.75)


def test_structures_are_compared_at_the_papers_number_of_threads():
    found = results(lambda variant, cpus: 3e6 if (variant, cpus) == ("mqfq", 32) else 1e6)
    claim = next(c for c in machine.CLAIMS if c.other == "counter")
    assert found.ratio(claim, "epyc") == pytest.approx(3)


def test_ratio_below_the_papers_is_bold_and_does_not_hold():
    found = results()
    assert "| 1.00 |" in machine.claims_table(found)
    assert "| **1.00** |" in machine.claims_table(found)
    checks = machine.document(found)["checks"]
    assert {check["holds"] for check in checks} == {True, False}


def test_rates_are_shown_by_threshold():
    rates = {"mqfq, T auto": 1e6, "mqfq, T 256 KiB": 2e6, "mqfq": 3e6}
    found = results(lambda variant, cpus: rates.get(variant, 0.5e6) * (cpus == 48))
    table = machine.thresholds_table(found)
    assert "| T, KiB | auto | 64 | 128 | 256 | 512 | 1024 |\n" in table
    assert "| epyc, 48 CPUs | 1.00 | 0.50 | 0.50 | 2.00 | 0.50 | 3.00 |\n" in table


def test_tables_replace_those_of_the_document(tmp_path):
    path = tmp_path / "d.md"
    assert set(machine.tables(results())) == set(machine.PLACES)
    path.write_text(
        "a\n" + "".join(f"<!-- {name} -->\nearlier\n<!-- end -->\n" for name in machine.PLACES)
    )
    put(path, machine.tables(results()))
    text = path.read_text()
    assert "earlier" not in text
    assert text.startswith("a\n<!-- claims -->\n|  | paper | epyc |\n")
    assert "| epyc | ready set 40 | slots 20 |\n<!-- end -->\n" in text
    put(path, machine.tables(results()))
    assert path.read_text() == text


def test_bad_options_are_refused_before_a_run(tmp_path):
    path = tmp_path / "d.md"
    path.write_text("# no table\n")
    with pytest.raises(UsageError, match="no place for claims, "):
        machine.run(argparse.Namespace(document=path, machines="epyc"))
    with pytest.raises(UsageError, match="no such machine"):
        machine.run(argparse.Namespace(document=None, machines="cray"))
