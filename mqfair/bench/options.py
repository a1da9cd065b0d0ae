# SPDX-License-Identifier: GPL-2.0
"""The command line of mqfair bench: a fio job file, one cgroup per section, several schedulers.

command.py carries it out. It needs packages that --help and the man pages do without.
"""

import argparse

from lab.kernel import KERNELS
from lab.tree import DEFAULT_KERNEL, UML
from mqfair.bench.device import DEFAULT_DEVICE
from mqfair.bench.plan import HOST, SIM, VM
from mqfair.bench.variant import OURS, SCHEDULERS
from mqfair.tune.calibrate import SECONDS_DEFAULT

EPILOG = f"""\
Each section of JOB names its cgroup (cgroup=web, cgroup=prod/db) and optionally its weight
(cgroup_weight=1..10000, default 100); see examples/. All sections start together, and the time in
which all of them run is counted. Shares are shares of bytes. A latency is the time from submission
to completion of a counted I/O and includes the wait for a free request.

Schedulers: {", ".join(SCHEDULERS)}

iocost is the scheduler none with the iocost controller. throttle:kib_per_weight=N is none with
io.max: each cgroup with jobs gets N KiB/s for each unit of its weight, and no more.
NAME:TUNABLE=VALUE[:TUNABLE=VALUE...] sets tunables (files of queue/iosched), so that a scheduler
can be compared with itself; the whole word is its name in the results. {", ".join(OURS)} belong to
this project. In a guest their tunables for research are available, too; on a host they are if the
module was loaded with research=1.

The default drive of the guest (with one CPU it has one queue):
  {DEFAULT_DEVICE}

examples:
  mqfair bench examples/four-cgroups.fio
  mqfair bench examples/nested.fio --schedulers none,bfq,mqfq --repeat 5 --json nested.json
  mqfair bench examples/four-cgroups.fio \\
      --schedulers none,kyber-fair,kyber-fair:work_conserving=0,wdt:single_lock=1
  mqfair bench examples/four-cgroups.fio --schedulers none,mqfq --calibrate
  mqfair bench examples/four-cgroups.fio --device nvme:size=1G,queues=2,backing=null,latency=1ms
  mqfair bench examples/four-cgroups.fio --device ssd:model=p4500,size_mb=1024,fill=85
  mqfair bench examples/four-cgroups.fio --kernel 7.2
  mqfair bench examples/four-cgroups.fio --on host --device /dev/nvme1n1
  mqfair bench examples/four-cgroups.fio --device 'nvme*n1' --repeat 5 --json all.json
  mqfair bench examples/four-cgroups.fio --repeat 20 --raw runs
  mqfair bench examples/four-cgroups.fio --repeat 20 --raw runs --resume
  mqfair bench examples/four-cgroups.fio --on sim --schedulers mqfq --sweep depth=8,16,32
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_measurement(parser)
    parser.add_argument(
        "--on",
        choices=(VM, UML, HOST, SIM),
        help="run in a guest, in user-mode Linux (after `make uml`), on this host or in the"
        " simulator (default: host for /dev/..., else vm)",
    )
    parser.add_argument(
        "--icount",
        action="store_true",
        help="guest with one CPU, and its clock counts instructions: exact on a busy host",
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="first measure the drive to choose mqfq's depth and threshold_kb, as"
        " `mqfair enable --calibrate` does",
    )
    parser.add_argument(
        "--calibrate-time",
        metavar="S",
        help=f"time limit of the measurement in seconds (default {SECONDS_DEFAULT})",
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        help=f"kernel of the guest: {', '.join(KERNELS)} (default {DEFAULT_KERNEL}); its module"
        " is built by `make module KERNEL=NAME`",
    )
    parser.add_argument("--module", metavar="FILE", help="mqfair.ko (default: the one built here)")
    parser.add_argument(
        "--nr-requests",
        metavar="N",
        help="scheduler tags of each hardware queue, under every scheduler",
    )
    add_simulation(parser, "with --on sim: ")
    add_output(parser)
    parser.add_argument(
        "--destroy-data",
        action="store_true",
        help="allow writes to a drive of this host that holds data",
    )


def add_measurement(parser: argparse.ArgumentParser, *, simulated: bool = False) -> None:
    """The options that say what is measured: in the simulator alone if @simulated, else in a guest
    or elsewhere."""
    if simulated:
        compared = "none and the five of mqfair"
        drives, cpus = "null:... or ssd:...", "simulated CPUs (default 2)"
    else:
        compared = "all of the kernel and the module"
        drives = "null:..., nvme:..., ssd:..., /dev/NAME or 'nvme*n1'"
        cpus = "CPUs of the guest (default 2; with --icount 1)"
    parser.add_argument("job", metavar="JOB", help="fio job file")
    parser.add_argument(
        "--section",
        action="append",
        default=[],
        metavar="NAME",
        help="run this section of JOB alone; may be repeated",
    )
    parser.add_argument(
        "--schedulers",
        metavar="NAME,...",
        help=f"schedulers to compare (default: {compared}); NAME:TUNABLE=VALUE sets a tunable",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        default=[],
        metavar="[SCHEDULER.]NAME=V,...",
        help="run the schedulers once with each value of a tunable, such as mqfq.depth=8,16,32;"
        " may be repeated, for all combinations",
    )
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="SPEC",
        help=f"the drive: {drives}; may be repeated, for one drive after the other",
    )
    parser.add_argument(
        "--repeat",
        default="1",
        metavar="N",
        help="runs of each scheduler, interleaved (default %(default)s)",
    )
    parser.add_argument(
        "--runtime", metavar="S", help="seconds of a run (default: the job file's runtime)"
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="a first look: runs of 3 s, and mqfq beside none unless --schedulers has others",
    )
    parser.add_argument("--cpus", metavar="N", help=cpus)
    parser.add_argument(
        "--tunable",
        action="append",
        default=[],
        metavar="SCHEDULER.NAME=VALUE",
        help="set a file of queue/iosched, such as mqfq.depth=128, in all runs of SCHEDULER;"
        " may be repeated",
    )
    parser.add_argument(
        "--solo",
        action="store_true",
        help="also run each cgroup alone, and print the slowdown beside the others",
    )


def add_simulation(parser: argparse.ArgumentParser, where: str = "") -> None:
    """The options of the simulator; @where begins their help."""
    parser.add_argument(
        "--seed",
        metavar="N",
        help=f"{where}seed of the first repeat; each other adds 1 (default 1)",
    )
    parser.add_argument(
        "--sockets",
        metavar="N",
        help=f"{where}sockets of the host, with equal numbers of its CPUs (default 1)",
    )
    parser.add_argument(
        "--request-ns",
        metavar="N",
        help=f"{where}CPU time of a request in ns (default 8400 as in a guest that counts"
        " instructions; 2800 with a virtual SSD at the speed of its model)",
    )
    parser.add_argument(
        "--priced",
        action="store_true",
        help=f"{where}a request also takes the CPU time of its scheduler's instructions, and BFQ's"
        " are under one lock (default: all schedulers take the same time)",
    )
    parser.add_argument(
        "--jobs", metavar="N", help=f"{where}runs at the same time (default: as many as cores)"
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help=f"{where}play the runs on the workers of a Dask scheduler, such as tcp://host:8786",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json", metavar="FILE", help="write the results to FILE, or to standard output for -"
    )
    parser.add_argument(
        "--timeline", metavar="FILE", help="write the bytes of each cgroup per 100 ms to FILE"
    )
    parser.add_argument(
        "--picture", metavar="FILE", help="draw shares and throughput: FILE.png, .svg or .pdf"
    )
    parser.add_argument(
        "--cdf", metavar="FILE", help="draw the latencies of each cgroup: FILE.png, .svg or .pdf"
    )
    parser.add_argument(
        "--raw", metavar="FOLDER", help="keep the raw results of each run in FOLDER, as it ends"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the bench in the folder of --raw: its finished runs are not made again",
    )
