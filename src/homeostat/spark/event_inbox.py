"""Collects events from other threads for a loop that waits by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from homeostat.core.events import Event

_POLL_S = 0.2  # a choice: short enough that a clock set forward does not delay the loop


class Inbox:
    def __init__(self) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()

    def put(self, event: Event) -> None:
        self._events.put(event)

    def wait(self, until_s: float) -> Sequence[Event]:
        """Wait until that time, then return all events that have come."""
        while (left_s := until_s - time.time()) > 0:
            time.sleep(min(left_s, _POLL_S))
        events: list[Event] = []
        while True:
            try:
                events.append(self._events.get_nowait())
            except Empty:
                return events
