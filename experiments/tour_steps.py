# SPDX-License-Identifier: GPL-2.0
"""The commands of the tour, in their order, with a sentence before each.

A command runs in a guest, or, in a section with `chroot`, in a chroot of the guest's machine. DKMS
compiles there at the speed of the processor; an emulated one takes many times as long.
"""

from dataclasses import dataclass

# The user without rights that each Debian has.
USER = "nobody"
DISK = "nvme0n1"
SLEEP_S = 20


@dataclass(frozen=True)
class Step:
    """@status is the exit status that the tour expects, or None for any, and @expect is a pattern
    in the output. The document shows at most @lines lines. A @mistake must get one line that
    begins with `mqfair:`."""

    text: str
    command: str
    status: int | None = 0
    lines: int = 24
    mistake: bool = False
    expect: str = ""


@dataclass(frozen=True)
class Section:
    title: str
    steps: tuple[Step, ...]
    chroot: bool = False
    intro: str = ""
    # All others need this one.
    first: bool = False


def mistake(text: str, command: str, status: int = 2) -> Step:
    return Step(text, command, status, mistake=True)


def unit(name: str, weight: int, depth: int) -> str:
    """A command that writes a unit for fio, as an administrator may type it."""
    return f"""cat > /etc/systemd/system/{name}.service <<END
[Service]
IOWeight={weight}
ExecStart=fio --name={name} --filename=/dev/{DISK} --rw=randread --bs=4k --direct=1 \\
    --ioengine=libaio --iodepth={depth} --time_based --runtime=1h
END"""


TURN = (
    f"systemctl start batch db; sleep {SLEEP_S}; systemctl stop db;"
    " journalctl -u db -o cat | grep -e IOPS= -e percentiles -e 99.00th"
)


def as_user(command: str) -> str:
    return f"runuser -u {USER} -- {command}"


def sections(this: str, later: str) -> tuple[Section, ...]:
    """The tour with the packages of the versions @this and @later."""
    return (
        Section(
            "Install",
            (
                Step(
                    "apt installs the command and the source of the module. DKMS builds the module"
                    " for the machine's kernel.",
                    f"apt-get -y install ./mqfair_{this}_all.deb ./mqfair-dkms_{this}_all.deb",
                    lines=30,
                ),
                Step("DKMS tells which module it has built for which kernel.", "dkms status"),
            ),
            chroot=True,
            first=True,
            intro="The administrator has the two packages of `make deb` in the current folder.",
        ),
        Section(
            "Look, before anything changes",
            (
                Step("The kernel's release:", "uname -r"),
                Step(
                    "The installation has switched nothing on: the disk has the scheduler of the"
                    " distribution.",
                    f"cat /sys/block/{DISK}/queue/scheduler; mqfair --version; mqfair status",
                ),
                Step("`check` tells what is missing.", f"mqfair check {DISK}", status=None),
            ),
        ),
        Section(
            "Two services without mqfair",
            (
                Step(
                    "The service db reads one block at a time, and waits for it. Its weight is"
                    " 900.",
                    unit("db", 900, 1),
                ),
                Step(
                    "The service batch keeps 64 reads outstanding. Its weight is 100.",
                    unit("batch", 100, 64),
                ),
                Step("systemd reads the new units.", "systemctl daemon-reload"),
                Step(
                    f"Both services run for {SLEEP_S} seconds. When db stops, fio writes its report"
                    " to the journal. The kernel ignores `IOWeight=` with this scheduler, so db"
                    " waits behind the reads of batch.",
                    TURN,
                ),
            ),
        ),
        Section(
            "Enable",
            (
                Step("`enable` loads the module and switches the disk.", f"mqfair enable {DISK}"),
                Step(
                    "The service mqfair carries the weights of systemd to the scheduler, now and"
                    " after each restart of the machine.",
                    "systemctl enable --now mqfair",
                ),
                Step(
                    "The service tells about its work in the journal.",
                    "journalctl -u mqfair -o cat",
                ),
            ),
        ),
        Section(
            "The weights arrive",
            (
                Step(
                    "db starts again. Its weight has arrived.",
                    "systemctl start db; sleep 1; mqfair weight db.service",
                    expect=r"default +900\b",
                ),
                Step("So has the weight of batch.", "mqfair weight batch.service"),
                Step(
                    "The administrator changes a weight while the service runs.",
                    "systemctl set-property --runtime db.service IOWeight=950;"
                    " sleep 0.1; mqfair weight db.service",
                    expect=r"default +950\b",
                ),
                Step(
                    "`check` compares the weights of systemd with those in force.",
                    f"mqfair check {DISK} db.service",
                    status=None,
                ),
            ),
        ),
        Section(
            "Watch",
            (
                Step(
                    "`top` shows one interval of five seconds. db has one request at a time, so it"
                    " is due what it gets. batch gets the rest. S says that requests of batch also"
                    " slow db in the drive.",
                    f"mqfair top {DISK} --once --interval 5",
                ),
                Step(
                    "`status` shows the totals since the switch. DUE and GOT are of this moment: a"
                    " cgroup without a request is due nothing.",
                    f"mqfair status {DISK}",
                ),
            ),
        ),
        Section(
            "Two services with mqfair",
            (
                Step(
                    "Both services run as before. The journal has three runs of db: the first"
                    " before `enable`, the second beside the commands above, and this one.",
                    f"systemctl stop db; {TURN}",
                ),
            ),
        ),
        Section(
            "A report",
            (
                Step(
                    "`record` samples the disk and its cgroups for ten seconds.",
                    "systemctl start db; sleep 2; mqfair record --seconds 10 --out first.jsonl",
                ),
                Step(
                    "`report` makes one HTML file of it, which needs no network.",
                    "mqfair report first.jsonl --out first.html --csv first.csv",
                ),
                Step(
                    "The same figures are a table for other programs.",
                    "head -n 1 first.csv; grep -m 1 db.service first.csv",
                ),
            ),
        ),
        Section(
            "Measure the drive",
            (
                Step(
                    "Both services stop, to leave the emulated processors to the commands.",
                    "systemctl stop db batch",
                ),
                Step(
                    "`qualify` measures the drive under each scheduler. It only reads. The options"
                    " shorten it.",
                    f"mqfair qualify {DISK} --schedulers none,mqfq --depths 8 --repeat 1"
                    " --runtime 1",
                    lines=40,
                ),
                Step(
                    "The folder has the page for a browser, the results as JSON, and all runs."
                    " The disk has its scheduler again.",
                    f"ls mqfair-qualify-{DISK}; cat /sys/block/{DISK}/queue/scheduler",
                    expect=r"\[mqfq\]",
                ),
            ),
        ),
        Section(
            "Mistakes",
            (
                mistake("A disk that does not exist:", "mqfair enable nvme1n1"),
                mistake("A controller in place of a disk:", "mqfair enable /dev/nvme0"),
                mistake(
                    "A scheduler with a wrong name:", f"mqfair enable {DISK} --scheduler mqfqq"
                ),
                mistake("A verb with a wrong name:", "mqfair enabel nvme0n1"),
                mistake("No disk at all:", "mqfair enable"),
                mistake("A depth that makes no sense:", f"mqfair enable {DISK} --depth 0"),
                mistake("A weight that is too small:", "mqfair weight dbus.service 0"),
                mistake("A weight that is too large:", "mqfair weight dbus.service 100000"),
                mistake(
                    "A weight and a disk in the wrong order:",
                    f"mqfair weight dbus.service 500 {DISK}",
                ),
                mistake("A unit that is spelt wrong:", "mqfair weight dbuss.service 500"),
                mistake("A unit that does not run:", "mqfair weight nginx.service 500"),
                mistake("The root cgroup:", "mqfair weight / 500"),
                mistake("A second follow:", "mqfair follow", status=1),
                Step(
                    "The configuration gets a typing mistake.",
                    'printf \'[[device]]\\nmatch = "nvme*n1"\\nschedular = "mqfq"\\n\''
                    " > /etc/mqfair.conf",
                ),
                mistake("`follow --check` finds it.", "mqfair follow --check"),
                Step(
                    "A reload with the mistake keeps the old rules.",
                    "systemctl reload mqfair; sleep 1;"
                    " journalctl -u mqfair -o cat -p warning | tail -n 1",
                ),
                Step(
                    "The administrator mends the file.",
                    "sed -i s/schedular/scheduler/ /etc/mqfair.conf && mqfair follow --check",
                ),
                mistake("The live picture without a terminal:", "mqfair top"),
                mistake(
                    "A report of a file that does not exist:",
                    "mqfair report nosuch.jsonl --out x.html",
                ),
                mistake(
                    "`enable` without root:",
                    as_user(f"mqfair enable {DISK} --scheduler ifq"),
                    status=1,
                ),
                mistake(
                    "`weight` without root:", as_user("mqfair weight dbus.service 5"), status=1
                ),
                mistake("`follow` without root:", as_user("mqfair follow"), status=1),
            ),
            intro="Each mistake gets one line that names the place, the value and a mend. Nothing"
            " is changed.",
        ),
        Section(
            "Upgrade of the command",
            (
                Step("db starts again.", "systemctl start db"),
                Step(
                    f"The package {later} replaces the command and restarts the service, while db"
                    " reads. The disk keeps its scheduler and its module.",
                    f"dpkg -i mqfair_{later}_all.deb",
                ),
                Step(
                    "The new command runs with the loaded module, and the weights are as before.",
                    "mqfair --version; systemctl is-active mqfair; mqfair weight db.service;"
                    f" cat /sys/block/{DISK}/queue/scheduler",
                    expect=rf"mqfair {later}\nmodule mqfair {this} \(loaded\)\nactive\n",
                ),
            ),
        ),
        Section(
            "Remove",
            (
                Step(
                    "dpkg removes the module's package while the disk uses the module. The package"
                    " tells the way to unload it.",
                    "dpkg -r mqfair-dkms",
                ),
                Step("rmmod cannot unload it while the disk uses it.", "rmmod mqfair", status=1),
                Step(
                    "The administrator stops the services and disables the scheduler.",
                    f"systemctl stop db batch mqfair; mqfair disable {DISK}",
                ),
                Step("The module goes.", "rmmod mqfair"),
                mistake(
                    "Without the module there is nothing to enable.",
                    f"mqfair enable {DISK}",
                    status=1,
                ),
                mistake(
                    "A weight has no place to go either.",
                    "mqfair weight system.slice 500",
                    status=1,
                ),
                Step("dpkg purges the rest.", "dpkg -P mqfair"),
                Step(
                    "Nothing of it is left.",
                    "dpkg -l 'mqfair*'; systemctl list-unit-files 'mqfair*';"
                    " ls -d /etc/mqfair.conf /run/mqfair /usr/bin/mqfair /usr/lib/mqfair",
                    status=None,
                ),
            ),
        ),
        Section(
            "Upgrade of the module",
            (
                Step(
                    "apt replaces both packages, and DKMS builds the new module. The loaded one"
                    " stays at work until the next start of the machine.",
                    f"apt-get -y install ./mqfair_{later}_all.deb ./mqfair-dkms_{later}_all.deb",
                    lines=30,
                ),
                Step("DKMS has the new module alone.", "dkms status"),
            ),
            chroot=True,
        ),
    )
