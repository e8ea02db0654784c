"""Events from other threads, for a loop that waits by the wall's clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from homeostat.core.events import Event

_POLL_S = 0.2


class Inbox:
    def __init__(self) -> None:
        self._events: SimpleQueue[Event] = SimpleQueue()

    def put(self, event: Event) -> None:
        self._events.put(event)

    def wait(self, until_s: float) -> Sequence[Event]:
        """All that has come until that moment."""
        while (left_s := until_s - time.time()) > 0:
            time.sleep(min(left_s, _POLL_S))
        events: list[Event] = []
        while True:
            try:
                events.append(self._events.get_nowait())
            except Empty:
                return events
