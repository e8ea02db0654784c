"""Batches that ended and idle triggers, as observations."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from homeostat.core.events import Event, Failure, Observed
from homeostat.core.observation import Observation
from homeostat.spark.clocks import SteadyClock
from homeostat.spark.sense.ended_batches import EndedBatches, IdleTrigger
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.rest_answers import moment_s
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.source_formats import SourceOptions
from homeostat.spark.sense.stage_reader import StageReader
from support.rest_server import progress

BEFORE_S = moment_s("2026-11-15T05:00:00Z")
AFTER_S = moment_s("2026-11-15T05:30:00Z")
NOBODY = "http://127.0.0.1:1"  # the REST API is never asked: it is not known to answer


class Batches:
    """One query, with what Spark remembers of it."""

    def __init__(self, *sources: SourceOptions, since_s: float = BEFORE_S) -> None:
        self.now_s, self.step_s = since_s, 0.0
        self.remembered: list[Any] = []
        self.events: list[Event] = []
        handle = QueryHandle("words", "run-1", 5.0, lambda: self.remembered[::-1], sources=sources)
        rest = RestClient(NOBODY)
        book = QueryBook(lambda: [handle], lambda reason: None)
        guard = GuardedWork(self.events.append, lambda: 0.0)
        executors = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: None, tuple)
        stages = StageReader(rest, book, executors, guard, None)
        self.clock = SteadyClock(lambda: self.now_s + self.step_s, lambda: self.now_s)
        self.ended = EndedBatches(
            book,
            stages,
            executors,
            guard,
            lambda query, topology, tasks: None,
            self.events.append,
            self.clock.now_s,
            self.clock.from_time_of_day,
        )
        self.now_s = AFTER_S

    @property
    def observations(self) -> list[Observation]:
        return [event.observation for event in self.events if isinstance(event, Observed)]


def test_batches_that_the_listener_missed_come_first_and_each_comes_once() -> None:
    batches = Batches()
    batches.remembered = [progress(number, at=f"05:01:{10 * number}") for number in (1, 2, 3)]
    batches.ended.on_progress(progress(4, at="05:01:40"))
    batches.ended.on_progress(progress(4, at="05:01:40"))
    batches.ended.catch_up()
    assert [each.batch for each in batches.observations] == [1, 2, 3, 4]
    assert [each.span_s for each in batches.observations] == [2.0, 10.0, 10.0, 10.0]
    assert batches.observations[-1].flows[0].arrival_per_s == 10.0


def test_batches_from_before_the_start_and_of_other_queries_are_left_out() -> None:
    batches = Batches(since_s=moment_s("2026-11-15T05:01:30Z"))
    batches.remembered = [progress(1, at="05:01:10"), progress(2, at="05:01:32")]
    batches.ended.catch_up()
    batches.ended.on_progress(progress(9, run="of another query"))
    assert [each.batch for each in batches.observations] == [2]


def test_an_idle_trigger_means_that_nothing_arrived_unless_rows_are_held_back() -> None:
    at_s = moment_s("2026-11-15T05:01:40Z")
    for source, rate in ((SourceOptions("kafka"), 0.0), (SourceOptions("kafka", {"minOffsetsPerTrigger": "9"}), None)):
        batches = Batches(source)
        batches.ended.on_progress(progress(0, at="05:01:30"))
        batches.ended.on_idle(IdleTrigger("run-1", at_s))
        idle = batches.observations[-1]
        assert (idle.run, idle.span_s, idle.flows[0].rows) == ("run-1/idle", 8.0, 0.0)
        arrival = idle.flows[0].arrival_per_s
        assert math.isnan(arrival) if rate is None else arrival == rate


def stamped(batch: int, ended_s: float) -> Any:
    """The report of a batch that ended at this time of day, after two seconds."""
    return progress(batch, at=f"{datetime.fromtimestamp(ended_s - 2.0, UTC):%H:%M:%S}")


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_clock_that_is_set_does_not_blind_the_sensor(step_s: float) -> None:
    """Batches every ten seconds. After the third, the clock of the machine is set, and Spark's clock is the same."""
    batches = Batches(since_s=moment_s("2026-11-15T12:00:00Z"))
    batches.now_s = moment_s("2026-11-15T12:01:00Z")
    for number in range(6):
        batches.now_s += 10.0
        batches.step_s = step_s if number >= 3 else 0.0
        batches.ended.on_progress(stamped(number, batches.now_s + batches.step_s))
    assert [each.batch for each in batches.observations] == list(range(6))
    assert [each.span_s for each in batches.observations] == pytest.approx([2.0] + [10.0] * 5)
    assert [each.at_s for each in batches.observations][-1] == pytest.approx(batches.now_s)
    assert batches.ended.clipped == 0


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_report_from_before_the_clock_was_set_still_counts(step_s: float) -> None:
    batches = Batches(since_s=moment_s("2026-11-15T12:00:00Z"))
    batches.now_s = moment_s("2026-11-15T12:01:00Z")
    batches.ended.on_progress(stamped(0, batches.now_s))
    report = stamped(1, batches.now_s + 10.0)
    batches.now_s += 11.0
    batches.step_s = step_s
    batches.ended.on_progress(report)
    batches.now_s += 9.0
    batches.ended.on_progress(stamped(2, batches.now_s + step_s))
    first, second, third = batches.observations
    assert first.at_s < second.at_s < third.at_s <= batches.now_s
    assert all(each.span_s > 0 for each in batches.observations)
    assert batches.ended.clipped == 1


def test_a_batch_that_seems_to_end_before_the_last_observation_is_clipped_counted_and_reported_once() -> None:
    batches = Batches()
    batches.ended.on_progress(progress(0, at="05:01:30"))
    last_s = moment_s("2026-11-15T05:01:42.003Z")
    batches.ended.on_idle(IdleTrigger("run-1", last_s))
    for number in (1, 2):
        batches.ended.on_progress(progress(number, at="05:01:40"))
    assert [each.at_s > last_s for each in batches.observations] == [False, False, True, True]
    assert [each.span_s for each in batches.observations[2:]] == [2.0, 2.0]
    assert batches.ended.clipped == 2
    (remark,) = [event for event in batches.events if isinstance(event, Failure) and event.harmless]
    assert remark.where == "sensor of the clock"
    assert remark.error == (
        "the end of a batch was corrected by 0.004 s (correction number 1): a clock was set, or clocks differ"
    )
