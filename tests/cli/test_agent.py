# SPDX-License-Identifier: GPL-2.0
"""The judgement of guest tests by the kernel's reports, and by lockdep's being on."""

import json
import subprocess
import sys

from conftest import ROOT

WARNING = [
    "------------[ cut here ]------------",
    "WARNING: block/blk-cgroup.c:1785 at blkcg_policy_register+0x355/0x40b, CPU#0: python3/256",
    "Call Trace:",
    "---[ end trace 0000000000000000 ]---",
]
CALL = """
import json, sys
from pathlib import Path
sys.path.insert(0, "tests/vm")
import agent
agent.LOCKDEP = Path(sys.argv[1])
class Log:
    def read(self):
        return json.loads(sys.argv[2])
agent.run_apart = lambda _test: {"result": "passed", "output": ""}
agent.reports_of = lambda _test: sys.argv[3]
print(json.dumps([agent.judge("test", Log()), agent.boot_reports(Log())]))
"""


def ask(lockdep, lines, expected=""):
    """The outcome of a test during which the kernel logged @lines, and the complaints of a boot
    that logged them. Files of tests/vm and of tests/cli have the same names, so another process
    imports the former."""
    argv = [sys.executable, "-c", CALL, str(lockdep), json.dumps(lines), expected]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def statistics(tmp_path, on):
    path = tmp_path / "lockdep_stats"
    path.write_text(f" lock-classes:    1240 [max: 8192]\n debug_locks:    {on}\n")
    return path


def test_a_test_fails_if_lockdep_is_off_and_the_next_one_gets_a_new_guest(tmp_path):
    on, _ = ask(statistics(tmp_path, 1), [])
    assert (on["result"], "ended" in on) == ("passed", False)
    off, _ = ask(statistics(tmp_path, 0), [])
    assert (off["result"], bool(off["ended"])) == ("failed", True)
    assert "lockdep is off" in off["reason"]
    # A kernel without lockdep cannot switch it off.
    assert ask(tmp_path / "missing", [])[0]["result"] == "passed"


def test_an_expected_warning_goes_with_its_calls_and_no_other_one(tmp_path):
    pattern = "at blkcg_policy_register"
    assert ask(tmp_path / "missing", WARNING)[0]["result"] == "failed"
    assert ask(tmp_path / "missing", WARNING, pattern)[0]["result"] == "passed"
    outcome, _ = ask(tmp_path / "missing", [*WARNING, "BUG: KASAN: use-after-free"], pattern)
    assert outcome["result"] == "failed"
    assert "KASAN" in outcome["reason"]


def test_a_debug_kernel_may_report_itself_before_the_first_process(tmp_path):
    lines = [*WARNING, "Run /init as init process"]
    assert ask(statistics(tmp_path, 1), lines)[1] == []
    assert ask(statistics(tmp_path, 1), [*lines, *WARNING])[1] == WARNING[1:3]
    assert ask(tmp_path / "missing", lines)[1] == WARNING[1:3]
