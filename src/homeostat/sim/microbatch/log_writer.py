"""Writes the logs of offsets and commits while batches run, if progress is tracked asynchronously."""

from __future__ import annotations

# Spark's writer has one thread. A batch waits while this many writes are in the writer's queue.
QUEUE = 2


class LogWriter:
    """One write after the other, in the order in which they were handed over."""

    def __init__(self) -> None:
        self._ends_s: list[float] = []

    def write(self, now_s: float, seconds: float) -> float:
        """Hand over a write. Returns how long the batch waits until there is room for it."""
        self._ends_s = [end_s for end_s in self._ends_s if end_s > now_s]
        under_way = len(self._ends_s)
        wait_s = self._ends_s[under_way - QUEUE - 1] - now_s if under_way > QUEUE else 0.0
        self._ends_s.append(max(now_s + wait_s, self._ends_s[-1] if self._ends_s else now_s) + seconds)
        return wait_s

    def finish(self) -> None:
        """Wait for the present writes, as a query does when it stops."""
        self._ends_s = []
