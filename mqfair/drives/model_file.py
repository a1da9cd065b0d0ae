# SPDX-License-Identifier: GPL-2.0
"""A model of a drive in a TOML file: the fields of struct flash_params (flash/model.h).

tomllib gives values without their lines, so the line of a field is found by a second look at the
text. flash_params_wrong() in flash/model.c has the rules among fields, too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mqfair.text import toml_text
from mqfair.text.errors import UsageError
from mqfair.text.output import nearest, read_text

_MODELS = Path(__file__).parent / "models"
# The built-in models, in the order of the table in flash/models.c. The first is the default.
BUILT_IN = ("p3700", "p4500", "980pro", "fabric", "four-dies")

PLANES_MOST = 4096
STEP_PAGES_MOST = 64
BLOCK_PAGES_MOST = 32768
TIME_MOST = 1_000_000_000
NAME_MOST = 31
_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{NAME_MOST}}}")


@dataclass(frozen=True)
class Field:
    """A number of a model, from @least to @most; a power of two if @power. A field with a @default
    may be left out, as may one of flash in a drive @in_place."""

    name: str
    least: int
    most: int
    power: bool = False
    default: int | None = None
    in_place: int | None = None

    @property
    def range(self) -> str:
        return f"{self.least}..{self.most}"


# In the order of struct flash_params. Times are in ns.
FIELDS = (
    Field("channels", 1, PLANES_MOST),
    Field("dies", 1, PLANES_MOST),
    Field("planes", 1, STEP_PAGES_MOST, power=True),
    Field("page_bytes", 512, 65536, power=True),
    Field("read_pages", 1, STEP_PAGES_MOST, power=True),
    Field("program_pages", 1, STEP_PAGES_MOST, power=True),
    Field("block_programs", 1, BLOCK_PAGES_MOST, power=True),
    Field("spare_permille", 0, 10_000, in_place=0),
    Field("gc_start", 1, 1024),
    Field("gc_stop", 2, 1024),
    Field("buffer_pages", 2, 1 << 24),
    Field("command_ns", 1, TIME_MOST),
    Field("read_fixed_ns", 0, TIME_MOST),
    Field("write_fixed_ns", 0, TIME_MOST),
    Field("link_ns", 0, TIME_MOST),
    Field("channel_ns", 0, TIME_MOST, in_place=0),
    Field("read_ns", 1, TIME_MOST),
    Field("program_ns", 1, TIME_MOST),
    Field("erase_ns", 0, TIME_MOST, in_place=0),
    Field("read_burst", 1, 1 << 20),
    Field("read_spread_permille", 0, 900, default=0),
    Field("in_place", 0, 1, default=0),
)
_BY_NAME = {field.name: field for field in FIELDS}
# A field that is true or false.
_FLAG = "in_place"


@dataclass(frozen=True)
class Model:
    """A model of a drive: a value for each of FIELDS, in their order."""

    name: str
    values: Mapping[str, int]

    def __getitem__(self, field: str) -> int:
        return self.values[field]

    @property
    def words(self) -> str:
        """The fields as `FIELD VALUE ...`: a statement of sim-run, and a file of the virtual SSD,
        have them in this form. A field with its default is left out."""
        return " ".join(
            f"{field.name} {self.values[field.name]}"
            for field in FIELDS
            if self.values[field.name] != field.default
        )

    @property
    def all_planes(self) -> int:
        return self["channels"] * self["dies"] * self["planes"]


def built_in(name: str) -> Model:
    """The model @name of BUILT_IN."""
    return load(str(_MODELS / f"{name}.toml"))


def load(path: str) -> Model:
    """The model in the file @path. Raises UsageError with file, line, value and mend."""
    text = read_text(path, "name a TOML file with a model of a drive (doc/simulator.md)")
    return parse(text, path)


def parse(text: str, path: str) -> Model:
    """The model in @text. Without a name it has that of the file @path. Raises UsageError."""
    table, lines = toml_text.parse(text, path, _Reader("", ()).check)
    return _Reader(path, lines).model(table)


def toml(model: Model, comments: Mapping[str, str], head: Sequence[str]) -> str:
    """The text of a file with @model. @head are comments above all fields, and @comments those
    behind single ones."""
    lines = [*(f"# {line}".rstrip() for line in head), "", f'name = "{model.name}"']
    for field in FIELDS:
        value = model[field.name]
        if value == field.default:
            continue
        shown = "true" if field.name == _FLAG else f"{value:_}"
        line = f"{field.name} = {shown}"
        comment = comments.get(field.name)
        lines.append(f"{line:<30}# {comment}" if comment else line)
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Reader:
    path: str
    lines: Sequence[str]

    def check(self, table: Mapping[str, object]) -> None:
        """Raises UsageError for a wrong key or value in @table, in which fields may be absent."""
        for key, value in table.items():
            if key == "name":
                self._name(value)
            elif key in _BY_NAME:
                self._value(_BY_NAME[key], table, flat=False)
            else:
                known = ("name", *_BY_NAME)
                kind = "table" if isinstance(value, dict | list) else "field"
                mend = nearest(key, known) or f"use {', '.join(known)}"
                raise UsageError(f"{self._place(key)}: no {kind} '{key}' of a model: {mend}")

    def model(self, table: Mapping[str, object]) -> Model:
        self.check(table)
        name = self._name(table.get("name", Path(self.path).stem))
        flat = table.get(_FLAG) is True
        values = {field.name: self._value(field, table, flat=flat) for field in FIELDS}
        model = Model(name, values)
        for key, mend in wrong(model):
            raise self._bad(key, values[key], mend)
        return model

    def _name(self, name: object) -> str:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            mend = f"use a text of letters, digits, '.', '_' and '-', up to {NAME_MOST}"
            raise self._bad("name", name, mend)
        return name

    def _value(self, field: Field, table: Mapping[str, object], *, flat: bool) -> int:
        if field.name not in table:
            default = field.in_place if flat else None
            default = field.default if default is None else default
            if default is None:
                raise UsageError(
                    f"{self.path}: no {field.name}: add {field.name} = N, a whole number in"
                    f" {field.range}"
                )
            return default
        value = table[field.name]
        if field.name == _FLAG:
            if not isinstance(value, bool):
                raise self._bad(field.name, value, "use true or false")
            return int(value)
        if isinstance(value, dict | list):
            mend = f"write {field.name} = N, a whole number in {field.range}"
            raise UsageError(f"{self._place(field.name)}: {field.name} is no number: {mend}")
        if type(value) is not int:
            without = ", without quotes" if isinstance(value, str) else ""
            raise self._bad(field.name, value, f"use a whole number in {field.range}{without}")
        if not field.least <= value <= field.most:
            raise self._bad(field.name, value, f"use a whole number in {field.range}")
        if field.power and value & (value - 1):
            below = 1 << value.bit_length() - 1
            raise self._bad(field.name, value, f"use a power of two, such as {below}")
        return value

    def _place(self, key: str) -> str:
        """File and line of @key; the file alone if the key is not found."""
        pattern = re.compile(rf"\s*(?:\[\[?\s*)?[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
        for number, line in enumerate(self.lines, 1):
            if pattern.match(line):
                return f"{self.path}:{number}"
        return self.path

    def _bad(self, key: str, value: object, mend: str) -> UsageError:
        return UsageError(f"{self._place(key)}: {key} = {toml_text.shown(value)}: {mend}")


def wrong(model: Model) -> Iterator[tuple[str, str]]:
    """The fields of @model that contradict others, each with a mend; flash_params_wrong() has the
    same rules."""
    if model.all_planes > PLANES_MOST:
        yield (
            "channels",
            f"channels x dies x planes is {model.all_planes}: use at most {PLANES_MOST} in all",
        )
    least = model["planes"] * model["read_pages"]
    if not model["in_place"] and least > model["program_pages"]:
        yield "program_pages", f"use planes x read_pages, which is {least}, or more"
    block = model["program_pages"] * model["block_programs"]
    if block > BLOCK_PAGES_MOST:
        most = BLOCK_PAGES_MOST // model["program_pages"]
        yield "block_programs", f"use at most {most} beside this program_pages"
    least = 2 * model["program_pages"]
    if model["buffer_pages"] < least:
        yield "buffer_pages", f"use twice program_pages, which is {least}, or more"
    if model["gc_start"] >= model["gc_stop"]:
        yield "gc_stop", f"use more than gc_start, which is {model['gc_start']}"
