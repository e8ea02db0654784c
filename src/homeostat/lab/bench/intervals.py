"""Confidence intervals of measured numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from homeostat.lab.bench.noise import wilson

SURE = 0.95
METHOD = "order statistics of the pairs, by the sign test; no assumption about their distribution"


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """`coverage` is the probability that the interval holds the true median: 0.95 or more, or less with few values."""

    median: float
    low: float
    high: float
    coverage: float


def median_interval(values: Sequence[float]) -> MedianInterval:
    """The narrowest pair of order statistics around the median that covers it with 95 %.

    >>> median_interval([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    MedianInterval(median=5.5, low=2, high=9, coverage=0.978515625)
    """
    in_order, count = sorted(values), len(values)
    inner = max((cut for cut in range((count + 1) // 2) if _coverage(count, cut) >= SURE), default=0)
    return MedianInterval(median(in_order), in_order[inner], in_order[count - 1 - inner], _coverage(count, inner))


def _coverage(count: int, cut: int) -> float:
    """The probability that more than `cut` values lie on each side of the median."""
    beyond = sum(math.comb(count, number) for number in range(cut + 1))
    return 1.0 - 2.0 * beyond * 0.5**count


def share(successes: int, trials: int) -> dict[str, Any]:
    """A share with its 95 % interval (Wilson). Without trials the share is null."""
    low, high = wilson(successes, trials)
    return {
        "count": successes,
        "of": trials,
        "share": successes / trials if trials else None,
        "interval": [round(low, 4), round(high, 4)],
    }
