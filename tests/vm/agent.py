# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: each test in a process of its own, one JSON line before and after it.

usage: agent.py TEST...     a test is FILE:FUNCTION or FILE:FUNCTION:NUMBER-OF-ITS-CASE
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guestlib import DEFAULT_TIME_LIMIT_S, KernelLog, Skip, splats, write

HUNG_TASK_S = 30
_KILL_GRACE_S = 10.0
_OUTPUT_BYTES = 8000


def main() -> int:
    with contextlib.suppress(FileNotFoundError):
        write("/proc/sys/kernel/hung_task_timeout_secs", HUNG_TASK_S)
    log = KernelLog(whole=True)
    emit({"boot": splats(log.read())})
    for test in sys.argv[1:]:
        emit({"start": test})
        started = time.monotonic()
        verdict = run_apart(test)
        seconds = time.monotonic() - started
        complaints = splats(log.read())
        if complaints:
            output = "\n".join([*complaints, str(verdict.get("output", ""))])
            reason = f"the kernel complained: {complaints[0]}"
            verdict |= {"result": "failed", "reason": reason, "output": output}
        unkillable = verdict.pop("unkillable", False)
        emit({"test": test, "seconds": round(seconds, 2), **verdict})
        if unkillable:
            return 1
    log.close()
    return 0


def emit(record: dict[str, object]) -> None:
    print(json.dumps(record), flush=True)


def run_apart(test: str) -> dict[str, object]:
    """Fork, so that a test can neither hang nor exit the agent, nor leave state in it."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as verdict:
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            # What it printed is wanted most when it must be killed.
            sys.stdout.reconfigure(line_buffering=True)
            json.dump(call(test), verdict)
            verdict.flush()
            sys.stdout.flush()
            os._exit(0)
        limit = time_limit_of(test)
        ended = wait_for(child, limit)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            gone = wait_for(child, _KILL_GRACE_S)
            found: dict[str, object] = {
                "result": "failed",
                "reason": f"not done after its time limit of {limit:g} s",
            }
            if not gone:
                found["unkillable"] = True
        else:
            verdict.seek(0)
            text = verdict.read()
            found = json.loads(text) if text else {"result": "failed", "reason": "it exited"}
        output.seek(0)
        found["output"] = output.read()[-_OUTPUT_BYTES:] + str(found.pop("trace", ""))
        return found


def wait_for(child: int, limit_s: float) -> bool:
    """False when @child lives on after @limit_s."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        pid, _ = os.waitpid(child, os.WNOHANG)
        if pid:
            return True
        time.sleep(0.02)
    return False


def find(test: str) -> tuple[Callable[..., None], tuple[object, ...]]:
    file, name, *case = test.split(":")
    sys.path.insert(0, str(Path(file).resolve().parent))
    function = getattr(importlib.import_module(Path(file).stem), name)
    if not case:
        return function, ()
    argument = function.cases[int(case[0])]
    return function, argument if isinstance(argument, tuple) else (argument,)


def time_limit_of(test: str) -> float:
    try:
        return float(getattr(find(test)[0], "time_limit_s", DEFAULT_TIME_LIMIT_S))
    except Exception:
        # The child meets the same error and reports it.
        return DEFAULT_TIME_LIMIT_S


def call(test: str) -> dict[str, object]:
    try:
        function, arguments = find(test)
        function(*arguments)
    except Skip as skip:
        return {"result": "skipped", "reason": str(skip)}
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__} in line {last.lineno} of {Path(last.filename).name}"
        text = str(error).splitlines()
        return {
            "result": "failed",
            "reason": f"{reason}: {text[0]}" if text else f"{reason}: {last.line}",
            "trace": traceback.format_exc(),
        }
    return {"result": "passed"}


if __name__ == "__main__":
    sys.exit(main())
