"""Effects are measured from the batches before and during a fault."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from homeostat.lab.corpus import labels
from homeostat.lab.corpus.effects import COLD_BATCHES, LoggedRun, Span, effect_of, logged_run, mean_seconds
from homeostat.spark.outside import event_log


def progress(batch: int, seconds: float, **rest: Any) -> dict[str, Any]:
    """A batch that began at second 10 × its number."""
    source = {"description": "x", "numInputRows": 100, "endOffset": 100 * batch, "latestOffset": 100 * batch}
    report = {
        "name": "q",
        "runId": "r",
        "batchId": batch,
        "timestamp": f"{datetime.fromtimestamp(10 * batch, UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
        "durationMs": {"triggerExecution": round(seconds * 1000)},
        "stateOperators": [],
        "sources": [source],
        **rest,
    }
    return {"Event": event_log.QUERY_PROGRESS, "progress": report}


def task(at_s: float, reason: str = "Success", seconds: float = 1.0) -> dict[str, Any]:
    info = {"Launch Time": at_s * 1000, "Finish Time": (at_s + seconds) * 1000}
    return {"Event": event_log.TASK_END, "Task Info": info, "Task End Reason": {"Reason": reason}}


MARK = "2026-11-18T11:00:0{}.000Z"
SPAN = Span(at_s=60.0, until_s=100.0, slots=2)


def run_of(*events: dict[str, Any]) -> LoggedRun:
    return logged_run(events)


def test_batch_time_is_compared_with_the_batches_before() -> None:
    run = run_of(*(progress(number, 4.0 if number >= 6 else 1.0) for number in range(10)))
    before_s = mean_seconds(run.between(0.0, SPAN.at_s))
    assert before_s == 1.0
    assert effect_of(labels.BATCH_TIME, run, SPAN, before_s) == 0.75
    assert effect_of(labels.BATCH_TIME, run, SPAN, 9.0) == 0.0


def test_the_first_batches_and_those_without_rows_do_not_count() -> None:
    empty = progress(5, 1.0)
    empty["progress"]["sources"][0]["numInputRows"] = 0
    run = run_of(*(progress(number, 1.0) for number in range(5)), empty)
    assert [batch.batch for batch in run.between(0.0, 1e9)] == list(range(COLD_BATCHES, 5))


def test_failed_attempts_and_losses_are_counted_while_the_fault_acts() -> None:
    removed = {"Event": event_log.EXECUTOR_REMOVED, "Timestamp": 70_000, "Executor ID": "1"}
    run = run_of(task(50, "ExceptionFailure"), task(70), task(80, "ExceptionFailure"), removed)
    assert effect_of(labels.FAILED_ATTEMPTS, run, SPAN, 0.0) == 0.5
    assert effect_of(labels.LOSSES, run, SPAN, 0.0) == 0.5


def test_idle_slots_are_those_without_a_task() -> None:
    run = run_of(task(60, seconds=20), task(80, seconds=20))
    assert effect_of(labels.IDLE_SLOTS, run, SPAN, 0.0) == 0.5


@pytest.mark.parametrize(("held_rows", "effect"), [(0, 0.0), (25, 0.25)])
def test_the_backlog_is_what_was_left_of_what_arrived(held_rows: int, effect: float) -> None:
    events = [progress(number, 1.0) for number in range(10)]
    for number in range(7, 10):
        source = events[number]["progress"]["sources"][0]
        source["endOffset"] = source["latestOffset"] - held_rows * (number - 6)
    assert effect_of(labels.BACKLOG, run_of(*events), SPAN, 0.0) == effect


def test_a_watermark_that_does_not_move_stands_still() -> None:
    moving = [progress(number, 1.0, eventTime={"watermark": MARK.format(number)}) for number in range(10)]
    standing = [progress(number, 1.0, eventTime={"watermark": MARK.format(5)}) for number in range(10)]
    assert effect_of(labels.STANDSTILL, run_of(*moving), SPAN, 0.0) == 0.0
    assert effect_of(labels.STANDSTILL, run_of(*standing), SPAN, 0.0) == 1.0


def test_state_growth_is_what_was_added() -> None:
    growing = [progress(number, 1.0, stateOperators=[{"numRowsTotal": 100 * number}]) for number in range(10)]
    assert effect_of(labels.STATE_GROWTH, run_of(*growing), SPAN, 0.0) == pytest.approx(1 - 6 / 9, abs=0.001)
