"""Robust statistics of small arrays; numpy's own median spends most of its time on generality."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import NAN, Array

# Standard deviations of normal noise per median absolute deviation. Statistics.
_DEVIATIONS_PER_MAD = 1.4826


def median(values: Array) -> float:
    """Return the median of a vector without NaN; NaN if it is empty."""
    count = len(values)
    if count == 0:
        return NAN
    in_order = np.sort(values)
    middle = count // 2
    return float(in_order[middle] if count % 2 else 0.5 * (in_order[middle - 1] + in_order[middle]))


def quantile(ordered: Array, share: float) -> float:
    """Return a quantile of a sorted vector, interpolated linearly. For few values it is much faster than numpy's."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def spread(values: Array) -> float:
    """Estimate the standard deviation from the median absolute deviation."""
    return _DEVIATIONS_PER_MAD * median(np.abs(values - median(values)))
