"""How much a series varies by itself, and whether it has really changed."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from homeostat.core.observation import Array
from homeostat.core.stats import median, spread

_TYPICAL_PHI = 0.5
_TYPICAL_WEIGHT = 20.0


class Noise(NamedTuple):
    """An AR(1) process: standard deviation `sigma`, lag-1 correlation `phi`."""

    sigma: float
    phi: float

    @property
    def innovation(self) -> float:
        """What is new in each value, given the one before."""
        return self.sigma * math.sqrt(1.0 - self.phi**2)


def fit(values: Array) -> Noise:
    """Noise of a series whose level may drift, jump or have spikes: read off its differences, robustly.

    For AR(1) with lag-1 correlation φ the differences have variance 2σ²(1 − φ) and lag-1 correlation −(1 − φ)/2.
    With little data φ is drawn to a typical value.
    """
    steps = np.diff(values[np.isfinite(values)])
    if len(steps) < 2:
        return Noise(0.0, _TYPICAL_PHI)
    centred = steps - median(steps)
    scale = spread(steps)
    if scale <= 0.0:
        return Noise(0.0, _TYPICAL_PHI)
    clipped = np.clip(centred, -4 * scale, 4 * scale)
    power = float(clipped @ clipped)
    lag = float(clipped[1:] @ clipped[:-1]) / power if power > 0 else 0.0
    phi = min(max(1.0 + 2.0 * lag, 0.0), 0.9)
    weight = len(steps) / (len(steps) + _TYPICAL_WEIGHT)
    phi = weight * phi + (1.0 - weight) * _TYPICAL_PHI
    return Noise(scale / math.sqrt(2.0 * (1.0 - phi)), phi)


def whitened(excess: Array, noise: Noise, floor: float, clip: float = 6.0) -> Array:
    """What is new in each value of a series, in standard deviations: independent if nothing has changed."""
    scale = max(noise.innovation, floor * math.sqrt(1.0 - noise.phi**2))
    fresh = excess.copy()
    fresh[1:] -= noise.phi * excess[:-1]
    if len(fresh):
        fresh[0] *= math.sqrt(1.0 - noise.phi**2)
    return np.clip(fresh / scale, -clip, clip)


def cusum(z: Array, slack: float = 0.5) -> Array:
    """S ← max(0, S + z − slack) from 0: a random walk, reflected at zero."""
    walk = np.concatenate(([0.0], np.cumsum(z - slack)))
    reflected: Array = (walk - np.minimum.accumulate(walk))[1:]
    return reflected


def since_onset(logs: Array, sums: Array, noise: Noise, least: int) -> int:
    """How many of the latest values belong to the present excursion of their CUSUM.

    Where the last few have clearly left the others behind, only those count: the series is still moving.
    """
    quiet = np.flatnonzero(sums <= 0.0)
    count = len(logs) - (int(quiet[-1]) + 1 if len(quiet) else 0)
    if count > least and abs(float(logs[-least:].mean() - logs[-count:].mean())) > max(2.0 * noise.sigma, 0.02):
        return least
    return count
