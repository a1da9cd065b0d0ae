# SPDX-License-Identifier: GPL-2.0
"""Traces with the published characteristics of traces that cannot be shipped.

| profile | characteristics | source |
|---|---|---|
| financial, websearch | mean size, reads, sequential requests, mean gap | DFTL |
| lun0 .. lun3 | mean size, reads per write, bandwidth | Kyber-fairness paper, table 4 |
| hm_0 | requests in a week, writes, mean sizes | volume hm_0 of the MSR traces |

- DFTL: Gupta, Kim, Urgaonkar, ASPLOS 2009, the table of workloads. Financial is an OLTP application
  of the UMass traces, and Web Search one of their search engines. A KB has 1024 bytes here.
- LUN0 to LUN3 are traces of the SYSTOR '17 set, as the Kyber-fairness paper replays them.
- hm_0: Narayanan et al., FAST 2008.

LUN0 to LUN3 were checked against the text of the paper. The figures of DFTL and of hm_0 were not.

Nothing else is published with them, so all other properties are ours: gaps are exponential, sizes
are powers of two from 512 B (financial), 4 KiB or 8 KiB on with geometric weights of the published
mean, and places are uniform, in multiples of 4 KiB, on a disk of @disk_bytes. The order of
operations is random. All chance comes from the seed, so the same seed gives the same trace.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mqfair.traces.request import NS, READ, WRITE, Request

KIB = 1024
PLACE = 4 * KIB
DISK_BYTES = 1 << 30
_WEEK_S = 7 * 24 * 3600


@dataclass(frozen=True)
class Profile:
    """@reads and @sequential are parts of 1, @iops arrivals per second. @read_bytes and
    @write_bytes are mean sizes; sizes are powers of two in @sizes."""

    summary: str
    read_bytes: float
    write_bytes: float
    reads: float
    sequential: float
    iops: float
    sizes: tuple[int, int]


def _lun(kib: float, reads_per_write: float, mb_per_s: float, name: str) -> Profile:
    size = kib * KIB
    reads = reads_per_write / (1 + reads_per_write)
    rate = mb_per_s * 10**6 / size
    return Profile(f"SYSTOR '17, {name}", size, size, reads, 0.0, rate, (4 * KIB, 512 * KIB))


PROFILES: Mapping[str, Profile] = {
    "financial": Profile(
        "SPC, an OLTP application",
        4.38 * KIB,
        4.38 * KIB,
        0.09,
        0.02,
        1000 / 133.5,
        (512, 64 * KIB),
    ),
    "websearch": Profile(
        "SPC, a search engine",
        14.86 * KIB,
        14.86 * KIB,
        0.99,
        0.14,
        1000 / 9.97,
        (8 * KIB, 64 * KIB),
    ),
    "lun0": _lun(31.1, 3.44, 462.45, "LUN0"),
    "lun1": _lun(24.8, 3.19, 540.66, "LUN1"),
    "lun2": _lun(50.4, 2.78, 364.98, "LUN2"),
    "lun3": _lun(63.7, 1.60, 476.54, "LUN3"),
    "hm_0": Profile(
        "MSR, a hardware monitor",
        7.4 * KIB,
        8.3 * KIB,
        0.355,
        0.0,
        3_993_316 / _WEEK_S,
        (4 * KIB, 64 * KIB),
    ),
}


def weights(sizes: Sequence[int], mean: float) -> list[float]:
    """Weights q^0, q^1, ... of the rising @sizes, with a mean of @mean bytes. @mean is between the
    least and the largest size."""
    low, high = 1e-6, 1e6
    for _ in range(200):
        ratio = (low * high) ** 0.5
        found = [ratio**number for number in range(len(sizes))]
        if sum(s * w for s, w in zip(sizes, found, strict=True)) < mean * sum(found):
            low = ratio
        else:
            high = ratio
    return found


def generate(name: str, seed: int, disk_bytes: int = DISK_BYTES) -> Iterator[Request]:
    """An endless trace of the profile @name on a disk of @disk_bytes, which is at least 1 MiB."""
    profile = PROFILES[name]
    rng = random.Random(f"{name} {seed}")
    least, most = profile.sizes
    sizes = [least << by for by in range((most // least).bit_length())]
    means = {READ: profile.read_bytes, WRITE: profile.write_bytes}
    steps = {op: list(itertools.accumulate(weights(sizes, mean))) for op, mean in means.items()}
    at_ns = end = 0
    while True:
        op = READ if rng.random() < profile.reads else WRITE
        (size,) = rng.choices(sizes, cum_weights=steps[op])
        if rng.random() < profile.sequential and end + size <= disk_bytes:
            offset = end
        else:
            offset = rng.randrange((disk_bytes - size) // PLACE + 1) * PLACE
        end = offset + size
        yield Request(at_ns, op, offset, size, name)
        at_ns += round(rng.expovariate(profile.iops) * NS)
