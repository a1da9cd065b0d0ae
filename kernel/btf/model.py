# SPDX-License-Identifier: GPL-2.0
"""The kernel's types, read from its BTF through bpftool."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from errors import GenerateError, ToolError

BtfType = dict[str, Any]

_AGGREGATES = {"STRUCT": "struct", "UNION": "union"}
_ENUMS = ("ENUM", "ENUM64")
_QUALIFIERS = {"CONST": "const", "VOLATILE": "volatile", "RESTRICT": "restrict"}
_DERIVED = ("PTR", "ARRAY", "FUNC_PROTO")
# Annotations that stand before a type and change neither its layout nor its spelling.
_TRANSPARENT = ("TYPE_TAG",)
_ALIASES = ("TYPEDEF", *_QUALIFIERS, *_TRANSPARENT)


# Ubuntu has a bpftool for each kernel here, and /usr/sbin/bpftool is a script. It looks for the one
# of the running kernel. Any of them reads the BTF of any kernel.
LINUX_TOOLS = Path("/usr/lib")


def bpftool(*argv: str) -> str:
    """Runs bpftool and returns its output."""
    program = shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin:/sbin")
    if program is None:
        raise ToolError("bpftool is not installed: install the package bpftool")
    done = _call(program, *argv)
    if done.returncode and _is_script(Path(program)):
        found = sorted(LINUX_TOOLS.glob("linux-tools*/**/bpftool"))
        if not found:
            release = os.uname().release
            raise ToolError(
                f"{program} is a script that finds no bpftool for Linux {release}: install "
                f"linux-tools-{release}, or put another bpftool first in PATH"
            )
        done = _call(str(found[-1]), *argv)
    if done.returncode:
        reason = (done.stdout + done.stderr).strip().splitlines()
        raise GenerateError(f"bpftool {' '.join(argv)}: {reason[-1] if reason else 'failed'}")
    return done.stdout


def _call(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _is_script(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(2) == b"#!"


@dataclass(frozen=True)
class Member:
    """A named member, reached directly or through unnamed structs and unions."""

    path: str
    offset: int
    bitfield: bool
    type_id: int


class Btf:
    """Types by id and by name."""

    def __init__(self, types: list[BtfType], text: str, name: str) -> None:
        self.name = name
        self.text = text
        self._types: dict[int, BtfType] = {t["id"]: t for t in types}

    @classmethod
    def load(cls, path: Path, name: str) -> Btf:
        """Reads PATH (raw BTF or ELF with .BTF); messages call it NAME."""
        try:
            types = json.loads(bpftool("-j", "btf", "dump", "file", str(path)))["types"]
            text = bpftool("btf", "dump", "file", str(path), "format", "c")
        except ToolError:
            raise
        except (GenerateError, json.JSONDecodeError, KeyError) as error:
            raise GenerateError(
                f"{name}: no BTF can be read from it ({error}): use a kernel built with "
                "CONFIG_DEBUG_INFO_BTF=y"
            ) from error
        return cls(types, text, name)

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], BtfType]:
        index: dict[tuple[str, str], BtfType] = {}
        for t in self._types.values():
            if t.get("name") and t["kind"] != "FWD":
                kind = "ENUM" if t["kind"] in _ENUMS else t["kind"]
                index.setdefault((kind, t["name"]), t)
        return index

    @cached_property
    def enumerators(self) -> dict[str, int]:
        """Every enumeration constant of the kernel and its value."""
        return {
            value["name"]: value["val"]
            for t in self._types.values()
            if t["kind"] in _ENUMS
            for value in t["values"]
        }

    def type(self, type_id: int) -> BtfType:
        return self._types[type_id]

    def find(self, kind: str, name: str) -> BtfType | None:
        return self._by_name.get((kind, name))

    def struct(self, name: str) -> BtfType | None:
        return self.find("STRUCT", name)

    def typedef(self, name: str) -> BtfType | None:
        return self.find("TYPEDEF", name)

    def function(self, name: str) -> BtfType | None:
        """Returns the FUNC_PROTO of a function."""
        func = self.find("FUNC", name)
        return None if func is None else self.type(func["type_id"])

    def members(self, t: BtfType, base: int = 0) -> Iterator[Member]:
        """Yields named members of a struct or union, with those of unnamed aggregates."""
        for m in t["members"]:
            bits = base + m["bits_offset"]
            if m["name"] and m["name"] != "(anon)":
                yield Member(m["name"], bits // 8, bool(m.get("bitfield_size")), m["type_id"])
                continue
            inner = self.resolve(m["type_id"])
            if inner is not None and inner["kind"] in _AGGREGATES:
                yield from self.members(inner, bits)

    def member(self, struct: str, path: str) -> Member | None:
        """Returns the member at a dotted path, or None if the struct or the member is absent."""
        t = self.struct(struct)
        offset = 0
        found: Member | None = None
        for step in path.split("."):
            if t is None or t["kind"] not in _AGGREGATES:
                return None
            inner = next((m for m in self.members(t) if m.path == step), None)
            if inner is None:
                return None
            offset += inner.offset
            found = Member(path, offset, inner.bitfield, inner.type_id)
            t = self.resolve(inner.type_id)
        return found

    def resolve(self, type_id: int) -> BtfType | None:
        """Returns the type behind typedefs and qualifiers; None for void."""
        while type_id:
            t = self.type(type_id)
            if t["kind"] not in _ALIASES:
                return t
            type_id = t["type_id"]
        return None

    def pointed_prototype(self, type_id: int) -> BtfType | None:
        """Returns the FUNC_PROTO behind a pointer to function, also through typedefs."""
        t = self.resolve(type_id)
        return None if t is None or t["kind"] != "PTR" else self._prototype(t["type_id"])

    def callback(self, type_id: int) -> BtfType | None:
        """Returns the FUNC_PROTO of a function type or of a pointer to one."""
        return self._prototype(type_id) or self.pointed_prototype(type_id)

    def _prototype(self, type_id: int) -> BtfType | None:
        t = self.resolve(type_id)
        return t if t is not None and t["kind"] == "FUNC_PROTO" else None

    def declare(self, type_id: int, name: str = "") -> str:
        """Returns a C declaration of NAME with the type TYPE_ID."""
        if type_id == 0:
            return f"void {name}".rstrip()
        t = self.type(type_id)
        if t["kind"] in _DERIVED:
            return self._declare_derived(t, name)
        if t["kind"] in _TRANSPARENT:
            return self.declare(t["type_id"], name)
        if t["kind"] not in _QUALIFIERS:
            return f"{self.spell(t)} {name}".rstrip()
        qualifier = _QUALIFIERS[t["kind"]]
        if self._kind(t["type_id"]) == "PTR":
            return self.declare(t["type_id"], f"{qualifier} {name}".rstrip())
        return f"{qualifier} {self.declare(t['type_id'], name)}"

    def _declare_derived(self, t: BtfType, name: str) -> str:
        if t["kind"] == "FUNC_PROTO":
            return self.declare(t["ret_type_id"], f"{name}({self.parameters(t)})")
        if t["kind"] == "ARRAY":
            return self.declare(t["type_id"], f"{name}[{t['nr_elems']}]")
        binds_tighter = self._kind(t["type_id"]) in ("FUNC_PROTO", "ARRAY")
        return self.declare(t["type_id"], f"(*{name})" if binds_tighter else f"*{name}")

    def _kind(self, type_id: int) -> str:
        return str(self.type(type_id)["kind"]) if type_id else "VOID"

    def spell(self, t: BtfType) -> str:
        """Returns the C spelling of a named type."""
        kind, name = t["kind"], t.get("name", "")
        if kind in _AGGREGATES:
            return f"{_AGGREGATES[kind]} {name}"
        if kind in _ENUMS:
            return f"enum {name}"
        if kind == "FWD":
            return f"{t.get('fwd_kind', 'struct')} {name}"
        return str(name)

    def parameters(self, proto: BtfType, names: bool = False) -> str:
        """Returns the parameter list of a FUNC_PROTO."""
        if not proto["params"]:
            return "void"
        return ", ".join(
            "..." if not p["type_id"] else self.declare(p["type_id"], p["name"] if names else "")
            for p in proto["params"]
        )

    def signature(self, proto: BtfType) -> str:
        """Returns a prototype in the form of the tables: no names, no const, one spelling."""
        text = f"{self.declare(proto['ret_type_id'])} ({self.parameters(proto)})"
        return re.sub(r"\s+", " ", re.sub(r"\bconst\s*", "", text))
