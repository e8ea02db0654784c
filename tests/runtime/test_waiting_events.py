"""Events that wait while the log cannot be written: receipts all, of the others the newest."""

from __future__ import annotations

from homeostat.core.configuration import Configuration
from homeostat.core.events import Event, Failure, Receipt
from homeostat.runtime.waiting_events import MOST_WAITING, WaitingEvents

RECEIPT = Receipt("a-1", 1.0, Configuration())


def failures(count: int) -> list[Event]:
    return [Failure("a sensor", str(number), float(number)) for number in range(count)]


def test_events_stay_until_they_are_cleared() -> None:
    waiting = WaitingEvents()
    waiting.add([RECEIPT])
    waiting.wait_on()
    waiting.add(failures(2))
    assert waiting.all(9.0) == [RECEIPT, *failures(2)]
    waiting.clear()
    assert waiting.all(9.0) == []


def test_of_too_many_the_oldest_are_dropped_and_counted_but_never_a_receipt() -> None:
    waiting = WaitingEvents()
    waiting.add([RECEIPT, *failures(MOST_WAITING + 3)])
    assert len(waiting.all(9.0)) == MOST_WAITING + 4, "nothing is dropped before a decision failed"
    waiting.wait_on()
    dropped, receipt, *others = waiting.all(9.0)
    assert isinstance(dropped, Failure)
    assert dropped.error == "3 events were dropped because the log could not be written for too long"
    assert receipt == RECEIPT
    assert others == failures(MOST_WAITING + 3)[3:]
