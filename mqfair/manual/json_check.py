# SPDX-License-Identifier: GPL-2.0
"""JSON that mqfair reads back, checked against its form in json_forms.py.

A person or a full disk may have changed the file. So each value must be of its type and in its
range, and no required field may be missing. A field that the form does not state is of a later
version, and passes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqfair.manual.json_forms import BY_NAME, TYPES, Node, tree
from mqfair.text import json_text
from mqfair.text.errors import Failure
from mqfair.text.json_text import WrongJsonError
from mqfair.text.output import shortened, visible

# The greatest number that is accepted. The product of two of them is finite.
MOST = 1e100
# The ends of a range may be missed by a rounding, such as that of Jain's index.
ROUNDING = 1e-9

_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": (int, float),
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


def load(path: Path, node: Node, remedy: str) -> Any:
    """The value in the file @path, which a run has left. Raises Failure with the fault and @remedy
    unless it is as @node states."""
    try:
        found = json_text.read(path.read_text())
        require(found, node)
    except UnicodeDecodeError as error:
        raise Failure(f"{path}: no text: {remedy}") from error
    except WrongJsonError as error:
        raise Failure(f"{path}: {error}: {remedy}") from error
    return found


def require(value: Any, node: Node) -> None:
    """Raises WrongJsonError if @value is not as @node states."""
    found = _fault(value, node)
    if found:
        path, words = found
        raise WrongJsonError(f"{path.removeprefix('.') or 'the document'} {words}")


def _fault(value: Any, node: Node) -> tuple[str, str] | None:
    """The path of the first wrong field at or below @value, and the words for its fault."""
    if node.kind not in TYPES:
        return _fault(value, tree(BY_NAME[node.kind]))
    if value is None and node.null:
        return None
    if not _holds(value, TYPES[node.kind]):
        kind = "filled list" if node.kind == "filled" else node.kind
        return "", f"is {shortened(json.dumps(value))}, which is no {kind}"
    if isinstance(value, list):
        return _fault_in_list(value, node)
    return _fault_in_object(value, node) if isinstance(value, dict) else None


def _fault_in_list(value: list[Any], node: Node) -> tuple[str, str] | None:
    for place, item in enumerate(value):
        found = _fault(item, node.children["[]"])
        if found:
            return f"[{place}]{found[0]}", found[1]
    return None


def _fault_in_object(value: dict[str, Any], node: Node) -> tuple[str, str] | None:
    for key, child in node.children.items():
        if key not in value and key != "*" and not child.optional:
            return f".{key}", "is missing"
    others = node.children.get("*")
    for key, item in value.items():
        stated = node.children.get(key, others)
        found = _fault(item, stated) if stated else None
        if found:
            return f".{shortened(visible(key))}{found[0]}", found[1]
    return None


def _holds(value: Any, rule: Mapping[str, Any]) -> bool:
    """Whether @value is of the type and in the range of @rule, an entry of TYPES."""
    kinds: list[str] = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if isinstance(value, bool):
        return "boolean" in kinds
    if not any(isinstance(value, _PYTHON[kind]) for kind in kinds):
        return False
    if isinstance(value, list):
        return len(value) >= int(rule.get("minItems", 0))
    if not isinstance(value, (int, float)):
        return True
    whole = "integer" in kinds
    slack = 0 if whole else ROUNDING
    low, high = rule.get("minimum", -MOST) - slack, rule.get("maximum", MOST) + slack
    # Not a number is in no range.
    return bool(low <= value <= high) and (not whole or value == int(value))
