# SPDX-License-Identifier: GPL-2.0
"""The command line of mqfair sim: the short form of mqfair bench --on sim.

bench/command.py carries it out.
"""

import argparse

from mqfair.bench import options as bench
from mqfair.bench.device import DEFAULT_DEVICE
from mqfair.bench.plan import SIM
from mqfair.bench.variant import COMPARATORS
from mqfair.schedulers import SCHEDULERS

EPILOG = f"""\
Runs a fio job file as `mqfair bench` does, but on a simulated host with simulated CPUs and a model
of the drive. The code of the schedulers is that of the kernel module. No guest, no module and no
fio are needed. The same command and seed give the same results, on any number of cores, or on the
workers of a Dask scheduler.

Each section of JOB names its cgroup (cgroup=web) and optionally its weight (cgroup_weight=1..10000,
default 100). A job needs direct=1. An option of fio that the simulator lacks is an error with file
and line. doc/simulator.md lists the options, and the parts of a host that are modelled.

JOB may be a scene instead: a description for sim-run (sim/describe.h) without a scheduler, as
`make gauntlet` prints it. It has the drive, the host, the cgroups and the times.

Schedulers: none, {", ".join(SCHEDULERS)}. Their tunables for research are available, too.
{", ".join(COMPARATORS)} are schedulers of the literature.
mq-deadline and kyber are schedulers of the kernel without weights. throttle is static throttling.
iocost is a controller of the kernel, and needs a model of the drive: six short runs measure it
first. All these run when they are named.

Drives: null:irqmode=2,... and ssd:model=NAME,... as in mqfair bench. ssd:file=my.toml,... is a
drive of your own: doc/simulator.md has the fields. A virtual SSD has the speed of its model unless
time_scale stretches it. The default drive is that of mqfair bench:
  {DEFAULT_DEVICE}

examples:
  mqfair sim examples/four-cgroups.fio
  mqfair sim examples/four-cgroups.fio --cpus 16 --device ssd:model=980pro,fill=100
  mqfair sim examples/four-cgroups.fio --cpus 64 --sockets 4 --device ssd:model=980pro
  mqfair sim examples/nested.fio --schedulers none,mqfq --repeat 5 --json nested.json
  mqfair sim examples/four-cgroups.fio --schedulers mqfq --sweep depth=8,16,32
  mqfair sim scene.txt --schedulers none,mqfq
  mqfair sim examples/four-cgroups.fio --repeat 100 --cluster tcp://host:8786
"""


def set_argparser(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    bench.add_measurement(parser, simulated=True)
    bench.add_simulation(parser)
    bench.add_output(parser)
    parser.set_defaults(
        on=SIM,
        icount=False,
        calibrate=False,
        calibrate_time=None,
        kernel=None,
        module=None,
        nr_requests=None,
        destroy_data=False,
        fast=False,
    )
