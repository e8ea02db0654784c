"""Simulated time: future events, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

# The order of events at the same moment.
CLUSTER, PROGRESS, NEXT_BATCH, TIME_LIMIT = range(4)


@dataclass(slots=True)
class Agenda:
    """Entries at the same moment run by their `order`, then in the order they were made.

    `forget()` cancels every entry made so far with `may_lapse`.
    """

    now_s: float = 0.0
    _entries: list[tuple[float, int, int, int | None, Callable[[], None]]] = field(default_factory=list)
    _entered: int = 0
    _age: int = 0

    def at(self, time_s: float, order: int, do: Callable[[], None], may_lapse: bool = False) -> None:
        if time_s < inf:
            age = self._age if may_lapse else None
            heappush(self._entries, (max(time_s, self.now_s), order, self._entered, age, do))
            self._entered += 1

    def forget(self) -> None:
        self._age += 1

    def run(self, until_s: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until `until_s`, or until `enough` returns true."""
        while self._entries and self._entries[0][0] <= until_s and not enough():
            time_s, _, _, age, do = heappop(self._entries)
            if age is None or age == self._age:
                self.now_s = time_s
                do()
        if not enough():
            self.now_s = max(self.now_s, until_s)
