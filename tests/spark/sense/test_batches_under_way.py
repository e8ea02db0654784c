"""The batch that runs now, with and without its jobs."""

from __future__ import annotations

from homeostat.core.events import Event, UnderWay
from homeostat.spark.sense.batches_under_way import BatchesUnderWay
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.rest_answers import moment_s
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.stage_reader import StageReader
from support.rest_server import job, rest_answering, stage

NOW_S = moment_s("2026-11-15T05:02:00Z")


def looked(rest: RestClient, events: list[Event], *, busy: bool, answers: bool) -> BatchesUnderWay:
    book = QueryBook(lambda: [QueryHandle("words", "run-1", busy=lambda: busy)], lambda reason: None)
    guard = GuardedWork(events.append, lambda: NOW_S)
    guard.spark_answers = answers
    executors = ExecutorWatch(rest, lambda: NOW_S, lambda gone_ids, new_ids: None, tuple)
    under_way = BatchesUnderWay(
        book,
        StageReader(rest, book, executors, guard, None),
        guard,
        events.append,
        lambda: NOW_S,
        lambda moment_s: moment_s,
    )
    under_way.look()
    return under_way


def test_a_batch_with_jobs_shows_its_latest_stage() -> None:
    running = job(3, 7, stages=(5,), running=True)
    answers = {"jobs": [running], "stages/5": [stage(5, status="ACTIVE")]}
    events: list[Event] = []
    with rest_answering(answers) as rest:
        under_way = looked(rest, events, busy=True, answers=True)
    (event,) = events
    assert isinstance(event, UnderWay)
    assert (event.run, event.batch, event.tasks_done, event.tasks) == ("run-1", 7, 1, 1)
    assert event.since_s == moment_s("2026-11-15T05:01:03Z")
    assert under_way.longest == event


def test_a_batch_without_jobs_is_seen_if_the_query_is_busy() -> None:
    events: list[Event] = []
    rest = RestClient("http://127.0.0.1:1")
    assert looked(rest, events, busy=False, answers=False).longest is None
    assert events == []
    busy = looked(rest, events, busy=True, answers=False).longest
    assert busy is not None
    assert (busy.batch, busy.since_s) == (0, NOW_S)


def test_of_many_queries_each_has_its_turn() -> None:
    handles = [QueryHandle(f"q{number}", f"run-{number}", busy=lambda: True) for number in range(25)]
    events: list[Event] = []
    rest = RestClient("http://127.0.0.1:1")
    book = QueryBook(lambda: handles, lambda reason: None)
    guard = GuardedWork(events.append, lambda: NOW_S)
    executors = ExecutorWatch(rest, lambda: NOW_S, lambda gone_ids, new_ids: None, tuple)
    stages = StageReader(rest, book, executors, guard, None)
    under_way = BatchesUnderWay(book, stages, guard, events.append, lambda: NOW_S, lambda moment_s: moment_s)
    looks = []
    for _ in range(3):
        under_way.look()
        looks.append(len(events))
    assert looks == [10, 20, 30]
    assert {event.run for event in events if isinstance(event, UnderWay)} == {handle.run_id for handle in handles}
