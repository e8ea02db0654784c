"""How fast the load rises from one observation to the next, used before there is enough history to forecast."""

from __future__ import annotations

import math

import numpy as np

from homeostat.core.observation import Array

# The slope is fitted to this many observations: more give a steadier slope but notice a turn later. A choice.
_FITTED_OBSERVATIONS = 8
# With fewer observations the error of the slope is unreliable, so no rise is reported. A choice.
_LEAST_OBSERVATIONS = 5


def rise_per_s(at_s: Array, per_s: Array) -> float:
    """Return how much ln(load) rises per second, less one standard error; 0 if it does not clearly rise.

    A single jump does not count as a rise: most of the latest steps must go up. The median step limits the result.
    """
    usable = np.isfinite(per_s) & (per_s > 0)
    times_s, logs = at_s[usable][-_FITTED_OBSERVATIONS:], np.log(per_s[usable][-_FITTED_OBSERVATIONS:])
    if len(logs) < _LEAST_OBSERVATIONS:
        return 0.0
    x, y = times_s - times_s.mean(), logs - logs.mean()
    slope = float(x @ y / (x @ x))
    residuals = y - slope * x
    slope_error = math.sqrt(float(residuals @ residuals) / (len(x) - 2) / float(x @ x))
    steps = np.diff(logs)[-_LEAST_OBSERVATIONS:] / np.diff(times_s)[-_LEAST_OBSERVATIONS:]
    return max(0.0, min(slope - slope_error, float(np.median(steps))))
