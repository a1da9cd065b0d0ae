# SPDX-License-Identifier: GPL-2.0
"""Figures of a drive from the results of fio, `fio --output-format=json`.

A job only reads or only writes. It gives its mean latency at depth 1, or its IOPS or MB/s at a
greater depth. It also gives the 99th percentile of its latency. The time of the host is in these
figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqfair.bench.fio_keys import ENGINE_DEFAULT, ENGINES_OF_ONE
from mqfair.drives.figures import (
    BYTES_MOST,
    DEPTH_MOST,
    IOPS,
    JOBS_MOST,
    LARGE_BYTES,
    LATENCY,
    LOADS,
    P99,
    RATE,
    VALUE_MOST,
    Figure,
    Load,
    size_of,
)
from mqfair.text import json_text
from mqfair.text.errors import UsageError
from mqfair.text.numbers import is_number
from mqfair.text.output import shortened

_REMEDY = "use the output of fio --output-format=json"
_P99 = "99.000000"
# With one of these options a result is not the limit of the drive, or is of several loads.
_REFUSED = (
    "bssplit", "rate", "rate_iops", "thinktime", "read_iolog", "zonemode", "flow", "iodepth_batch",
)  # fmt: skip
Json = Mapping[str, Any]


def parse(text: str, path: str) -> list[Figure]:
    """The figures of all jobs in @text. Raises UsageError, which names the job and a mend."""
    # fio may print lines before the document.
    before, brace, rest = text.partition("{")
    if not brace:
        raise UsageError(f"{path}: no results of fio: {_REMEDY}")
    document = json_text.parse("\n" * before.count("\n") + brace + rest, path, _REMEDY, finite=True)
    if not isinstance(document.get("jobs"), list):
        raise UsageError(f"{path}: no results of fio: {_REMEDY}")
    common = document.get("global options", {})
    groups: dict[tuple[int, str], list[Json]] = {}
    try:
        for job in document["jobs"]:
            groups.setdefault((job.get("groupid", 0), job["jobname"]), []).append(job)
        figures = [
            figure
            for (_, name), jobs in groups.items()
            for figure in _Job(f"{path}: job {name}", common, jobs).figures()
        ]
    except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise UsageError(f"{path}: no results of fio ({error!r}): {_REMEDY}") from error
    names: dict[int, str] = {}
    for group, name in groups:
        if names.setdefault(group, name) != name:
            raise UsageError(
                f"{path}: the jobs {names[group]} and {name} ran at the same time: add stonewall to"
                " each, or run fio for each"
            )
    if not figures:
        raise UsageError(f"{path}: no job: use the output of fio with a job in it")
    return figures


@dataclass(frozen=True)
class _Job:
    """The results of one job; fio has one for each process, or one for all of them."""

    place: str
    common: Json
    results: Sequence[Json]

    def figures(self) -> Iterator[Figure]:
        load = self._load()
        side = "write" if load.writes else "read"
        sides = [one[side] for one in self.results]
        ios = sum(one["total_ios"] for one in sides)
        if any(one.get("error") for one in self.results) or not ios:
            raise UsageError(f"{self.place}: it failed or had no request: run it again")
        iops = float(sum(one["iops"] for one in sides))
        if load.outstanding == 1:
            mean = sum(one["lat_ns"]["mean"] * one["total_ios"] for one in sides) / ios
            yield self._figure(load, LATENCY, mean / 1000)
        elif load.bytes >= LARGE_BYTES:
            yield self._figure(load, RATE, iops * load.bytes / 1e6)
        else:
            yield self._figure(load, IOPS, iops)
        if all(self._p99(one) for one in sides):
            p99 = sum(self._p99(one) * one["total_ios"] for one in sides) / ios
            yield self._figure(load, P99, p99 / 1000)

    def _figure(self, load: Load, what: str, value: float) -> Figure:
        if not 0 < value <= VALUE_MOST:
            raise UsageError(
                f"{self.place}: {what} is {value:g}, no number above 0, up to {VALUE_MOST:g}: run"
                " it again"
            )
        return Figure(load, what, value, self.place)

    @staticmethod
    def _p99(side: Json) -> float:
        """The percentile of the whole latency in ns; 0 if there is none. By default fio has it for
        the part after the submission."""
        whole = side["lat_ns"].get("percentile", {}).get(_P99)
        if whole:
            return float(whole)
        part = side["clat_ns"].get("percentile", {}).get(_P99)
        return float(part + side["slat_ns"]["mean"]) if part else 0.0

    def _load(self) -> Load:
        options = {**self.common, **self.results[0].get("job options", {})}
        for name in _REFUSED:
            if name in options:
                raise UsageError(
                    f"{self.place}: {name}={options[name]}: the result is not the drive's limit for"
                    f" one load: run it without {name}"
                )
        if options.get("direct") != "1":
            raise UsageError(f"{self.place}: no direct=1: it measured the page cache: add direct=1")
        rw = options.get("rw", options.get("readwrite", "read"))
        if rw not in LOADS:
            raise self._wrong("rw", rw, f"use one of {', '.join(LOADS)}")
        bs = options.get("bs", options.get("blocksize", "4k"))
        size = size_of(bs)
        if size is None:
            raise self._wrong(
                "bs", bs, f"use one size: a multiple of 512, up to {BYTES_MOST >> 20}m"
            )
        engine = options.get("ioengine", ENGINE_DEFAULT)
        depth = "1" if engine in ENGINES_OF_ONE else options.get("iodepth", "1")
        jobs = options.get("numjobs", "1")
        return Load(
            rw,
            size,
            self._number("iodepth", depth, DEPTH_MOST),
            self._number("numjobs", jobs, JOBS_MOST),
            host=True,
        )

    def _number(self, name: str, text: str, most: int) -> int:
        if not is_number(text, 1, most):
            raise self._wrong(name, text, f"use a number in 1..{most}")
        return int(text)

    def _wrong(self, name: str, value: str, mend: str) -> UsageError:
        return UsageError(f"{self.place}: {name}={shortened(value)}: {mend}")
