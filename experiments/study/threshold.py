# SPDX-License-Identifier: GPL-2.0
"""The threshold T of mqfq, by tenants and CPUs, on the machine model (experiments/machine.py).

Each CPU has a queue and a tenant there, with 128 requests of 1 KiB, on a drive of 4 million
requests a second. Only T / size counts in the order, so T KiB here stands for 4 T KiB with
requests of 4 KiB. The median is over small changes of the host's time for a request: one run of
threads that wait for each other says little.
"""

import statistics

from experiments import machine
from experiments.machine import Variant
from experiments.markdown import lines

MACHINE = "two-sockets"
CPUS = (8, 16, 32, 64)
# T in requests, of 1 KiB.
REQUESTS = (16, 32, 64, 128, 256, 512, 1024)
# The code of the host takes so long outside the scheduler: jitter stands for the seeds.
HOST_NS = (345, 355, 365)
# The least T with this part of the most throughput.
NEAR = 0.95
_MS = "ms=4"


def _variants(text: str, arguments: tuple[str, ...]) -> list[Variant]:
    return [Variant(text, "mqfq", (*arguments, _MS, f"host_ns={ns}")) for ns in HOST_NS]


def tables() -> dict[str, str]:
    folder = machine.build()

    def rate(text: str, arguments: tuple[str, ...], cpus: int) -> float:
        runs = [
            machine.run_once(folder, MACHINE, variant, cpus)
            for variant in _variants(text, arguments)
        ]
        return statistics.median(run.requests_per_s for run in runs) / 1e6

    rows = []
    for cpus in CPUS:
        none = rate("none", ("policy=none",), cpus)
        fixed = {kib: rate("fixed", (f"threshold_kib={kib}",), cpus) for kib in REQUESTS}
        most = max(fixed.values())
        enough = min(kib for kib, one in fixed.items() if one >= NEAR * most)
        rows.append(
            [
                str(cpus),
                f"{none:.2f}",
                *(f"{one:.2f}" for one in fixed.values()),
                f"{rate('auto', (), cpus):.2f}",
                f"{enough} ({enough / cpus:g})",
            ]
        )
    head = (
        "CPUs and tenants",
        "`none`",
        *(f"T = {kib}" for kib in REQUESTS),
        "auto",
        "enough (of each tenant)",
    )
    return {"study-threshold": lines(head, rows)}
