# SPDX-License-Identifier: GPL-2.0
"""The reader of all TOML files that a user writes, and the mends for a text that is no TOML.

A user writes such a file rarely, and by the habits of other files: INI, systemd, C. The reader
tries a mend before a message advises it: the lines down to the mend are TOML, and the value fits
its key.
"""

import contextlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqfair.text.errors import UsageError
from mqfair.text.output import shortened, visible

# Raises UsageError for a wrong key or value. Its table may lack keys, since it has those of one
# line alone.
Check = Callable[[Mapping[str, Any]], object]

# The quotes that word processors and web pages put in place of ".
_CURLED = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
_MARK = "\ufeff"
_BITS = 64
_LARGE = re.compile(
    r"[=\[,]\s*[+-]?(?:0x[\da-f_]{16,}|0o[0-7_]{21,}|0b[01_]{63,}|[\d_]{19,})", re.IGNORECASE
)
_COMMENT = re.compile(r"(?:^|\s+)#.*")
# The last group is empty if nothing closes the quotes. An apostrophe inside a word opens none.
_QUOTED = re.compile(
    rf"""(?<![^\s=:,{{\[])(?:"(?:[^"\\]|\\.)*|'[^']*|[{_CURLED}][^{_CURLED}]*)(["'{_CURLED}]?)"""
)
_HEAD = re.compile(r"\[{1,2}[^\[\]]+\]{1,2}")
_PAIR = re.compile(r"([\w.-]+)\s*[=:\s]\s*(.+)")
# A comment of C, C++ or INI: at the begin of a line, or behind a value.
_OTHER_COMMENT = re.compile(r"^(?:;|//)|(?<=[\"\d])\s*(?:;|//)(?=.*\w)")
_SEPARATOR = re.compile(r"(?<=\d)[ ,'](?=\d{3}(?!\d))")
_INTEGER = re.compile(r"(-?)0*(\d{1,15})\s*([kmg]?)", re.IGNORECASE)
_WORDS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false",
          "off": "false"}  # fmt: skip
_FORM = "write key = value: a text in quotes, a number, or true or false"
# The most lines over which a table in braces is put together.
_LINES_MOST = 50


def parse(text: str, path: str, check: Check) -> tuple[dict[str, Any], list[str]]:
    """The table in @text, and the lines, without the byte order mark with which some editors begin
    a file. Raises UsageError with place, line and mend."""
    text = text.removeprefix(_MARK)
    lines = text.splitlines()
    try:
        table = tomllib.loads(text)
        large = _has_large(table)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_not_toml(text, path, str(error), check)) from error
    except RecursionError as error:
        raise UsageError(f"{path}: brackets are nested too deep: remove them") from error
    except ValueError:
        # Python converts no number of thousands of digits.
        large = True
    if large:
        raise UsageError(
            f"{path}{_place_of_large(lines)}: a number has {_BITS} bits or more: write a smaller"
            " one"
        )
    return table, lines


def shown(value: object) -> str:
    """@value as a file has it, or its begin, for a message of one line."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return shortened(visible(text.lower() if isinstance(value, bool) else text))


def _has_large(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_large, value.values()))
    if isinstance(value, list):
        return any(map(_has_large, value))
    return isinstance(value, int) and value.bit_length() >= _BITS


def _place_of_large(lines: Sequence[str]) -> str:
    found = (number for number, line in enumerate(lines, 1) if _LARGE.search(line))
    number = next(found, None)
    return "" if number is None else f":{number}: {shortened(lines[number - 1].strip())!r}"


def _not_toml(text: str, path: str, message: str, check: Check) -> str:
    """The line for the @message of tomllib about @text: place, line, reason and mend."""
    at = re.search(r"\(at line (\d+), column \d+\)", message)
    lines = text.rstrip("\n").split("\n")
    number = int(at[1]) if at else len(lines)
    line, rest = _parts(lines[number - 1]) if number <= len(lines) else ("", "")
    below = [_bare(one) for one in lines[number : number + _LINES_MOST]]
    reason = message.partition(" (at ")[0]
    mends = _Mends(lines[: number - 1], line, rest, below, check)
    mend = mends.twice(reason) if reason.startswith(("Cannot", "Duplicate")) else mends.mend()
    return f"{path}:{number}: {shortened(line + rest)!r} is no TOML ({reason}): {mend}"


def _bare(line: str) -> str:
    """@line without its comment, which is no part of a mend."""
    return _parts(line)[0]


def _parts(line: str) -> tuple[str, str]:
    """@line without its comment, and the text from a # on that is no sure comment, since quotes
    before it are open."""
    is_open = False
    masked = line
    for quoted in _QUOTED.finditer(line):
        if quoted[1]:
            closed = quoted[0].replace("#", "_")
            masked = masked[: quoted.start()] + closed + masked[quoted.end() :]
        else:
            is_open = True
    comment = _COMMENT.search(masked)
    if comment is None:
        return line.strip(), ""
    rest = line[comment.start() :].rstrip()
    return line[: comment.start()].strip(), rest if is_open else ""


def _unquoted(value: str) -> str:
    return value.strip(_CURLED + "\"' ;,")


@dataclass(frozen=True)
class _Mends:
    """The mends for @line, at which the parser stopped. @rest is the text behind it that is a part
    of its value or a comment."""

    above: Sequence[str]
    line: str
    rest: str
    below: Sequence[str]
    check: Check

    def mend(self) -> str:
        try:
            tomllib.loads("\n".join(self.above))
        except ValueError:
            return "close the bracket or the quotes that a line above opens"
        commented = _OTHER_COMMENT.sub(" #", self.line, count=1)
        if commented != self.line and self._is_taken(commented):
            return "a comment begins with #"
        if self.line.startswith("["):
            name = self.line.strip("[] ")
            heads = (f"[[{name}]]", f"[{name}]")
            found = (f"write {head}" for head in heads if self._is_taken(head))
            return next(found, "a head is one name, in [[ and ]] or in [ and ]")
        pair = _PAIR.fullmatch(self.line)
        if pair is None:
            return _FORM
        refusal = ""
        for candidate, quotes in self._with_rest(pair[1], pair[2]):
            try:
                self._take(candidate)
            except UsageError as error:
                # The words behind the value say which values the key has, unless it is no value.
                no_value = re.search(r"[\"']|\s=", candidate.partition("= ")[2].strip("\"'"))
                refusal = "" if no_value else str(error).partition('": ')[2]
            except (ValueError, RecursionError):
                continue
            else:
                return f"write {candidate}{quotes}"
        return refusal or _FORM

    def twice(self, reason: str) -> str:
        """The mend for a key or a head that is there already."""
        heads = self._heads()
        if not self.line.startswith("["):
            repeats = heads and heads[-1].startswith("[[") and not reason.startswith("Duplicate")
            again = f", or begin another {heads[-1]}" if repeats else ""
            return f"a table has each key once: remove one{again}"
        name = self.line.strip("[] ")
        others = [head for head in heads if head.strip("[] ") != name]
        with contextlib.suppress(ValueError, UsageError):
            self.check(tomllib.loads("\n".join([*others, f"[[{name}]]", f"[[{name}]]"])))
            return f"write [[{name}]] each time"
        return f"{name} is there already: put its keys where it is first"

    def _heads(self) -> list[str]:
        return [head for line in self.above if _HEAD.fullmatch(head := _bare(line))]

    def _take(self, candidate: str) -> None:
        """Raises UsageError or ValueError unless the file may have @candidate in this place."""
        tomllib.loads("\n".join([*self.above, candidate]))
        self.check(tomllib.loads("\n".join([*self._heads(), candidate])))

    def _is_taken(self, candidate: str) -> bool:
        try:
            self._take(candidate)
        except (UsageError, ValueError, RecursionError):
            return False
        return True

    def _with_rest(self, key: str, value: str) -> Iterator[tuple[str, str]]:
        """The _candidates() with @rest in the value, and then behind it as a comment."""
        if self.rest:
            yield f'{key} = "{_unquoted(value + self.rest)}"', ""
        for candidate, quotes in self._candidates(key, value):
            yield candidate, self.rest or quotes

    def _candidates(self, key: str, value: str) -> Iterator[tuple[str, str]]:
        """The lines that may be meant, and words about their quotes; the most special one first."""
        if value.startswith("{"):
            body, brace, _ = "\n".join([value[1:], *self.below]).partition("}")
            lines = body.split("\n") if brace else [value[1:]]
            parts = [part for line in lines if (part := line.strip(" \t,"))]
            yield f"{key} = {{ {', '.join(parts)} }}", ", on one line" if len(lines) > 1 else ""
            return
        bare = _unquoted(value)
        if bare.lower() in _WORDS:
            yield f"{key} = {_WORDS[bare.lower()]}", ""
        number = _INTEGER.fullmatch(_SEPARATOR.sub("", bare))
        if number is not None:
            if number[3]:
                yield f'{key} = "{bare}"', ", in quotes"
            power = " kmg".index(number[3].lower() or " ")
            for thousand in (1000, 1024):
                yield f"{key} = {number[1]}{int(number[2]) * thousand**power}", ""
        with contextlib.suppress(ValueError):
            yield f"{key} = {float(bare)!r}", ""
        straight = "straight " if set(value) & set(_CURLED) else ""
        if "\\" in bare:
            # Such as the names of units: in single quotes a backslash is itself.
            yield f"{key} = '{bare}'", f", in {straight}single quotes"
        yield f'{key} = "{bare}"', f", in {straight}quotes"
