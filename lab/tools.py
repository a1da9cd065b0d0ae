# SPDX-License-Identifier: GPL-2.0
"""Programs that the lab runs on the host, and its messages about long steps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError


def run(argv: Sequence[str], cwd: Path | None = None, profile: str = "guest") -> str:
    """The output of a program, which lab/bootstrap @profile installs. Raises LabError with its
    last message if it fails."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            check=True,
            capture_output=True,
            text=True,
            env=environment(),
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]}: not found: run lab/bootstrap {profile}") from error
    except subprocess.CalledProcessError as error:
        lines = (error.stderr.strip() or error.stdout.strip()).splitlines()
        last = (lines or ["no message"])[-1]
        raise LabError(f"{' '.join(argv[:3])}: exit status {error.returncode}: {last}") from error
    return done.stdout


def environment() -> dict[str, str]:
    path = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/sbin:/usr/sbin"
    return {**os.environ, "LC_ALL": "C.UTF-8", "PATH": path}


def say(text: str) -> None:
    """Tells about a step that takes long."""
    print(f"lab: {text}", file=sys.stderr, flush=True)
