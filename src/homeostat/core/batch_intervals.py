"""The weight of a batch: how many trigger intervals it took.

A batch that ends in time is one observation. A batch that takes several intervals has the rows and the arrivals of as
many, and the cause of the delay has lasted for as long. So consecutive late batches at the end of a window are not
averaged with earlier ones, which were in time. Executors are not compared by this weight, but by batches and tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS

# A batch is late if it takes at least this many trigger intervals, rounded. A choice: the noise of batches that fill
# two thirds of their interval does not reach one and a half.
LATE_INTERVALS = 2


class Timed(Protocol):
    @property
    def intervals(self) -> int: ...


Array = NDArray[np.float64]
_Timed = TypeVar("_Timed", bound=Timed)


def intervals(seconds: float, trigger_s: float) -> int:
    """For how many observations a batch counts: the trigger intervals that it took, at most the number that any finding
    needs."""
    if not (trigger_s > 0 and seconds > trigger_s):
        return 1
    return min(LEAST_OBSERVATIONS, max(1, round(seconds / trigger_s))) if math.isfinite(seconds) else 1


def intervals_of_each(seconds: Array, trigger_s: Array) -> Array:
    """The same for many batches."""
    is_late = (trigger_s > 0) & (seconds > trigger_s) & np.isfinite(seconds)
    times = np.divide(seconds, trigger_s, out=np.ones(len(seconds)), where=is_late)
    return np.asarray(np.clip(np.rint(times), 1.0, LEAST_OBSERVATIONS))


def late_run(batches: Sequence[_Timed]) -> int:
    """How many consecutive batches at the end are late."""
    count = 0
    while count < len(batches) and batches[-1 - count].intervals >= LATE_INTERVALS:
        count += 1
    return count


def telling(batches: Sequence[_Timed], least: int) -> int:
    """How many of the latest batches must agree on a finding: those that are late, or `least`. 0 if there are too
    few."""
    late = late_run(batches)
    if late:
        return min(late, least)
    return least if len(batches) >= least else 0


def in_all(batches: Iterable[_Timed]) -> int:
    return sum(batch.intervals for batch in batches)
