# SPDX-License-Identifier: GPL-2.0
"""The compile matrix: the types and headers that it makes from those of a neighbour."""

import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from lab import doctor, matrix
from lab.errors import LabError, SpecError

sys.path.insert(0, str(ROOT / "kernel" / "btf"))

import needs
from generate import Features
from model import Btf

OPS = "elevator_mq_ops"


@pytest.fixture(scope="session")
def vmlinux():
    from lab import kernel

    try:
        return kernel.ensure().vmlinux
    except LabError as error:
        pytest.skip(f"no kernel to read: {error}")


@pytest.fixture
def types(vmlinux):
    return doctor.Types(vmlinux)


@pytest.fixture
def read(types, tmp_path):
    """What bpftool reads of the changed types."""

    def reader():
        types.write(tmp_path / "btf")
        return Btf.load(tmp_path / "btf", "doctored")

    return reader


def test_types_without_a_change_are_the_same(read, vmlinux):
    assert read().text == Btf.load(vmlinux, "kernel").text


def test_each_hook_can_have_each_form_that_the_build_knows(types, read):
    """The signatures are those of the tables of the build, and the build reads them again. All
    hooks change at a time, because bpftool takes half a second to read the types of a kernel."""
    known = {
        name: [form for form in forms if "blk_insert_t" not in form]
        for name, forms in needs.HOOKS.items()
    }
    assert all(known.values())
    for n in range(max(map(len, known.values()))):
        chosen = {name: forms[n % len(forms)] for name, forms in known.items()}
        for name, form in chosen.items():
            types.set_hook(OPS, name, form)
        btf = read()
        for name, form in chosen.items():
            proto = btf.pointed_prototype(btf.member(OPS, name).type_id)
            assert btf.signature(proto) == form, name


def test_members_and_enumerators_come_and_go(types, read):
    types.drop_member("elevator_type", "elevator_features")
    types.add_member("elevator_queue", "flags")
    types.add_enumerator("WQ_PERCPU")
    types.drop_enumerator("BLK_MQ_F_SHOULD_MERGE")
    types.set_function("elevator_alloc", "int (struct request_queue *)")
    btf = read()
    present = Features(btf, with_ssd=True).present
    assert {"ELEVATOR_QUEUE_FLAGS", "WQ_PERCPU"} <= present
    assert not {"ELEVATOR_FEATURES", "BLK_MQ_F_SHOULD_MERGE"} & present
    assert btf.signature(btf.function("elevator_alloc")) == "int (struct request_queue *)"


@pytest.mark.parametrize(
    "change",
    [
        lambda types: types.drop_member(OPS, "none_such"),
        lambda types: types.drop_enumerator("NONE_SUCH"),
        lambda types: types.set_function("none_such", "void (int)"),
    ],
)
def test_a_step_that_finds_nothing_is_an_error(types, change):
    """A row would otherwise compile the neighbour's forms under another name."""
    with pytest.raises(LabError, match=r"correct the steps of lab/matrix\.py"):
        change(types)


@pytest.fixture
def tree(tmp_path):
    source = tmp_path / "base" / "usr" / "src"
    build = source / "linux-headers-1-amd64"
    header = source / "linux-headers-1-common" / "include" / "linux" / "a.h"
    for path in (build / "Module.symvers", header):
        path.parent.mkdir(parents=True)
        path.write_text("#ifndef A\n#define A\nint old;\n#endif /* A */\n")
    return doctor.Tree(build, tmp_path / "copy"), header


def test_the_headers_of_the_neighbour_stay_as_they_are(tree):
    copy, header = tree
    before = header.read_text()
    copy.edit("linux/a.h", (r"\bold\b", "new"))
    copy.declare("linux/a.h", "int more;")
    copy.export("more")
    (changed,) = copy.build.parent.glob("*-common/include/linux/a.h")
    assert changed.read_text() == "#ifndef A\n#define A\nint new;\nint more;\n#endif /* A */\n"
    assert header.read_text() == before
    assert "more" in (copy.build / "Module.symvers").read_text()
    with pytest.raises(LabError, match="no match of 'gone'"):
        copy.edit("linux/a.h", ("gone", ""))


def test_every_series_has_one_row_unless_its_headers_are_real():
    """A row with steps stands for series that no row of the mirror's packages has."""
    doctored = [one for row in matrix.ROWS if row.steps for one in row.series]
    real = {one for row in matrix.ROWS if not row.steps for one in row.series}
    assert len(doctored) == len(set(doctored))
    assert not real & set(doctored)


def test_an_unknown_row_names_the_others():
    with pytest.raises(SpecError, match=r"row '5\.15': unknown: choose from 6\.1, "):
        matrix.run(["5.15"])


def test_a_series_of_a_row_names_it():
    (row,) = matrix.chosen(["6.8"])
    assert row.series == ("6.5", "6.6", "6.7", "6.8")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_target_of_make_passes_the_rows():
    argv = ["make", "-n", "kernels-matrix", "ROWS=6.8 7.3"]
    done = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "python3 -m lab matrix 6.8 7.3" in done.stdout
