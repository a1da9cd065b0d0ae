# SPDX-License-Identifier: GPL-2.0
"""Lets fio read the options of a job file before a guest boots for it."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mqfair.bench.jobfile import JobFile
from mqfair.text.errors import UsageError

_TIMEOUT_S = 60.0
_REFUSED = re.compile(r"(?:Bad option <(.+)>|failed parsing (.+))$")
_CHOICE = re.compile(r"(?:valid values|^\s+): (\S+)")


def check(job: JobFile) -> None:
    """Raises UsageError, with file and line, if fio does not accept an option of @job. An option
    that only an engine knows, or the name of an engine, is found in the first run."""
    fio = shutil.which("fio")
    if fio is None:
        return
    lines = [line for group in job.groups for one in group.jobs for line in ("[job]", *one.options)]
    with tempfile.TemporaryDirectory(prefix="mqfair-bench-") as folder:
        file = Path(folder, "job.fio")
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        try:
            done = subprocess.run(
                [fio, "--parse-only", file.name],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                cwd=folder,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # The first run will tell.
            return
    if done.returncode:
        raise UsageError(_message(job, done.stdout.splitlines()))


def _message(job: JobFile, said: Sequence[str]) -> str:
    refused = next((match for line in said if (match := _REFUSED.search(line))), None)
    if refused is None:
        why = next((line.strip() for line in said if line.strip()), "no message")
        return f"{job.path}: fio does not accept it: {why}"
    option = (refused[1] or refused[2]).strip()
    choices = [match[1] for line in said if (match := _CHOICE.search(line))]
    hint = f"use {', '.join(choices)}" if choices else "see `fio --cmdhelp=all` for its options"
    return f"{_place(job, option)}: fio does not accept '{option}': {hint}"


def _place(job: JobFile, option: str) -> str:
    """File and line of @option; the file alone if the option is spelt in another way there."""
    for number, line in enumerate(
        Path(job.path).read_text(encoding="utf-8-sig").splitlines(), start=1
    ):
        plain = re.split(r"[;#]", line, maxsplit=1)[0]
        if re.sub(r"\s*=\s*", "=", plain.strip(), count=1) == option:
            return f"{job.path}:{number}"
    return job.path
