"""Pauses before a failed query restarts: they double up to a limit, and end."""

from __future__ import annotations

from homeostat.spark.act.retries import LONGEST_PAUSE_S, MOST_FAILURES, Retries


def test_the_pauses_double_up_to_the_longest() -> None:
    retries = Retries()
    reports = [retries.plan("no broker", 0.0) for _ in range(MOST_FAILURES)]
    assert reports[0] == "the query failed and restarts in 1 s: no broker"
    assert reports[3] == "the query failed and restarts in 8 s: no broker"
    assert reports[-1] == f"the query failed and restarts in {LONGEST_PAUSE_S:g} s: no broker"
    assert retries.gave_up == ""


def test_it_gives_up_after_too_many_failures_in_a_row() -> None:
    retries = Retries()
    for _ in range(MOST_FAILURES):
        retries.plan("no broker", 0.0)
    report = retries.plan("no disk", 0.0)
    assert report == "the query failed 10 times in a row and will not be restarted: no disk"
    assert retries.gave_up == "no disk"


def test_a_batch_that_finishes_resets_the_count() -> None:
    retries = Retries()
    for _ in range(MOST_FAILURES):
        retries.plan("no broker", 0.0)
    retries.note_batch()
    assert retries.plan("no broker", 0.0) == "the query failed and restarts in 1 s: no broker"


def test_a_restart_is_due_after_its_pause_and_only_once() -> None:
    retries = Retries()
    assert not retries.is_planned
    assert not retries.due(1e9)
    retries.plan("no broker", 100.0)
    assert retries.is_planned
    assert not retries.due(100.9)
    assert retries.due(101.0)
    retries.note_start()
    assert not retries.is_planned
    assert not retries.due(1e9)
