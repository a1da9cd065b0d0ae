# SPDX-License-Identifier: GPL-2.0
"""The tests of the lab: concurrent guests, their results, and that nothing outlives them."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import consoles
import host
from guestlib import Skip, wait_until

import lab
from lab import cache, compiled, stall

ROOT = Path(__file__).resolve().parents[3]
# Three guests boot at once, on a busy machine.
PATIENCE_S = 600
SMALL = lab.GuestSpec(cpus=1, memory_mb=512, timeout_s=PATIENCE_S)
GONE_WITHIN_S = 60.0


def check_two_guests_at_once() -> None:
    def boot(number: int, out: Path) -> lab.GuestResult:
        script = (
            "echo out $NUMBER; echo err $NUMBER >&2; echo file $NUMBER > $LAB_OUT/file;"
            "sleep 1000 & exit $NUMBER"
        )
        env = {"NUMBER": str(number)}
        return lab.run(SMALL, script=script, env=env, out_dir=out, stream=False)

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        outs = [Path(folder) / name for name in ("a", "b")]
        results = list(pool.map(boot, (3, 4), outs))
        for number, result, out in zip((3, 4), results, outs, strict=True):
            assert result.status == number, result
            assert result.stdout == f"out {number}\n", result.stdout
            assert result.stderr == f"err {number}\n", result.stderr
            assert (out / "file").read_text() == f"file {number}\n"
            assert "Linux version" in result.dmesg and "Power down" not in result.stdout


def check_drives_and_host_are_as_described() -> None:
    drives = (lab.Drive(size=64 << 20, queues=1), lab.Drive(size=32 << 20, backing="null"))
    spec = lab.GuestSpec(cpus=2, sockets=2, memory_mb=512, drives=drives, timeout_s=PATIENCE_S)
    (ROOT / "build").mkdir(exist_ok=True)
    canary = ROOT / "build" / "lab-check-canary"
    script = (
        'for d in $LAB_DRIVES; do cat "/sys/block/${d##*/}/size"; done;'
        "lscpu | sed -n 's/^Socket(s): *//p'; stat -fc %T /sys/fs/cgroup;"
        f"cat /sys/fs/cgroup/cgroup.subtree_control; touch {canary} && echo written"
    )
    result = lab.run(spec, script=script, stream=False)
    assert result.stdout.split("\n")[:4] == ["131072", "65536", "2", "cgroup2fs"], result.stdout
    assert {"cpu", "io", "memory"} <= set(result.stdout.split("\n")[4].split()), result.stdout
    assert "written" in result.stdout, result.stderr
    assert not canary.exists(), f"{canary}: a guest's write reached the host"


def check_time_limit() -> None:
    for silence_s in (5, 60):  # a busy machine may be silent for 5 s in the boot
        spec = lab.GuestSpec(cpus=2, memory_mb=512, silence_s=silence_s, timeout_s=PATIENCE_S)
        result = lab.run(spec, ["sleep", "1000"], stream=False)
        if not result.stood_still_in_boot:
            break
    assert result.timed_out and result.status == lab.STATUS_TIMED_OUT, result
    assert [cpu.number for cpu in result.processors] == [0, 1], result
    first = (result.trouble() or "").splitlines()[0]
    assert re.search(r"time limit .*\(CPU 0: at \w+, interrupts o.*; CPU 1: at ", first), first
    lines = "[80.1] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n[80.2] the CPU's calls\n"
    stalled = dataclasses.replace(result, console=f"[0.1] Linux\n{lines}" + "[90.0] more\n" * 50)
    said = stalled.trouble() or ""
    assert "from its first stall on:\nrcu: INFO" in said and "the CPU's calls" in said, said
    assert "Linux" not in said, said


RCU_REPORT = "[80.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"
CALLS = """\
[80.2] {cpu} PID: 398 Comm: {task} Tainted: G           OE      6.1.0-56-amd64 #1
[80.2] RIP: 0010:{at}+0xf1/0x330
[80.2] Modules linked in: mqfair(OE) null_blk
[80.2] Call Trace:
[80.2]  <TASK>
[80.2]  ? unsure+0x1/0x2
[80.2]  {caller}+0x12/0x40
[80.2]  do_syscall_64+0x55/0xb0
[80.2] RIP: 0033:0x7ffff7d19a3a
"""
NEVER_RUN = "[80.3] task:rcu_preempt state:R\n[80.3]  schedule_timeout+0x1/0x2\n"


def check_the_calls_of_each_cpu_are_named_once() -> None:
    before = "[9.1] CPU: 0 PID: 7 Comm: python3\n[9.1]  dump_stack_lvl+0x1/0x2\n"
    for zero, one in (("CPU: 0", "CPU: 1"), ("CPU: 0 UID: 0", "CPU: 1 UID: 1000")):
        waits = CALLS.format(cpu=zero, task="python3", at="smp_call_function", caller="text_poke")
        spins = CALLS.format(cpu=one, task="fio", at="spin_lock", caller="blk_mq_run_hw_queue")
        console = before + RCU_REPORT + waits + spins + NEVER_RUN + waits
        assert stall.calls(console) == [
            "CPU 0 (python3): smp_call_function < text_poke < do_syscall_64",
            "CPU 1 (fio): spin_lock < blk_mq_run_hw_queue < do_syscall_64",
        ], stall.calls(console)
    user_mode = "CPU: 0 PID: 7 Comm: fio\n [<60012345>] ? no+0x1/0x2\n [<60012345>] g+0x1/0x2\n"
    assert stall.calls(RCU_REPORT + user_mode) == ["CPU 0 (fio): g"]
    assert stall.calls(before) == []


def check_a_guest_that_stands_still_in_its_boot_is_booted_once_more() -> None:
    """The first process of the first guest sleeps. Other threads boot guests of other suites."""
    (group,) = host.discover(Path(host.__file__).resolve().parent / "meta", only=r"bad\.passes$")
    run_guest = lab.run
    results: list[lab.GuestResult] = []
    this_thread = threading.get_ident()

    def run_first_asleep(spec: lab.GuestSpec, *args: Any, **kwargs: Any) -> lab.GuestResult:
        if threading.get_ident() != this_thread:
            return run_guest(spec, *args, **kwargs)
        if not results:
            asleep = "rdinit=/bin/busybox -- sleep 1000"
            spec = dataclasses.replace(spec, append=asleep, silence_s=10)
        results.append(run_guest(spec, *args, **kwargs))
        return results[-1]

    seen: dict[str, host.TestResult] = {}
    with mock.patch.object(lab, "run", run_first_asleep):
        host.run_group(group, lambda result: seen.update({result.name: result}))
    first, second = results
    assert first.stood_still_in_boot and "in its boot" in (first.trouble() or ""), first
    assert not second.timed_out, second
    boot = seen["bad.boot"]
    assert boot.result == "passed" and boot.reason.startswith("try 2; at try 1 the guest ended"), (
        boot
    )
    assert "Linux version" in first.console and boot.output, boot
    assert seen["bad.passes"].result == "passed", seen


WAITS = CALLS.format(
    cpu="CPU: 0", task="python3", at="smp_call_function_many_cond", caller="text_poke"
)
SPINS = stall.Processor(1, 0xFFFFFFFF81A592EB, interrupts=False, halted=False)
LOST = (RCU_REPORT + WAITS, SPINS)


def reports_of(*stalls: tuple[str, stall.Processor], **changes: object) -> list[host.TestResult]:
    """The reports of one test. Its first guests end with the consoles and CPUs of @stalls."""
    (group,) = host.discover(Path(host.__file__).resolve().parent / "meta", only=r"bad\.passes$")
    (test,) = group.tests
    left = list(stalls)
    run_guest = lab.run
    this_thread = threading.get_ident()

    def run_none(*args: Any, sink: Callable[[str, bytes], None], **kwargs: Any) -> lab.GuestResult:
        if threading.get_ident() != this_thread:
            return run_guest(*args, sink=sink, **kwargs)

        def says(**record: object) -> None:
            sink("stdout", f"{json.dumps(record)}\n".encode())

        says(boot=[])
        says(start=test.argument)
        ended = lab.GuestResult(0, False, False, "", "", "", "", None, "tcg", "6.1", 3.0, 90.0)
        if not left:
            says(test=test.argument, result="passed")
            return ended
        console, cpu = left.pop(0)
        ended = dataclasses.replace(ended, status=lab.STATUS_TIMED_OUT, timed_out=True)
        ended = dataclasses.replace(ended, console=console, cpus=1, processors=(cpu,))
        return dataclasses.replace(ended, **changes)

    seen: list[host.TestResult] = []
    with mock.patch.object(lab, "run", run_none), mock.patch.object(consoles, "keep"):
        host.run_group(group, seen.append)
    return [result for result in seen if result.name == test.name]


def check_a_test_runs_once_more_if_the_emulator_lost_a_cpu() -> None:
    (result,) = reports_of(LOST)
    assert result.result == "passed", result
    assert result.reason.startswith("try 2; at try 1 the guest ended at its time limit"), result
    assert "CPU 1: at ffffffff81a592eb, interrupts off); its whole console: " in result.reason
    (result,) = reports_of(LOST, LOST)
    assert result.result == "failed" and "try 2; at try 1 the guest ended" in result.reason, result


def check_a_test_in_which_the_module_may_have_stood_still_fails() -> None:
    module_call = "[80.2]  mqfq_next_request+0x5a/0x130 [mqfair]\n"
    soft = f"[80.0] watchdog: BUG: soft lockup - CPU#1 stuck for 82s! [fio:398]\n{module_call}"
    blocked = "[900.1] INFO: task fio:398 blocked for more than 30 seconds.\n"
    in_module = dataclasses.replace(SPINS, at=0xFFFFFFFFC0A592EB)
    for stalled in (
        (RCU_REPORT + WAITS + module_call, SPINS),
        (soft + RCU_REPORT + WAITS, SPINS),
        (RCU_REPORT + WAITS, in_module),
        (RCU_REPORT + WAITS + "[81.0] rcu: INFO: Stall ended before state dump start\n", SPINS),
        (RCU_REPORT + "[80.2] rcu: Tasks blocked on level-0 rcu_node (CPUs 0-1): P398\n", SPINS),
        (RCU_REPORT, SPINS),
        (blocked, SPINS),
        ("", SPINS),
    ):
        (result,) = reports_of(stalled)
        assert result.result == "failed", (stalled, result)
    for changes in ({"accel": "kvm"}, {"processors": ()}, {"cpus": 2}):
        (result,) = reports_of(LOST, **changes)
        assert result.result == "failed", (changes, result)


def check_nothing_outlives_a_signal() -> None:
    """Three guests run at once; each ends by a different signal to its parent."""
    mounts = set(our_mounts())
    argv = [sys.executable, "-m", "mqfair", "lab", "exec", "--cpus=1", "--memory=512M"]
    argv += ["--nvme=size=64M", f"--timeout={PATIENCE_S}", "--", "sh", "-c", "echo up; sleep 1000"]
    before = set(drives())
    with heeding_interrupts(), contextlib.ExitStack() as stack:
        parents = {}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            parent = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)
            stack.callback(parent.wait)
            stack.callback(parent.kill)
            parents[number] = parent
        for number, parent in parents.items():
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"up\n"
            (child,) = children(parent.pid)
            parent.send_signal(number)
            status = parent.wait(GONE_WITHIN_S)
            assert status == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(number, -number), status
            wait_until(
                lambda child=child: not is_alive(child),
                f"QEMU {child} ends with its parent, ended by {number.name}",
            )
    # Other guests of this machine have such files for a moment.
    wait_until(lambda: set(drives()) <= before, "no drive's file is left behind")
    wait_until(lambda: set(our_mounts()) <= mounts, "no mount is left behind")


def check_user_mode_linux_has_the_channels_of_a_guest() -> None:
    """Output, status, two folders of the host, a large command, and two processors."""
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as shared:
        word = "x" * 100_000
        script = (
            f"nproc; echo error >&2; echo out > $LAB_OUT/file; cat {shared}/from-host;"
            f"echo shared > {shared}/file; echo {word} | wc -c; touch /usr/canary; exit 3"
        )
        (Path(shared) / "from-host").write_text("from the host\n")
        spec = user_mode(host_dirs=(lab.HostDir(Path(shared)),))
        result = lab.run(spec, script=script, out_dir=Path(out), stream=False)
        assert (result.status, result.accel) == (3, "uml"), result
        assert result.stdout.splitlines() == ["2", "from the host", "100001"], result.stdout
        assert result.stderr == "error\n", result.stderr
        assert (Path(out) / "file").read_text() == "out\n"
        assert (Path(shared) / "file").read_text() == "shared\n"
        assert not Path("/usr/canary").exists(), "a guest's write reached the host"
        assert "Linux version" in result.dmesg


def check_user_mode_linux_that_panics_has_died() -> None:
    result = lab.run(user_mode(), script="echo c > /proc/sysrq-trigger", stream=False)
    assert result.died and result.status == lab.STATUS_DIED, result
    assert "guest died" in (result.trouble() or ""), result.trouble()
    assert "sysrq triggered crash" in result.console, result.console


def check_nothing_of_user_mode_linux_outlives_a_signal() -> None:
    """It has a process of the host for each program that runs in it."""
    user_mode()
    argv = [sys.executable, "-m", "mqfair", "lab", "exec", "--on=uml", f"--timeout={PATIENCE_S}"]
    argv += ["--", "sh", "-c", "echo up; sleep 1000 & sleep 1000"]
    with heeding_interrupts(), contextlib.ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            parent = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)
            stack.callback(parent.wait)
            stack.callback(parent.kill)
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"up\n"
            family = descendants(parent.pid)
            assert len(family) > 2, f"the programs of the guest are not processes: {family}"
            parent.send_signal(number)
            parent.wait(GONE_WITHIN_S)
            wait_until(
                lambda family=family: not any(map(is_alive, family)),
                f"{family} end with their parent, ended by {number.name}",
            )
    # The last guest could not delete its folder, so the next one does.
    lab.run(user_mode(), ["true"], stream=False)
    left = [path for path in (cache.cache_dir() / "uml").iterdir() if path.is_dir()]
    assert not left, f"folders of guests that have ended: {left}"


def user_mode(**options: object) -> lab.GuestSpec:
    if not compiled.is_built(lab.UML):
        raise Skip("user-mode Linux is not in the cache: run make uml")
    spec = lab.GuestSpec(kernel=lab.UML, memory_mb=512, timeout_s=PATIENCE_S)
    return dataclasses.replace(spec, **options)


@contextlib.contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Makes this process and its children react to SIGINT.

    A shell without job control makes background programs ignore SIGINT, and children inherit
    that. They do not inherit a handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def is_alive(pid: int) -> bool:
    """False for a process that has ended, even if its new parent has not reaped it yet."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def drives() -> list[Path]:
    folder = cache.cache_dir() / "drives"
    return sorted(folder.iterdir()) if folder.exists() else []


def our_mounts() -> list[str]:
    """The mounts at the lab's places. Other mounts may come and go meanwhile."""
    places = (str(ROOT), str(cache.cache_dir()), lab.GUEST_OUT)
    lines = Path("/proc/mounts").read_text().splitlines()
    return [line for line in lines if line.split()[1].startswith(places)]


def children(parent: int) -> list[int]:
    found: list[int] = []
    # The process and its threads may end meanwhile.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(parent: int) -> list[int]:
    found = children(parent)
    return found + [pid for child in found for pid in descendants(child)]


def run(report: Callable[[host.TestResult], None], only: str = "") -> None:
    """Report one result for each check."""
    for name, check in list(globals().items()):
        label = f"lab.{name.removeprefix('check_')}"
        if not name.startswith("check_") or not re.search(only, label):
            continue
        try:
            check()
        except Skip as skip:
            report(host.TestResult(label, "skipped", str(skip)))
        except Exception as error:
            reason = (str(error).splitlines() or [repr(error)])[0]
            report(host.TestResult(label, "failed", reason, traceback.format_exc()))
        else:
            report(host.TestResult(label, "passed"))
