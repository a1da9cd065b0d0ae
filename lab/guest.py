# SPDX-License-Identifier: GPL-2.0
"""Boots a guest, runs one command in it, and returns its output, status and kernel log.

The guest's root is the host's root, read-only, under a writable tmpfs. So programs, the checkout
and the Python environment have the same paths in the guest. Output, status and kernel log use
virtio ports, separate from the console.

Nothing of a guest outlives ``run()``. Its drives and channels are file descriptors without a name.
It mounts nothing on the host. The host's kernel kills QEMU when this process dies.

With spec.machine the guest's root is that of a whole Debian instead (lab/debian.py). systemd is its
first process, and the command is the service lab-job.service.

The guest may be user-mode Linux instead (lab/uml.py). Then serial lines replace the ports, and
hostfs replaces 9p. The job, the report and the clean-up are the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Literal

from lab import accel, debian, initramfs, kernel, qemu, stall, uml
from lab.errors import LabError, SpecError
from lab.spec import GuestSpec
from lab.tree import KernelTree

GUEST_OUT = "/run/lab/out"
STATUS_TIMED_OUT = 124
STATUS_DIED = 125

Output = Literal["stdout", "stderr"]
Accel = Literal["kvm", "tcg", "uml"]
Sink = Callable[[Output, bytes], None]

_FATAL = re.compile(r"((?:Kernel panic|Oops|BUG:|Unable to mount).*)")

_HERE = Path(__file__).resolve().parent
# The channel buffers a job of this size before the guest reads from it.
_JOB_BYTES = 128 << 10
_CAPTURE_BYTES = 16 << 20
_CONSOLE_TAIL_LINES = 25
# An oops takes about 70 lines, a report of KASAN about 120.
_OOPS_LINES = 150
# The longest wait for data at once. epoll takes no more than 24 days.
_SELECT_MOST_S = 3600.0
# The longest silence of the console in a boot: an emulated guest boots in 4 s, and on a machine
# with nine times its load in 40 s.
_BOOT_SILENCE_S = 180.0


@dataclasses.dataclass(frozen=True)
class GuestResult:
    """The result of a guest.

    @status is that of the command. It is 124 if the time limit ended the guest, and 125 if the
    guest died (panic, oops) or could not be set up. @dmesg is the whole kernel log, or the
    console's output if the guest did not end regularly. @stdout and @stderr have at most the last
    16 MiB. @boot_s and @wall_s are host seconds until the command started, and in all.
    @processors has the state of each of the @cpus at a time limit, if the emulator tells it.
    """

    status: int
    timed_out: bool
    died: bool
    dmesg: str
    console: str
    stdout: str
    stderr: str
    out_dir: Path | None
    accel: Accel
    kernel: str
    boot_s: float
    wall_s: float
    cpus: int = 0
    processors: tuple[stall.Processor, ...] = ()

    @property
    def stood_still_in_boot(self) -> bool:
        """The guest reached a limit of time before its command could start."""
        return self.timed_out and not self.boot_s

    @property
    def emulator_lost_a_cpu(self) -> bool:
        """A CPU waited for another one, and neither the kernel nor QEMU names the module."""
        return (
            self.timed_out
            and self.accel == "tcg"
            and len(self.processors) == self.cpus
            and stall.emulator_lost_a_cpu(self.console, self.processors)
        )

    @property
    def how_it_stood_still(self) -> str:
        """One line about a guest that ended at its time limit, with what its CPUs did."""
        end = f"guest ended at its time limit after {self.wall_s:.0f} s"
        if self.stood_still_in_boot:
            end += ", in its boot"
        if doing := [*stall.calls(self.console), *map(str, self.processors)]:
            end += f" ({'; '.join(doing)})"
        return end

    def console_tail(self, lines: int = _CONSOLE_TAIL_LINES) -> str:
        return "\n".join(self.console.splitlines()[-lines:])

    def _console_from(self, cause: re.Match[str]) -> str:
        return "\n".join(self.console[cause.start() :].splitlines()[:_OOPS_LINES])

    def trouble(self) -> str | None:
        """None if the guest ended regularly; else a message with lines of the console.

        They are the lines from a fatal error or the first stall on, which begin with its calls, or
        else the last ones.
        """
        if self.timed_out:
            end = self.how_it_stood_still
            if cause := stall.REPORT.search(self.console):
                return f"{end}; its console from its first stall on:\n{self._console_from(cause)}"
        elif self.died:
            if cause := _FATAL.search(self.console):
                end = f"guest died after {self.wall_s:.0f} s: {cause.group(1)}"
                return f"{end}; its console from there on:\n{self._console_from(cause)}"
            end = f"guest died after {self.wall_s:.0f} s: no panic"
        else:
            return None
        return f"{end}; last lines of its console:\n{self.console_tail()}"


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > 2 * self._limit:
            del self._data[: -self._limit]

    def text(self) -> str:
        return self._data[-self._limit :].decode(errors="replace").replace("\r\n", "\n")


class _Report:
    """The data from the guest on the control port; init-guest.sh describes its format."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data

    @property
    def ready(self) -> bool:
        return self._data.startswith(b"ready\n")

    def status_and_dmesg(self) -> tuple[int, str] | None:
        """Status and kernel log, or None if they are not complete."""
        head, _, rest = bytes(self._data).partition(b"\nstatus ")
        status, _, rest = rest.partition(b"\ndmesg ")
        length, newline, log = rest.partition(b"\n")
        if head != b"ready" or not newline or len(log) < int(length):
            return None
        return int(status), log.decode(errors="replace")


def run(
    spec: GuestSpec,
    argv: Sequence[str] | None = None,
    *,
    script: str | None = None,
    env: Mapping[str, str] | None = None,
    out_dir: Path | None = None,
    stream: bool = True,
    sink: Sink | None = None,
) -> GuestResult:
    """Runs @argv, or the shell @script, in a new guest and waits for its end.

    The command starts in the current folder. The variable LAB_OUT names @out_dir, which the guest
    writes to directly; without @out_dir it names a folder that ends with the guest. LAB_DRIVES has
    the device nodes of spec.drives in their order. @stream copies the guest's output to this
    process's output as it arrives; @sink, called with each piece, replaces @stream. Raises
    SpecError or LabError.
    """
    if (argv is None) == (script is None):
        raise SpecError("a guest runs a command or a script: give one of them")
    command = list(argv) if argv is not None else ["/bin/sh", "-c", str(script)]
    if not command:
        raise SpecError("the command for the guest is empty: name a program")
    output = sink or (_to_own_output if stream else None)
    return _run(spec, command, env or {}, out_dir, output)


def shell(spec: GuestSpec, *, out_dir: Path | None = None) -> GuestResult:
    """Runs an interactive shell in a new guest, on this process's terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError("a shell needs a terminal: use `mqfair lab exec` to run a command")
    size = shutil.get_terminal_size()
    script = f"stty rows {size.lines} cols {size.columns}; exec /bin/bash --norc -i"
    env = {"TERM": os.environ.get("TERM", "linux")}
    return _run(spec, ["/bin/sh", "-c", script], env, out_dir, terminal=True)


def _run(
    spec: GuestSpec,
    command: Sequence[str],
    env: Mapping[str, str],
    out_dir: Path | None,
    output: Sink | None = None,
    *,
    terminal: bool = False,
) -> GuestResult:
    with _signals_raise():
        tree = _tree(spec)
        job = _job(spec, tree, command, env, out_dir)
        guest = _Guest(spec, tree, _accelerator(spec, tree), out_dir, terminal=terminal)
        return guest.run(job, output)


def accelerator(spec: GuestSpec) -> Accel:
    """The acceleration that run() uses for @spec. The first call may boot a guest as a probe."""
    with _signals_raise():
        return _accelerator(spec, _tree(spec))


def _tree(spec: GuestSpec) -> KernelTree:
    return debian.ensure(spec.machine) if spec.machine else kernel.ensure(spec.kernel)


def _accelerator(spec: GuestSpec, tree: KernelTree) -> Accel:
    if tree.is_uml:
        uml.check(spec)
        return "uml"
    if spec.icount:
        return "tcg"
    if spec.accel != "auto":
        return spec.accel

    def probe_boots() -> bool:
        probe = GuestSpec(
            cpus=2,
            memory_mb=512,
            kernel=spec.kernel,
            machine=spec.machine,
            timeout_s=accel.PROBE_TIMEOUT_S,
        )
        job = _job(probe, tree, ["/bin/true"], {}, None)
        return _Guest(probe, tree, "kvm", None).run(job, None).status == 0

    return accel.choose(tree, probe_boots)


def _job(
    spec: GuestSpec,
    tree: KernelTree,
    command: Sequence[str],
    env: Mapping[str, str],
    out_dir: Path | None,
) -> bytes:
    """The script that init-guest.sh runs."""
    quote = shlex.quote
    lines = [(_HERE / "guest-setup.sh").read_text(), "export HOME=/root LC_ALL=C.UTF-8"]
    if not spec.machine:
        lines.append(f"lab_modules {quote(str(tree.modules_dir.parent))}")
    for number, shared in enumerate(spec.host_dirs):
        mode = "ro" if shared.read_only else "rw"
        path = quote(str(shared.path.absolute()))
        lines.append(f"lab_share {path if tree.is_uml else f'lab.dir{number}'} {path} {mode}")
    if out_dir is not None:
        source = quote(str(out_dir.absolute())) if tree.is_uml else "lab.out"
        lines.append(f"lab_share {source} {GUEST_OUT} rw")
    else:
        lines.append(f"mkdir -p {GUEST_OUT}")
    lines += _module_lines(spec)
    lines += _drive_lines(spec)
    lines.append(f'export LAB_OUT={GUEST_OUT} LAB_DRIVES="$LAB_DRIVES"')
    lines += [f"export {name}={quote(value)}" for name, value in env.items()]
    lines.append(f"cd {quote(str(Path.cwd()))} || cd /")
    lines.append(f"exec {shlex.join(command)}")
    job = ("\n".join(lines) + "\n").encode()
    if len(job) > _JOB_BYTES:
        raise SpecError(
            f"the guest's command has {len(job)} bytes, more than {_JOB_BYTES}: pass it in a file"
        )
    return job


def _drive_lines(spec: GuestSpec) -> list[str]:
    """Lines that load the drivers of spec.drives, and find the disks of each drive in turn."""
    drivers = {"nvme": "nvme", "virtio-blk": "virtio_blk", "virtio-scsi": "virtio_scsi sd_mod"}
    places = {"virtio-blk": "'vd*' serial", "virtio-scsi": "'sd*' device/model"}
    lines = [f"lab_load {drivers[bus]}" for bus in dict.fromkeys(one.bus for one in spec.drives)]
    for number, drive in enumerate(spec.drives):
        for space in range(1, drive.namespaces + 1):
            place = places.get(drive.bus, f"'nvme*n{space}' device/serial")
            lines.append(f"lab_drive {qemu.serial(number)} {place}")
    return lines


def _module_lines(spec: GuestSpec) -> list[str]:
    """Lines that make spec.modules known to modprobe, by name and by their aliases.

    Guests are for experiments, so mqfair.ko offers its research tunables in them.
    """
    config = []
    names = []
    for path in spec.modules:
        name = path.name.removesuffix(".ko")
        names.append(name)
        file = shlex.quote(str(path.absolute()))
        config += [f"alias {alias} {name}" for alias in kernel.module_aliases(path)]
        needed = " ".join(kernel.module_depends(path))
        load_needed = f"/sbin/modprobe -a {needed} && " if needed else ""
        options = " research=1" if name == "mqfair" else ""
        config.append(f"install {name} {load_needed}/sbin/insmod {file}{options} $CMDLINE_OPTS")
    if not config:
        return []
    text = shlex.quote("\n".join(config))
    lines = ["$busybox mkdir -p /run/modprobe.d", f"echo {text} > /run/modprobe.d/lab.conf"]
    if spec.load_modules:
        lines.append(f"lab_load {shlex.join(names)}")
    return lines


def _to_own_output(name: Output, data: bytes) -> None:
    stream = sys.stdout if name == "stdout" else sys.stderr
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise SystemExit, so that the clean-up runs as after Ctrl-C."""

    def unwind(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {
        number: signal.signal(number, unwind)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    fd = sys.stdin.fileno()
    saved = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, saved)


class _Guest:
    """One process, QEMU or user-mode Linux, and the channels to it."""

    def __init__(
        self,
        spec: GuestSpec,
        tree: KernelTree,
        chosen: Accel,
        out_dir: Path | None,
        *,
        terminal: bool = False,
    ) -> None:
        self._spec = spec
        self._tree = tree
        self._accel = chosen
        self._out_dir = out_dir
        self._terminal = terminal
        self._report = _Report()
        self._tails = {
            name: _Tail(_CAPTURE_BYTES) for name in ("console", "stdout", "stderr", "qemu")
        }
        self._boot_s = 0.0
        self._heard = 0.0
        self._timed_out = False
        self._processors: tuple[stall.Processor, ...] = ()
        self._when_ready: Callable[[], None] = lambda: None

    def run(self, job: bytes, output: Sink | None) -> GuestResult:
        names = ["console", "control", "stdout", "stderr"]
        if self._terminal:
            names.append("terminal")
        unread = [] if self._tree.is_uml else ["monitor"]
        with contextlib.ExitStack() as stack:
            channels: dict[str, socket.socket] = {}
            inherited: dict[str, socket.socket] = {}
            for name in (*names, *unread):
                channels[name], inherited[name] = socket.socketpair()
                stack.callback(channels[name].close)
                stack.callback(inherited[name].close)
            started = time.monotonic()
            process = self._start(stack, {name: end.fileno() for name, end in inherited.items()})
            # If only QEMU holds the other end, end of file on a channel means that QEMU has ended.
            for end in inherited.values():
                end.close()
            terminal = "yes" if self._terminal else "no"
            message = f"{len(job)} {terminal}\n".encode() + job
            if self._tree.is_uml:
                # A serial line loses the bytes that arrive before the guest has set it up.
                self._when_ready = lambda: channels["control"].sendall(message)
            else:
                channels["control"].sendall(message)
            if self._terminal:
                stack.enter_context(_raw_terminal())
            monitor = channels.pop("monitor", None)
            self._relay(process, channels, output, started)
            if self._timed_out and monitor:
                self._processors = tuple(stall.processors(monitor))
            wall_s = time.monotonic() - started
        return self._result(process, wall_s)

    def _start(
        self, stack: contextlib.ExitStack, channels: dict[str, int]
    ) -> subprocess.Popen[bytes]:
        if self._out_dir is not None:
            self._out_dir.mkdir(parents=True, exist_ok=True)
        if self._tree.is_uml:
            folder = stack.enter_context(uml.own_folder())
            image = initramfs.ensure(self._tree)
            argv = uml.command_line(self._spec, self._tree, image, channels, folder)
            files: list[int] = []
        else:
            argv, files = self._qemu(stack, channels)
        try:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[*channels.values(), *files],
                # In a session of its own QEMU does not get the terminal's Ctrl-C.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise LabError("setpriv: not found: install the package util-linux") from error
        stack.callback(_end, process)
        return process

    def _qemu(
        self, stack: contextlib.ExitStack, channels: dict[str, int]
    ) -> tuple[list[str], list[int]]:
        """The command line of QEMU, and the open files of the drives."""
        backing = [qemu.open_backing(drive) for drive in self._spec.drives]
        files = [fd for fd in backing if fd is not None]
        for fd in files:
            stack.callback(os.close, fd)
        assert self._accel != "uml"
        boot = qemu.Boot(self._tree.vmlinux, initramfs.ensure(self._tree), self._accel)
        ports = qemu.Channels(**channels)
        return qemu.command_line(self._spec, boot, self._shares(), ports, backing), files

    def _shares(self) -> list[qemu.Share]:
        root = self._tree.root if self._spec.machine else Path("/")
        shares = [qemu.Share("lab.root", root, read_only=True)]
        for number, shared in enumerate(self._spec.host_dirs):
            shares.append(qemu.Share(f"lab.dir{number}", shared.path.absolute(), shared.read_only))
        if self._out_dir is not None:
            shares.append(qemu.Share("lab.out", self._out_dir.absolute(), read_only=False))
        return shares

    def _relay(
        self,
        process: subprocess.Popen[bytes],
        channels: dict[str, socket.socket],
        output: Sink | None,
        started: float,
    ) -> None:
        """Transfers data until QEMU has closed every channel or the time limit is reached."""
        assert process.stdout is not None
        self._heard = started
        with selectors.DefaultSelector() as selector:
            for name, channel in channels.items():
                selector.register(channel, selectors.EVENT_READ, name)
            selector.register(process.stdout, selectors.EVENT_READ, "qemu")
            if self._terminal:
                selector.register(sys.stdin, selectors.EVENT_READ, "keyboard")
            closing = len(channels) + 1
            while closing:
                remaining = self._deadline(started) - time.monotonic()
                if remaining <= 0:
                    self._timed_out = True
                    return
                for key, _ in selector.select(min(remaining, _SELECT_MOST_S)):
                    data = _read(key.fd)
                    if key.data == "keyboard":
                        channels["terminal"].sendall(data)
                    elif data:
                        self._received(key.data, data, output, started)
                    else:
                        selector.unregister(key.fileobj)
                        closing -= 1

    def _deadline(self, started: float) -> float:
        deadline = started + self._spec.timeout_s
        silence_s = self._spec.silence_s
        if silence_s is not None:
            most_s = silence_s if self._boot_s else min(silence_s, _BOOT_SILENCE_S)
            deadline = min(deadline, self._heard + most_s)
        return deadline

    def _received(self, name: str, data: bytes, output: Sink | None, started: float) -> None:
        if name != "console" or not self._boot_s:
            self._heard = time.monotonic()
        if name == "control":
            self._report.add(data)
            if self._report.ready and not self._boot_s:
                self._boot_s = time.monotonic() - started
                self._when_ready()
        elif name == "terminal":
            os.write(sys.stdout.fileno(), data)
        else:
            self._tails[name].add(data)
            if output is not None and name in ("stdout", "stderr"):
                output("stdout" if name == "stdout" else "stderr", data)

    def _result(self, process: subprocess.Popen[bytes], wall_s: float) -> GuestResult:
        reported = self._report.status_and_dmesg()
        complaint = self._tails["qemu"].text().strip()
        if process.returncode > 0 and reported is None and not self._boot_s:
            raise LabError(
                f"{'user-mode Linux' if self._tree.is_uml else qemu.QEMU}: exit status"
                f" {process.returncode}: {complaint or 'no message'}"
            )
        console = self._tails["console"].text()
        timed_out = self._timed_out and reported is None
        if reported is not None:
            status, dmesg = reported
        else:
            status, dmesg = (STATUS_TIMED_OUT if timed_out else STATUS_DIED), console
        return GuestResult(
            status=status,
            timed_out=timed_out,
            died=reported is None and not timed_out,
            dmesg=dmesg,
            console=console,
            stdout=self._tails["stdout"].text(),
            stderr=self._tails["stderr"].text(),
            out_dir=self._out_dir,
            accel=self._accel,
            kernel=self._tree.release,
            boot_s=self._boot_s,
            wall_s=wall_s,
            cpus=self._spec.cpus,
            processors=self._processors,
        )


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except ConnectionResetError:
        # QEMU ended before it had read all data that was sent to it.
        return b""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the guest in whatever state it is, and waits for its end.

    The programs of user-mode Linux are processes of the guest's group. One that is just being made
    outlives its kernel.
    """
    process.kill()
    process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
