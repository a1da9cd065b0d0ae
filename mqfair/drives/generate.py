# SPDX-License-Identifier: GPL-2.0
"""Writes flash/models.c, the table of the built-in models, from the files in mqfair/drives/models/.

usage: python3 -m mqfair.drives.generate

The table is kept beside its sources, so that a kernel module is built without this program.
tests/cli/test_drives.py fails if the table is not current.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from mqfair.drives.model_file import BUILT_IN, FIELDS, Model, built_in

TABLE = Path(__file__).resolve().parents[2] / "flash" / "models.c"

_HEAD = """\
// SPDX-License-Identifier: GPL-2.0
/*
 * models - the built-in drives
 *
 * mqfair/drives/generate.py writes this file.  The files in
 * mqfair/drives/models/ state the numbers, and where each of them comes from.
 */
#include "model.h"

const struct flash_params flash_models[] = {
"""
_TAIL = """\
	{ .name = NULL },
};
"""


def text() -> str:
    """The text of flash/models.c."""
    return _HEAD + "".join(_entry(built_in(name)) for name in BUILT_IN) + _TAIL


def _entry(model: Model) -> str:
    lines = [f'\t\t.name = "{model.name}",', *_members(model)]
    return "\t{\n" + "\n".join(lines) + "\n\t},\n"


def _members(model: Model) -> Iterator[str]:
    for field in FIELDS:
        value = model[field.name]
        unused = field.in_place if model["in_place"] else None
        if value not in (field.default, unused):
            yield f"\t\t.{field.name} = {value},"


def main() -> int:
    TABLE.write_text(text())
    print(TABLE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
