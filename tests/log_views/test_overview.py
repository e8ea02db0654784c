"""Health, diagnoses and the last action of a query, from its records."""

from __future__ import annotations

import math

import pytest

from homeostat.core.records import (
    ActionContent,
    BatchContent,
    DiagnosisContent,
    OutcomeContent,
    ReceiptContent,
    Record,
)
from homeostat.log_views.overview import BEHIND, HEALTHY, STOPPED, UNKNOWN, period_s, query_state, recent_records
from homeostat.store.in_memory import MemoryStore
from homeostat.store.present import PRESENT, Present, StandingFinding

NOW_S = 1_000.0


def batch(at_s: float = NOW_S, pending_rows: float = 100.0, trigger_s: float = 10.0) -> Record:
    content = BatchContent(
        rows=1_000, seconds=4, trigger_s=trigger_s, arrival_per_s=100, pending_rows=pending_rows, span_s=10
    )
    return Record.of(f"b-{at_s}", at_s, content, "")


@pytest.mark.parametrize(
    ("records", "alive", "health"),
    [
        ([], True, UNKNOWN),
        ([batch()], True, HEALTHY),
        ([batch(pending_rows=2_001)], True, BEHIND),
        ([batch(pending_rows=math.nan)], True, HEALTHY),
        ([batch(at_s=NOW_S - 111)], True, UNKNOWN),
        ([batch(at_s=NOW_S - 109)], True, HEALTHY),
        ([batch()], False, STOPPED),
    ],
)
def test_health(records: list[Record], alive: bool, health: str) -> None:
    assert query_state("words", records, alive, NOW_S).health == health


def test_a_backlog_that_is_estimated_is_said_to_be() -> None:
    content = BatchContent(
        rows=1, seconds=4, trigger_s=10, arrival_per_s=100, pending_rows=3_000, span_s=10, pending_at_most=9_000
    )
    state = query_state("words", [Record.of("b-1", NOW_S, content, "")], True, NOW_S)
    assert state.reason == "about 3,000 rows wait (at most 9,000), more than arrive in two trigger intervals"


def test_a_diagnosis_stands_until_it_is_over() -> None:
    first = Record.of("d-1", 1.0, DiagnosisContent(cause="under-provisioned"), "")
    second = Record.of("d-2", 2.0, DiagnosisContent(cause="data-skew"), "")
    over = Record.of("e-1", 3.0, DiagnosisContent(over=True), "", because=("d-1",))
    assert query_state("words", [first, second, over], True, NOW_S).diagnoses == (second,)


def test_the_last_action_comes_with_its_receipt_and_outcome_and_leaves_the_error_of_its_prediction() -> None:
    records = [
        Record.of("a-1", 1.0, ActionContent(), ""),
        Record.of("c-1", 2.0, ReceiptContent("a-1", True), ""),
        Record.of("a-2", 3.0, ActionContent(), ""),
        Record.of("c-2", 4.0, ReceiptContent("a-2", True), ""),
        Record.of("u-2", 5.0, OutcomeContent("a-2", "helped", model_error=0.1), "", "count"),
    ]
    state = query_state("words", records, True, NOW_S)
    assert [record.id for record in state.last_action] == ["a-2", "c-2", "u-2"]
    assert state.errors == {"count": 0.1}


def test_a_dataflow_without_trigger_and_batches_is_measured_by_its_intervals() -> None:
    content = BatchContent(rows=1, seconds=math.nan, trigger_s=0, arrival_per_s=1, pending_rows=0, span_s=10)
    assert period_s(content) == 10


def test_a_long_life_is_reported_from_a_few_records() -> None:
    store = MemoryStore()
    store.append("app/words", [Record.of("d-1", 1.0, DiagnosisContent(cause="under-provisioned"), "")])
    for number in range(2, 3_000):
        diagnosis = Record.of(f"d-{number}", float(number), DiagnosisContent(cause="data-skew"), "")
        over = Record.of(f"e-{number}", float(number), DiagnosisContent(over=True), "", because=(diagnosis.id,))
        content = BatchContent(rows=1, seconds=4, trigger_s=10, arrival_per_s=1, pending_rows=0, span_s=10)
        store.append("app/words", [diagnosis, over, Record.of(f"b-{number}", float(number), content, "")])
    action = [
        Record.of("a-1", 3_000.0, ActionContent(), ""),
        Record.of("c-1", 3_001.0, ReceiptContent("a-1", True), ""),
    ]
    store.append("app/words", action)
    present = Present(diagnoses=(StandingFinding("d-1", "under-provisioned"), StandingFinding("d-x", "gone")))
    store.save_state("app/words", PRESENT, present.to_json())
    records = recent_records(store, "app/words", 0.0)
    assert len(records) < 600
    state = query_state("words", records, True, 3_001.0)
    assert [record.id for record in state.diagnoses] == ["d-1"]
    assert [record.id for record in state.last_action] == ["a-1", "c-1"]
    assert state.batch is not None
    assert (state.batch.id, state.newest_s, state.health) == ("b-2999", 3_001.0, HEALTHY)
    assert recent_records(store, "app/words", 2_999.5) == action
