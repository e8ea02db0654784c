"""One query of a running application as an engine for the loop. It uses the steady clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from homeostat.core.errors import HomeostatError
from homeostat.core.events import Apply, EngineChanged, Event
from homeostat.spark.clocks import STEADY
from homeostat.spark.event_inbox import Inbox


class Host(Protocol):
    """The application that the query belongs to."""

    def describe(self, query: str, reason: str = "start") -> EngineChanged: ...

    def apply(self, query: str, command: Apply) -> None: ...


class FencedError(HomeostatError):
    """Another manager has taken over this query. The old one may no longer act."""


class QueryEngine:
    def __init__(self, host: Host, query: str) -> None:
        self._host, self.query = host, query
        self._inbox = Inbox()
        self._fenced = False

    @property
    def now_s(self) -> float:
        return STEADY.now_s()

    def describe(self) -> EngineChanged:
        return self._host.describe(self.query)

    def wait(self, until_s: float) -> Sequence[Event]:
        return self._inbox.wait(until_s)

    def require_ours(self) -> None:
        if self._fenced:
            raise FencedError("another manager has taken over this query", where=self.query)

    def apply(self, command: Apply) -> None:
        self.require_ours()
        self._host.apply(self.query, command)

    def close(self) -> None:
        """Deliver no more events and refuse commands. The query keeps running."""
        self._fenced = True

    def put(self, event: Event) -> None:
        if not self._fenced:
            self._inbox.put(event)
