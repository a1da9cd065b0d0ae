# SPDX-License-Identifier: GPL-2.0
"""The part of a run that a worker of a cluster plays. It is sent by value, so it imports nothing of
this package: a worker needs Dask alone."""

import errno
import platform
import subprocess
import tempfile
import time
from pathlib import Path


def play(
    program: bytes, names: list[str], contents: list[bytes], text: str
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of @program, which reads the description
    @text. The files @names have @contents. A negative status is a signal; status 126 says that the
    program did not start."""
    host = platform.node()
    try:
        with tempfile.TemporaryDirectory(prefix="mqfair-") as folder:
            path = Path(folder) / "sim-run"
            path.write_bytes(program)
            path.chmod(0o700)
            for name, content in zip(names, contents, strict=True):
                (Path(folder) / name).write_bytes(content)
            while True:
                try:
                    done = subprocess.run(
                        [path], input=text, capture_output=True, text=True, cwd=folder, check=False
                    )
                except OSError as error:
                    # A thread has just started another program, which has this one open for
                    # writing until it begins.
                    if error.errno != errno.ETXTBSY:
                        raise
                    time.sleep(0.01)
                else:
                    break
    except OSError as error:
        return 126, "", f"worker {host} cannot run sim-run: {error.strerror}"
    said = done.stderr
    if done.returncode not in (0, 2):
        said = f"worker {host}: {said.strip() or f'sim-run ended with {done.returncode}'}"
    return done.returncode, done.stdout, said
