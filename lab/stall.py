# SPDX-License-Identifier: GPL-2.0
"""What the CPUs of a guest that stands still are doing: by its kernel's reports, and by QEMU."""

from __future__ import annotations

import json
import re
import socket

# A kernel's report of a CPU names the CPU and its task, then the instruction, then the calls.
_CPU = re.compile(r"CPU: (\d+) PID: \d+ Comm: (\S+)")
_INSTRUCTION = re.compile(r"RIP: 0010:(\w[\w.]*)\+0x")
# A "?" before a call says that the kernel is not sure of it.
_CALL = re.compile(r"^(?:\[[ \d.]+\])?\s+(\w[\w.]*)\+0x")
_CALLS_MOST = 8

# Of QEMU's registers. RFL has the flag that enables interrupts.
_REGISTERS = re.compile(
    r"CPU#(?P<cpu>\d+).*?RIP=(?P<rip>[0-9a-f]+) RFL=(?P<flags>[0-9a-f]+).*?HLT=(?P<halted>[01])",
    re.DOTALL,
)
_INTERRUPTS_FLAG = 1 << 9
_ANSWER_S = 5.0


def calls(console: str) -> list[str]:
    """For each CPU of which the kernel reports calls, the last ones in its first report:
    "CPU 0 (fio): native_queued_spin_lock_slowpath < _raw_spin_lock"."""
    first: dict[str, list[str]] = {}
    report: list[str] = []
    for line in console.splitlines():
        if cpu := _CPU.search(line):
            report = []
            first.setdefault(f"CPU {cpu[1]} ({cpu[2]})", report)
        elif call := _INSTRUCTION.search(line) or _CALL.search(line):
            report.append(call[1])
    return [f"{cpu}: {' < '.join(names[:_CALLS_MOST])}" for cpu, names in first.items() if names]


def processors(monitor: socket.socket) -> list[str]:
    """Asks the QEMU whose QMP is at @monitor for the state of each CPU:
    "CPU 1: at ffffffff81234567, interrupts off". Empty if QEMU does not answer in 5 s.
    """
    commands = (
        {"execute": "qmp_capabilities"},
        {
            "execute": "human-monitor-command",
            "arguments": {"command-line": "info registers -a"},
        },
    )
    monitor.settimeout(_ANSWER_S)
    try:
        with monitor.makefile("rw") as lines:
            for command in commands:
                lines.write(json.dumps(command) + "\n")
            lines.flush()
            for line in lines:
                answer = json.loads(line).get("return")
                if isinstance(answer, str):
                    return _states(answer)
    except (OSError, ValueError):
        pass
    return []


def _states(registers: str) -> list[str]:
    states = []
    for cpu in _REGISTERS.finditer(registers):
        on = "on" if int(cpu["flags"], 16) & _INTERRUPTS_FLAG else "off"
        halted = ", halted" if cpu["halted"] == "1" else ""
        states.append(f"CPU {cpu['cpu']}: at {cpu['rip']}, interrupts {on}{halted}")
    return states
