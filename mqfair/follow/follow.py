# SPDX-License-Identifier: GPL-2.0
"""mqfair follow: a service that carries weights from io.weight to io.mqfair.weight, and keeps the
rules of /etc/mqfair.conf.

The work is in carried_weights.py and rules_in_force.py. The service waits for events of cgroups
(inotify), of the module and of disks (netlink), and for signals. While the module is loaded, it
looks every few seconds for cgroups that starve (starving.py). It keeps the weights that it wrote in
a file, because they tell a weight that was set by hand from its own after a restart.
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from mqfair.follow import config
from mqfair.follow.carried_weights import Mirror, Weights
from mqfair.follow.rules_in_force import Keeper
from mqfair.follow.starving import Starved
from mqfair.follow.unit_files import UnitFiles
from mqfair.machine import kmod, uevent
from mqfair.machine.blockdev import find_disk
from mqfair.machine.cgroup import root_cgroup
from mqfair.machine.fs import Fs
from mqfair.machine.inotify import Inotify
from mqfair.machine.lock import FOLDER
from mqfair.text import json_text
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import add_dry_run_argument, add_json_argument, print_json, visible
from mqfair.tune.enable import absent_tunable

LOCK_FILE = f"{FOLDER}/follow.lock"
STATE_FILE = f"{FOLDER}/follow.json"
STATE_SCHEMA = "mqfair.follow-state/1"

# The state is written once for all changes within this time.
SAVE_DELAY_S = 2.0
# The time between two scans where events are missing: no netlink, or no room for more watches.
SCAN_EVERY_S = 10.0
# The priorities of the journal, as sd-daemon(3) writes them, by the first word of a line.
LEVELS = {"error": "<3>", "warning": "<4>", "note": "<5>"}
# The lines of one pass; more are counted.
SHOWN = 20
# The disks or cgroups of a rule in --check.
RULE_SHOWN = 3

EPILOG = f"""\
Without --once the command runs until SIGTERM, as the service mqfair.service. It acts on each change
of io.weight, as by IOWeight= of systemd or by a runtime of containers. io.bfq.weight counts where
io.weight does not exist or has the default weight.

A weight that was set by hand stays: one that is neither the default nor the weight that follow
wrote last. `mqfair weight CGROUP default` hands it back to follow.

{config.PATH} has rules for the schedulers of disks and for weights, which follow keeps in force. A
rule comes before io.weight. SIGHUP, or `systemctl reload mqfair`, reads the file again. A disk for
which `mqfair disable` or `mqfair enable` chose another scheduler is left alone.

examples:
  mqfair follow --dry-run           show what one pass would write
  mqfair follow --once              write it and end
  mqfair follow --check             say whether {config.PATH} is right
  systemctl enable --now mqfair     run as a service

rules in {config.PATH}:
  [[device]]
  match = "nvme*n1"                 a kernel name, or "/dev/disk/by-id/nvme-Samsung*"
  scheduler = "mqfq"
  tunables = {{ depth = "64 auto" }}

  [[weight]]
  unit = "nginx.service"            or: cgroup = "kubepods.slice/**"
  weight = 900
  device = "/var/lib/mysql"         the disk below it; without this line: all devices

  [kubernetes]                      classes of pods without annotations
  burstable = 300
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("--once", action="store_true", help="do one pass over all cgroups, and end")
    parser.add_argument(
        "--check", action="store_true", help="read the configuration, show its rules, and end"
    )
    parser.add_argument(
        "--config", metavar="FILE", help=f"configuration (default {config.PATH}, if it exists)"
    )
    parser.add_argument(
        "--device", metavar="DEVICE", help="keep the rules of one disk once, and end (for udev)"
    )
    add_dry_run_argument(parser)
    add_json_argument(parser)


# -- the weights written last


def _load_state(fs: Fs) -> dict[str, Weights]:
    """The weights that an earlier run wrote; empty if there is no usable file."""
    try:
        state = json_text.read(fs.host_path(STATE_FILE).read_text())
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
    """One mirror and the keeper of disks, and the words about their work."""

    fs: Fs
    mirror: Mirror
    keeper: Keeper
    said_by_hand: set[str] = field(default_factory=set)
    said_errors: set[str] = field(default_factory=set)
    said_of_disks: set[str] = field(default_factory=set)
    # The rules that could not be met at the last look at the disks.
    unmet: tuple[str, ...] = ()

    @classmethod
    def create(cls, fs: Fs, chosen: str | None, *, watches: bool) -> "Follower":
        """@chosen is the configuration of the command line. Raises Failure without an inotify."""
        rules = _config(fs, chosen)
        mirror = Mirror(
            root_cgroup(fs),
            mirrored=_load_state(fs),
            rules_name=chosen or config.PATH,
            units=UnitFiles(fs),
        )
        keeper = Keeper(fs, rules)
        if watches:
            mirror.watches, keeper.watches = _inotify(), _inotify()
        found = cls(fs, mirror, keeper)
        found.configure(rules)
        return found

    def configure(self, rules: config.Config) -> None:
        self.keeper.config = rules
        self.mirror.mirrors = rules.mirror
        self.look_up_devices()

    def look_up_devices(self) -> None:
        """Disks have come or gone: the rules for their weights have other numbers."""
        rules = config.Rules(self.fs, self.keeper.config)
        self.mirror.rules, self.mirror.weak = rules, rules.weak

    def everything(self) -> None:
        """One pass over the disks and the cgroups. The disks come first: a switch may load the
        module, which makes the files of the weights."""
        self.keeper.keep()
        self.mirror.scan()

    def _without_module(self) -> list[str]:
        """Words about rules for weights alone, if the kernel has no module for them. A rule for a
        disk has such words from its switch."""
        rules = self.keeper.config
        if not rules.weights or rules.devices or kmod.available(self.fs):
            return []
        return [f"{rules.weights[0].place}: {kmod.hint(self.fs)}"]

    def lines(self) -> list[str]:
        """Words about the changes since the last call, and about weights by hand and errors that
        were not mentioned yet."""
        changes = self.mirror.changes
        lines = self.keeper.words + [str(change) for change in changes[:SHOWN]]
        if len(changes) > SHOWN:
            lines.append(f"and {len(changes) - SHOWN} more weights written")
        if self.mirror.by_hand_changed:
            self.mirror.by_hand_changed = False
            by_hand = {str(one) for one in self.mirror.stays()}
            news = sorted(by_hand - self.said_by_hand)
            lines += news[:SHOWN]
            if len(news) > SHOWN:
                lines.append(f"and {len(news) - SHOWN} more weights stay, set by hand")
            self.said_by_hand = by_hand
        errors = set(self.mirror.errors)
        fresh = sorted(errors - self.said_errors)
        lines += [f"error: {error}" for error in fresh[:SHOWN]]
        if len(fresh) > SHOWN:
            lines.append(f"error: and {len(fresh) - SHOWN} more weights were not written")
        self.said_errors = errors
        if self.keeper.looked:
            self.keeper.looked = False
            words = {f"note: {note}" for note in self.keeper.notes}
            words |= {f"error: {error}" for error in self.keeper.errors}
            lines += sorted(words - self.said_of_disks)
            self.said_of_disks = words
            self.unmet = (*self.keeper.errors, *self._without_module())
        self.mirror.changes.clear()
        for told in (self.mirror.errors, *self.keeper.all_words()):
            told.clear()
        self.fs.writes.clear()
        return lines


def _inotify() -> Inotify:
    try:
        return Inotify()
    except OSError as error:
        raise Failure(
            f"no inotify: {error.strerror}: raise it with"
            " `sysctl fs.inotify.max_user_instances=1024`"
        ) from error


def _config(fs: Fs, chosen: str | None) -> config.Config:
    """The configuration in the file @chosen, or in the usual one; without that, no rules."""
    found = config.load(fs, chosen or config.PATH)
    if found is None and chosen is not None:
        raise UsageError(
            f"--config {chosen}: no such file: name one, or leave --config out for {config.PATH}"
        )
    return found or config.Config()


def _checked(rule: config.DeviceRule, fs: Fs) -> list[str]:
    """The names of the disks of @rule. A disk with the rule's scheduler tells whether the tunables
    of the rule exist; without such a disk the kernel is the judge. Raises UsageError."""
    disks = rule.disks(fs)
    if not disks:
        _require_whole(rule, fs)
    for disk in disks:
        selector = disk.selector()
        if selector is not None and selector.active == rule.scheduler:
            absent = absent_tunable(disk, rule.tunables)
            if absent:
                raise UsageError(f"{rule.place}: {rule.scheduler} {absent}")
    return [disk.name for disk in disks]


def _require_whole(rule: config.DeviceRule, fs: Fs) -> None:
    """A rule with the name of a partition would wait for ever. Raises UsageError."""
    try:
        disk = find_disk(fs, rule.match)
    except UsageError:
        return
    if disk.partition is not None:
        whole = f"/dev/{disk.name}" if rule.match.startswith("/") else disk.name
        mend = f'a partition has no scheduler: use "{whole}"'
        raise UsageError(f'{rule.place}: match = "{rule.match}": {mend}')


def _as_disks(rule: config.WeightRule, fs: Fs) -> dict[str, list[str]]:
    disks = rule.disks(fs)
    return {} if disks is None else {"disks": [disk.name for disk in disks]}


def _on_disks(rule: config.WeightRule, fs: Fs) -> str:
    disks = rule.disks(fs)
    if disks is None:
        return ""
    return f", on {_named([disk.name for disk in disks], [], 'disk')}"


def _earlier(rules: Sequence[tuple[str, str | None, list[str]]]) -> dict[str, list[str]]:
    """By place, the names of each rule that an earlier rule for the same devices has."""
    taken: dict[str | None, set[str]] = {}
    found = {}
    for place, device, names in rules:
        own = taken.setdefault(device, set())
        found[place] = [name for name in names if name in own]
        own.update(names)
    return found


def _left(names: list[str], earlier: list[str]) -> list[str]:
    return [name for name in names if name not in earlier]


def _named(names: list[str], earlier: list[str], noun: str) -> str:
    """The first of the names for which a rule counts, and the reason if there is none."""
    counts = _left(names, earlier)
    if not names:
        return f"no {noun} that is here now"
    if not counts:
        return f"no {noun}: an earlier rule has {_short(earlier)}"
    return _short(counts) + (f"; an earlier rule has {_short(earlier)}" if earlier else "")


def _short(names: list[str]) -> str:
    more = f" and {len(names) - RULE_SHOWN} more" if len(names) > RULE_SHOWN else ""
    return ", ".join(visible(name) for name in names[:RULE_SHOWN]) + more


def _check(args: argparse.Namespace, fs: Fs) -> int:
    """Says which disks and cgroups the rules name now."""
    path = args.config or config.PATH
    rules = config.load(fs, path)
    if rules is None:
        raise UsageError(f"{path} does not exist: mqfair follow --help shows an example")
    groups = [group.path for group in root_cgroup(fs).walk() if group.path]
    disks = [(rule, _checked(rule, fs)) for rule in rules.devices]
    weights = [
        (rule, [path for path in groups if rule.pattern.fullmatch(path)]) for rule in rules.weights
    ]
    named = [(rule.place, None, names) for rule, names in disks]
    matched = [(rule.place, rule.device, paths) for rule, paths in weights]
    earlier = {**_earlier(named), **_earlier(matched)}
    if args.json:
        print_json(
            {
                "schema": "mqfair.follow-check/1",
                "config": path,
                "mirror": rules.mirror,
                "devices": [
                    {
                        "place": rule.place,
                        "scheduler": rule.scheduler,
                        "disks": _left(names, earlier[rule.place]),
                    }
                    for rule, names in disks
                ],
                "weights": [
                    {
                        "place": rule.place,
                        "weight": rule.weight,
                        "cgroups": _left(paths, earlier[rule.place]),
                        **_as_disks(rule, fs),
                    }
                    for rule, paths in weights
                ],
            }
        )
        return 0
    for rule, names in disks:
        print(f"{rule.place}: {rule.scheduler} on {_named(names, earlier[rule.place], 'disk')}")
    for one, paths in weights:
        cgroups_of_it = _named(paths, earlier[one.place], "cgroup")
        print(f"{one.place}: weight {one.weight} for {cgroups_of_it}{_on_disks(one, fs)}")
    print(f"{path}: no mistake; rules for devices: {len(disks)}, for weights: {len(weights)}")
    return 0


def _one_device(args: argparse.Namespace, fs: Fs) -> int:
    """Keeps the rules of one disk. A disk without a rule is no error: udev calls for each."""
    disk = find_disk(fs, args.device)
    keeper = Keeper(fs, _config(fs, args.config))
    keeper.keep(only=disk)
    for line in [str(write) for write in fs.writes] if fs.dry_run else keeper.words:
        print(line)
    for note in keeper.notes:
        print(f"note: {note}")
    if keeper.errors:
        raise Failure(keeper.errors[0])
    return 0


def _once(args: argparse.Namespace, fs: Fs) -> int:
    follower = Follower.create(fs, args.config, watches=False)
    mirror = follower.mirror
    follower.everything()
    if not fs.dry_run:
        _save_state(fs, mirror.mirrored)
    errors = [*follower.keeper.errors, *mirror.errors]
    notes = [] if kmod.loaded(fs) else [kmod.hint(fs)]
    if args.json:
        print_json(
            {
                "schema": "mqfair.follow/1",
                "cgroups": mirror.count,
                "dry_run": fs.dry_run,
                "changes": [asdict(change) for change in mirror.changes],
                "devices": follower.keeper.words,
                "by_hand": [asdict(one) for one in mirror.stays()],
                "writes": [{"path": w.path, "value": w.value} for w in fs.writes],
                "errors": errors,
                "notes": [*follower.keeper.notes, *notes],
            }
        )
        return 1 if errors else 0
    changed = len(mirror.changes)
    by_hand = len(list(mirror.stays()))
    writes = [str(write) for write in fs.writes] if fs.dry_run else []
    if fs.dry_run:
        mirror.changes.clear()
        follower.keeper.words.clear()
    for line in [*writes, *follower.lines()]:
        print(visible(line))
    for note in notes:
        print(f"note: {note}")
    would = "to write" if fs.dry_run else "written"
    print(f"cgroups: {mirror.count}, weights {would}: {changed}, kept as set by hand: {by_hand}")
    return 1 if errors else 0


# -- the service


class Service:
    """Waits for events and acts on them, until SIGTERM or SIGINT."""

    def __init__(self, fs: Fs, chosen: str | None = None) -> None:
        self.fs = fs
        self.chosen = chosen
        self.stopped = False
        self.reloads = False
        self.starved = Starved(fs)
        self._save_at: float | None = None
        self._told_unmet: tuple[str, ...] = ()
        self._scanned_at = time.monotonic()
        self.follower = Follower.create(fs, chosen, watches=True)
        self.mirror = self.follower.mirror
        self.keeper = self.follower.keeper
        self.uevents: uevent.Uevents | None = None
        with contextlib.suppress(OSError):
            self.uevents = uevent.Uevents()
        # The kernel marks this file when a file system was mounted or unmounted.
        self._mounts: IO[str] | None = None
        with contextlib.suppress(OSError):
            self._mounts = fs.host_path("/proc/self/mountinfo").open()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def run(self) -> None:
        with self._signals():
            self.follower.everything()
            self._report()
            self._say(f"follows {self.mirror.count} cgroups")
            self._complain()
            _notify("READY=1")
            self._tell_unmet()
            self.starved.start()
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
        """Prints @line. The journal gets its priority, so that `journalctl -p warning` finds it."""
        word = line.partition(":")[0]
        level = LEVELS.get(word, "") if os.environ.get("JOURNAL_STREAM") else ""
        print(f"{level}{visible(line)}", flush=True)

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
            rules = self.keeper.config
            grave = (rules.devices or rules.weights) and not kmod.available(self.fs)
            self._say(f"{'warning' if grave else 'note'}: {kmod.hint(self.fs)}")
        self._name_absent()

    def _name_absent(self) -> None:
        """Says which rules name no disk: a disk may come later, or its name may be misspelt."""
        for rule in self.keeper.config.devices:
            if not rule.disks(self.fs):
                self._say(f"note: {rule.place}: no disk '{rule.match}' is here now")
        for one in self.keeper.config.weights:
            if one.disks(self.fs) == []:
                self._say(f"note: {one.place}: no disk '{one.device}' is here now")

    @property
    def _blind(self) -> bool:
        return self.mirror.unwatched is not None or self.uevents is None

    @property
    def _scans(self) -> bool:
        return self._blind or self.keeper.busy or self.keeper.has_heads

    def _timeout_ms(self) -> int | None:
        scan_at = self._scanned_at + SCAN_EVERY_S if self._scans else None
        times = [at for at in (scan_at, self._save_at, self.starved.at) if at is not None]
        return int(1000 * max(0.0, min(times) - time.monotonic())) + 1 if times else None

    def _ready(self) -> set[int]:
        """Waits for an event; the files that have one."""
        poll = select.poll()
        assert self.mirror.watches is not None and self.keeper.watches is not None
        files = [self.mirror.watches.fd, self.keeper.watches.fd, self._reader.fileno()]
        if self.uevents is not None:
            files.append(self.uevents.fileno())
        for file in files:
            poll.register(file, select.POLLIN)
        if self._mounts is not None and config.has_mounts(self.keeper.config):
            poll.register(self._mounts.fileno(), select.POLLPRI)
        return {file for file, _ in poll.poll(self._timeout_ms())}

    def _wait(self) -> None:
        """One round: waits for an event, acts on all that have come, and tells of the changes."""
        ready = self._ready()
        assert self.mirror.watches is not None and self.keeper.watches is not None
        tree, disks = self.mirror.watches.fd, self.keeper.watches.fd
        if self._reader.fileno() in ready:
            with contextlib.suppress(BlockingIOError):
                self._reader.recv(4096)
        if self.uevents is not None and self.uevents.fileno() in ready:
            self._uevents()
        mounted = self._mounts is not None and self._mounts.fileno() in ready
        if (disks in ready and self.keeper.handle()) or mounted:
            self._disks()
        if tree in ready:
            self.mirror.handle()
        if self.reloads:
            self.reloads = False
            self._reload_config()
        if self._scans and time.monotonic() >= self._scanned_at + SCAN_EVERY_S:
            if self._blind or self.keeper.busy:
                self.mirror.unwatched = None
                self.follower.everything()
            else:
                self.keeper.keep()
            self._scanned_at = time.monotonic()
        if self.mirror.changes:
            self._save_at = self._save_at or time.monotonic() + SAVE_DELAY_S
        self._report()
        self._tell_unmet()
        self.starved.start()
        if self.starved.at is not None and time.monotonic() >= self.starved.at:
            for line in self.starved.look():
                self._say(line)
        if self._save_at is not None and time.monotonic() >= self._save_at:
            self._save_at = None
            _save_state(self.fs, self.mirror.mirrored)

    def _report(self) -> None:
        for line in self.follower.lines():
            self._say(line)

    def _tell_unmet(self) -> None:
        """Has `systemctl status` show the first rule that cannot be met, or the normal state."""
        unmet = self.follower.unmet
        if unmet == self._told_unmet:
            return
        self._told_unmet = unmet
        more = f" (and {len(unmet) - 1} more)" if len(unmet) > 1 else ""
        state = f"not met: {unmet[0]}{more}" if unmet else f"follows {self.mirror.count} cgroups"
        _notify(f"STATUS={visible(state)}")

    def _uevents(self) -> None:
        assert self.uevents is not None
        messages = list(self.uevents.read())
        if any(uevent.of_module(words, kmod.MODULE) for words in messages):
            # The files of the module come without an event in the cgroups.
            self.follower.everything()
        elif any(uevent.of_disk(words) for words in messages):
            self._disks()

    def _disks(self) -> None:
        """Disks, their links or their schedulers have changed."""
        self.keeper.keep()
        units = self.mirror.units
        by_device = any(rule.device is not None for rule in self.keeper.config.weights)
        if by_device or (units is not None and units.any):
            self.follower.look_up_devices()
            self.mirror.scan()

    def _reload_config(self) -> None:
        """Reads the configuration again; the old one stays if the new one has a mistake."""
        try:
            rules = _config(self.fs, self.chosen)
        except UsageError as error:
            self._say(f"error: {error}; the old configuration stays")
            return
        self._say("reads its configuration again")
        self.follower.configure(rules)
        self.follower.everything()
        self._name_absent()


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
    if args.config == "":
        raise UsageError(f"--config '': name a file, or leave --config out for {config.PATH}")
    if args.check:
        return _check(args, fs)
    if args.json and not once:
        raise UsageError("--json needs --once or --dry-run: a service has no end to report at")
    if args.device is not None:
        return _one_device(args, fs)
    with _alone(fs):
        if once:
            return _once(args, fs)
        Service(fs, args.config).run()
    return 0
