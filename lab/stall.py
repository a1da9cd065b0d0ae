# SPDX-License-Identifier: GPL-2.0
"""What the CPUs of a guest that stands still are doing: by its kernel's reports, and by QEMU."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
from collections.abc import Sequence

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

# Where x86-64 has the code of modules, with the kernel at a random address.
_MODULES = range(0xFFFFFFFFC0000000, 0xFFFFFFFFFF000000)
# Linux sends an interrupt that no code can mask to each CPU of this report, and it answers with its
# calls.
_RCU_STALL = re.compile(r"rcu: INFO: \S+ (?:self-)?detected stalls? on")
_MODULE_CALL = re.compile(r"\+0x\w+/0x\w+ \[mqfair")


@dataclasses.dataclass(frozen=True)
class Processor:
    """A CPU of a guest: the address of its instruction, and its state."""

    number: int
    at: int
    interrupts: bool
    halted: bool

    def __str__(self) -> str:
        state = f"interrupts {'on' if self.interrupts else 'off'}{', halted' * self.halted}"
        return f"CPU {self.number}: at {self.at:x}, {state}"


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


def processors(monitor: socket.socket) -> list[Processor]:
    """Asks the QEMU whose QMP is at @monitor. Empty if it does not answer in 5 s."""
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
                    return [_processor(cpu) for cpu in _REGISTERS.finditer(answer)]
    except (OSError, ValueError):
        pass
    return []


def _processor(cpu: re.Match[str]) -> Processor:
    return Processor(
        number=int(cpu["cpu"]),
        at=int(cpu["rip"], 16),
        interrupts=bool(int(cpu["flags"], 16) & _INTERRUPTS_FLAG),
        halted=cpu["halted"] == "1",
    )


def is_of_the_emulator(console: str, cpus: Sequence[Processor]) -> bool:
    """Whether a CPU stood still, and no code of the module had a part in it.

    A CPU that spins in the module, or in a function that the module called, names it among its
    calls. One that names no calls did not take an interrupt that no code can mask.
    """
    report = _RCU_STALL.search(console)
    if not report or not cpus:
        return False
    return not _MODULE_CALL.search(console, report.start()) and not any(
        cpu.at in _MODULES for cpu in cpus
    )
