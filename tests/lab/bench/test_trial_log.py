"""What the log of an experiment says about the loop's actions."""

from __future__ import annotations

import math

from homeostat.core.records import ActionContent, BatchContent, OutcomeContent, ReceiptContent, Record
from homeostat.lab.bench.trial_log import action_kinds, batches_after, settled_since_s

ACTION = Record.of("a-1", 10.0, ActionContent("scale-up"), "")
APPLIED = Record.of("c-1", 20.0, ReceiptContent("a-1", applied=True), "")
REFUSED = Record.of("c-1", 20.0, ReceiptContent("a-1", applied=False), "")
JUDGED = Record.of("o-1", 30.0, OutcomeContent("a-1", "helped"), "")


def batch(at_s: float) -> Record:
    return Record.of(f"b-{at_s}", at_s, BatchContent(100.0, 2.0, 5.0, 20.0, 0.0, 5.0), "")


def test_an_action_settles_when_it_is_judged_or_refused() -> None:
    assert settled_since_s([ACTION]) is None
    assert settled_since_s([ACTION, APPLIED]) is None
    assert settled_since_s([ACTION, APPLIED, JUDGED]) == 20.0
    assert settled_since_s([ACTION, REFUSED]) == 20.0


def test_without_an_action_it_has_always_been_settled() -> None:
    assert settled_since_s([batch(5.0)]) == -math.inf


def test_batches_and_actions_are_read_from_the_same_log() -> None:
    records = [batch(5.0), ACTION, APPLIED, batch(25.0)]
    assert action_kinds(records) == ["scale-up"]
    assert [each.rows for each in batches_after(records, 20.0)] == [100.0]
    assert len(batches_after(records, -math.inf)) == 2
