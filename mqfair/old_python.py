# SPDX-License-Identifier: GPL-2.0
"""What the command does on a Python that is too old for it. Python 3.6 must read this file."""

import os
import shutil
import sys

LEAST = 11
# Set for the newer Python, so that a program of that name that is old too ends.
MARK = "MQFAIR_NEWER_PYTHON"


def leave() -> None:
    """Runs the command with a newer Python of the machine, or ends it with one line."""
    said = (
        f"mqfair: Python {sys.version_info[0]}.{sys.version_info[1]} is too old: install Python"
        f" 3.{LEAST} or later, such as the package python3.{LEAST}"
    )
    # While Python looks for the module after -m, this stands for its name.
    if sys.argv[:1] != ["-m"]:
        raise ImportError(said)
    for minor in range(LEAST, 30):
        program = shutil.which(f"python3.{minor}")
        if program and MARK not in os.environ:
            os.environ[MARK] = program
            os.execv(program, [program, "-m", "mqfair", *sys.argv[1:]])
    sys.exit(said)
