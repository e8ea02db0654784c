"""Pauses before a failed query restarts: they double up to a limit, and end."""

from __future__ import annotations

from homeostat.spark.act.retries import HEALTHY_S, LONGEST_PAUSE_S, MOST_FAILURES, Retries


def test_the_pauses_double_up_to_the_longest() -> None:
    retries = Retries()
    reports = [retries.plan("no broker", 0.0) for _ in range(MOST_FAILURES)]
    assert reports[0] == "the query failed and restarts in 1 s: no broker"
    assert reports[3] == "the query failed and restarts in 8 s: no broker"
    assert reports[-1] == f"the query failed and restarts in {LONGEST_PAUSE_S:g} s: no broker"
    assert retries.gave_up == ""


def test_it_gives_up_after_too_many_failures() -> None:
    retries = Retries()
    for _ in range(MOST_FAILURES):
        retries.plan("no broker", 0.0)
    report = retries.plan("no disk", 0.0)
    assert report == "the query failed 10 times within 60 min and will not be restarted: no disk"
    assert retries.gave_up == "no disk"


def restarts_in(seconds: float, lifetime_s: float) -> tuple[int, Retries]:
    """How often a query is restarted that finishes its batches for a while after each start, and then fails."""
    retries, now_s, restarts = Retries(), 0.0, 0
    while now_s < seconds and not retries.gave_up:
        ends_s = now_s + lifetime_s
        while now_s < ends_s:
            retries.note_batch(now_s)
            now_s += 1.0
        retries.plan("the sink is full", now_s)
        while retries.is_planned and not retries.due(now_s):
            now_s += 1.0
        if not retries.gave_up:
            retries.note_start()
            restarts += 1
    return restarts, retries


def test_one_batch_after_each_restart_does_not_reset_the_pauses() -> None:
    restarts, retries = restarts_in(3600.0, lifetime_s=4.0)
    assert restarts == MOST_FAILURES
    assert retries.gave_up == "the sink is full"


def test_a_query_that_works_for_long_is_restarted_for_ever_and_at_once() -> None:
    restarts, retries = restarts_in(30 * 86_400.0, lifetime_s=HEALTHY_S + 60.0)
    assert restarts > 1_000
    assert not retries.gave_up
    assert retries.plan("no broker", 30 * 86_400.0).startswith("the query failed and restarts in")
    retries.note_batch(40 * 86_400.0)
    retries.note_batch(40 * 86_400.0 + HEALTHY_S)
    assert retries.plan("no broker", 41 * 86_400.0) == "the query failed and restarts in 1 s: no broker"


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
