# SPDX-License-Identifier: GPL-2.0
"""The reader of JSON that fio has written. It refuses NaN and numbers without an end.

manual/json_check.py reads the documents of this command."""

import json
import math
from typing import Any, NoReturn

from mqfair.text.errors import UsageError

_DIGITS_MOST = 20


def parse(text: str, path: str, remedy: str) -> Any:
    """The value in @text. Raises UsageError with the reason and @remedy."""
    try:
        return json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, line {error.lineno}"
    except RecursionError:
        reason = "brackets are nested too deep"
    except ValueError as error:
        reason = str(error)
    raise UsageError(f"{path}: no JSON ({reason}): {remedy}")


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
