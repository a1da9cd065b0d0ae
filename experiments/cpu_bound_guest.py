# SPDX-License-Identifier: GPL-2.0
"""The guest half of cpu_bound.py.

    python3 -m experiments.cpu_bound_guest FOLDER SCHEDULERS WORKLOADS REPEATS SECONDS

It leaves the IOPS and the mean latency of each workload, scheduler and repeat.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import inside
from mqfair.machine.blockdev import Disk

# As in instructions.py: eight requests in one system call are plugged, a single one is not.
WORKLOADS: Mapping[str, str] = {
    "qd1": "--iodepth=1",
    "qd32": "--iodepth=32",
    "batch8": "--iodepth=32 --iodepth_batch_submit=8 --iodepth_batch_complete_min=8",
    "mixed": "--iodepth=32 --rw=randrw --rwmixread=50",
}
FIO = (
    "fio --name=job --ioengine=libaio --direct=1 --rw=randread --bs=4k --norandommap --thread"
    " --randrepeat=1 --time_based --group_reporting --ramp_time=300ms --output-format=json"
    f" --filename={inside.DEVICE} --clat_percentiles=0"
)


def measure(disk: Disk, scheduler: str, workload: str, seconds: str) -> dict[str, Any]:
    inside.switch(disk, scheduler)
    cpus = os.cpu_count() or 1
    argv = [
        *FIO.split(),
        *WORKLOADS[workload].split(),
        f"--runtime={round(1000 * float(seconds))}ms",
    ]
    argv += [f"--numjobs={cpus}", "--cpus_allowed_policy=split", f"--cpus_allowed=0-{cpus - 1}"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE)
    job = json.loads(done.stdout)["jobs"][0]
    sides = [job["read"], job["write"]]
    waited = sum(side["lat_ns"]["mean"] * side["total_ios"] for side in sides)
    return {
        "iops": sum(side["iops"] for side in sides),
        "mean_ns": waited / sum(side["total_ios"] for side in sides),
    }


def main(argv: Sequence[str]) -> int:
    folder, schedulers, workloads, repeats, seconds = argv
    disk = inside.null_blk(
        f"queue_mode=2 irqmode=0 submit_queues={os.cpu_count()} hw_queue_depth=64"
        " poll_queues=0 gb=4"
    )
    cells = list(
        itertools.product(range(int(repeats)), workloads.split(","), schedulers.split(","))
    )
    found = [
        {"workload": workload, "scheduler": scheduler, "repeat": repeat}
        | measure(disk, scheduler, workload, seconds)
        for repeat, workload, scheduler in inside.each(cells)
    ]
    inside.leave(folder, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
