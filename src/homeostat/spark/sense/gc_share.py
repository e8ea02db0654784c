"""How much of a batch the driver spent on garbage collection, from a sum that Spark updates only now and then."""

from __future__ import annotations

from collections import deque

from homeostat.core.observation import NAN

# Executors and the driver report every 10 s by default. Over a shorter time a report could be missing, and over a much
# longer one the share is that of other batches. Choices.
_LEAST_SPAN_S, _LONGEST_SPAN_S = 20.0, 60.0


class GcShare:
    """Takes the total time so far. All times must come from one clock."""

    def __init__(self) -> None:
        self._sums: deque[tuple[float, float]] = deque()

    def note(self, at_s: float, sum_s: float) -> None:
        if sum_s != sum_s or (self._sums and at_s <= self._sums[-1][0]):
            return
        if self._sums and sum_s < self._sums[-1][1]:
            self._sums.clear()  # another driver
        self._sums.append((at_s, sum_s))
        while at_s - self._sums[0][0] > _LONGEST_SPAN_S and at_s - self._sums[1][0] >= _LEAST_SPAN_S:
            self._sums.popleft()

    def seconds_of(self, batch_s: float) -> float:
        """The time of garbage collection in a batch of this length; NaN if too little is known."""
        if not self._sums or self._sums[-1][0] - self._sums[0][0] < _LEAST_SPAN_S:
            return NAN
        (began_s, before_s), (ended_s, after_s) = self._sums[0], self._sums[-1]
        return (after_s - before_s) / (ended_s - began_s) * batch_s
