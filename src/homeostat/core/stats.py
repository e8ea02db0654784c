"""Robust statistics of small arrays; numpy's own median spends most of its time on generality."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import NAN, Array


def median(values: Array) -> float:
    """Of a vector without NaN; NaN if it is empty."""
    count = len(values)
    if count == 0:
        return NAN
    ordered = np.sort(values)
    middle = count // 2
    return float(ordered[middle] if count % 2 else 0.5 * (ordered[middle - 1] + ordered[middle]))


def quantile(ordered: Array, share: float) -> float:
    """Of a sorted vector, along the line between two of its values; numpy's own takes many times longer for few."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def spread(values: Array) -> float:
    """Standard deviation as the median absolute deviation sees it."""
    return 1.4826 * median(np.abs(values - median(values)))
