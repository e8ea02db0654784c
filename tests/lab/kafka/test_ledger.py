"""What the ledger of a topic calls lost, repeated or made up."""

from __future__ import annotations

from collections import Counter

from homeostat.lab.kafka.ledger import TopicLedger


def test_rows_that_each_came_once_leave_no_difference() -> None:
    assert TopicLedger(Counter({b"a": 2, b"b": 1}), repeated=5, unnamed=0, reused=0).differences(["a", b"b", "a"]) == []


def test_lost_and_doubled_rows_and_bad_names_are_listed() -> None:
    ledger = TopicLedger(Counter({b"a": 2, b"c": 1}), repeated=0, unnamed=1, reused=2)
    assert ledger.differences(["a", "b"]) == [
        "1 rows have no name",
        "2 names stand for more than one row",
        "b'a': received 2 times instead of 1",
        "b'b': received 0 times instead of 1",
        "b'c': received 1 times instead of 0",
    ]
