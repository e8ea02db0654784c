"""How well an application fared, from the records of its batches and actions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.log_views.timeline import Change, Point, Timeline, actions_of, behind, points_of

STARTED_S = 1.7e9


def point(at_s: float, pending: float, executors: int = 2) -> Point:
    return Point(at_s, 2.0, 1000.0, 1000.0, pending, executors, 1.5, 2.0)


def timeline(*pending: float, changes: tuple[Change, ...] = ()) -> Timeline:
    points = tuple(point(2.0 * (number + 1), rows) for number, rows in enumerate(pending))
    return Timeline("demo", "regulated", 2.0 * len(pending), ((0.0, 1000.0),), points, changes, (), 0, ())


def test_behind_is_more_than_two_triggers_of_rows_and_the_unknown_is_not() -> None:
    assert behind(4001, 1000, 2.0)
    assert not behind(4000, 1000, 2.0)
    assert not behind(math.nan, 1000, 2.0)
    assert not behind(9000, math.nan, 2.0)
    assert point(2, 4001).behind
    assert not replace(point(2, 4001), trigger_s=0.0, seconds=3.0).behind


def test_figures_of_a_run() -> None:
    run = timeline(1000, 9000, 5000, 1000, math.nan)
    assert run.behind_s == 4.0
    assert run.largest_backlog == 9000
    assert run.executor_seconds == 20
    assert run.healthy
    assert not timeline(1000, 9000).healthy
    assert not timeline().healthy


def test_a_batch_that_does_not_end_is_neither_healthy_nor_free() -> None:
    run = replace(timeline(1000, 9000, changes=(Change(3, "a"), Change(10, "b"))), duration_s=30.0)
    assert run.behind_s == 28.0
    assert run.executor_seconds == 60
    assert [recovery.healthy_after_s for recovery in run.recoveries] == [None, None]
    assert not run.healthy


def test_recovery_counts_from_each_change_to_the_first_batch_that_shows_it() -> None:
    changes = (Change(1, "a"), Change(5, "b"), Change(13, "c"))
    run = timeline(1000, 1000, 9000, 5000, 1000, 1000, 9000, changes=changes)
    assert [recovery.healthy_after_s for recovery in run.recoveries] == [0.0, 5.0, None]
    answer = run.as_json()
    assert [change["healthy_after_s"] for change in answer["changes"]] == [0.0, 5.0, None]


def test_a_batch_becomes_a_point_and_what_it_does_not_tell_is_unknown() -> None:
    body: dict[str, JSON] = {"rows": 3000, "seconds": 1.5, "trigger_s": 2.0, "span_s": 2.0, "workers": 3}
    records = [Record("b-1", "batch", STARTED_S + 10, "", body=body), Record("a-1", "action", STARTED_S + 11, "")]
    (point,) = points_of(records, STARTED_S, lambda at_s: 100 * at_s)
    assert (point.at_s, point.load_per_s, point.rate_per_s, point.executors) == (10.0, 1000.0, 1500.0, 3)
    assert math.isnan(point.pending_rows)


@pytest.mark.parametrize(("record_count", "took_s", "verdict"), [(1, None, ""), (2, 8.0, ""), (3, 8.0, "helped")])
def test_an_action_is_reported_as_far_as_it_has_come(record_count: int, took_s: float | None, verdict: str) -> None:
    records = [
        Record("a-1", "action", STARTED_S + 5, "grows", body={"kind": "scale-up", "cause": "under-provisioned"}),
        Record("c-1", "receipt", STARTED_S + 13, "", body={"action": "a-1", "applied": True}),
        Record("u-1", "outcome", STARTED_S + 30, "", body={"action": "a-1", "verdict": "helped"}),
    ]
    (action,) = actions_of(records[:record_count], STARTED_S)
    assert (action.id, action.at_s, action.kind, action.cause) == ("a-1", 5.0, "scale-up", "under-provisioned")
    assert (action.took_s, action.verdict) == (took_s, verdict)


def test_an_action_without_effect_took_no_time() -> None:
    records = [
        Record("a-1", "action", STARTED_S, "grows", body={"kind": "scale-up"}),
        Record("c-1", "receipt", STARTED_S + 60, "", body={"action": "a-1", "applied": False}),
    ]
    assert actions_of(records, STARTED_S)[0].took_s is None
