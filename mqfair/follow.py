# SPDX-License-Identifier: GPL-2.0
"""mqfair follow: a service that carries weights from io.weight to io.mqfair.weight.

The work is in mirror.py. The service waits for events of cgroups (inotify), of the module and of
disks (netlink), and for signals, and sleeps in between without a timer. It keeps the weights that
it wrote in a file, because they tell a weight that was set by hand from its own after a restart.
"""

import argparse
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from mqfair import kmod, uevent
from mqfair.cgroup import root_cgroup
from mqfair.errors import Failure, UsageError
from mqfair.fs import Fs
from mqfair.inotify import Inotify
from mqfair.lock import FOLDER
from mqfair.mirror import Mirror, Weights
from mqfair.output import add_dry_run_argument, add_json_argument, print_json

LOCK_FILE = f"{FOLDER}/follow.lock"
STATE_FILE = f"{FOLDER}/follow.json"
STATE_SCHEMA = "mqfair.follow-state/1"

# The state is written once for all changes within this time.
SAVE_DELAY_S = 2.0
# The time between two scans where events are missing: no netlink, or no room for more watches.
SCAN_EVERY_S = 10.0
# The lines of one pass; more are counted.
SHOWN = 20

EPILOG = f"""\
Without --once the command runs until SIGTERM, as the service mqfair.service. It acts on each change
of io.weight, as by IOWeight= of systemd or by a runtime of containers. io.bfq.weight counts where
io.weight does not exist or has the default weight.

A weight that was set by hand stays: one that is neither the default nor the weight that follow
wrote last. `mqfair weight CGROUP default` hands it back to follow.

Files: {STATE_FILE} has the weights that follow wrote last.

examples:
  mqfair follow --dry-run           show what one pass would write
  mqfair follow --once              write it and end
  systemctl enable --now mqfair     run as a service
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--once", action="store_true", help="do one pass over all cgroups, and end")
    add_dry_run_argument(parser)
    add_json_argument(parser)


# -- the weights written last


def _load_state(fs: Fs) -> dict[str, Weights]:
    """The weights that an earlier run wrote; empty if there is no usable file."""
    try:
        state = json.loads(fs.host_path(STATE_FILE).read_text())
        if state["schema"] != STATE_SCHEMA:
            return {}
        return {
            str(path): {str(key): int(weight) for key, weight in weights.items()}
            for path, weights in state["mirrored"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _save_state(fs: Fs, mirrored: Mapping[str, Weights]) -> None:
    """Replaces the file in one step, so that a reader finds the old state or the new one."""
    file = fs.host_path(STATE_FILE)
    new = file.with_suffix(".new")
    with contextlib.suppress(OSError):
        new.write_text(json.dumps({"schema": STATE_SCHEMA, "mirrored": mirrored}))
        new.replace(file)


@contextlib.contextmanager
def _alone(fs: Fs) -> Iterator[None]:
    """Two programs that mirror would take each other's weights for weights set by hand."""
    if fs.dry_run:
        yield
        return
    folder = fs.host_path(FOLDER)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        file = Path(fs.host_path(LOCK_FILE)).open("a+")  # noqa: SIM115 -- closed below
    except FileNotFoundError:
        # A copy of a machine's tree without /run.
        yield
        return
    except OSError as error:
        raise Failure(f"cannot open {LOCK_FILE}: {error.strerror}: run as root") from error
    with file:
        _lock(file)
        yield


def _lock(file: IO[str]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        raise Failure(
            f"mqfair follow runs already, as process {holder or 'unknown'} (lock {LOCK_FILE}):"
            " stop it first, with `systemctl stop mqfair` if it is the service"
        ) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()


# -- one pass


@dataclass
class Follower:
    """One mirror, and the words about its work."""

    fs: Fs
    mirror: Mirror
    said: set[str] = field(default_factory=set)

    @classmethod
    def create(cls, fs: Fs, *, watches: Inotify | None) -> "Follower":
        mirror = Mirror(root_cgroup(fs), watches=watches, mirrored=_load_state(fs))
        return cls(fs, mirror)

    def lines(self) -> list[str]:
        """Words about the changes since the last call, and about weights by hand and errors that
        were not mentioned yet."""
        changes = [str(change) for change in self.mirror.changes]
        lines = changes[:SHOWN]
        if len(changes) > SHOWN:
            lines.append(f"and {len(changes) - SHOWN} more weights written")
        by_hand = {str(one) for one in self.mirror.by_hand.values()}
        news = sorted(by_hand - self.said)
        lines += news[:SHOWN]
        if len(news) > SHOWN:
            lines.append(f"and {len(news) - SHOWN} more weights stay, set by hand")
        errors = set(self.mirror.errors)
        lines += [f"error: {error}" for error in sorted(errors - self.said)]
        self.said = by_hand | errors
        self.mirror.changes.clear()
        self.mirror.errors.clear()
        self.fs.writes.clear()
        return lines


def _once(args: argparse.Namespace, fs: Fs) -> int:
    follower = Follower.create(fs, watches=None)
    mirror = follower.mirror
    mirror.scan()
    if not fs.dry_run:
        _save_state(fs, mirror.mirrored)
    errors = list(mirror.errors)
    notes = [] if kmod.loaded(fs) else [kmod.hint(fs)]
    if args.json:
        print_json(
            {
                "schema": "mqfair.follow/1",
                "cgroups": mirror.count,
                "dry_run": fs.dry_run,
                "changes": [asdict(change) for change in mirror.changes],
                "by_hand": [asdict(one) for one in mirror.by_hand.values()],
                "writes": [{"path": w.path, "value": w.value} for w in fs.writes],
                "errors": errors,
                "notes": notes,
            }
        )
        return 1 if errors else 0
    changed = len(mirror.changes)
    by_hand = len(mirror.by_hand)
    writes = [str(write) for write in fs.writes] if fs.dry_run else []
    for line in [*writes, *(line for line in follower.lines() if not writes)]:
        print(line)
    for note in notes:
        print(f"note: {note}")
    would = "to write" if fs.dry_run else "written"
    print(f"{mirror.count} cgroups: {changed} weights {would}, {by_hand} kept as set by hand")
    return 1 if errors else 0


# -- the service


class Service:
    """Waits for events and acts on them, until SIGTERM or SIGINT."""

    def __init__(self, fs: Fs) -> None:
        self.fs = fs
        self.stopped = False
        self.reloads = False
        self._save_at: float | None = None
        try:
            watches = Inotify()
        except OSError as error:
            raise Failure(
                f"no inotify: {error.strerror}: raise it with"
                " `sysctl fs.inotify.max_user_instances=1024`"
            ) from error
        self.follower = Follower.create(fs, watches=watches)
        self.mirror = self.follower.mirror
        self.uevents: uevent.Uevents | None = None
        with contextlib.suppress(OSError):
            self.uevents = uevent.Uevents()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def run(self) -> None:
        with self._signals():
            self.mirror.scan()
            self._report()
            self._say(f"follows {self.mirror.count} cgroups")
            self._complain()
            _notify("READY=1")
            while not self.stopped:
                self._wait()
            _notify("STOPPING=1")
        _save_state(self.fs, self.mirror.mirrored)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """A signal sets a flag and ends the wait."""
        ending = (signal.SIGTERM, signal.SIGINT)
        before = {one: signal.signal(one, self._stop) for one in ending}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._reload)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for one, handler in before.items():
                signal.signal(one, handler)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopped = True

    def _reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reloads = True

    def _say(self, line: str) -> None:
        print(line, flush=True)

    def _complain(self) -> None:
        """Says once that events are missing."""
        if self.mirror.unwatched is not None:
            reason = self.mirror.unwatched.strerror
            self._say(
                f"warning: {self.mirror.count} cgroups need more watches ({reason}): raise"
                " fs.inotify.max_user_watches with sysctl; until then follow scans every"
                f" {SCAN_EVERY_S:.0f} s"
            )
        if self.uevents is None:
            self._say(
                "warning: no netlink, so a loaded module is not announced: follow scans every"
                f" {SCAN_EVERY_S:.0f} s"
            )
        if not kmod.loaded(self.fs):
            self._say(f"note: {kmod.hint(self.fs)}")

    @property
    def _blind(self) -> bool:
        return self.mirror.unwatched is not None or self.uevents is None

    def _timeout_ms(self) -> int | None:
        times = [SCAN_EVERY_S] if self._blind else []
        if self._save_at is not None:
            times.append(max(0.0, self._save_at - time.monotonic()))
        return int(1000 * min(times)) + 1 if times else None

    def _wait(self) -> None:
        """One round: waits for an event, acts on all that have come, and tells of the changes."""
        poll = select.poll()
        assert self.mirror.watches is not None
        tree = self.mirror.watches.fd
        files = [tree, self._reader.fileno()]
        if self.uevents is not None:
            files.append(self.uevents.fileno())
        for file in files:
            poll.register(file, select.POLLIN)
        ready = {file for file, _ in poll.poll(self._timeout_ms())}
        if self._reader.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._reader.recv(4096)
        if self.uevents is not None and self.uevents.fileno() in ready:
            self._uevents()
        if tree in ready:
            self.mirror.handle()
        if self.reloads or (not ready and self._blind):
            self.reloads = False
            self.mirror.unwatched = None
            self.mirror.scan()
        if self.mirror.changes:
            self._save_at = self._save_at or time.monotonic() + SAVE_DELAY_S
        self._report()
        if self._save_at is not None and time.monotonic() >= self._save_at:
            self._save_at = None
            _save_state(self.fs, self.mirror.mirrored)

    def _report(self) -> None:
        for line in self.follower.lines():
            self._say(line)

    def _uevents(self) -> None:
        assert self.uevents is not None
        messages = list(self.uevents.read())
        if any(uevent.of_module(words, kmod.MODULE) for words in messages):
            # The files of the module come without an event in the cgroups.
            self.mirror.scan()


def _notify(word: str) -> None:
    """Tells systemd about the state of the service, if systemd asked for that."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock,
    ):
        sock.sendto(word.encode(), address)


def main(args: argparse.Namespace) -> int:
    fs = Fs(dry_run=args.dry_run)
    once = args.once or args.dry_run
    if args.json and not once:
        raise UsageError("--json needs --once or --dry-run: a service has no end to report at")
    with _alone(fs):
        if once:
            return _once(args, fs)
        Service(fs).run()
    return 0
