"""Collects events from other threads for a loop that waits until a given time of the steady clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from homeostat.core.events import Event
from homeostat.spark.clocks import STEADY


class Inbox:
    def __init__(self) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()

    def put(self, event: Event) -> None:
        self._events.put(event)

    def wait(self, until_s: float) -> Sequence[Event]:
        """Wait until that time, then return all events that have come."""
        while (left_s := until_s - STEADY.now_s()) > 0:
            time.sleep(left_s)
        events: list[Event] = []
        while True:
            try:
                events.append(self._events.get_nowait())
            except Empty:
                return events
