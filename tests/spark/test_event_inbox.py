"""Events from other threads, collected until a given time."""

from __future__ import annotations

from homeostat.core.events import Failure
from homeostat.spark.event_inbox import Inbox


def test_events_come_once_and_in_order() -> None:
    inbox, events = Inbox(), [Failure("a", "x", 1.0), Failure("b", "y", 2.0)]
    for event in events:
        inbox.put(event)
    assert inbox.wait(0.0) == events
    assert inbox.wait(0.0) == []
