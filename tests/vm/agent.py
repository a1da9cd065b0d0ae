# SPDX-License-Identifier: GPL-2.0
"""The agent in the guest: runs each test in a process, with one JSON line before and after it.

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

from guestlib import (
    COUNTED,
    DEBUG_PATIENCE,
    DEFAULT_TIME_LIMIT_S,
    LOCKDEP,
    KernelLog,
    Skip,
    read,
    splats,
    without_reports,
    write,
)

# Longer than the kernel's defaults, because emulated processors are slow and are stopped at times.
# Shorter than the time limit of a test.
_PATIENCE = {
    "/proc/sys/kernel/hung_task_timeout_secs": 90,
    "/proc/sys/kernel/watchdog_thresh": 40,
    "/sys/module/rcupdate/parameters/rcu_cpu_stall_timeout": 80,
}
# Counted time leaps ahead while all tasks wait, so also while one waits for a file of the host.
_COUNTED_PATIENCE = {"/proc/sys/kernel/hung_task_timeout_secs": 600}
_KILL_GRACE_S = 30.0
_FIRST_PROCESS = "as init process"
LEAKS = Path("/sys/kernel/debug/kmemleak")
_LEAK = "unreferenced object"
_LEAK_AGE_S = 6.0
_OUTPUT_BYTES = 8000


def main() -> int:
    be_patient()
    log = KernelLog(whole=True)
    emit({"boot": boot_reports(log) + lockdep_off()})
    for test in sys.argv[1:]:
        started = time.monotonic()
        emit({"start": test})
        outcome = judge(test, log)
        ended = outcome.pop("ended", False)
        emit({"test": test, "seconds": round(time.monotonic() - started, 2), **outcome})
        if ended:
            # The test left devices, cgroups and loads, or lockdep is off. So the next tests run in
            # a new guest.
            return 1
    log.close()
    if LEAKS.exists():
        emit({"leaks": leaks()})
    return 0


def be_patient() -> None:
    counted = _COUNTED_PATIENCE if COUNTED in os.environ else {}
    for path, seconds in {**_PATIENCE, **counted}.items():
        with contextlib.suppress(FileNotFoundError):
            write(path, seconds)


def boot_reports(log: KernelLog) -> list[str]:
    """The kernel's complaints until now. Those of the debug kernel about user-mode Linux itself,
    before the first process, are left out: kmemleak uses RCU on a CPU that is not online yet."""
    lines = log.read()
    first = next((n for n, line in enumerate(lines) if _FIRST_PROCESS in line), 0)
    return splats(lines[first:] if LOCKDEP.exists() else lines)


def lockdep_off() -> list[str]:
    """A complaint if lockdep has switched itself off, as it does after its first report and when
    its tables are full. Empty for a kernel without lockdep."""
    if not LOCKDEP.exists():
        return []
    pairs = (line.partition(":") for line in read(LOCKDEP).splitlines())
    values = {name.strip(): value.strip() for name, _, value in pairs}
    return [] if values.get("debug_locks") == "1" else ["lockdep is off"]


def leaks() -> str:
    """The reports of kmemleak that name the module."""
    # kmemleak reports no object before this age, and none that the previous scan found changed.
    time.sleep(_LEAK_AGE_S)
    for _ in range(2):
        write(LEAKS, "scan")
    reports = (_LEAK + text for text in LEAKS.read_text().split(_LEAK)[1:])
    return "".join(report for report in reports if "[mqfair]" in report)


def judge(test: str, log: KernelLog) -> dict[str, object]:
    """The outcome of @test; it is failed if the kernel logged a warning meanwhile."""
    outcome = run_apart(test)
    complaints = splats(without_reports(log.read(), reports_of(test)))
    off = lockdep_off()
    complaints += off
    if off:
        outcome["ended"] = True
    if complaints:
        output = "\n".join([*complaints, str(outcome["output"])])
        reason = f"the kernel complained: {complaints[0]}"
        outcome |= {"result": "failed", "reason": reason, "output": output}
    return outcome


def emit(record: dict[str, object]) -> None:
    print(json.dumps(record), flush=True)


def run_apart(test: str) -> dict[str, object]:
    """Runs the test in a child, so that it can neither hang nor end the agent, nor leave state."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as outcome:
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            # The output must be complete even if the child is killed.
            sys.stdout.reconfigure(line_buffering=True)
            json.dump(call(test), outcome)
            outcome.flush()
            sys.stdout.flush()
            os._exit(0)
        limit = mark_of(test, "time_limit_s", DEFAULT_TIME_LIMIT_S)
        limit *= DEBUG_PATIENCE if LOCKDEP.exists() else 1
        ended = wait_for(child, limit)
        if not ended:
            print_sleepers(output)
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
            outcome.seek(0)
            text = outcome.read()
            found = json.loads(text) if text else {"result": "failed", "reason": "it exited"}
        output.seek(0)
        found["output"] = output.read()[-_OUTPUT_BYTES:] + str(found.pop("trace", ""))
        return found


def print_sleepers(output: TextIO) -> None:
    """Prints the kernel stack of each task in uninterruptible sleep."""
    output.seek(0, os.SEEK_END)
    for status in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        # The task may end meanwhile.
        with contextlib.suppress(OSError):
            name, _, rest = status.read_text().rpartition(")")
            if rest.split()[0] == "D":
                print(f"{name})", status.with_name("stack").read_text(), sep="\n", file=output)
    output.flush()


def wait_for(child: int, limit_s: float) -> bool:
    """False if @child still runs after @limit_s."""
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


def reports_of(test: str) -> str:
    try:
        return str(getattr(find(test)[0], "expected_reports", ""))
    except Exception:
        # The child meets the same error and reports it.
        return ""


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
