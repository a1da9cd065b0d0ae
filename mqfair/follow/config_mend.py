# SPDX-License-Identifier: GPL-2.0
"""The mends for a text that is no TOML, from the line at which the parser stopped.

An administrator writes /etc/mqfair.conf rarely, and by the habits of other files: INI, systemd, C.
"""

import re

from mqfair.text.output import shortened

# The quotes that word processors and web pages put in place of ".
_CURLED = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"
_PAIR = re.compile(r"([\w-]+)\s*([=:])\s*(.+)")


def not_toml(text: str, path: str, message: str) -> str:
    """The line for the @message of tomllib about @text: place, line, reason and mend."""
    at = re.search(r"\(at line (\d+), column \d+\)", message)
    lines = text.splitlines()
    line = int(at[1]) if at else len(lines)
    shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    reason = message.partition(" (at ")[0]
    return f"{path}:{line}: {shortened(shown)!r} is no TOML ({reason}): {_mend(shown, reason)}"


def _mend(shown: str, reason: str) -> str:
    if reason.startswith("Cannot overwrite"):
        return "a table has each key once: remove one, or begin another table with its [[…]]"
    if shown.startswith((";", "//")) or re.search(r"[\"\d]\s*(;|//)", shown):
        return "a comment begins with #"
    found = _PAIR.fullmatch(shown)
    if found is None:
        return 'write key = "text" or key = number'
    key, _, value = found.groups()
    bare = value.strip(_CURLED + "\"' ;,")
    if re.fullmatch(r"-?\d+", bare):
        return f"write {key} = {bare}"
    if not bare or '"' in bare:
        return 'write key = "text" or key = number'
    straight = "straight " if set(value) & set(_CURLED) else ""
    return f'write {key} = "{bare}", in {straight}quotes'
