"""Calls without a time limit of their own, under one."""

from __future__ import annotations

import threading

import pytest

from homeostat.spark.sense.bounded_calls import BoundedCalls
from homeostat.spark.sense.sensor_error import SensorError

PATIENT_S = 60.0


def test_a_result_and_an_error_reach_the_caller() -> None:
    calls = BoundedCalls("test")
    assert calls.run(lambda: 7, PATIENT_S) == 7
    with pytest.raises(ZeroDivisionError):
        calls.run(lambda: 1 // 0, PATIENT_S)
    calls.close()


def test_a_call_that_hangs_keeps_nobody_waiting_and_takes_one_thread() -> None:
    released = threading.Event()
    calls = BoundedCalls("one hangs")
    with pytest.raises(SensorError, match="no answer within") as late:
        calls.run(released.wait, 0.05)
    assert late.value.kind == "late"
    for _ in range(3):
        with pytest.raises(SensorError) as hung:
            calls.run(lambda: 7, PATIENT_S)
        assert hung.value.kind == "hung"
    assert [thread.name for thread in threading.enumerate()].count("homeostat one hangs") == 1
    released.set()
    calls.close()


def test_it_goes_on_once_the_call_has_ended() -> None:
    released = threading.Event()
    calls = BoundedCalls("test")
    with pytest.raises(SensorError):
        calls.run(released.wait, 0.05)
    ended, late = threading.Event(), calls._late
    assert late is not None
    late.add_done_callback(lambda _: ended.set())
    released.set()
    assert ended.wait(PATIENT_S)
    assert calls.run(lambda: 7, PATIENT_S) == 7
    calls.close()
