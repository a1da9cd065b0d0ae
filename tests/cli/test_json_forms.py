# SPDX-License-Identifier: GPL-2.0
"""The forms of JSON: their table, its page, and that every written document holds to it.

The fixture `forms_are_kept` of conftest.py checks each document of every other test.
"""

import json
import re

import jsonschema
import pytest
from conftest import ROOT

from mqfair.manual import json_forms

NAMES = list(json_forms.BY_NAME)


def test_the_page_is_that_of_the_table():
    assert (ROOT / "doc/json.md").read_text() == json_forms.page(), (
        "run python3 -m mqfair.manual.json_forms > doc/json.md"
    )


def test_every_form_of_the_command_is_in_the_table():
    files = [path for path in (ROOT / "mqfair").rglob("*.py") if path.parent.name != "manual"]
    text = "".join(path.read_text() for path in files)
    schemas = {form.schema for form in json_forms.FORMS}
    assert set(re.findall(r'"(mqfair\.[a-z-]+/\d+)"', text)) == schemas


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_well_formed(name, tmp_path):
    assert json_forms.main(["--schemas", str(tmp_path)]) == 0
    schema = json.loads((tmp_path / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == json_forms.schema(name)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "mqfair.weight/2"},
        {"more": 1},
        {"weight": "900"},
        {"writes": [{"path": "/sys"}]},
        {"devices": {"259:0": None}},
    ],
    ids=str,
)
def test_a_document_of_another_form_is_refused(change):
    good = {"schema": "mqfair.weight/1", "cgroup": "a", "device": None, "weight": 900}
    good |= {"default": 100, "devices": {"259:0": 500}, "dry_run": False, "writes": []}
    check = jsonschema.Draft202012Validator(json_forms.schema("weight"))
    check.validate(good)
    assert not check.is_valid(good | change)
