#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Write private.h, prototypes.h and features.h for one kernel.

An I/O scheduler needs structures of the block layer that no headers package ships. They differ
between kernels, and a module with a wrong layout would load and corrupt memory. The kernel
describes all its types itself, in BTF. This program writes out the private ones among them, and
asserts that the compiler lays them out as the kernel did. It refuses a kernel, and says why, if:

- a structure, member or function that the module needs is missing
- one of them has a form that kernel/compat does not know

    generate.py --btf /sys/kernel/btf/vmlinux --headers /lib/modules/$(uname -r)/build \\
                --include kernel/compat/public.h --out build/generated
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import needs
from errors import GenerateError
from headers import Declared, Headers
from identity import check_identity
from model import Btf, BtfType
from tested import TESTED, check_age, is_tested
from unpack import usable_source

_KINDS = {"STRUCT": "struct", "UNION": "union", "ENUM": "enum", "ENUM64": "enum"}

# bpftool begins each type at the start of a line and ends it with a line that begins with "}".
_DEFINITION = re.compile(
    r"^(?:(?P<kind>struct|union|enum) (?P<name>\w+) \{\n.*?^\}[^\n]*;\n"
    r"|typedef (?P<type>[^\n]*);\n)",
    re.MULTILINE | re.DOTALL,
)
_TYPEDEF_NAME = re.compile(r"(\w+)(?:\)?\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])*$")

# bpftool numbers the second and further types of a name.
_NUMBERED = re.compile(r"\b(\w+?)___\d+\b")

_BANNER = "/* Generated from the BTF of Linux {release}. Do not edit. */\n"


@dataclass(frozen=True)
class Definition:
    """One top-level definition in bpftool's C text."""

    kind: str
    name: str
    text: str


def definitions(text: str) -> Iterator[Definition]:
    """Yields the definitions of bpftool's text, in its order: types used by value come first."""
    for match in _DEFINITION.finditer(text):
        if match["kind"]:
            yield Definition(match["kind"], match["name"], match[0])
            continue
        name = _TYPEDEF_NAME.search(match["type"])
        if name:
            yield Definition("typedef", name[1], match[0])


class PrivateTypes:
    """The types to write out: those asked for and the types they need, without public ones."""

    def __init__(self, btf: Btf, declared: Declared) -> None:
        self._btf = btf
        self._declared = declared
        self.defined: set[tuple[str, str]] = set()
        self.forward: set[tuple[str, str]] = set()
        self._seen: set[tuple[int, bool]] = set()

    def add(self, name: str) -> None:
        """Adds the struct NAME, unless a public header has it."""
        t = self._btf.struct(name)
        if t is not None:
            self._visit(t["id"], by_value=True)

    def spelled(self, text: str) -> str:
        """Returns TEXT with the public names of typedefs that bpftool has numbered. User-mode Linux
        has the typedefs of a C library beside its own, for instance ssize_t."""

        def public(match: re.Match[str]) -> str:
            return match[1] if self._declared.has("typedef", match[1]) else match[0]

        return _NUMBERED.sub(public, text)

    def _visit(self, type_id: int, by_value: bool) -> None:
        if not type_id or (type_id, by_value) in self._seen:
            return
        self._seen.add((type_id, by_value))
        t = self._btf.type(type_id)
        kind = t["kind"]
        if kind in _KINDS:
            self._visit_tagged(t, by_value)
        elif kind == "FWD":
            self._forward(t.get("fwd_kind", "struct"), t["name"])
        elif kind == "TYPEDEF":
            if not self._declared.has("typedef", t["name"]):
                self.defined.add(("typedef", t["name"]))
                self._visit(t["type_id"], by_value)
        elif kind == "FUNC_PROTO":
            self._visit(t["ret_type_id"], by_value=False)
            for parameter in t["params"]:
                self._visit(parameter["type_id"], by_value=False)
        elif kind == "PTR":
            self._visit(t["type_id"], by_value=False)
        elif "type_id" in t:
            self._visit(t["type_id"], by_value)

    def _visit_tagged(self, t: BtfType, by_value: bool) -> None:
        kind, name = _KINDS[t["kind"]], t.get("name", "")
        anonymous = not name or name == "(anon)"
        if not anonymous:
            if self._declared.has(kind, name):
                return
            if not by_value and kind != "enum":
                self._forward(kind, name)
                return
            self.defined.add((kind, name))
        for member in t.get("members", ()):
            self._visit(member["type_id"], by_value=True)

    def _forward(self, kind: str, name: str) -> None:
        if not self._declared.has(kind, name):
            self.forward.add((kind, name))


def check_presence(btf: Btf) -> None:
    """Raises an error unless this kernel has every structure and member that the module uses."""
    for wanted in needs.STRUCTS:
        if btf.struct(wanted.name) is None:
            raise GenerateError(
                f"{btf.name}: struct {wanted.name} is not in its BTF: {wanted.hint}"
            )
    for name in needs.COMPARED:
        if btf.struct(name) is None:
            raise GenerateError(
                f"{btf.name}: struct {name} is not in its BTF: this is not the BTF of a whole "
                "kernel; name /sys/kernel/btf/vmlinux, a vmlinux or a vmlinuz"
            )
    for dotted in needs.MEMBERS:
        struct, _, path = dotted.partition(".")
        if btf.member(struct, path) is None:
            raise GenerateError(
                f"{btf.name}: struct {struct} has no member {path}: teach kernel/compat this layout"
            )


def match_form(btf: Btf, what: str, signature: str, forms: needs.Forms) -> str:
    """Returns the feature that SIGNATURE proves; an unknown form ends the build."""
    if signature not in forms:
        known = "' or '".join(forms)
        raise GenerateError(
            f"{btf.name}: {what} is '{signature}', kernel/compat knows '{known}': "
            "teach kernel/compat this form"
        )
    return forms[signature]


def all_features() -> list[str]:
    """Returns every feature name: each is defined as 0 or 1, so a misspelt one is an error."""
    tables: list[Iterable[str]] = [
        needs.MEMBER_FEATURES,
        needs.FUNCTION_FEATURES,
        needs.ENUMERATOR_FEATURES,
        needs.SSD_MEMBER_FEATURES,
        needs.SSD_ENUMERATOR_FEATURES,
    ]
    forms = [
        *needs.HOOKS.values(),
        *needs.OPTIONAL_HOOKS.values(),
        *needs.CALLBACKS.values(),
        *(function.forms for function in needs.FUNCTIONS),
        *needs.SSD_PUBLIC_FUNCTIONS.values(),
    ]
    tables += [form.values() for form in forms]
    return sorted({name for table in tables for name in table if name})


class Features:
    """The features of a kernel, found in its BTF; with WITH_SSD also those of mqfair-ssd.ko."""

    def __init__(self, btf: Btf, with_ssd: bool = False) -> None:
        self._btf = btf
        self._with_ssd = with_ssd
        self.present: set[str] = set()
        self._members(needs.MEMBER_FEATURES)
        self._enumerators(needs.ENUMERATOR_FEATURES)
        for feature, function in needs.FUNCTION_FEATURES.items():
            self._put(feature, btf.function(function) is not None)
        self._hooks()
        self._callbacks(needs.CALLBACKS)
        if with_ssd:
            self._members(needs.SSD_MEMBER_FEATURES)
            self._enumerators(needs.SSD_ENUMERATOR_FEATURES)
            for name, forms in needs.SSD_PUBLIC_FUNCTIONS.items():
                self._prototype(name, forms)

    def _members(self, table: dict[str, str]) -> None:
        for feature, dotted in table.items():
            struct, _, path = dotted.partition(".")
            self._put(feature, self._btf.member(struct, path) is not None)

    def _enumerators(self, table: dict[str, str]) -> None:
        for feature, enumerator in table.items():
            self._put(feature, enumerator in self._btf.enumerators)

    def _put(self, feature: str, present: bool = True) -> None:
        if present and feature:
            self.present.add(feature)

    def _hook(self, name: str) -> str | None:
        member = self._btf.member("elevator_mq_ops", name)
        if member is None:
            return None
        proto = self._btf.pointed_prototype(member.type_id)
        return None if proto is None else self._btf.signature(proto)

    def _hooks(self) -> None:
        for name, forms in needs.HOOKS.items():
            signature = self._hook(name)
            if signature is None:
                raise GenerateError(
                    f"{self._btf.name}: struct elevator_mq_ops has no hook {name}: "
                    "teach kernel/compat this layout"
                )
            self._put(match_form(self._btf, f"elevator_mq_ops.{name}", signature, forms))
        for name, forms in needs.OPTIONAL_HOOKS.items():
            signature = self._hook(name)
            if signature is not None:
                self._put(match_form(self._btf, f"elevator_mq_ops.{name}", signature, forms))

    def _callbacks(self, table: dict[str, needs.Forms]) -> None:
        for name, forms in table.items():
            typedef = self._btf.typedef(name)
            proto = None if typedef is None else self._btf.callback(typedef["id"])
            if proto is None:
                raise GenerateError(
                    f"{self._btf.name}: the callback type {name} is not in its BTF: "
                    "teach kernel/compat this layout"
                )
            self._put(match_form(self._btf, name, self._btf.signature(proto), forms))

    def _prototype(self, function: str, forms: needs.Forms) -> BtfType:
        """Returns the prototype of a function, which must be one of FORMS."""
        proto = self._btf.function(function)
        if proto is None:
            raise GenerateError(
                f"{self._btf.name}: the function {function} is not in its BTF: "
                "teach kernel/compat to do without it"
            )
        signature = self._btf.signature(proto)
        self._put(match_form(self._btf, f"function {function}", signature, forms))
        return proto

    def hold(self, conditions: Iterable[str]) -> bool:
        """Returns whether every condition ("X" or "!X") is met."""
        return all(
            (c[1:] not in self.present) if c.startswith("!") else (c in self.present)
            for c in conditions
        )

    def functions(self, exports: set[str]) -> list[str]:
        """Returns checked declarations of private functions and variables; learns features."""
        lines = []
        for function in needs.FUNCTIONS:
            if not self.hold(function.when):
                continue
            proto = self._prototype(function.name, function.forms)
            self._exported(function.name, exports)
            arguments = self._btf.parameters(proto, names=True)
            lines.append(self._btf.declare(proto["ret_type_id"], f"{function.name}({arguments})"))
        for variable in needs.VARIABLES:
            self._exported(variable.name, exports)
            lines.append(f"extern {variable.declaration}")
        for name in needs.PUBLIC_EXPORTS + (needs.SSD_PUBLIC_EXPORTS if self._with_ssd else ()):
            self._exported(name, exports)
        return lines

    def _exported(self, name: str, exports: set[str]) -> None:
        if name not in exports:
            raise GenerateError(
                f"{self._btf.name}: {name} is not exported to modules (Module.symvers): "
                "teach kernel/compat to do without it"
            )


def write_types(btf: Btf, private: PrivateTypes, release: str) -> Iterator[str]:
    """Yields private.h: forward declarations, definitions, assertions about the layout."""
    yield "/* SPDX-License-Identifier: GPL-2.0 */\n"
    yield _BANNER.format(release=release)
    yield "#ifndef MQFAIR_PRIVATE_H\n#define MQFAIR_PRIVATE_H\n\n"
    for kind, name in sorted(private.forward | {d for d in private.defined if d[0] == "struct"}):
        yield f"{kind} {name};\n"
    written: set[tuple[str, str]] = set()
    for definition in definitions(btf.text):
        key = (definition.kind, definition.name)
        if key in private.defined and key not in written:
            written.add(key)
            yield "\n" + private.spelled(definition.text)
    missing = private.defined - written
    if missing:
        kind, name = sorted(missing)[0]
        raise GenerateError(
            f"{btf.name}: bpftool does not write {kind} {name}: the kernel has several types of "
            "that name and a private structure contains one"
        )
    yield "\n"
    structs = sorted(name for kind, name in private.defined if kind == "struct")
    for name in [*structs, *needs.COMPARED]:
        yield from assertions(btf, name)
    yield "\n#endif\n"


def assertions(btf: Btf, name: str) -> Iterator[str]:
    """Yields assertions that struct NAME has the size and the offsets of the kernel."""
    t = btf.struct(name)
    if t is None:
        return
    reason = f'"struct {name}: headers and BTF disagree: use the headers of exactly that kernel"'
    yield f"_Static_assert(sizeof(struct {name}) == {t['size']},\n\t{reason});\n"
    for member in btf.members(t):
        if not member.bitfield:
            place = f"offsetof(struct {name}, {member.path})"
            yield f"_Static_assert({place} == {member.offset},\n\t{reason});\n"


def write_prototypes(lines: Iterable[str], release: str) -> Iterator[str]:
    """Yields prototypes.h: exported functions that no public header declares."""
    yield "/* SPDX-License-Identifier: GPL-2.0 */\n"
    yield _BANNER.format(release=release)
    yield "#ifndef MQFAIR_PROTOTYPES_H\n#define MQFAIR_PROTOTYPES_H\n\n"
    for line in lines:
        yield f"{line};\n"
    yield "\n#endif\n"


def write_features(features: Features, release: str) -> Iterator[str]:
    """Yields features.h: MQFAIR_HAVE_<X> is 0 or 1, and whether tests ran on this kernel."""
    yield "/* SPDX-License-Identifier: GPL-2.0 */\n"
    yield _BANNER.format(release=release)
    yield "#ifndef MQFAIR_FEATURES_H\n#define MQFAIR_FEATURES_H\n\n"
    for name in all_features():
        yield f"#define MQFAIR_HAVE_{name} {int(name in features.present)}\n"
    yield f"#define MQFAIR_IS_TESTED {int(is_tested(release))}\n"
    yield f'#define MQFAIR_TESTED "{", ".join(TESTED)}"\n'
    yield "\n#endif\n"


def write_if_changed(path: Path, parts: Iterable[str]) -> None:
    """Writes PATH. An unchanged file keeps its time stamp, so make rebuilds nothing for it."""
    text = "".join(parts)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def check_options(headers: Headers) -> None:
    """Raises an error unless the kernel has the options that the virtual SSD needs."""
    if needs.SSD_OPTION not in headers.config:
        raise GenerateError(
            f"{headers.build}: {needs.SSD_OPTION} is not set: use a kernel built with it, or build "
            "without --with-ssd"
        )


def generate(
    btf_source: Path, headers: Headers, includes: str, out: Path, with_ssd: bool = False
) -> None:
    """Checks the kernel and writes the three headers into OUT; WITH_SSD: for mqfair-ssd.ko too."""
    check_age(headers.release)
    if with_ssd:
        check_options(headers)
    with tempfile.TemporaryDirectory(prefix="mqfair-btf-") as directory:
        scratch = Path(directory)
        source = usable_source(btf_source, scratch)
        check_identity(btf_source, source, headers)
        btf = Btf.load(source, str(btf_source))
        check_presence(btf)
        features = Features(btf, with_ssd)
        prototypes = features.functions(headers.exports)
        declared = Declared(headers.preprocess(includes, scratch / "public"))
    private = PrivateTypes(btf, declared)
    for wanted in needs.STRUCTS:
        private.add(wanted.name)
    out.mkdir(parents=True, exist_ok=True)
    write_if_changed(out / "private.h", write_types(btf, private, headers.release))
    write_if_changed(out / "prototypes.h", write_prototypes(prototypes, headers.release))
    write_if_changed(out / "features.h", write_features(features, headers.release))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Write private.h, prototypes.h and features.h for one kernel.",
        epilog="example: generate.py --btf /sys/kernel/btf/vmlinux "
        "--headers /lib/modules/$(uname -r)/build --include kernel/compat/public.h --out DIR",
    )
    parser.add_argument("--btf", type=Path, required=True, help="BTF, vmlinux or vmlinuz")
    parser.add_argument("--headers", type=Path, required=True, help="headers build tree")
    parser.add_argument("--include", type=Path, required=True, help="list of public headers")
    parser.add_argument("--out", type=Path, required=True, help="directory to write to")
    arguments = parser.parse_args(argv)
    try:
        headers = Headers(arguments.headers)
        headers.check_tools()
        generate(arguments.btf, headers, arguments.include.read_text(), arguments.out)
    except (GenerateError, OSError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
