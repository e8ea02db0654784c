"""How much a batch tells where time is what counts: arrivals, rows and delays of several trigger intervals at once.

A batch that ends in time is one observation. One that takes several intervals has the rows and the arrivals of as many,
and whatever makes it late has lasted for as long. So late batches in a row at the end of a window speak for themselves,
and are not averaged with those before them, which were in time. That never makes one executor slower than another: who
compares executors counts batches and tasks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS

# A batch is late from so many trigger intervals on, rounded. A choice: the noise of batches that fill their interval to
# two thirds does not reach one and a half.
LATE_INTERVALS = 2


class Timed(Protocol):
    @property
    def intervals(self) -> int: ...


_Timed = TypeVar("_Timed", bound=Timed)


def intervals(seconds: float, trigger_s: float) -> int:
    """For how many observations a batch counts: the trigger intervals that it took, at most as many as any finding
    needs."""
    if not (trigger_s > 0 and seconds > trigger_s):
        return 1
    return min(LEAST_OBSERVATIONS, max(1, round(seconds / trigger_s))) if math.isfinite(seconds) else 1


def late_run(batches: Sequence[_Timed]) -> int:
    """How many batches at the end are late, one after the other."""
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
