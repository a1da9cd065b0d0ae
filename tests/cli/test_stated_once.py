# SPDX-License-Identifier: GPL-2.0
"""A limit, a name of a scheduler and a list of names stand in one module of the command."""

import ast
from collections import defaultdict

from conftest import ROOT

# A bench and `mqfair lab` each have a word --on vm.
TWICE = {("VM", "'vm'")}


def modules():
    """The path and the text of each module."""
    for path in sorted((ROOT / "mqfair").rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text()


def constants():
    """Path, name without _, and value of each constant of a module."""
    for path, text in modules():
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                yield path, node.targets[0].id.lstrip("_"), node.value


def is_list_of_names(value):
    return isinstance(value, ast.Tuple) and all(
        isinstance(one, ast.Constant) and isinstance(one.value, str) for one in value.elts
    )


def is_named(name, value):
    """Whether @value is a text, a list of names, or a limit."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return True
    return is_list_of_names(value) or name.endswith(("_MIN", "_MAX", "_DEFAULT"))


def test_no_two_modules_state_a_constant_of_one_name_and_value():
    found = defaultdict(list)
    for path, name, value in constants():
        if is_named(name, value) and not isinstance(value, ast.Name):
            found[name, ast.unparse(value)].append(path)
    assert {key: paths for key, paths in found.items() if len(paths) > 1 and key not in TWICE} == {}


def test_no_two_modules_have_the_same_list_of_names():
    found = defaultdict(set)
    for path, _, value in constants():
        if is_list_of_names(value) and len(value.elts) > 3:
            found[frozenset(one.value for one in value.elts)].add(path)
    assert [paths for paths in found.values() if len(paths) > 1] == []
