"""Computes from the keys the rows and bytes of each partition of a state, for any number of partitions."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.checkpoint.raw_rows import Keys, Numbers

# Candidates this close to the best count as equal: having fewer partitions is worth 1 % of balance. A choice.
_NEARLY_BEST, _NEARLY_LEAST = 0.99, 1.01


@dataclass(frozen=True, slots=True)
class Spread:
    """Rows and bytes of each partition of one operator."""

    operator: int
    rows: tuple[int, ...]
    bytes: tuple[int, ...]

    @property
    def balance(self) -> float:
        """The mean partition ÷ the largest; 1 if all partitions have the same number of rows."""
        largest = max(self.rows, default=0)
        return sum(self.rows) / (largest * len(self.rows)) if largest else 1.0


@dataclass(frozen=True, slots=True)
class Preview:
    """The state with another number of partitions.

    `rows_in_turn` is the number of rows that the busiest slot gets, summed over the operators.
    """

    partitions: int
    operators: tuple[Spread, ...]
    rows_in_turn: int

    @property
    def balance(self) -> float:
        """The balance of the least balanced operator."""
        return min((spread.balance for spread in self.operators), default=1.0)


def preview(keys: Mapping[int, Keys], partitions: int, slots: int | None = None) -> Preview:
    """Return the state with `partitions` partitions. `slots` is how many tasks can run at once; by default all."""
    spreads = tuple(_spread(operator, operator_keys, partitions) for operator, operator_keys in keys.items())
    in_turn = sum(busiest_slot(spread.rows, slots or partitions) for spread in spreads)
    return Preview(partitions, spreads, in_turn)


def best(keys: Mapping[int, Keys], candidates: Iterable[int], slots: int | None = None) -> Preview:
    """Return the candidate with the best balance or, with `slots`, the one with the fewest rows on the busiest slot.

    With `slots`, the choice favours numbers of partitions that fill whole waves of tasks. Of candidates that are nearly
    equal, the smallest is chosen.
    """
    previews = [preview(keys, count, slots) for count in sorted(set(candidates))]
    if slots is None:
        highest = max(each.balance for each in previews)
        return next(each for each in previews if each.balance >= _NEARLY_BEST * highest)
    least = min(each.rows_in_turn for each in previews)
    return next(each for each in previews if each.rows_in_turn <= _NEARLY_LEAST * least)


def busiest_slot(rows: Sequence[int], slots: int) -> int:
    """Return how many rows the busiest slot gets if tasks start in order as soon as a slot is free.

    >>> busiest_slot([3, 3, 3], 2), busiest_slot([3, 3, 3, 3], 2)
    (6, 6)
    """
    loads = [0] * slots
    for count in rows:
        heapq.heappush(loads, heapq.heappop(loads) + count)
    return max(loads)


def _spread(operator: int, keys: Keys, partitions: int) -> Spread:
    # As with Spark's pmod, the remainder is never negative.
    place = keys.hashes % partitions
    return Spread(
        operator, _sum_by_partition(place, keys.rows, partitions), _sum_by_partition(place, keys.bytes, partitions)
    )


def _sum_by_partition(place: Numbers, weights: Numbers, partitions: int) -> tuple[int, ...]:
    return tuple(int(total) for total in np.bincount(place, weights, partitions))
