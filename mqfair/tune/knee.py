# SPDX-License-Identifier: GPL-2.0
"""The knee of a throughput curve: the least setting with full throughput, from noisy measurements.

A curve is the throughput at several ascending settings. Their repeats are interleaved (1 2 4 8,
1 2 4 8, ...). So a drive or a processor that changes its speed affects all settings alike.

    1. The throughput of a setting is the median of its repeats.
    2. The plateau consists of all settings within the tolerance of the best one. Full throughput is
       the median over the plateau, because the best value alone is the luckiest one.
    3. Up to the best setting the curve is made monotonic: a median that falls and its predecessors
       are replaced by their mean until none falls (isotonic regression). So one lucky measurement
       on the slope does not make a knee.
    4. The knee is the least setting with a throughput within the tolerance of full throughput.

The tolerance is TOLERANCE plus the noise, but at most NOISE_MOST for the noise. The noise of a
setting is twice the standard error of its repeats relative to their median. The noise of the curve
is the median over the settings. While it exceeds NOISE_GOAL, repeats continue if time remains.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median, stdev

TOLERANCE = 0.03
NOISE_GOAL = 0.03
# Greater noise is not added to the tolerance, because any setting would pass. It is reported.
NOISE_MOST = 0.05
REPEATS = 3
# The settings of the second round: three quarters of a step, its ends, and the greatest setting.
FINE_MOST = 6
# The least number of settings that are measured before a plateau is accepted.
REACH_LEAST = 3
REPEATS_MOST = 15

# Measures the throughput at a setting, in any unit.
Measure = Callable[[int], float]
# Spare(n): True if there is time for n more measurements.
Spare = Callable[[int], bool]


def no_time(_measurements: int) -> bool:
    return False


@dataclass(frozen=True)
class Knee:
    """The knee @setting of a curve with ascending @settings and their @medians. @rising means that
    only the greatest setting has full throughput, so that a greater one might have more."""

    setting: int
    settings: tuple[int, ...]
    medians: tuple[float, ...]
    full: float
    noise: float
    tolerance: float
    rising: bool

    @property
    def noisy(self) -> bool:
        return self.noise > NOISE_MOST

    def relative(self, setting: int) -> float:
        return self.medians[self.settings.index(setting)] / self.full


class Curve:
    """Collects the repeats of all settings."""

    def __init__(self) -> None:
        self._samples: dict[int, list[float]] = {}

    def measure(
        self,
        measure: Measure,
        settings: Sequence[int],
        spare: Spare = no_time,
        reserve: int = 0,
    ) -> None:
        """Measures @settings in turn, REPEATS times or more. A further repeat needs time for itself
        and for @reserve later measurements."""
        for turn in range(REPEATS_MOST):
            if turn >= REPEATS and (
                self._noise(settings) <= NOISE_GOAL or not spare(len(settings) + reserve)
            ):
                return
            for setting in settings:
                self._samples.setdefault(setting, []).append(measure(setting))

    def _noise(self, settings: Sequence[int]) -> float:
        return median(2 * _standard_error(self._samples[setting]) for setting in settings)

    def knee(self) -> Knee:
        settings = sorted(self._samples)
        medians = [median(self._samples[setting]) for setting in settings]
        noise = self._noise(settings)
        tolerance = TOLERANCE + min(noise, NOISE_MOST)
        enough = 1 - tolerance
        best = medians.index(max(medians))
        full = median(value for value in medians if value >= enough * medians[best])
        fitted = ascending(medians[: best + 1])
        found = next(i for i, value in enumerate(fitted) if value >= enough * full)
        return Knee(
            setting=settings[found],
            settings=tuple(settings),
            medians=tuple(medians),
            full=full,
            noise=noise,
            tolerance=tolerance,
            rising=found == len(settings) - 1 and found > 0,
        )


def _standard_error(samples: Sequence[float]) -> float:
    """The standard error of the mean, relative to the median."""
    middle = median(samples)
    return stdev(samples) / sqrt(len(samples)) / middle if middle else 0.0


def ascending(values: Sequence[float]) -> list[float]:
    """The nearest non-decreasing sequence (pool adjacent violators)."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while pools and pools[-1][0] > mean:
            before, n = pools.pop()
            mean = (before * n + mean * count) / (n + count)
            count += n
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def powers_of_two(most: int) -> list[int]:
    """The powers of two below @most, and @most."""
    return [1 << i for i in range(most.bit_length()) if 1 << i < most] + [most]


def between(low: int, high: int) -> list[int]:
    """At most three settings that divide the step from @low to @high into quarters."""
    return sorted({low + (high - low) * part // 4 for part in (1, 2, 3)} - {low, high})


def reach(measure: Measure, settings: Sequence[int]) -> tuple[list[int], list[float]]:
    """Measures @settings once in ascending order until two in a row gain at most TOLERANCE over the
    settings before them. Returns the measured settings and their throughput; greater settings need
    no repeats."""
    seen: list[float] = []
    for setting in settings:
        seen.append(measure(setting))
        if len(seen) > REACH_LEAST and max(seen[-2:]) <= (1 + TOLERANCE) * max(seen[:-2]):
            break
    return list(settings[: len(seen)]), seen


def find_knee(measure: Measure, coarse: Sequence[int], spare: Spare = no_time) -> Knee:
    """Measures the @coarse settings, then the quarters of the step that ends at their knee.

    Both ends of that step and the greatest setting are measured again with the quarters. So all of
    them are compared under the same conditions.
    """
    curve = Curve()
    curve.measure(measure, coarse, spare, reserve=REPEATS * FINE_MOST)
    knee = curve.knee()
    place = coarse.index(knee.setting)
    low = coarse[max(place - 1, 0)]
    fine = between(low, knee.setting)
    if fine:
        curve.measure(measure, sorted({low, *fine, knee.setting, coarse[-1]}), spare)
    return curve.knee()


def measurements(coarse: Sequence[int]) -> int:
    """The greatest number of measurements of find_knee() without noise."""
    return REPEATS * (len(coarse) + FINE_MOST)
