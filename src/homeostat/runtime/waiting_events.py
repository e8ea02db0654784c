"""Events that the manager has taken from the engine and has not decided on yet."""

from __future__ import annotations

from collections.abc import Sequence

from homeostat.core.events import Event, Failure, Receipt
from homeostat.core.loop_state import WINDOW_KEPT

# The most events that wait while the log cannot be written. Receipts are always kept; of the others, the loop cannot
# use more than its window holds.
MOST_WAITING = WINDOW_KEPT


class WaitingEvents:
    """Events stay here until a decision about them is in the log, whatever fails before that."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._dropped = 0

    def add(self, events: Sequence[Event]) -> None:
        self._events += events

    def all(self, now_s: float) -> list[Event]:
        if not self._dropped:
            return list(self._events)
        what = f"{self._dropped} events were dropped because the log could not be written for too long"
        return [Failure("the manager", what, now_s), *self._events]

    def clear(self) -> None:
        self._events, self._dropped = [], 0

    def wait_on(self) -> None:
        """The decision failed: keep the events for the next one, and drop the oldest of too many."""
        droppable = [place for place, event in enumerate(self._events) if not isinstance(event, Receipt)]
        surplus = frozenset(droppable[: max(0, len(droppable) - MOST_WAITING)])
        self._events = [event for place, event in enumerate(self._events) if place not in surplus]
        self._dropped += len(surplus)
