"""How much a series varies by itself, and whether it has really changed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from homeostat.core.evidence_limits import LARGEST_CORRELATION
from homeostat.core.observation import Array
from homeostat.core.stats import median, spread

# Lag-1 correlation assumed before there is data: batches follow one another, so some correlation is normal. A choice.
_PRIOR_PHI = 0.5
# How many observations the assumed correlation counts for: more resist chance, fewer learn faster. A choice.
_PRIOR_OBSERVATIONS = 20.0
# Steps beyond this many standard deviations are clipped, so that one spike does not set the correlation. A choice.
_STEP_CLIP_SIGMAS = 4
# A recent mean this many standard deviations from that of the whole excursion means that the series still moves, about
# 5 % by chance; and at least this much in ln, so that a series without noise does not move by rounding. Choices.
_MOVING_SIGMAS, _MOVING_LEAST = 2.0, 0.02


class Noise(NamedTuple):
    """An AR(1) process: standard deviation `sigma`, lag-1 correlation `phi`."""

    sigma: float
    phi: float

    @property
    def innovation(self) -> float:
        """Standard deviation of the part of each value that the value before does not explain."""
        return self.sigma * math.sqrt(1.0 - self.phi**2)


def fit(values: Array) -> Noise:
    """Fit the noise of a series whose level may drift or jump and which may have spikes.

    The fit uses the differences between neighbours. For AR(1) with lag-1 correlation φ they have variance 2σ²(1 − φ)
    and lag-1 correlation −(1 − φ)/2. With little data φ is pulled towards a typical value.
    """
    steps = np.diff(values[np.isfinite(values)])
    if len(steps) < 2:
        return Noise(0.0, _PRIOR_PHI)
    deviations = steps - median(steps)
    scale = spread(steps)
    if scale <= 0.0:
        return Noise(0.0, _PRIOR_PHI)
    clipped_deviations = np.clip(deviations, -_STEP_CLIP_SIGMAS * scale, _STEP_CLIP_SIGMAS * scale)
    power = float(clipped_deviations @ clipped_deviations)
    lag = float(clipped_deviations[1:] @ clipped_deviations[:-1]) / power if power > 0 else 0.0
    phi = min(max(1.0 + 2.0 * lag, 0.0), LARGEST_CORRELATION)
    weight = len(steps) / (len(steps) + _PRIOR_OBSERVATIONS)
    phi = weight * phi + (1.0 - weight) * _PRIOR_PHI
    return Noise(scale / math.sqrt(2.0 * (1.0 - phi)), phi)


def whiten(excess: Array, noise: Noise, floor: float, clip: float = 6.0) -> Array:
    """Return the new part of each value in standard deviations. The results are independent if nothing has changed.

    `floor` is the smallest standard deviation to assume. `clip` limits how much one outlier can count for.
    """
    scale = max(noise.innovation, floor * math.sqrt(1.0 - noise.phi**2))
    news = excess.copy()
    news[1:] -= noise.phi * excess[:-1]
    if len(news):
        news[0] *= math.sqrt(1.0 - noise.phi**2)
    return np.clip(news / scale, -clip, clip)


def cusum(z: Array, slack: float = 0.5, times: Array | float = 1.0) -> Array:
    """Return S ← max(0, S + times · (z − slack)), starting at 0: a random walk that is reflected at zero.

    `slack` is half of the shift to detect, in standard deviations; 0.5 is the textbook value for a shift of one.
    `times` is how often each value counts.
    """
    walk = np.concatenate(([0.0], np.cumsum(times * (z - slack))))
    reflected_walk: Array = (walk - np.minimum.accumulate(walk))[1:]
    return reflected_walk


def since_onset(logs: Array, sums: Array, noise: Noise, least: int) -> int:
    """Return how many of the latest values belong to the present excursion of their CUSUM.

    If the last `least` values clearly differ from the whole excursion, the series still moves and only they count.
    """
    quiet = np.flatnonzero(sums <= 0.0)
    count = len(logs) - (int(quiet[-1]) + 1 if len(quiet) else 0)
    if count > least and abs(float(logs[-least:].mean() - logs[-count:].mean())) > max(
        _MOVING_SIGMAS * noise.sigma, _MOVING_LEAST
    ):
        return least
    return count
