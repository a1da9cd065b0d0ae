# SPDX-License-Identifier: GPL-2.0
"""The least setting that gives full throughput, out of noisy measurements.

A curve is the throughput under each of some ascending settings, measured in repeats that are
interleaved (1 2 4 8, 1 2 4 8, ...), so that a drive or a processor that changes its speed
meanwhile changes it for all settings.

    1. A setting's throughput is the median of its repeats.
    2. The plateau is every setting within the tolerance of the best; full throughput is the
       median over the plateau, as the best alone is the luckiest.
    3. Up to the best, more never gives less: where a median falls, it and its predecessors are
       replaced by their mean until none does (isotonic regression). So a single lucky
       measurement on the slope does not make a knee.
    4. The knee is the least setting whose throughput is then within the tolerance of full.

The tolerance is TOLERANCE plus the noise, which is twice the standard error of a setting's
repeats relative to their median (the median over the settings), as far as NOISE_MOST. While it
is more than NOISE_GOAL the repeats go on if there is time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median, stdev

TOLERANCE = 0.03
NOISE_GOAL = 0.03
# More noise than this is not tolerated: it would choose any setting, and is reported instead.
NOISE_MOST = 0.05
REPEATS = 3
# Three quarters, the ends of their step, and the greatest setting.
FINE_MOST = 6
# Settings that are looked at before a plateau is believed.
REACH_LEAST = 3
REPEATS_MOST = 15

# The throughput under a setting.
Measure = Callable[[int], float]
# Is there time for so many more measurements?
Spare = Callable[[int], bool]


def no_time(_measurements: int) -> bool:
    return False


@dataclass(frozen=True)
class Knee:
    """@settings ascend; @medians belong to them. @rising: full throughput was seen at the
    greatest setting alone, so that a greater one might give more."""

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
    """Collects the repeats."""

    def __init__(self) -> None:
        self._samples: dict[int, list[float]] = {}

    def measure(
        self,
        measure: Measure,
        settings: Sequence[int],
        spare: Spare = no_time,
        reserve: int = 0,
    ) -> None:
        """@reserve: measurements that must still be possible after another repeat."""
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
    """Relative to the median."""
    middle = median(samples)
    return stdev(samples) / sqrt(len(samples)) / middle if middle else 0.0


def ascending(values: Sequence[float]) -> list[float]:
    """The nearest sequence that never falls (pool adjacent violators)."""
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
    """1, 2, 4, ... and @most."""
    return [1 << i for i in range(most.bit_length()) if 1 << i < most] + [most]


def between(low: int, high: int) -> list[int]:
    """At most three settings that divide what lies between two of the above."""
    return sorted({low + (high - low) * part // 4 for part in (1, 2, 3)} - {low, high})


def reach(measure: Measure, settings: Sequence[int]) -> tuple[list[int], list[float]]:
    """The settings up to the second that gains no more than TOLERANCE over those before the two,
    and what each gave: what lies beyond need not be measured again and again."""
    seen: list[float] = []
    for setting in settings:
        seen.append(measure(setting))
        if len(seen) > REACH_LEAST and max(seen[-2:]) <= (1 + TOLERANCE) * max(seen[:-2]):
            break
    return list(settings[: len(seen)]), seen


def find_knee(measure: Measure, coarse: Sequence[int], spare: Spare = no_time) -> Knee:
    """The @coarse settings first, then quarters of the step at whose end the knee is.

    Both ends of that step and the greatest setting are measured again with the quarters, so that
    all of these are compared under the same conditions.
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
    """As many as find_knee() needs at most if nothing is noisy."""
    return REPEATS * (len(coarse) + FINE_MOST)
