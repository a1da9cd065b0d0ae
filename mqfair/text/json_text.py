# SPDX-License-Identifier: GPL-2.0
"""The reader of all JSON in files: of fio, which a user names, and of this command.

manual/json_check.py checks the documents of this command against their forms."""

import json
import math
from typing import Any, NoReturn

from mqfair.text.errors import UsageError

_DIGITS_MOST = 20


class WrongJsonError(ValueError):
    """The text is no JSON, or a field is wrong. The message names the place and the fault."""


def read(text: str, *, finite: bool = False) -> Any:
    """The value in @text. Raises WrongJsonError. With @finite it refuses NaN and numbers without
    an end, which a form refuses otherwise."""
    try:
        return (_FINITE if finite else _PLAIN).decode(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}" if "\n" in text else f"column {error.colno}"
        reason = f"{error.msg}, {line}"
    except RecursionError:
        reason = "brackets are nested too deep"
    except ValueError as error:
        # Python converts no number of thousands of digits, and advises programmers.
        reason = str(error) if finite else "a number is too long"
    raise WrongJsonError(f"no JSON ({reason})")


def parse(text: str, path: str, remedy: str, *, finite: bool = False) -> Any:
    """As read(), but raises UsageError with the file @path and @remedy."""
    try:
        return read(text, finite=finite)
    except WrongJsonError as error:
        raise UsageError(f"{path}: {error}: {remedy}") from error


def _integer(text: str) -> int:
    if len(text) > _DIGITS_MOST:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_PLAIN = json.JSONDecoder()
_FINITE = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_refuse)
