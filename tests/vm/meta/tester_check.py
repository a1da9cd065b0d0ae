# SPDX-License-Identifier: GPL-2.0
"""The test of the tester: each way to fail in a guest is reported as failed, with its reason."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import host

# For each test of test_bad.py its result, and texts that its reason and its output must contain.
EXPECTED = {
    "bad.passes": ("passed", "", ""),
    "bad.fails": ("failed", "arithmetic holds", "what the test printed"),
    "bad.skips": ("skipped", "nothing to see", ""),
    "bad.fails_with_two[1]": ("passed", "", ""),
    "bad.fails_with_two[2]": ("failed", "two", "Traceback"),
    "bad.exits": ("failed", "it exited", ""),
    "bad.makes_the_kernel_complain": ("failed", "the kernel complained", "nowhere.c"),
    "bad.hangs": ("failed", "not done after its time limit of 2 s", ""),
    "bad.hangs_the_guest": ("failed", "guest ended at its time limit", ""),
    "bad.panics": ("failed", "Kernel panic - not syncing: sysrq", "Kernel Offset"),
    "bad.passes_after_all_that": ("passed", "", ""),
    "bad.boot": ("passed", "", ""),
}


# For a guest that ends after the test, and for one that dies in it, a text of its console.
CONSOLES = {"bad.makes_the_kernel_complain": "nowhere.c", "bad.panics": "sysrq"}


def run(report: Callable[[host.TestResult], None], only: str = "") -> None:
    """Report one result for each expectation."""
    if not re.search(only, "meta"):
        return
    (group,) = host.discover(Path(__file__).resolve().parent)
    seen: dict[str, host.TestResult] = {}
    host.run_group(group, lambda result: seen.update({result.name: result}))
    for name in {**EXPECTED, **seen}:
        report(_judge(name, seen.get(name)))
    for name, text in CONSOLES.items():
        report(_judge_console(name, text, seen[name].output))


def _judge_console(name: str, text: str, output: str) -> host.TestResult:
    """Whether the output names a file with the console of the guest, from its boot on."""
    label = f"meta.console_of_{name.removeprefix('bad.')}"
    found = re.search(r"the whole console of the guest: (\S+)", output)
    console = Path(found.group(1)).read_text() if found else ""
    if "Linux version" in console and text in console:
        return host.TestResult(label, "passed")
    return host.TestResult(label, "failed", f"no console with '{text}'", output)


def _judge(name: str, found: host.TestResult | None) -> host.TestResult:
    label = f"meta.{name.removeprefix('bad.')}"
    if found is None or name not in EXPECTED:
        missing = "was not reported" if found is None else "is not expected at all"
        return host.TestResult(label, "failed", f"{name} {missing}")
    result, reason, output = EXPECTED[name]
    if found.result == result and reason in found.reason and output in found.output:
        return host.TestResult(label, "passed", seconds=found.seconds)
    wrong = f"was reported as {found.result} ({found.reason}), not as {result} ({reason})"
    return dataclasses.replace(found, name=label, result="failed", reason=f"{name} {wrong}")
