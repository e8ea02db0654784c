"""What each partition of a state would hold for any number of partitions, computed from the keys."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.checkpoint.raw_rows import Keys, Numbers


@dataclass(frozen=True, slots=True)
class Spread:
    """Rows and bytes of each partition of one operator."""

    operator: int
    rows: tuple[int, ...]
    bytes: tuple[int, ...]

    @property
    def balance(self) -> float:
        """The mean partition ÷ the largest: 1 if all have as many rows."""
        largest = max(self.rows, default=0)
        return sum(self.rows) / (largest * len(self.rows)) if largest else 1.0


@dataclass(frozen=True, slots=True)
class Preview:
    """The state with so many partitions. `rows_in_turn`: those that the busiest slot has to go through."""

    partitions: int
    operators: tuple[Spread, ...]
    rows_in_turn: int

    @property
    def balance(self) -> float:
        """That of the operator that is spread worst."""
        return min((spread.balance for spread in self.operators), default=1.0)


def preview(keys: Mapping[int, Keys], partitions: int, slots: int | None = None) -> Preview:
    """`slots` are the tasks that can run at once; as many as there are partitions if left out."""
    spreads = tuple(_spread(operator, found, partitions) for operator, found in keys.items())
    in_turn = sum(busiest_slot(spread.rows, slots or partitions) for spread in spreads)
    return Preview(partitions, spreads, in_turn)


def best(keys: Mapping[int, Keys], candidates: Iterable[int], slots: int | None = None) -> Preview:
    """The number that balances best. With `slots` the one that leaves the least to the busiest slot, so that waves of
    tasks are full as well; of several that are within a hundredth of each other the smallest."""
    previews = [preview(keys, count, slots) for count in sorted(set(candidates))]
    if slots is None:
        highest = max(each.balance for each in previews)
        return next(each for each in previews if each.balance >= 0.99 * highest)
    least = min(each.rows_in_turn for each in previews)
    return next(each for each in previews if each.rows_in_turn <= 1.01 * least)


def busiest_slot(rows: Sequence[int], slots: int) -> int:
    """How much the busiest of so many slots gets, when tasks start in order as soon as a slot is free.

    >>> busiest_slot([3, 3, 3], 2), busiest_slot([3, 3, 3, 3], 2)
    (6, 6)
    """
    loads = [0] * slots
    for count in rows:
        heapq.heappush(loads, heapq.heappop(loads) + count)
    return max(loads)


def _spread(operator: int, keys: Keys, partitions: int) -> Spread:
    # Like Spark's pmod, the remainder has the divisor's sign.
    place = keys.hashes % partitions
    return Spread(operator, _summed(place, keys.rows, partitions), _summed(place, keys.bytes, partitions))


def _summed(place: Numbers, weights: Numbers, partitions: int) -> tuple[int, ...]:
    return tuple(int(total) for total in np.bincount(place, weights, partitions))
