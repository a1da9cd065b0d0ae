# SPDX-License-Identifier: GPL-2.0
"""Runs in the guest: each test in a process of its own, one JSON line before and after it.

A test that is marked as timed and ends with TimingError is tried again, in a new process; after
any other failure, a complaint of the kernel among them, it is not.

usage: agent.py TEST...

A test is FILE:FUNCTION, FILE:FUNCTION:NUMBER-OF-ITS-CASE or FILE:FUNCTION:=ARGUMENT.
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
from typing import TextIO

sys.path.insert(0, str(Path(__file__).resolve().parent))

from guestlib import DEFAULT_TIME_LIMIT_S, KernelLog, Skip, TimingError, splats, write

# Longer than the kernel's own, for emulated processors are slow and made to wait; shorter than the
# time limit of a test that hangs.
_PATIENCE = {
    "/proc/sys/kernel/hung_task_timeout_secs": 90,
    "/proc/sys/kernel/watchdog_thresh": 40,
    "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout": 80,
}
_KILL_GRACE_S = 30.0
_OUTPUT_BYTES = 8000


def main() -> int:
    for path, seconds in _PATIENCE.items():
        with contextlib.suppress(FileNotFoundError):
            write(path, seconds)
    log = KernelLog(whole=True)
    emit({"boot": splats(log.read())})
    for test in sys.argv[1:]:
        started = time.monotonic()
        verdict = try_up_to(tries_of(test), test, log)
        ended = verdict.pop("ended", False)
        emit({"test": test, "seconds": round(time.monotonic() - started, 2), **verdict})
        if ended:
            # It left devices, cgroups, loads: those after it run in a fresh guest.
            return 1
    log.close()
    return 0


def try_up_to(tries: int, test: str, log: KernelLog) -> dict[str, object]:
    """The verdict on the last try; it says so when there were several."""
    outputs = []
    for number in range(1, tries + 1):
        emit({"start": test})
        verdict = judge(test, log)
        outputs.append(f"--- try {number} of {tries}\n" * (tries > 1) + str(verdict["output"]))
        if not verdict.pop("timing", False):
            break
    verdict["output"] = "\n".join(outputs)
    if number > 1:
        told = [f"{verdict['result']} at try {number}", str(verdict.get("reason", ""))]
        verdict["reason"] = ": ".join(filter(None, told))
    return verdict


def judge(test: str, log: KernelLog) -> dict[str, object]:
    """One try, and what the kernel said meanwhile."""
    verdict = run_apart(test)
    complaints = splats(log.read())
    if complaints:
        output = "\n".join([*complaints, str(verdict["output"])])
        reason = f"the kernel complained: {complaints[0]}"
        verdict |= {"result": "failed", "reason": reason, "output": output, "timing": False}
    return verdict


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
        limit = mark_of(test, "time_limit_s", DEFAULT_TIME_LIMIT_S)
        ended = wait_for(child, limit)
        if not ended:
            tell_who_sleeps(output)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            wait_for(child, _KILL_GRACE_S)
            found: dict[str, object] = {
                "result": "failed",
                "reason": f"not done after its time limit of {limit:g} s",
                "ended": True,
            }
        else:
            verdict.seek(0)
            text = verdict.read()
            found = json.loads(text) if text else {"result": "failed", "reason": "it exited"}
        output.seek(0)
        found["output"] = output.read()[-_OUTPUT_BYTES:] + str(found.pop("trace", ""))
        return found


def tell_who_sleeps(output: TextIO) -> None:
    """Where in the kernel each process is that no signal would wake."""
    output.seek(0, os.SEEK_END)
    for status in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        # It may end meanwhile.
        with contextlib.suppress(OSError):
            name, _, rest = status.read_text().rpartition(")")
            if rest.split()[0] == "D":
                print(f"{name})", status.with_name("stack").read_text(), sep="\n", file=output)
    output.flush()


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
    if case[0].startswith("="):
        return function, (case[0][1:],)
    argument = function.cases[int(case[0])]
    return function, argument if isinstance(argument, tuple) else (argument,)


def mark_of(test: str, name: str, default: float) -> float:
    try:
        return float(getattr(find(test)[0], name, default))
    except Exception:
        # The child meets the same error and reports it.
        return default


def tries_of(test: str) -> int:
    return int(mark_of(test, "tries", 1))


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
            "timing": isinstance(error, TimingError),
            "trace": traceback.format_exc(),
        }
    return {"result": "passed"}


if __name__ == "__main__":
    sys.exit(main())
