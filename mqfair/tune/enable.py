# SPDX-License-Identifier: GPL-2.0
"""mqfair enable: switch a device to one of our schedulers and set its tunables.

Everything that can be checked is checked before the first write. If the kernel then refuses a write
or does not keep a value, all writes are undone.
"""

import argparse
import contextlib
import errno
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mqfair.machine import kmod
from mqfair.machine.blockdev import (
    NR_REQUESTS_MAX,
    NR_REQUESTS_MIN,
    Disk,
    above,
    below,
    device_slots,
    find_disk,
    find_disks,
    is_pattern,
    keeps,
    setting,
)
from mqfair.machine.fs import Fs
from mqfair.machine.lock import locked
from mqfair.machine.signals import guarded
from mqfair.schedulers import SCHEDULERS
from mqfair.text.errors import Failure, UsageError
from mqfair.text.output import add_dry_run_argument, add_json_argument, nearest, print_json
from mqfair.tune import calibrate, chosen_by_hand

EPILOG = """\
The settings last until the device is removed or gets another scheduler, or the machine restarts.
Weights last as long as their cgroup and the loaded module.

--calibrate measures the device first, with reads only, for about a minute. depth begins with the
least number of outstanding requests that gives full throughput, and follows the load from there.
threshold_kb becomes the least threshold that gives full throughput, within {tolerance}.

--depth 'N auto' begins with N likewise; --depth N stays.

examples:
  mqfair enable nvme0n1 --depth 64 --threshold-kb auto
  mqfair enable nvme0n1 --cost linear --linear-read 0 1024 --linear-write 8192 2048
  mqfair enable nvme0n1 --calibrate
  mqfair enable 'nvme*n1'
"""

COSTS = ("bytes", "iops", "linear", "learned")
# The ranges of tunables (sched/core/sched.h, cost.h; the table in sched/mqfq/mqfq.c).
DEPTH_MOST = 65536
THRESHOLD_KB_MOST = 1048576
COST_LEAST = 512
COST_MOST = 1 << 26

# Flows that wait for tags share those for two requests in each device slot. The rest is for flows
# that have had less than their share.
TAGS_PER_SLOT = 4

# sched/core/tunable.c: the D that an automatic one usually reaches. It begins with fewer.
AUTO_SLOTS = 128

# At a switch the block layer sets two tags for each hardware slot, counting at most 128 slots.
CORE_SLOTS_COUNTED = 128
CORE_TAGS_PER_SLOT = 2


class SwitchedError(Failure):
    """A program without the lock has switched the disk at the same time."""


def slots_of(depth: str, takes: int) -> int | None:
    """The slots that a scheduler may fill by its tunable @depth, on a drive that takes @takes
    requests; None if they are not known yet. An automatic D grows."""
    number, *auto = [*depth.split(), ""]
    if not number.isdigit():
        return None
    return max(int(number), min(takes, AUTO_SLOTS)) if "auto" in auto else int(number)


@dataclass(frozen=True)
class Plan:
    """The settings of the command line, already validated."""

    scheduler: str
    tunables: Mapping[str, str]
    nr_requests: int | None


@dataclass
class Journal:
    """The old values of all written files, to restore them in reverse order."""

    fs: Fs
    old: list[tuple[str, str]] = field(default_factory=list)

    def write(self, path: str, value: str, old: str, hints: Mapping[int, str]) -> None:
        self.old.append((path, old))
        self.fs.write(path, value, hints)

    def restore(self) -> None:
        """Writes the old values to the files that differ from them."""
        for path, value in reversed(self.old):
            if setting(self.fs.read(path), value) != value:
                self.fs.write(path, value)

    def undo(self) -> str:
        """Restores, and returns the outcome as words for a message."""
        try:
            self.restore()
        except Failure as failure:
            return f"undoing failed too: {failure}"
        return "all settings are as before"


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG.format(tolerance=calibrate.tolerance_text())
    parser.add_argument(
        "devices",
        nargs="+",
        metavar="DEVICE",
        help="nvme0n1, /dev/nvme0n1, MAJ:MIN, 'nvme*n1', a mount point or LABEL=data",
    )
    parser.add_argument(
        "--scheduler",
        choices=SCHEDULERS,
        default="mqfq",
        metavar="NAME",
        help=f"{', '.join(SCHEDULERS)} (default %(default)s)",
    )
    parser.add_argument(
        "--depth",
        metavar="N|auto",
        help=f"greatest number of requests in the device, 1..{DEPTH_MOST};"
        " 'N auto': found while running, from N on",
    )
    parser.add_argument(
        "--threshold-kb",
        metavar="N|auto",
        help="KiB that a cgroup may run ahead of the others (mqfq),"
        f" 0..{THRESHOLD_KB_MOST}; 0 is the strictest order",
    )
    parser.add_argument("--cost", choices=COSTS, help="charge of a request")
    for direction in ("read", "write"):
        parser.add_argument(
            f"--linear-{direction}",
            nargs=2,
            metavar=("BASE", "PER_KIB"),
            help=f"charge of a {direction} under --cost linear: BASE + PER_KIB for each KiB",
        )
    parser.add_argument(
        "--nr-requests",
        metavar="N",
        help=f"scheduler tags of each hardware queue, {NR_REQUESTS_MIN}..{NR_REQUESTS_MAX}"
        f" (default: at least {TAGS_PER_SLOT} for each device slot)",
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="measure the device to choose depth and threshold_kb of mqfq (needs fio)",
    )
    parser.add_argument(
        "--calibrate-time",
        metavar="S",
        help=f"time limit of the measurement in seconds (default {calibrate.SECONDS_DEFAULT})",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="calibrate although the device does other I/O"
        f" (more than {calibrate.IDLE_REQUESTS_PER_S} requests per second)",
    )
    add_dry_run_argument(parser)
    add_json_argument(parser)


def _number(option: str, text: str, least: int, most: int) -> int:
    value = int(text) if re.fullmatch(r"\d{1,10}", text, re.ASCII) else -1
    if not least <= value <= most:
        raise UsageError(f"{option} '{text}': use a number, {least}..{most}")
    return value


def _number_or_auto(option: str, text: str, least: int, most: int) -> str:
    if text == "auto":
        return text
    try:
        return str(_number(option, text, least, most))
    except UsageError as error:
        raise UsageError(f"{error}, or auto") from None


def _depth(text: str) -> str:
    """A depth: N, auto, or `N auto`, which begins with N."""
    start, *rest = text.split() or [text]
    if start == "auto" or rest != ["auto"]:
        return _number_or_auto("--depth", text, 1, DEPTH_MOST)
    return f"{_number_or_auto('--depth', start, 1, DEPTH_MOST)} auto"


def _cost(args: argparse.Namespace) -> str | None:
    """The value for the tunable `cost`; None if the command line has none.

    `linear` alone keeps the coefficients in force.
    """
    pairs = {"--linear-read": args.linear_read, "--linear-write": args.linear_write}
    given = [option for option, pair in pairs.items() if pair is not None]
    if not given:
        cost: str | None = args.cost
        return cost
    if args.cost not in (None, "linear"):
        raise UsageError(f"{given[0]} needs --cost linear, not {args.cost}")
    if len(given) == 1:
        other = next(option for option in pairs if option not in given)
        raise UsageError(f"{given[0]} needs {other}: give all four coefficients")
    lines = {
        option: [_number(option, text, 0, COST_MOST) for text in pair]
        for option, pair in pairs.items()
    }
    for option, line in lines.items():
        if not any(line):
            raise UsageError(
                f"{option} 0 0: each such request would cost {COST_LEAST}, the least charge,"
                " whatever its size: give BASE or PER_KIB above 0, or use --cost iops"
            )
    return " ".join(["linear", *(str(number) for line in lines.values() for number in line)])


def _plan(args: argparse.Namespace) -> Plan:
    tunables = {}
    cost = _cost(args)
    if cost is not None:
        tunables["cost"] = cost
    if args.depth is not None:
        tunables["depth"] = _depth(args.depth)
    if args.threshold_kb is not None:
        tunables["threshold_kb"] = _number_or_auto(
            "--threshold-kb", args.threshold_kb, 0, THRESHOLD_KB_MOST
        )
    nr_requests = None
    if args.nr_requests is not None:
        nr_requests = _number("--nr-requests", args.nr_requests, NR_REQUESTS_MIN, NR_REQUESTS_MAX)
    return Plan(args.scheduler, tunables, nr_requests)


def _seconds(args: argparse.Namespace) -> int | None:
    """The time limit of the calibration; None if there is none to do."""
    if not args.calibrate:
        if args.force or args.calibrate_time is not None:
            option = "--force" if args.force else "--calibrate-time"
            raise UsageError(f"{option} needs --calibrate")
        return None
    if args.scheduler != "mqfq":
        raise UsageError(
            f"--calibrate measures for mqfq, not for {args.scheduler}: leave out one of the two"
        )
    for name in ("depth", "threshold_kb", "dry_run"):
        if getattr(args, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"--calibrate and {option} exclude each other: leave out one")
    if args.calibrate_time is None:
        return calibrate.SECONDS_DEFAULT
    least, most = calibrate.SECONDS_LEAST, calibrate.SECONDS_MOST
    return _number("--calibrate-time", args.calibrate_time, least, most)


def absent_tunable(disk: Disk, wanted: Iterable[str]) -> str:
    """Words about the first name in @wanted that is no tunable of the disk's scheduler; empty if
    there is none."""
    present = disk.tunables()
    absent = next((name for name in wanted if name not in present), None)
    if absent is None:
        return ""
    guess = nearest(absent, present) or f"use {', '.join(present) or 'none'}"
    return f"has no tunable {absent} on {disk.name}: {guess}{kmod.research_hint(disk.fs)}"


def _for_paths(disk: Disk, plan: Plan) -> Plan:
    """@plan, with a depth that begins with the slots of the paths of dm-multipath: its own number
    of slots says nothing of them."""
    slots = device_slots(disk) if below(disk) else None
    if slots is None or "depth" in plan.tunables:
        return plan
    depth = f"{min(slots, DEPTH_MOST)} auto"
    return replace(plan, tunables={**plan.tunables, "depth": depth})


class Enabler:
    """Carries out one plan on one disk.

    The constructor and run() raise UsageError or Failure. After a Failure of run() the settings are
    as before.
    """

    def __init__(self, disk: Disk, plan: Plan) -> None:
        self.disk = disk
        self.fs = disk.fs
        self.plan = _for_paths(disk, plan)
        self.journal = Journal(disk.fs)
        self.notes: list[str] = []
        self.settings: Mapping[str, str] = self.plan.tunables
        self.previous = disk.require_selector()
        kmod.require_available(disk, self.previous, plan.scheduler)
        if not self._switches():
            self._require_tunables()

    def _switches(self) -> bool:
        return self.previous.active != self.plan.scheduler

    def _foreseen(self) -> bool:
        """True in a dry run of a switch, in which the tunables do not exist yet."""
        return self.fs.dry_run and self._switches()

    def _require_tunables(self) -> None:
        absent = absent_tunable(self.disk, self.plan.tunables)
        if absent:
            raise Failure(f"{self.plan.scheduler} {absent}")

    def run(self) -> None:
        if self.disk.partition:
            self.notes.append(
                f"{self.disk.partition} is a partition: the switch is for the disk {self.disk.name}"
            )
        over = above(self.disk)
        if over is not None:
            self.notes.append(
                f"{over.name} sends its requests to {self.disk.name} past this scheduler: mqfair"
                f" enable {over.name}"
            )
        try:
            self._set_scheduler()
            if not self._foreseen():
                self._require_tunables()
            for name, value in self.plan.tunables.items():
                self._set_tunable(name, value)
            self._set_nr_requests()
        except Failure as failure:
            if self._active() not in (self.plan.scheduler, self.previous.active):
                self._require_kept()
            raise Failure(f"{failure}; {self.journal.undo()}") from failure
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self.journal.undo()) from None
        if not self.fs.dry_run:
            self.settings = self.disk.tunables()
            self._require_kept()

    def _active(self) -> str:
        now = self.disk.selector()
        return now.active if now else "nothing"

    def _require_kept(self) -> None:
        """Raises SwitchedError if a program without the lock has switched the disk meanwhile. Its
        choice stays."""
        active = self._active()
        if active != self.plan.scheduler:
            raise SwitchedError(
                f"{self.disk.scheduler_file} reads '{active}', not '{self.plan.scheduler}': another"
                " program switched it at the same time: end that program, then run this again"
            )

    @contextlib.contextmanager
    def temporarily(self) -> Iterator[None]:
        """Applies the plan for the time of a block, which may change the plan's tunables."""
        if not self._switches():
            for name, value in self.plan.tunables.items():
                path = self.disk.tunable(name)
                self.journal.old.append((path, setting(self.fs.read(path), value)))
        self.run()
        try:
            with guarded(self.journal.restore):
                yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self.journal.undo()) from None
        except BaseException:
            self.journal.restore()
            raise
        self.journal.restore()

    def _set_scheduler(self) -> None:
        if not self._switches():
            return
        name = self.plan.scheduler
        path = self.disk.scheduler_file
        refused = kmod.not_loaded(self.fs)
        # The block layer resets nr_requests at every switch, so an undone switch must restore it.
        tags = self.disk.nr_requests()
        if tags is not None:
            self.journal.old.append((self.disk.queue("nr_requests"), str(tags)))
        hints = {errno.EINVAL: refused, errno.ENOENT: refused}
        self.journal.write(path, name, self.previous.active, hints)
        if self.fs.dry_run:
            return
        active = self._active()
        if active != name:
            raise Failure(f"{path} reads back '{active}' after '{name}' was written: {refused}")

    def _set_tunable(self, name: str, value: str) -> None:
        path = self.disk.tunable(name)
        if self._foreseen():
            self.fs.write(path, value)
            return
        old = setting(self.fs.read(path), value)
        if old != value:
            self._write(path, value, old)

    def _write(self, path: str, value: str, old: str) -> None:
        """Writes and reads back. After a switch no old value is recorded, because undoing the
        switch removes the tunables."""
        if self._switches():
            self.fs.write(path, value)
        else:
            self.journal.write(path, value, old, {})
        if self.fs.dry_run:
            return
        found = setting(self.fs.read(path), value)
        if not keeps(found, value):
            raise Failure(
                f"{path} reads back '{found}' after '{value}' was written: use {found or 'another'}"
            )

    def _slots(self) -> int | None:
        """The device slots that the scheduler may fill, by its depth; None if not known yet."""
        text = self.plan.tunables.get("depth", "auto")
        if text == "auto" and not self._foreseen():
            text = self.fs.read_if_any(self.disk.tunable("depth")) or text
        return slots_of(text, device_slots(self.disk) or AUTO_SLOTS * self.disk.queue_count())

    def _tags_now(self) -> int | None:
        """nr_requests; in a dry run of a switch, the value that the switch will reset it to."""
        hardware = self.disk.hardware_depth()
        if self._foreseen() and hardware is not None:
            return CORE_TAGS_PER_SLOT * min(hardware, CORE_SLOTS_COUNTED)
        return self.disk.nr_requests()

    def _wanted_tags(self, now: int) -> int | None:
        """The nr_requests to set, or None to leave it. Adds a note if the user gave none."""
        if self.plan.nr_requests is not None:
            return self.plan.nr_requests if self.plan.nr_requests != now else None
        queues = self.disk.queue_count()
        slots = self._slots()
        if slots is None and self._foreseen():
            self.notes.append(
                f"nr_requests will be raised if it is below {TAGS_PER_SLOT} tags for each slot of"
                " the depth chosen by auto"
            )
        if slots is None or queues == 0 or now * queues >= TAGS_PER_SLOT * slots:
            return None
        needed = -(-TAGS_PER_SLOT * slots // queues)
        wanted = min(max(needed, NR_REQUESTS_MIN), NR_REQUESTS_MAX)
        if wanted <= now:
            return None
        limit = f" (the kernel's limit, below {needed})" if wanted < needed else ""
        self.notes.append(
            f"nr_requests {now} -> {wanted}{limit}: depth {slots} on {queues} queues needs"
            f" {TAGS_PER_SLOT} tags per slot"
        )
        return wanted

    def _set_nr_requests(self) -> None:
        now = self._tags_now()
        if now is None:
            if self.plan.nr_requests is not None:
                raise Failure(
                    f"{self.disk.queue('nr_requests')} does not exist or holds no number:"
                    " leave out --nr-requests"
                )
            return
        wanted = self._wanted_tags(now)
        if wanted is None:
            return
        self._write(self.disk.queue("nr_requests"), str(wanted), str(now))

    def report(self) -> dict[str, object]:
        return {
            "schema": "mqfair.enable/1",
            "device": self.disk.name,
            "scheduler": self.plan.scheduler,
            "previous": self.previous.active,
            "dry_run": self.fs.dry_run,
            "tunables": dict(self.settings),
            "nr_requests": self.disk.nr_requests(),
            "writes": [{"path": w.path, "value": w.value} for w in self.fs.writes],
            "notes": self.notes,
        }

    def print_text(self) -> None:
        if self.fs.dry_run:
            for write in self.fs.writes:
                print(write)
        else:
            was = f"was {self.previous.active}" if self._switches() else "as before"
            settings = "  ".join(f"{k} {v}" for k, v in self.settings.items())
            print(f"{self.disk.name}: {self.plan.scheduler} ({was})  {settings}".rstrip())
        for note in self.notes:
            print(f"note: {note}")


def calibrated(disk: Disk, plan: Plan, seconds: int, *, force: bool) -> calibrate.Calibration:
    """Measures @disk under mqfq and restores its settings.

    @seconds is the time limit. Raises Failure if the device is busy and not @force.
    """
    calibrator = calibrate.Calibrator(disk, seconds)
    limits = {"depth": str(calibrator.most), "threshold_kb": str(calibrate.THRESHOLDS_KB[-1])}
    enabler = Enabler(disk, replace(plan, tunables={**plan.tunables, **limits}))
    if not force:
        calibrator.require_idle()
    with calibrate.interrupted_once(), enabler.temporarily():
        return calibrator.run()


def _with_calibration(plan: Plan, found: calibrate.Calibration) -> Plan:
    return replace(plan, tunables={**plan.tunables, **found.tunables()})


def main(args: argparse.Namespace) -> int:
    plan = _plan(args)
    seconds = _seconds(args)
    # A device may be named by a partition, of which the report has a note.
    names = [text for text in args.devices if not is_pattern(text)]
    disks = find_disks(Fs(dry_run=args.dry_run), args.devices)
    if len(disks) == 1:
        name = names[0] if names and disks[0].head is None else disks[0].name
        report = _enable_locked(args, name, plan, seconds)
        if args.json:
            print_json(report)
        return 0
    # All disks are examined before the first write.
    for disk in disks:
        Enabler(disk, plan)
        if seconds is not None:
            calibrate.Calibrator(disk, seconds)
    reports = []
    for disk in disks:
        try:
            reports.append(_enable_locked(args, disk.name, plan, seconds))
        except Failure as failure:
            done = ", ".join(str(report["device"]) for report in reports) or "none"
            raise Failure(f"{failure}; devices that were enabled before: {done}") from failure
    if args.json:
        print_json({"schema": "mqfair.enable-several/1", "devices": reports})
    return 0


def _enable_locked(
    args: argparse.Namespace, name: str, plan: Plan, seconds: int | None
) -> dict[str, object]:
    with locked(find_disk(Fs(dry_run=args.dry_run), name)):
        return _enable(args, name, plan, seconds)


def _enable(
    args: argparse.Namespace, name: str, plan: Plan, seconds: int | None
) -> dict[str, object]:
    """Enables one device and returns the report; prints it as text without --json."""
    found = None
    if seconds is not None:
        disk = find_disk(Fs(), name)
        found = calibrated(disk, plan, seconds, force=args.force)
        plan = _with_calibration(plan, found)
    enabler = Enabler(find_disk(Fs(dry_run=args.dry_run), name), plan)
    enabler.run()
    chosen_by_hand.remember(enabler.disk, plan.scheduler)
    if found:
        enabler.notes += found.notes()
    if not args.json:
        if found:
            print("\n".join(found.lines()))
        enabler.print_text()
    report = enabler.report()
    return {**report, "calibration": found.as_json()} if found else report
