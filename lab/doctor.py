# SPDX-License-Identifier: GPL-2.0
"""Types and headers of one kernel, changed into those of another for a compile test.

A mirror has few of all kernels. So lab/matrix.py takes the types of a neighbour and undoes the
changes that lie between. Only the forms that kernel/btf/needs.py asks for are changed. All else
stays that of the neighbour, and no test loads such a module.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from lab.errors import LabError

_MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_MEMBER = struct.Struct("<III")
_WORDS = struct.Struct("<II")
_PTR, _STRUCT, _ENUM, _TYPEDEF, _FUNC, _FUNC_PROTO, _ENUM64 = 2, 4, 6, 8, 12, 13, 19
_INT = 1
# The bytes behind a type, by kind: for the type, and for each member.
_EXTRA = {1: 4, 3: 12, 14: 4, 17: 4}
_EACH = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}
_SIGNATURE = re.compile(r"(.*?) ?\((.*)\)$")
_SHF_COMPRESSED = 0x800


class Types:
    """The BTF of a kernel. Types keep their numbers, and new ones come at the end."""

    def __init__(self, vmlinux: Path) -> None:
        self._name = str(vmlinux)
        data = _section(vmlinux.read_bytes(), b".BTF", self._name)
        magic, self._version, self._flags, size, *places = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise LabError(f"{self._name}: no BTF: use a kernel with CONFIG_DEBUG_INFO_BTF=y")
        types_at, types_size, strings_at, strings_size = places
        start = size + strings_at
        self._strings = bytearray(data[start : start + strings_size])
        self._types = list(_types(data[size + types_at : size + types_at + types_size]))
        self._pointers = {t[2]: i for i, t in enumerate(self._types, 1) if _kind(t) == _PTR}

    def write(self, path: Path) -> None:
        types = b"".join(_TYPE.pack(*t[:3]) + t[3] for t in self._types)
        places = (_HEADER.size, 0, len(types), len(types), len(self._strings))
        header = _HEADER.pack(_MAGIC, self._version, self._flags, *places)
        path.write_bytes(header + types + bytes(self._strings))

    def drop_member(self, name: str, member: str) -> None:
        """Gives a member another name: the layout stays."""
        found = self._member(name, member)
        self._put(self._find(_STRUCT, name), found, _MEMBER, 0, self._string(f"not_{member}"))

    def add_member(self, name: str, member: str) -> None:
        """Adds an unsigned long at the end of a struct."""
        number = self._find(_STRUCT, name)
        _, info, size, extra = self._types[number - 1]
        kind = self._find(_INT, "long unsigned int")
        extra += _MEMBER.pack(self._string(member), kind, size * 8)
        self._types[number - 1] = (self._types[number - 1][0], info + 1, size + 8, extra)

    def drop_enumerator(self, name: str) -> None:
        for number, t in enumerate(self._types, 1):
            if _kind(t) not in (_ENUM, _ENUM64):
                continue
            for at in range(0, len(t[3]), _EACH[_kind(t)]):
                (text,) = struct.unpack_from("<I", t[3], at)
                if self._text(text) == name:
                    one = struct.Struct("<I")
                    self._put(number, at, one, 0, self._string(f"NOT_{name}"))
                    return
        raise LabError(f"{self._name}: no enumerator {name}: correct the steps of lab/matrix.py")

    def add_enumerator(self, name: str) -> None:
        info = _ENUM << 24 | 1
        self._types.append((0, info, 4, _WORDS.pack(self._string(name), 1)))

    def set_hook(self, name: str, member: str, signature: str) -> None:
        """Makes @member of a struct a pointer to a function with this signature."""
        pointer = self._pointer(self._prototype(signature))
        self._put(self._find(_STRUCT, name), self._member(name, member), _MEMBER, 1, pointer)

    def set_function(self, name: str, signature: str) -> None:
        prototype = self._prototype(signature)
        number = self._find(_FUNC, name)
        text, info, _, extra = self._types[number - 1]
        self._types[number - 1] = (text, info, prototype, extra)

    def _prototype(self, signature: str) -> int:
        matched = _SIGNATURE.match(signature)
        assert matched, signature
        parameters = [self._type(word.strip()) for word in matched[2].split(",")]
        # The build writes out prototypes of functions with the names.
        extra = b"".join(
            _WORDS.pack(self._string(f"a{number}"), one) for number, one in enumerate(parameters)
        )
        self._types.append((0, _FUNC_PROTO << 24 | len(parameters), self._type(matched[1]), extra))
        return len(self._types)

    def _type(self, spelled: str) -> int:
        """The number of a type: void, a struct, a typedef, an integer, or a pointer to one."""
        if spelled.endswith("*"):
            return self._pointer(self._type(spelled[:-1].strip()))
        if spelled == "void":
            return 0
        if spelled.startswith("struct "):
            return self._find(_STRUCT, spelled.removeprefix("struct "))
        if spelled in ("int", "unsigned int"):
            return self._find(_INT, spelled)
        return self._find(_TYPEDEF, spelled)

    def _pointer(self, target: int) -> int:
        if target not in self._pointers:
            self._types.append((0, _PTR << 24, target, b""))
            self._pointers[target] = len(self._types)
        return self._pointers[target]

    def _find(self, kind: int, name: str) -> int:
        for number, t in enumerate(self._types, 1):
            if _kind(t) == kind and t[0] and self._text(t[0]) == name:
                return number
        raise LabError(f"{self._name}: no type {name}: correct the steps of lab/matrix.py")

    def _member(self, name: str, member: str) -> int:
        extra = self._types[self._find(_STRUCT, name) - 1][3]
        for at in range(0, len(extra), _MEMBER.size):
            if self._text(_MEMBER.unpack_from(extra, at)[0]) == member:
                return at
        raise LabError(
            f"{self._name}: struct {name} has no member {member}: correct the steps of"
            " lab/matrix.py"
        )

    def _put(self, number: int, at: int, form: struct.Struct, index: int, value: int) -> None:
        text, info, size, extra = self._types[number - 1]
        words = list(form.unpack_from(extra, at))
        words[index] = value
        changed = extra[:at] + form.pack(*words) + extra[at + form.size :]
        self._types[number - 1] = (text, info, size, changed)

    def _string(self, text: str) -> int:
        at = len(self._strings)
        self._strings += text.encode() + b"\0"
        return at

    def _text(self, at: int) -> str:
        return self._strings[at : self._strings.index(0, at)].decode()


def _types(data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    at = 0
    while at < len(data):
        name, info, size = _TYPE.unpack_from(data, at)
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        end = at + _TYPE.size + _EXTRA.get(kind, 0) + _EACH.get(kind, 0) * count
        yield name, info, size, data[at + _TYPE.size : end]
        at = end


def _kind(t: tuple[int, int, int, bytes]) -> int:
    return t[1] >> 24 & 0x1F


def _section(image: bytes, wanted: bytes, name: str) -> bytes:
    """A section of a 64-bit ELF file."""
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    for text, _, flags, _, offset, length in sections:
        at = sections[names][4] + text
        if image[at : image.index(b"\0", at)] == wanted and not flags & _SHF_COMPRESSED:
            return image[offset : offset + length]
    raise LabError(f"{name}: no section {wanted.decode()}: use a kernel with BTF")


class Tree:
    """A copy of a headers tree: the files are shared with the original until one is changed."""

    def __init__(self, build: Path, root: Path) -> None:
        self._usr = root / "usr"
        shutil.rmtree(root, ignore_errors=True)
        self._usr.mkdir(parents=True)
        original = build.parents[1]
        for folder in ("src", "lib"):
            for part in sorted((original / folder).glob("linux-*")):
                target = self._usr / folder / part.name
                shutil.copytree(part, target, symlinks=True, copy_function=_share)
        self.build = self._usr / "src" / build.name

    def edit(self, header: str, *changes: tuple[str, str]) -> None:
        """Replaces regular expressions in a header; each must match."""
        places = sorted(self._usr.glob(f"src/*/include/{header}"))
        if not places:
            raise LabError(f"{self.build}: no include/{header}: correct the steps of lab/matrix.py")
        text = places[0].read_text()
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE | re.DOTALL)
            if not count:
                raise LabError(
                    f"{places[0]}: no match of '{pattern}': correct the steps of lab/matrix.py"
                )
        _replace(places[0], text)

    def declare(self, header: str, *lines: str) -> None:
        """Adds lines before the end of a header's guard."""
        added = "\n".join(lines)
        self.edit(header, (r"(#endif[^\n]*\s*)\Z", rf"{added}\n\1"))

    def export(self, name: str) -> None:
        """Adds @name to the exports for modules."""
        symvers = self.build / "Module.symvers"
        line = f"0x00000000\t{name}\tvmlinux\tEXPORT_SYMBOL_GPL\t\n"
        _replace(symvers, symvers.read_text() + line)


def _share(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def _replace(path: Path, text: str) -> None:
    """The original has the same file, so it is not written to."""
    path.unlink()
    path.write_text(text)
