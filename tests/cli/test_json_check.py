# SPDX-License-Identifier: GPL-2.0
"""The check of JSON that is read back: its verdict is that of the JSON Schema of each form."""

import copy

import jsonschema
import pytest

from mqfair.manual import json_forms
from mqfair.manual.json_check import require
from mqfair.text.json_text import WrongJsonError, read

EXAMPLES = {
    "text": "a", "integer": -1, "count": 1, "number": 0.5, "signed": -0.5, "time": 1e9,
    "fraction": 0.5, "weight": 100, "flag": True, "setting": "a",
}  # fmt: skip
VALUES = [None, "a", 7, -1, 0, 0.5, 5.0, 1e12, 2**64, True, [], {}]


def example(node):
    """A value as @node states it, with all optional fields."""
    if node.kind not in json_forms.TYPES:
        return example(json_forms.tree(json_forms.BY_NAME[node.kind]))
    if node.kind in ("list", "filled"):
        return [example(node.children["[]"])]
    if node.kind == "object":
        return {key: example(child) for key, child in node.children.items()}
    return EXAMPLES[node.kind]


def places(value, found=()):
    """The keys that lead to each value at or below @value, but for the schema."""
    yield found
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in items:
        if isinstance(below, (dict, list)):
            yield from places(below, (*found, key))
        elif key != "schema":
            yield (*found, key)


def replaced(document, place, value):
    if not place:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def is_right(value, node):
    try:
        require(value, node)
    except WrongJsonError:
        return False
    return True


@pytest.mark.parametrize("name", ["bench", "qualify", "record", "enable", "fit", "weight"])
def test_the_verdict_is_that_of_the_schema(name):
    form = json_forms.BY_NAME[name]
    node = json_forms.tree(form)
    good = example(node) | {"schema": form.schema}
    for one in good.get("benches", []):
        one["schema"] = json_forms.BY_NAME["bench"].schema
    judge = jsonschema.Draft202012Validator(json_forms.schema(name))
    assert is_right(good, node)
    for place in places(good):
        for value in VALUES:
            changed = replaced(good, place, value)
            assert is_right(changed, node) == judge.is_valid(changed), (place, value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400, 1e101])
@pytest.mark.parametrize("kind", ["count", "number", "signed", "fraction", "integer", "time"])
def test_numbers_are_finite(kind, value):
    assert not is_right(value, json_forms.Node(kind))


def test_the_message_names_the_field_and_its_value():
    form = json_forms.tree(json_forms.BY_NAME["weight"])
    good = example(form)
    for changed, said in (
        (
            good | {"writes": [{"path": "a\x1b", "value": 7}]},
            "writes[0].value is 7, which is no text",
        ),
        (
            good | {"devices": {"a\n": "x" * 999}},
            f'devices.a\\x0a is "{"x" * 78}…, which is no count',
        ),
        ({"schema": "a"}, "cgroup is missing"),
        (good | {"weight": 10**400}, f"weight is 1{'0' * 78}…, which is no count"),
        ([], "the document is [], which is no object"),
    ):
        with pytest.raises(WrongJsonError) as error:
            require(changed, form)
        assert str(error.value) == said
    require(good | {"later": float("nan")}, form)
    require({"share": 1 + 1e-15}, json_forms.Node(children={"share": json_forms.Node("fraction")}))


@pytest.mark.parametrize("text", ["", "{", "[" * 9999, '{"a": 1', "1" * 9999])
def test_other_text_is_no_json(text):
    with pytest.raises(WrongJsonError, match="no JSON"):
        read(text)
