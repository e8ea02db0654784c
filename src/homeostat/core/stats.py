"""Robust statistics of small arrays; numpy's own median spends most of its time on generality."""

from __future__ import annotations

import math

import numpy as np

from homeostat.core.observation import NAN, Array

# Standard deviations of normal noise per median absolute deviation. Statistics.
_DEVIATIONS_PER_MAD = 1.4826
# From here on the upper of two neighbours is the nearer one.
_NEARER = 0.5


def median(values: Array) -> float:
    """Return the median of a vector without NaN; NaN if it is empty."""
    count = len(values)
    if count == 0:
        return NAN
    in_order = values.copy()
    in_order.sort()
    middle = count // 2
    return float(in_order[middle] if count % 2 else 0.5 * (in_order[middle - 1] + in_order[middle]))


def quantile(ordered: Array, share: float) -> float:
    """Return a quantile of a sorted vector, interpolated linearly. For few values it is much faster than numpy's."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def numpy_quantile(ordered: Array, share: float) -> float:
    """Return a quantile of a sorted vector. It interpolates from the nearer neighbour, as `np.quantile`, to the bit."""
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    part = place - below
    return low + (high - low) * part if part < _NEARER else high - (high - low) * (1.0 - part)


def filled(values: Array, fill: float) -> Array:
    """Return the values with `fill` for each NaN. For few values it is much faster than `np.nan_to_num`."""
    return np.asarray(np.where(np.isnan(values), fill, values))


def spread(values: Array) -> float:
    """Estimate the standard deviation from the median absolute deviation."""
    return _DEVIATIONS_PER_MAD * median(np.abs(values - median(values)))
