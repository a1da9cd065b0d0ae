# SPDX-License-Identifier: GPL-2.0
"""What the CPUs of a guest that stands still are doing: by its kernel's reports, and by QEMU."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import time
from collections.abc import Iterator, Sequence

# The first line of the kernel's report of a CPU or a task that stands still.
REPORT = re.compile(r"(?:rcu: INFO: |INFO: task \S+ blocked|BUG: (?:soft|workqueue) lockup).*")

# A report of a CPU names the CPU and its task, then the instruction, then the calls. Linux 6.12
# names the user as well.
_CPU = re.compile(r"CPU: (\d+) (?:UID: \d+ )?PID: \d+ Comm: (\S+)")
_INSTRUCTION = re.compile(r"RIP: 0010:(\w[\w.]*)\+0x")
# A "?" before a call says that the kernel is not sure of it. User-mode Linux has an address there.
_CALL = re.compile(r"^(?:\[[^]<]*\])*\s+(?:\[<[0-9a-f]+>\]\s+)?(\w[\w.]*)\+0x")
# The calls that follow are those of a task that no CPU runs.
_TASK = re.compile(r"task:\S|stack dump:")
_CALLS_MOST = 8

# The registers of a CPU as QEMU prints them; E: the CPU has not left 32-bit code. FL has the flag
# that enables interrupts.
_REGISTERS = re.compile(
    r"(\d+)\n.*?\b[RE]IP=([0-9a-f]+) [RE]FL=([0-9a-f]+).*?HLT=([01])",
    re.DOTALL,
)
_INTERRUPTS_FLAG = 1 << 9
_ANSWER_S = 5.0

# Where x86-64 has the code of modules. Kernels with CONFIG_RANDOMIZE_BASE begin it 512 MiB later.
_MODULES = range(0xFFFFFFFFA0000000, 0xFFFFFFFFFF000000)
_MODULE_CALL = re.compile(r"\+0x\w+/0x\w+ \[mqfair")
# A CPU waits until others have taken its interrupt.
_WAITS_FOR_CPU = re.compile(r"RIP: 0010:smp_call_function\w*\+")
_STALL_ENDED = "rcu: INFO: Stall ended"


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
    """For each CPU of which the kernel reports calls since the first stall, the innermost ones in
    the first report of that CPU: "CPU 0 (fio): native_queued_spin_lock_slowpath < _raw_spin_lock".
    """
    first: dict[str, list[str]] = {}
    report: list[str] = []
    stall = REPORT.search(console)
    for line in console[stall.start() :].splitlines() if stall else ():
        if cpu := _CPU.search(line):
            report = []
            first.setdefault(f"CPU {cpu[1]} ({cpu[2]})", report)
        elif _TASK.search(line):
            report = []
        elif call := _INSTRUCTION.search(line) or _CALL.search(line):
            report.append(call[1])
    return [f"{cpu}: {' < '.join(names[:_CALLS_MOST])}" for cpu, names in first.items() if names]


def processors(monitor: socket.socket) -> list[Processor]:
    """Asks QEMU for the state of each CPU, by its protocol QMP at @monitor. Empty if QEMU does not
    answer in 5 s."""
    commands = (
        {"execute": "qmp_capabilities"},
        {
            "execute": "human-monitor-command",
            "arguments": {"command-line": "info registers -a"},
        },
    )
    try:
        monitor.sendall("".join(f"{json.dumps(command)}\n" for command in commands).encode())
        for line in _lines(monitor, time.monotonic() + _ANSWER_S):
            answer = json.loads(line)
            if isinstance(answer.get("return"), str):
                return list(_processors(answer["return"]))
            if "error" in answer:
                break
    except (OSError, ValueError, AttributeError):
        pass
    return []


def _lines(monitor: socket.socket, until: float) -> Iterator[bytes]:
    """The lines that @monitor sends until its end, or until the time @until."""
    rest = b""
    while (left := until - time.monotonic()) > 0:
        monitor.settimeout(left)
        data = monitor.recv(1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def _processors(registers: str) -> Iterator[Processor]:
    for part in registers.split("CPU#")[1:]:
        if cpu := _REGISTERS.match(part.replace("\r", "")):
            number, at, flags, halted = cpu.groups()
            interrupts = bool(int(flags, 16) & _INTERRUPTS_FLAG)
            yield Processor(int(number), int(at, 16), interrupts, halted == "1")


def emulator_lost_a_cpu(console: str, cpus: Sequence[Processor]) -> bool:
    """Whether a CPU waits for another one that takes no interrupt, without a part of the module.

    A CPU that the module keeps from its interrupts has a call of the module in the kernel's report,
    or is at an address of the module. @cpus are all that the guest has.
    """
    stall = REPORT.search(console)
    if not stall or not cpus:
        return False
    reports = console[stall.start() :]
    return (
        bool(_WAITS_FOR_CPU.search(reports))
        and _STALL_ENDED not in reports
        and not _MODULE_CALL.search(reports)
        and not any(cpu.at in _MODULES for cpu in cpus)
    )
