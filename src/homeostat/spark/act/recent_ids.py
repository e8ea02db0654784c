"""The newest ids of a kind, so that an application that runs for years does not remember every executor it had."""

from __future__ import annotations

from collections.abc import Iterable

# A choice: far more than the executors that change at once, so that a forgotten executor ended long ago.
IDS_KEPT = 1_000


class RecentIds:
    def __init__(self, most: int = IDS_KEPT) -> None:
        self._most = most
        self.ids: frozenset[str] = frozenset()
        self._in_order: dict[str, None] = {}

    def add(self, ids: Iterable[str]) -> None:
        """An id that is added again counts as new."""
        for id in ids:
            self._in_order.pop(id, None)
            self._in_order[id] = None
        for id in list(self._in_order)[: -self._most]:
            del self._in_order[id]
        self.ids = frozenset(self._in_order)
