# SPDX-License-Identifier: GPL-2.0
"""Fits a model to figures: a pattern search, one quantity after the other.

The fields of a model are tied: with more planes and longer reads the rate is the same, and only the
curve in between tells. So the search changes quantities that are nearly independent, and each of
them changes several fields:

    rate      most small reads per second: planes / (read_ns + channel_ns)
    quick     latency of one small read: command, plane, channel, link and read_fixed_ns
    dies      dies of a channel, at the same rate and latency
    command   command_ns; channel, link and so on: their field, at the same rate and latency
    spread    ns by which a read takes more or less than read_ns: figures of single reads tell it
    program   most pages written in order per second, by program_ns
    spare     spare_permille
    accepted  latency of one small write, by write_fixed_ns

The source of the method: Hooke, Jeeves, "Direct Search" Solution of Numerical and Statistical
Problems, JACM 1961. The error of a figure is the logarithm of its ratio to the model's.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqfair.drives.figures import IOPS, LATENCY, P99, RATE, Figure
from mqfair.drives.measure import Measurement
from mqfair.drives.model_file import FIELDS, Model, wrong
from mqfair.text.errors import UsageError

# Factors of the steps. A round tries each quantity at one step.
_FIRST_STEPS = (1.3, 1.1)
_STEPS_OF_READS = (1.2, 1.1, 1.05, 1.05, 1.02, 1.02, 1.01)
_STEPS_OF_DIES = (1.3, 1.1, 1.05, 1.02)
# The rate of random writes is not smooth in the spare: blocks are whole.
_STEPS_OF_WRITES = (2, 1.5, 1.3, 1.2, 1.1, 1.05, 1.02)
# The search begins at several numbers of dies, as factors of that of the base.
_DIES = (1, 2, 4, 0.5)
# A start is given up if its error is this multiple of that of the best.
_HOPELESS = 2
_MOVES_MOST = 8
# A change must lower the error by this part, or it is one of chance.
_GAIN = 1e-3
_WEIGHTS = {LATENCY: 2.0, IOPS: 1.0, RATE: 1.0, P99: 0.1}
# Quantities that no figure tells stay near the base: a factor of e costs this error.
_TIED = ("dies", "command", "channel", "link")
_TIE = 0.005
_FULL = 0.98
# From this depth on a rate may be that of the whole drive.
_DEEP = 16

Told = Callable[[str], None]


@dataclass(frozen=True)
class Quantities:
    """The quantities of a model. Times are ns, rates pages per ns."""

    rate: float
    quick: float
    dies: int
    command: float
    channel: float
    link: float
    spread: float
    program: float
    spare: float
    accepted: float

    @classmethod
    def of(cls, model: Model) -> "Quantities":
        read = model["read_ns"] + model["channel_ns"]
        return cls(
            rate=model.all_planes / read,
            quick=model["command_ns"] + read + model["link_ns"] + model["read_fixed_ns"],
            dies=model["dies"],
            command=model["command_ns"],
            channel=model["channel_ns"],
            link=model["link_ns"],
            spread=model["read_ns"] * model["read_spread_permille"] / 1000,
            program=_writers(model) / _program_time(model, model["program_ns"]),
            spare=model["spare_permille"],
            accepted=model["command_ns"] + model["write_fixed_ns"],
        )

    def model(self, base: Model) -> Model | None:
        """@base with these quantities; None if no model has them."""
        values = {**base.values, "dies": self.dies}
        planes = base["channels"] * self.dies * base["planes"]
        read = planes / self.rate - self.channel
        fixed = self.quick - self.command - read - self.channel - self.link
        values |= {
            "command_ns": round(self.command),
            "channel_ns": round(self.channel),
            "link_ns": round(self.link),
            "read_ns": round(read),
            "read_fixed_ns": round(fixed),
            "read_spread_permille": round(1000 * self.spread / read) if read > 0 else 0,
            "spare_permille": round(self.spare),
            "write_fixed_ns": round(self.accepted - self.command),
        }
        whole = Model(base.name, values)
        time = _writers(whole) / self.program
        values["program_ns"] = round(time - (_program_time(whole, 0)))
        whole = Model(base.name, values)
        fits = all(field.least <= values[field.name] <= field.most for field in FIELDS)
        return whole if fits and not any(wrong(whole)) else None


def _writers(model: Model) -> int:
    """The pages that all dies program at a time; those of all planes if there is no map."""
    if model["in_place"]:
        return model.all_planes
    return model["channels"] * model["dies"] * model["program_pages"]


def _program_time(model: Model, program_ns: int) -> int:
    """The time of a program with its transfer."""
    if model["in_place"]:
        return program_ns
    return program_ns + model["program_pages"] * model["channel_ns"]


_OF_READS = ("rate", "quick", "dies", "command", "channel", "link")
_AT_SAME_DIES = tuple(name for name in _OF_READS if name != "dies")
_OF_WRITES = ("program", "spare", "accepted")
# A drive without a map has neither.
_OF_FLASH = ("channel", "spare")


@dataclass(frozen=True)
class Fitted:
    """@model has @values for the figures, in their order, and @error in all."""

    model: Model
    values: Sequence[float]
    error: float


class Fit:
    """The search, from @base. tell() gets a line at each step."""

    def __init__(
        self, base: Model, figures: Sequence[Figure], measurement: Measurement, tell: Told
    ) -> None:
        self.base = base
        self.figures = figures
        self.measurement = measurement
        self.tell = tell
        self.origin = Quantities.of(base)

    def run(self) -> Fitted:
        """The best model found. Raises UsageError if no model has figures near those given."""
        reads = [one for one in self.figures if not one.load.writes]
        writes = [one for one in self.figures if one.load.writes]
        now = self._begin()
        # Writes depend on the geometry that the reads have found, and not the other way round.
        if reads:
            now = self._best_begin(now, reads)
            now = self._search(now, _OF_READS, reads, _STEPS_OF_READS)
            now = self._with_other_dies(now, reads)
        if writes:
            now = self._search(now, _OF_WRITES, writes, _STEPS_OF_WRITES)
        model = self._model(now)
        values = self.measurement.values(model, self.figures)
        return Fitted(model, values, _error(self.figures, values))

    # -- the begin of the search

    def _begin(self) -> Quantities:
        """The quantities that single figures state, and else those of the base."""
        now = Quantities.of(self.base)
        small = min((one.load.bytes for one in self.figures if not one.load.writes), default=0)
        reads = [one for one in self.figures if not one.load.writes and one.what != P99]
        of_small = [one for one in reads if one.load.bytes == small and one.load.random]
        deep = [one for one in of_small if one.load.outstanding >= _DEEP]
        most = max((one.iops for one in deep), default=0.0)
        pages = max(1, small // self.base["page_bytes"])
        if most:
            now = dataclasses.replace(now, rate=most * pages / 1e9)
        alone = [one.value for one in of_small if one.what == LATENCY and one.load.depth == 1]
        if alone:
            now = dataclasses.replace(now, quick=1000 * min(alone))
        now = dataclasses.replace(now, spread=self._spread() or now.spread)
        bytes_per_ns = max((one.iops * one.load.bytes / 1e9 for one in reads), default=0.0)
        if bytes_per_ns:
            link = self.base["page_bytes"] / bytes_per_ns
            now = dataclasses.replace(now, link=min(now.link, link * _FULL))
        fastest = max((one.iops for one in reads), default=0.0)
        if fastest:
            now = dataclasses.replace(now, command=min(now.command, _FULL * 1e9 / fastest))
        written = [one for one in self.figures if one.load.writes]
        most = max((one.iops * one.load.bytes for one in written if not one.load.random), default=0)
        if most:
            now = dataclasses.replace(now, program=most / self.base["page_bytes"] / 1e9)
        return self._possible(now)

    def _spread(self) -> float:
        """The spread in ns that the percentile of a single read tells; 0 if it is not known."""
        single = [
            one
            for one in self.figures
            if one.load.random and not one.load.writes and one.load.outstanding == 1
        ]
        for one in single:
            means = [two.value for two in single if two.load == one.load and two.what == LATENCY]
            if one.what == P99 and means:
                # The 99th percentile of evenly spread times is at 98 % of the greatest excess.
                return max(0.0, 1000 * (one.value - means[0]) / 0.98)
        return 0.0

    def _best_begin(self, now: Quantities, figures: Sequence[Figure]) -> Quantities:
        """The best of several starts after a short search. They have few dies or many, and the
        planes or the controller as the limit of the rate."""
        most = max((one.iops for one in figures), default=0.0) / 1e9
        starts = []
        for factor in _DIES:
            dies = max(1, round(now.dies * factor))
            for limited in (False, True):
                command = _FULL / most if limited else now.command
                rate = now.rate * (1.5 if limited else 1)
                start = dataclasses.replace(now, dies=dies, command=command, rate=rate)
                with contextlib.suppress(UsageError):
                    starts.append(self._possible(start))
        starts = list(dict.fromkeys(starts))
        best, least = now, math.inf
        for number, start in enumerate(starts, 1):
            tried, error = start, self._judged(start, figures)
            for step in _FIRST_STEPS:
                tried, error = self._round(tried, error, _OF_READS, step, figures)
                if error > _HOPELESS * least:
                    break
            if error < least:
                best, least = tried, error
            self.tell(
                f"start {number} of {len(starts)}, {self.measurement.runs} runs, error"
                f" {100 * least:.1f} %"
            )
        return best

    def _with_other_dies(self, now: Quantities, figures: Sequence[Figure]) -> Quantities:
        """The best of @now and models with a die more or less, each after a search of its own."""
        error = self._judged(now, figures)
        for change in (1, -1):
            for _ in range(_MOVES_MOST):
                tried = dataclasses.replace(now, dies=max(1, now.dies + change))
                found = self._judged(tried, figures)
                for step in _STEPS_OF_DIES:
                    tried, found = self._round(tried, found, _AT_SAME_DIES, step, figures)
                self.tell(
                    f"{tried.dies} dies for each channel, {self.measurement.runs} runs, error"
                    f" {100 * found:.1f} %"
                )
                if found >= error * (1 - _GAIN):
                    break
                now, error = tried, found
        return now

    def _possible(self, now: Quantities) -> Quantities:
        """@now with a number of dies and a share of the channel for which there is a model."""
        for channel in (now.channel, now.channel / 2, now.channel / 4, now.channel / 8):
            order = sorted(range(1, 65), key=lambda dies: abs(math.log(dies / now.dies)))
            for dies in order:
                tried = dataclasses.replace(now, dies=dies, channel=channel)
                if tried.model(self.base):
                    return tried
        raise UsageError(
            f"no model with the geometry of {self.base.name} has such latencies and rates: name"
            " another --base, or check the figures"
        )

    def _model(self, now: Quantities) -> Model:
        model = now.model(self.base)
        assert model is not None
        return model

    # -- the search

    def _search(
        self,
        now: Quantities,
        names: Sequence[str],
        figures: Sequence[Figure],
        steps: Sequence[float],
    ) -> Quantities:
        error = self._judged(now, figures)
        for number, step in enumerate(steps, 1):
            now, error = self._round(now, error, names, step, figures)
            kind = "writes" if figures[0].load.writes else "reads"
            self.tell(
                f"{kind}: round {number} of {len(steps)}, {self.measurement.runs} runs, error"
                f" {100 * error:.1f} %"
            )
        return now

    def _round(
        self,
        now: Quantities,
        error: float,
        names: Sequence[str],
        step: float,
        figures: Sequence[Figure],
    ) -> tuple[Quantities, float]:
        """Moves each of the quantities @names that @figures tell."""
        for name in names:
            if self._told(name, figures):
                now, error = self._along(now, error, name, step, figures)
        return now, error

    def _told(self, name: str, figures: Sequence[Figure]) -> bool:
        if self.base["in_place"] and name in _OF_FLASH:
            return False
        loads = [one.load for one in figures]
        return name != "spare" or any(one.random and one.outstanding > 1 for one in loads)

    def _along(
        self, now: Quantities, error: float, name: str, step: float, figures: Sequence[Figure]
    ) -> tuple[Quantities, float]:
        """Moves the quantity @name by the factor @step, up or down, while that lowers the error."""
        for factor in (step, 1 / step):
            moves = 0
            while moves < _MOVES_MOST:
                tried = _moved(now, name, factor)
                found = self._judged(tried, figures)
                if found >= error * (1 - _GAIN):
                    break
                now, error = tried, found
                moves += 1
            if moves:
                break
        return now, error

    def _judged(self, now: Quantities, figures: Sequence[Figure]) -> float:
        model = now.model(self.base)
        if model is None:
            return math.inf
        error = _error(figures, self.measurement.values(model, figures))
        return math.hypot(error, *(_TIE * self._strayed(now, name) for name in _TIED))

    def _strayed(self, now: Quantities, name: str) -> float:
        """How far the quantity @name is from that of the base, as a logarithm."""
        begin = getattr(self.origin, name)
        return math.log(getattr(now, name) / begin) if begin else 0.0


def _moved(now: Quantities, name: str, factor: float) -> Quantities:
    value = getattr(now, name)
    if name == "dies":
        after = max(1, round(value * factor))
        after += (after == value) * (1 if factor > 1 else -1)
        return dataclasses.replace(now, dies=max(1, after))
    return dataclasses.replace(now, **{name: max(value, 1.0 if name != "rate" else 0.0) * factor})


def _error(figures: Sequence[Figure], values: Sequence[float]) -> float:
    """The mean error of all figures, as a fraction."""
    weights = [_WEIGHTS[one.what] for one in figures]
    squares = [
        weight * math.log(value / one.value) ** 2
        for weight, one, value in zip(weights, figures, values, strict=True)
    ]
    return math.sqrt(sum(squares) / sum(weights))
