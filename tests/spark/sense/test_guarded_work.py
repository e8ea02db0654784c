"""Errors of sensors become events, once."""

from __future__ import annotations

from homeostat.core.events import Event, Failure
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.sensor_error import SensorError


class Guarded:
    def __init__(self) -> None:
        self.now_s, self.events = 0.0, list[Event]()
        self.guard = GuardedWork(self.events.append, lambda: self.now_s)

    def fails(self, error: Exception, at_s: float) -> None:
        self.now_s = at_s

        def work() -> None:
            raise error

        assert not self.guard.run("tasks", work)


def test_an_error_is_one_event_until_it_was_gone_for_a_minute() -> None:
    guarded = Guarded()
    for at_s in (0.0, 30.0, 80.0, 141.0):
        guarded.fails(ValueError(f"at {at_s:g}\nsecond line"), at_s)
    assert guarded.events == [
        Failure("sensor of tasks", "ValueError: at 0", 0.0),
        Failure("sensor of tasks", "ValueError: at 141", 141.0),
    ]


def test_only_an_error_of_the_rest_api_says_that_it_does_not_answer() -> None:
    guarded = Guarded()
    guarded.guard.spark_answers = True
    guarded.fails(KeyError("x"), 0.0)
    assert guarded.guard.spark_answers
    guarded.fails(SensorError("no answer", where="http://driver", kind="late"), 0.0)
    assert not guarded.guard.spark_answers
    assert [event.error for event in guarded.events if isinstance(event, Failure)][1:] == ["http://driver: no answer"]


def test_work_that_succeeds_says_nothing() -> None:
    guarded = Guarded()
    assert guarded.guard.run("tasks", lambda: None)
    assert guarded.events == []
