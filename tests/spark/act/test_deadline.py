"""Waiting ends with the condition, with the time, or when it is cancelled."""

from __future__ import annotations

from threading import Event

from homeostat.spark.act.deadline import Deadline


def test_a_condition_is_checked_even_when_no_time_is_left() -> None:
    assert Deadline.after(0.0).wait_until(lambda: True)
    assert not Deadline.after(0.0).wait_until(lambda: False)


def test_waiting_ends_as_soon_as_the_condition_holds() -> None:
    answers = iter([False, False, True])
    assert Deadline.after(60.0).wait_until(lambda: next(answers), poll_s=0.001)


def test_a_cancelled_deadline_has_no_time_left() -> None:
    cancelled = Event()
    deadline = Deadline.after(3600.0, cancelled)
    shorter = deadline.at_most(1800.0)
    cancelled.set()
    assert deadline.left_s == shorter.left_s == 0.0
    assert not shorter.wait_until(lambda: False)


def test_a_part_of_a_deadline_never_outlasts_it() -> None:
    deadline = Deadline.after(10.0)
    assert deadline.at_most(3600.0).at_s == deadline.at_s
    assert deadline.at_most(1.0).at_s < deadline.at_s
