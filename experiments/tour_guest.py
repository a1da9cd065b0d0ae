# SPDX-License-Identifier: GPL-2.0
"""The guest half of tour.py: runs shell commands one by one.

    tour_guest.py COMMANDS FOLDER    COMMANDS is a file with a list of JSON strings

Each command starts in FOLDER. Its output, status and time are one line of JSON.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 1200.0
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "96",
    "DEBIAN_FRONTEND": "noninteractive",
}


def run(command: str, folder: str) -> dict[str, object]:
    begin = time.monotonic()
    try:
        done = subprocess.run(
            ["/bin/bash", "-c", command], cwd=folder, env=ENVIRONMENT, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
        )  # fmt: skip
        status, found = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, found = 124, error.output or b""
    # As bytes, because a text has no carriage returns: dpkg writes over its own line.
    output = found.decode(errors="replace")
    seconds = time.monotonic() - begin
    return {"command": command, "status": status, "output": output, "seconds": seconds}


def main() -> int:
    commands, folder = sys.argv[1:]
    for command in json.loads(Path(commands).read_text()):
        print(json.dumps(run(command, folder)), flush=True)
    os.sync()
    return 0


if __name__ == "__main__":
    sys.exit(main())
