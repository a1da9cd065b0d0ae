# SPDX-License-Identifier: GPL-2.0
"""Other programs that set the scheduler of a disk. A line that surely does is a warning, and one
that may do so is a note."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mqfair.check import boot_files, tuned_profiles, udev_rules
from mqfair.check.finding import Finding, note, warn
from mqfair.check.rival import Rival
from mqfair.machine.blockdev import Disk, active_word
from mqfair.text.output import quoted


@dataclass(frozen=True)
class _Program:
    """@subject is the beginning of a sentence, @when its end. @masked is the folder in which a link
    to /dev/null replaces a file of the same name, and @reload the command after it."""

    subject: str
    when: str
    mend: str = ""
    masked: str = ""
    reload: str = ""


_PROGRAMS: Mapping[str, _Program] = {
    udev_rules.PROGRAM: _Program(
        "a udev rule",
        "at each event of the disk",
        masked="/etc/udev/rules.d",
        reload="; then udevadm control --reload",
    ),
    tuned_profiles.PROGRAM: _Program(
        "TuneD's active profile",
        "when it is applied",
        "set elevator=mqfq in a profile of your own that includes it, or `tuned-adm off`",
    ),
    boot_files.TMPFILES: _Program(
        "a line of tmpfiles.d", "at boot and with updates", masked="/etc/tmpfiles.d"
    ),
    boot_files.SYSFS: _Program("sysfsutils", "at boot"),
    boot_files.TLP: _Program(
        "TLP",
        "at boot and at each change of the power supply",
        "write keep for it: DISK_IOSCHED=keep for all disks, then `tlp start`",
    ),
    boot_files.SAP: _Program(
        "a tuning for SAP", "when it is applied", "remove IO_SCHEDULER, and apply it again"
    ),
    boot_files.UNIT: _Program("a unit of systemd", "when it starts"),
    boot_files.SCRIPT: _Program("a script", "at boot"),
    boot_files.CRON: _Program("cron", "at its time"),
}


def _all(disk: Disk) -> Iterator[Rival]:
    for room in (udev_rules, tuned_profiles, boot_files):
        yield from room.rivals(disk)


def rival_findings(disk: Disk) -> Iterator[Finding]:
    """Programs that set another scheduler than the one that is active, if that is one of ours, or
    that have taken the disk from us."""
    selector = disk.selector()
    if selector is None:
        return
    for rival in _all(disk):
        if active_word(rival.scheduler) == selector.active and selector.ours:
            continue
        yield _finding(disk, rival)


def _finding(disk: Disk, rival: Rival) -> Finding:
    program = _PROGRAMS[rival.program]
    where = f"{rival.file}:{rival.line}"
    scheduler = rival.scheduler or "another scheduler"
    mend = _mend(disk, rival, program)
    if rival.doubt:
        seen = f"{program.subject} may set {scheduler} on {disk.name} {program.when}"
        return note(rival.program, f"{seen}: {rival.doubt}", where, mend)
    seen = f"{program.subject} sets {scheduler} on {disk.name} {program.when}"
    return warn(rival.program, seen, where, mend)


def _mend(disk: Disk, rival: Rival, program: _Program) -> str:
    if program.mend:
        return program.mend
    mend = f"remove that line, or exclude {disk.name} from it"
    override = f"{program.masked}/{rival.file.rpartition('/')[2]}"
    if program.masked and rival.file != override:
        mend = f"ln -s /dev/null {quoted(override)}"
    return f"{mend}{program.reload}"
