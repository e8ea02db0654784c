"""How the load moves from one observation to the next, before there is a history to forecast from."""

from __future__ import annotations

import math

import numpy as np

from homeostat.core.observation import Array

_OVER, _LEAST = 8, 5


def rise_per_s(at_s: Array, per_s: Array) -> float:
    """By how much ln(load) clearly rises each second; 0 if it does not.

    A load that has jumped is not one that rises: most of the latest steps must lead up, not one of them far.
    """
    known = np.isfinite(per_s) & (per_s > 0)
    times_s, logs = at_s[known][-_OVER:], np.log(per_s[known][-_OVER:])
    if len(logs) < _LEAST:
        return 0.0
    x, y = times_s - times_s.mean(), logs - logs.mean()
    slope = float(x @ y / (x @ x))
    off = y - slope * x
    error = math.sqrt(float(off @ off) / (len(x) - 2) / float(x @ x))
    steps = np.diff(logs)[-_LEAST:] / np.diff(times_s)[-_LEAST:]
    return max(0.0, min(slope - error, float(np.median(steps))))
